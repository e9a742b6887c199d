"""What other thresholds would have made of a user's facts, and how they come to it."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from consumers.dedupe.correcting import Change, corrections
from consumers.dedupe.decide import Proposal, decide
from consumers.dedupe.redeciding import Likeness, decided_anew, texts
from consumers.dedupe.standing import Logged, standing
from consumers.dedupe.state import UserFacts
from contracts.base import Event
from contracts.memory import (
    Decision,
    Fact,
    FactEvictedV1,
    FactExpiredV1,
    FactForgottenV1,
    FactProposedV1,
    FactRejectedV1,
    FactSavedV1,
    FactUpdatedV1,
    Lineage,
)
from contracts.settings import Dedupe, FactLimits, SettingsV1
from infra.models.embedding import Thresholds
from infra.vectors.port import Dense

OWNER = "acme", "u1"
BEGIN = datetime(2026, 11, 21, 12, tzinfo=UTC)
THRESHOLDS = Thresholds(update=0.8, duplicate=0.95, relevant=0.5)


def by(update: float, duplicate: float = 1, limits: FactLimits | None = None, **said: Any) -> SettingsV1:
    dedupe = Dedupe(update_threshold=update, duplicate_threshold=duplicate, **said)
    return SettingsV1(dedupe=dedupe, limits=limits or FactLimits())


APART, TOGETHER = by(0.95), by(0.5)


class User:
    """A user whose texts lie in given directions: a log, and what it amounts to."""

    def __init__(self) -> None:
        self.log: list[Logged] = []
        self.facts = UserFacts()
        self.now = BEGIN
        self.meanings: dict[str, Dense] = {}
        self.likeness = Likeness("given", THRESHOLDS, self.meanings)
        self._proposed: list[Proposal] = []

    @property
    def contents(self) -> list[str]:
        """What is shown, whatever it is called."""
        return sorted(known.fact.model_dump_json() for known in self.facts.live(self.now))

    @property
    def said(self) -> dict[str, str]:
        return {known.id: known.fact.text for known in self.facts.facts.values()}

    def publish(self, event: Event, event_id: str | None = None) -> None:
        self.now += timedelta(minutes=1)
        logged = event, event_id or str(event.id or f"event {len(self.log)}"), self.now
        self.log.append(logged)
        self.facts.apply(*logged)

    def propose(self, text: str, degrees: float, **said: Any) -> None:
        """Propose a fact; the similarity of two is the cosine of the angle between them."""
        angle = np.radians(degrees)
        self.meanings.setdefault(text, np.array([np.cos(angle), np.sin(angle)], dtype=np.float32))
        lineage = Lineage(sources=(len(self.log) + 1,), extractor="offline")
        event = FactProposedV1(text=text, lineage=lineage, **said)
        event_id = f"p{len(self.log)}"
        self.publish(event, event_id)
        self._proposed.append(Proposal(event_id, self.now, event))

    def decide(self, by: SettingsV1) -> None:
        """Have all decided that is proposed, as dedupe does."""
        for proposal in self._proposed:
            known = self.facts
            words = " ".join(proposal.event.text.split())
            nearest = self.likeness.nearest(words, known.live(proposal.at))
            for _, event in decide(proposal, known, nearest, by, THRESHOLDS, "given"):
                self.publish(event)
        self._proposed.clear()

    def say(self, text: str, degrees: float, settings: SettingsV1, **said: Any) -> None:
        self.propose(text, degrees, **said)
        self.decide(settings)

    def rewrite(self, fact_id: str, text: str) -> None:
        """Change a fact by hand."""
        former = self.facts.facts[fact_id].fact
        self.meanings.setdefault(text, np.array([0, 1], dtype=np.float32))
        fact = former.model_copy(update={"text": text})
        self.publish(FactUpdatedV1(fact_id=fact_id, fact=fact, former=former))

    def redecide(self, settings: SettingsV1) -> list[Change]:
        """Have all decided anew; returns what that changed."""
        found = standing(self.log)
        meanings = {text: self.meanings[text] for text in texts(self.log, found)}
        likeness = Likeness("given", THRESHOLDS, meanings)
        anew = decided_anew(self.log, found, settings, likeness)
        needed = corrections(OWNER, found, anew, settings.limits, self.now)
        for _, event in needed.decided:
            self.publish(event)
        assert self.facts.facts.keys() == found.facts.facts.keys()
        return needed.changes


def test_facts_that_were_kept_apart_are_merged_and_kept_apart_again() -> None:
    user = User()
    user.say("User likes green tea", 0, APART)
    user.say("They are fond of sencha", 30, APART)
    assert user.said == {"pf_001": "User likes green tea", "ar_001": "They are fond of sencha"}
    before = user.contents

    assert user.redecide(TOGETHER) == [
        Change("rewritten", "pf_001", "User likes green tea", becomes="They are fond of sencha"),
        Change("merged", "ar_001", "They are fond of sencha", "pf_001", "They are fond of sencha"),
    ]
    assert user.said == {"pf_001": "They are fond of sencha"}
    assert user.redecide(TOGETHER) == []

    assert user.redecide(APART) == [
        Change("apart", "ar_002", "They are fond of sencha", "pf_001"),
        Change("rewritten", "pf_001", "They are fond of sencha", becomes="User likes green tea"),
    ]
    assert user.contents == before
    user.redecide(TOGETHER)
    assert user.said == {"pf_001": "They are fond of sencha"}


def test_what_is_made_says_where_it_comes_from() -> None:
    user = User()
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


def test_made_twice_it_is_made_once() -> None:
    user = User()
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


def test_what_was_forgotten_does_not_come_back() -> None:
    user = User()
    user.say("User likes green tea", 0, TOGETHER)
    user.say("They are fond of sencha", 30, TOGETHER)
    user.publish(FactForgottenV1(fact_id="pf_001"))
    assert user.redecide(APART) == []

    merged = User()
    merged.say("User likes green tea", 0, APART)
    merged.say("They are fond of sencha", 30, APART)
    merged.redecide(TOGETHER)
    merged.publish(FactForgottenV1(fact_id="pf_001"))
    assert merged.redecide(APART) == []


def test_what_was_changed_by_hand_stays_a_fact_of_its_own() -> None:
    user = User()
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


def test_what_a_rule_refused_stays_refused_and_what_it_let_pass_stays() -> None:
    lenient = APART.model_copy(update={"policy": APART.policy.model_copy(update={"min_length": 1})})
    user = User()
    user.say("Likes tea", 0, lenient)
    user.say("Tea or so", 40, APART)
    assert isinstance(user.log[1][0], FactSavedV1)
    assert isinstance(user.log[3][0], FactRejectedV1)
    assert user.redecide(TOGETHER) == []
    assert user.redecide(by(0.9)) == []


def test_limits_hold() -> None:
    narrow = FactLimits(per_user=1, profile=1, working=1)
    user = User()
    user.say("User likes green tea", 0, TOGETHER)
    user.say("They are fond of sencha", 30, TOGETHER)
    changes = user.redecide(by(0.95, limits=narrow))
    assert [change.kind for change in changes] == ["apart", "rewritten", "evicted"]
    assert list(user.said) == ["ar_001"] or list(user.said) == ["pf_001"]
    assert user.redecide(by(0.95, limits=narrow)) == []


def test_a_fact_without_its_proposal_stands() -> None:
    user = User()
    user.say("User likes green tea", 0, APART)
    fact = Fact(text="They are fond of sencha")
    user.meanings[fact.text] = user.meanings["User likes green tea"]
    for number in (7, 8):
        event = FactSavedV1(fact_id=f"ar_00{number}", fact=fact, decision=Decision(proposal_id="gone"))
        user.publish(event)
    assert user.redecide(TOGETHER) == []


_NAMES = [f"Something about {name}" for name in ("foxes", "tea", "jazz", "hills", "chess", "snow")]
_TEXTS = [*_NAMES, f"{_NAMES[0]} and what not", f"Never again {_NAMES[1]}"]
_SETTINGS = st.builds(
    lambda bounds, on_duplicate: by(min(bounds), max(bounds), on_duplicate=on_duplicate),
    st.tuples(st.sampled_from([0.4, 0.9, 0.99]), st.sampled_from([0.6, 0.95, 1.0])),
    st.sampled_from(["rewrite", "confirm"]),
)
_PROPOSALS = st.tuples(
    st.just("propose"),
    st.sampled_from(_TEXTS),
    st.sampled_from([0, 25, 50, 75, 180]),
    st.fixed_dictionaries(
        {
            "tier": st.sampled_from([None, None, "profile", "working"]),
            "importance": st.sampled_from([None, 2, 9]),
            "supersedes": st.sampled_from([None, None, "ar_001", "pf_001", "ar_003", "wk_001"]),
        }
    ),
)
_STEPS = st.lists(
    st.one_of(
        _PROPOSALS,
        _PROPOSALS,
        st.tuples(st.sampled_from(["decide", "forget", "evict", "rewrite", "later"]), st.integers(0, 9)),
    ),
    min_size=6,
    max_size=25,
)


_PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""Logs are long: to make a failing one shorter takes minutes."""


