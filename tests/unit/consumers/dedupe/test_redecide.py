"""Redecide: decisions on a user's facts with other thresholds, and the corrections that apply them."""

from mnemon_consumers.dedupe.redecide.corrections import Correction, build_corrections
from mnemon_consumers.dedupe.redecide.plan import FactVectors, redecide_proposals
from mnemon_consumers.dedupe.state.log import fold_log
from mnemon_contracts.events.fact_comparison import FactMergedV1
from mnemon_contracts.events.memory import (
    Decision,
    Fact,
    FactConfirmedV1,
    FactForgottenV1,
    FactProposedV1,
    FactRejectedV1,
    FactSavedV1,
    FactUpdatedV1,
    Lineage,
)
from mnemon_contracts.settings.groups import FactLimits
from tests.support.facts.decided_user import LIKENESS, OWNER, DecidedUser, by

APART, TOGETHER = by(0.95), by(0.5)


def test_facts_that_were_kept_apart_are_merged_and_kept_apart_again() -> None:
    user = DecidedUser()
    user.say("User likes green tea", 0, APART)
    user.say("They are fond of sencha", 30, APART)
    assert user.said == {"pf_001": "User likes green tea", "ar_001": "They are fond of sencha"}
    before = user.contents

    assert user.redecide(TOGETHER) == [
        Correction("rewritten", "pf_001", "User likes green tea", becomes="They are fond of sencha"),
        Correction("merged", "ar_001", "They are fond of sencha", "pf_001", "They are fond of sencha"),
    ]
    assert user.said == {"pf_001": "They are fond of sencha"}
    assert user.redecide(TOGETHER) == []

    assert user.redecide(APART) == [
        Correction("apart", "ar_002", "They are fond of sencha", "pf_001"),
        Correction("rewritten", "pf_001", "They are fond of sencha", becomes="User likes green tea"),
    ]
    assert user.contents == before
    user.redecide(TOGETHER)
    assert user.said == {"pf_001": "They are fond of sencha"}


def test_redecided_events_name_their_origin() -> None:
    user = DecidedUser()
    user.say("User likes green tea", 0, TOGETHER)
    user.say("They are fond of sencha", 30, TOGETHER)
    known = len(user.log)
    user.redecide(APART)
    saved, updated = [event for event, _, _ in user.log[known:]]
    assert isinstance(saved, FactSavedV1)
    assert isinstance(updated, FactUpdatedV1)
    assert (saved.by, updated.by) == ("redecide", "redecide")
    assert saved.lineage.sources == (3,)
    assert updated.lineage.sources == (1,)
    assert (saved.decision.proposal_id, saved.decision.nearest) == ("p2", "pf_001")
    assert round(saved.decision.similarity or 0, 3) == 0.866
    assert saved.decision.update_threshold == 0.95
    assert updated.decision
    assert updated.decision.proposal_id == "p0"


def test_second_redecide_changes_nothing() -> None:
    user = DecidedUser()
    user.say("User likes green tea", 0, APART)
    user.say("They are fond of sencha", 30, APART)
    log = list(user.log)
    user.redecide(TOGETHER)
    made = user.log[len(log) :]
    assert len(made) == 3
    for killed_after in range(len(made)):
        user.log = log + made[:killed_after]
        user.redecide(TOGETHER)
        assert {event_id for _, event_id, _ in user.log[len(log) :]} == {event_id for _, event_id, _ in made}


def test_redecide_restores_no_forgotten_fact() -> None:
    user = DecidedUser()
    user.say("User likes green tea", 0, TOGETHER)
    user.say("They are fond of sencha", 30, TOGETHER)
    user.publish(FactForgottenV1(fact_id="pf_001"))
    assert user.redecide(APART) == []

    merged = DecidedUser()
    merged.say("User likes green tea", 0, APART)
    merged.say("They are fond of sencha", 30, APART)
    merged.redecide(TOGETHER)
    merged.publish(FactForgottenV1(fact_id="pf_001"))
    assert merged.redecide(APART) == []


def test_redecide_keeps_facts_changed_by_hand() -> None:
    user = DecidedUser()
    user.say("User likes green tea", 0, APART)
    user.say("They are fond of sencha", 30, APART)
    user.rewrite("ar_001", "They collect tea pots")
    assert user.redecide(TOGETHER) == []
    user.say("Somebody has a kettle", 30, TOGETHER)
    user.rewrite("pf_001", "User likes black tea")
    user.redecide(APART)
    assert set(user.said.values()) == {
        "User likes black tea",
        "They collect tea pots",
        "Somebody has a kettle",
    }


def test_refused_proposal_stays_refused_and_accepted_one_stays() -> None:
    lenient = APART.model_copy(update={"policy": APART.policy.model_copy(update={"min_length": 1})})
    user = DecidedUser()
    user.say("Likes tea", 0, lenient)
    user.say("Tea or so", 40, APART)
    assert isinstance(user.log[1][0], FactSavedV1)
    assert isinstance(user.log[3][0], FactRejectedV1)
    assert user.redecide(TOGETHER) == []
    assert user.redecide(by(0.9)) == []


def test_redecide_keeps_limits() -> None:
    narrow = FactLimits(per_user=1, profile=1, working=1)
    user = DecidedUser()
    user.say("User likes green tea", 0, TOGETHER)
    user.say("They are fond of sencha", 30, TOGETHER)
    changes = user.redecide(by(0.95, limits=narrow))
    assert [change.kind for change in changes] == ["apart", "rewritten", "evicted"]
    assert list(user.said) == ["ar_001"] or list(user.said) == ["pf_001"]
    assert user.redecide(by(0.95, limits=narrow)) == []


def test_a_fact_without_its_proposal_stands() -> None:
    user = DecidedUser()
    user.say("User likes green tea", 0, APART)
    fact = Fact(text="They are fond of sencha")
    user.vectors[fact.text] = user.vectors["User likes green tea"]
    for number in (7, 8):
        event = FactSavedV1(fact_id=f"ar_00{number}", fact=fact, decision=Decision(proposal_id="gone"))
        user.publish(event)
    assert user.redecide(TOGETHER) == []


def test_a_fact_without_its_proposal_is_not_replaced() -> None:
    user = DecidedUser()
    user.say("User likes green tea with milk", 0, APART)
    fact = Fact(text="User likes green tea")
    user.vectors[fact.text] = user.vectors["User likes green tea with milk"][::-1]
    user.publish(FactSavedV1(fact_id="ar_007", fact=fact, decision=Decision(proposal_id="gone")))
    user.publish(FactProposedV1(text="User likes green tea with milk", supersedes="ar_007"), "p3")
    user.publish(FactConfirmedV1(fact_id="pf_001", decision=Decision(proposal_id="p3")))
    assert user.redecide(APART) == []
    user.say("They are fond of sencha", 85, by(0.999))
    assert [change.fact_id for change in user.redecide(TOGETHER)] == ["ar_007", "ar_008"]
    assert user.said["ar_007"] == "They are fond of sencha"


def test_a_fact_without_its_proposal_keeps_the_facts_that_its_decision_names() -> None:
    user = DecidedUser()
    user.say("Somebody has a kettle", 0, APART)
    fact = Fact(text="User likes green tea", tier="archive")
    named = Decision(proposal_id="gone", nearest="ar_001", undecided=("ar_001", "ar_009"))
    user.vectors[fact.text] = user.vectors["Somebody has a kettle"][::-1]
    user.publish(FactSavedV1(fact_id="ar_007", fact=fact, decision=named))
    user.say("They are fond of sencha", 70, TOGETHER)
    assert user.said["ar_007"] == "They are fond of sencha"
    user.redecide(APART)
    event, _, _ = user.log[-1]
    assert isinstance(event, FactUpdatedV1)
    assert (event.fact_id, event.fact.text) == ("ar_007", "User likes green tea")
    assert event.decision
    assert (event.decision.nearest, event.decision.undecided) == ("ar_001", ("ar_001",))


def test_a_fact_keeps_the_tier_that_an_earlier_version_gave_it() -> None:
    user = DecidedUser()
    user.propose("User likes green tea", 0)
    fact = Fact(text="User likes green tea", kind="user_fact", tier="archive", importance=3)
    user.publish(FactSavedV1(fact_id="ar_001", fact=fact, decision=Decision(proposal_id="p0")))
    assert user.redecide(TOGETHER) == []
    assert user.facts.facts["ar_001"].fact == fact


def test_of_copies_of_an_event_the_first_counts() -> None:
    user = DecidedUser()
    user.say("User likes green tea", 0, APART)
    user.rewrite("pf_001", "User likes black tea")
    (saved, saved_id, at), (rewritten, rewritten_id, _) = user.log[1:]
    copies = [
        (saved.model_copy(update={"fact_id": "pf_002"}), saved_id, at),
        (rewritten.model_copy(update={"lineage": Lineage(model="another")}), rewritten_id, at),
    ]
    found = fold_log([*user.log, *copies])
    assert [(outcome, event_id) for outcome, event_id in found.decisions.values()] == [(saved, saved_id)]
    redecided = redecide_proposals([*user.log, *copies], found, APART, user.meanings)
    assert redecided.writers == {"p0": rewritten.model_copy(update={"fact_id": "p0"})}


def test_fact_merged_after_a_comparison_stays_merged() -> None:
    user = DecidedUser()
    user.say("User likes green tea", 0, APART)
    user.say("They are fond of sencha", 30, APART)
    user.say("Tea is their usual drink", 60, APART)
    former = user.facts.facts["pf_001"].fact
    merged = FactMergedV1(
        fact_id="pf_001",
        merged_id="ar_001",
        relation="same",
        fact=former.model_copy(update={"text": "They are fond of sencha"}),
        former=former,
        compared_id="compared",
    )
    user.publish(merged, "merged")
    user.publish(FactForgottenV1(fact_id="ar_001", reason="superseded"), "ended")
    before = user.contents
    assert user.redecide(APART) == []
    user.redecide(TOGETHER)
    assert user.said["pf_001"] == "They are fond of sencha"
    user.redecide(APART)
    assert user.contents == before


def test_a_decision_that_is_made_again_names_undecided_facts_by_their_ids() -> None:
    user = DecidedUser()
    user.say("User likes green tea", 0, TOGETHER)
    user.say("They are fond of sencha", 30, TOGETHER)
    found = fold_log(user.log)
    redecided = redecide_proposals(user.log, found, APART, FactVectors(LIKENESS, user.vectors))
    saved = redecided.decisions["p2"]
    assert isinstance(saved, FactSavedV1)
    undecided = saved.decision.model_copy(update={"undecided": ("p0", "gone")})
    redecided.decisions["p2"] = saved.model_copy(update={"decision": undecided})
    needed = build_corrections(OWNER, found, redecided, APART.limits, user.now)
    (event,) = (event for name, event in needed.events if name == "fact.saved")
    assert isinstance(event, FactSavedV1)
    assert event.decision.undecided == ("pf_001",)