def live_on(user: User, steps: Sequence[tuple[Any, ...]], settings: SettingsV1) -> None:
    """What a user does, and what is done about it."""
    for step in steps:
        match step:
            case "propose", text, degrees, said:
                user.propose(text, degrees, **said)
                continue
            case "later", days:
                user.now += timedelta(days=days)
                for known in list(user.facts.facts.values()):
                    if known.fact.expires_at and not known.is_live(user.now) and days % 2:
                        user.publish(FactExpiredV1(fact_id=known.id, expires_at=known.fact.expires_at))
            case "decide", _:
                user.decide(settings)
            case command, number:
                kept = list(user.facts.facts.values())
                if not kept:
                    continue
                known = kept[number % len(kept)]
                if command == "forget":
                    user.publish(FactForgottenV1(fact_id=known.id))
                elif command == "evict":
                    user.publish(FactEvictedV1(fact_id=known.id, tier=known.fact.tier, limit=1))
                else:
                    user.rewrite(known.id, f"By hand number {number}")
    user.decide(settings)


@given(_STEPS, _SETTINGS)
@settings(deadline=None, max_examples=50, phases=_PHASES)
def test_the_same_settings_change_nothing(steps: list[tuple[Any, ...]], same: SettingsV1) -> None:
    user = User()
    live_on(user, steps, same)
    assert user.redecide(same) == []


@given(_STEPS, _STEPS, _SETTINGS, _SETTINGS)
@settings(deadline=None, max_examples=50, phases=_PHASES)
def test_other_settings_change_it_once_and_back(
    steps: list[tuple[Any, ...]], later: list[tuple[Any, ...]], first: SettingsV1, other: SettingsV1
) -> None:
    user = User()
    live_on(user, steps, first)
    before = user.contents
    user.redecide(other)
    assert user.redecide(other) == []
    user.redecide(first)
    if not any(step[0] == "later" for step in steps):  # what is over does not come back
        assert user.contents == before

    user.redecide(other)
    live_on(user, later, other)
    assert user.redecide(other) == []
    user.redecide(first)
    assert user.redecide(first) == []
    assert not ended(user) & set(user.said.values())
    narrow = other.model_copy(update={"limits": FactLimits(per_user=3, profile=2, working=2)})
    user.redecide(narrow)
    assert user.redecide(narrow) == []


def ended(user: User) -> set[str]:
    """What was said once, and forgotten."""
    kept, gone = UserFacts(), Counter[str]()
    said = Counter(event.text for event, _, _ in user.log if isinstance(event, FactProposedV1))
    for event, event_id, at in user.log:
        if isinstance(event, FactForgottenV1 | FactEvictedV1) and not getattr(event, "by", None):
            gone[kept.facts[event.fact_id].fact.text] += 1
        kept.apply(event, event_id, at)
    return {text for text in gone if said[text] == 1}
