"""Order of eviction, and invariants after any sequence of proposals."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemon_consumers.dedupe.comparison import Likeness, NearestFact
from mnemon_consumers.dedupe.decide import DecisionEvent, Proposal, decide_proposal
from mnemon_consumers.dedupe.eviction import find_excess_facts
from mnemon_consumers.dedupe.user_facts import UserFacts
from mnemon_contracts.base import Event
from mnemon_contracts.events.memory import (
    Decision,
    Fact,
    FactConfirmedV1,
    FactEvictedV1,
    FactExpiredV1,
    FactForgottenV1,
    FactProposedV1,
    FactRejectedV1,
    FactSavedV1,
    FactUpdatedV1,
    Tier,
)
from mnemon_contracts.settings.groups import FactLimits, SettingsV1
from mnemon_infra.models.embedding import Thresholds
from tests.support.hypothesis_profiles import scale_examples

BEGIN = datetime(2026, 11, 21, 12, tzinfo=UTC)
THRESHOLDS = Thresholds(update=0.8, duplicate=0.9, relevant=0.5)
LIKENESS = Likeness("given", THRESHOLDS)
LOW, NORMAL, HIGH = 2, 5, 9

Given = tuple[Tier, int]
"""Tier and importance of a known fact."""


def fold_events(events: Iterable[tuple[Event, str, datetime]]) -> UserFacts:
    facts = UserFacts()
    for event, event_id, at in events:
        facts.apply(event, event_id, at)
    return facts


def room_for(per_user: int) -> FactLimits:
    """Return limits that let one tier hold all facts of a user."""
    return FactLimits(per_user=per_user, profile=per_user, working=per_user)


def kept(facts: Iterable[Given], **fields: Any) -> UserFacts:
    known, numbers = UserFacts(), count(1)
    for tier, importance in facts:
        number = next(numbers)
        event = FactSavedV1(
            fact_id=known.find_next_id(tier),
            fact=Fact(text=f"Fact number {number}", tier=tier, importance=importance, **fields),
            decision=Decision(proposal_id=f"earlier {number}"),
        )
        known.apply(event, f"saved {number}", BEGIN)
    return known


def proposed(
    known: UserFacts, limits: FactLimits, text: str = "Sings in a choir", **said: Any
) -> list[DecisionEvent]:
    proposal = Proposal("p", BEGIN + timedelta(hours=1), FactProposedV1(text=text, **said))
    return decide_proposal(proposal, known, [], SettingsV1(limits=limits), Likeness())


def evicted(decided: Sequence[DecisionEvent]) -> list[str]:
    return [event.fact_id for _, event in decided if isinstance(event, FactEvictedV1)]


@pytest.mark.parametrize(
    ("facts", "importance", "expected"),
    [
        # Facts of the archive go first; among them low before normal importance, then the oldest.
        ([("archive", NORMAL), ("archive", LOW), ("archive", LOW)], NORMAL, "ar_002"),
        ([("archive", NORMAL), ("archive", NORMAL)], NORMAL, "ar_001"),
        ([("working", LOW), ("archive", NORMAL)], NORMAL, "ar_001"),
        ([("profile", LOW), ("working", LOW)], NORMAL, "wk_001"),
        ([("profile", NORMAL), ("profile", LOW)], NORMAL, "pf_002"),
        # Facts of high importance go last.
        ([("archive", HIGH), ("profile", NORMAL)], NORMAL, "pf_001"),
        ([("archive", HIGH), ("archive", HIGH)], HIGH, "ar_001"),
    ],
)
def test_eviction_order(facts: list[Given], importance: int, expected: str) -> None:
    limits = room_for(len(facts))
    decided = proposed(kept(facts), limits, importance=importance)
    assert [name for name, _ in decided] == ["fact.evicted", "fact.saved"]
    assert evicted(decided) == [expected]


def test_important_fact_does_not_give_way_to_a_minor_one() -> None:
    known = kept([("archive", HIGH), ("profile", HIGH)])
    ((name, event),) = proposed(known, room_for(2), importance=7)
    assert isinstance(event, FactRejectedV1)
    assert (name, event.reason) == ("fact.rejected", "limit")


@pytest.mark.parametrize(
    ("facts", "importance", "expected"),
    [
        ([("profile", NORMAL), ("profile", LOW), ("archive", LOW)], NORMAL, ["pf_002"]),
        ([("profile", HIGH), ("profile", NORMAL), ("archive", LOW)], NORMAL, ["pf_002"]),
        ([("profile", HIGH), ("profile", HIGH), ("archive", LOW)], HIGH, ["pf_001"]),
        ([("profile", HIGH), ("profile", HIGH), ("archive", LOW)], NORMAL, []),
        ([("profile", NORMAL), ("archive", LOW)], NORMAL, []),
    ],
)
def test_full_profile_refuses_a_fact(facts: list[Given], importance: int, expected: list[str]) -> None:
    decided = proposed(kept(facts), FactLimits(profile=2), tier="profile", importance=importance)
    assert evicted(decided) == expected
    full_of_high = len(facts) == 3 and not expected
    assert decided[-1][0] == ("fact.rejected" if full_of_high else "fact.saved")


def test_working_fact_that_expires_first_is_evicted() -> None:
    known = UserFacts()
    for number, (days, importance) in enumerate([(9, NORMAL), (3, NORMAL), (6, LOW), (1, HIGH)], 1):
        fact = Fact(
            text=f"Fact number {number}",
            tier="working",
            importance=importance,
            expires_at=BEGIN + timedelta(days=days),
        )
        event = FactSavedV1(fact_id=f"wk_00{number}", fact=fact, decision=Decision(proposal_id=str(number)))
        known.apply(event, str(number), BEGIN)
    for expected in ("wk_003", "wk_002", "wk_001"):
        decided = proposed(known, FactLimits(working=len(known.facts)), tier="working", importance=HIGH)
        assert evicted(decided) == [expected]
        assert isinstance(decided[0][1], FactEvictedV1)
        assert (decided[0][1].tier, decided[0][1].limit) == ("working", len(known.facts))
        known.apply(decided[0][1], f"evicted {expected}", BEGIN)


def test_a_fact_that_was_said_again_is_no_longer_the_oldest() -> None:
    known = kept([("archive", NORMAL), ("archive", NORMAL)])
    again = FactConfirmedV1(fact_id="ar_001", decision=Decision(proposal_id="again"))
    known.apply(again, "again", BEGIN)
    assert evicted(proposed(known, room_for(2))) == ["ar_002"]


def test_a_fact_that_moves_to_a_full_tier_makes_room_there() -> None:
    known = kept([("profile", NORMAL), ("archive", NORMAL)])
    decided = proposed(known, FactLimits(profile=1), "Fact number 2", tier="profile")
    assert evicted(decided) == ["pf_001"]
    assert isinstance(decided[1][1], FactUpdatedV1)
    assert decided[1][1].fact_id == "ar_001"


def test_a_fact_that_is_rewritten_at_the_users_limit_takes_no_more_room() -> None:
    known = kept([("profile", NORMAL), ("archive", NORMAL), ("archive", NORMAL)])
    decided = proposed(known, room_for(2), "Fact number 2", tier="profile")
    assert [name for name, _ in decided] == ["fact.updated"]


def test_lowered_limits_evict_facts() -> None:
    profile: Given = ("profile", NORMAL)
    archived: Given = ("archive", LOW)
    known = kept([*[profile] * 4, *[archived] * 3, ("archive", HIGH)])
    leaving = find_excess_facts(known.list_live(BEGIN), FactLimits(profile=3, working=3, per_user=4))
    assert [(one.known.id, one.limit) for one in leaving] == [
        ("pf_001", 3),
        ("ar_001", 4),
        ("ar_002", 4),
        ("ar_003", 4),
    ]


def test_expired_facts_take_no_room() -> None:
    known = kept([("working", NORMAL)] * 2, expires_at=BEGIN + timedelta(minutes=1))
    assert evicted(proposed(known, room_for(2), tier="working")) == []


def test_fact_numbers_continue_beyond_999() -> None:
    known = UserFacts()
    known.apply(
        FactSavedV1(fact_id="ar_999", fact=Fact(text="Old"), decision=Decision(proposal_id="1")), "1", BEGIN
    )
    assert known.find_next_id("archive") == "ar_1000"
    assert known.find_next_id("profile") == "pf_001"


_WORDS = st.sampled_from(["tea", "coffee", "chess", "hills", "boats", "jazz"])
_STEPS = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.lists(_WORDS, min_size=1, max_size=3).map(
                lambda words: "User has " + " and ".join(words)
            ),
            "tier": st.sampled_from([None, "profile", "working", "archive"]),
            "importance": st.sampled_from([None, LOW, NORMAL, HIGH]),
            "days": st.sampled_from([None, None, 1, 5]),
            "supersedes": st.sampled_from([None, None, "pf_001", "ar_002"]),
            "nearest": st.sampled_from(["pf_001", "wk_001", "ar_001", "ar_002"]),
            "similarity": st.sampled_from([None, 0.2, 0.85, 0.95]),
            "end": st.sampled_from([None, None, None, "forget", "expire"]),
        }
    ),
    max_size=25,
)
_LIMITS = st.tuples(st.integers(1, 8), st.integers(1, 4), st.integers(1, 4)).map(
    lambda limits: FactLimits(
        per_user=limits[0], profile=min(limits[:2]), working=min(limits[0], limits[2]), working_days=3
    )
)

Logged = tuple[Event, str, datetime]


def run(steps: Sequence[dict[str, Any]], limits: FactLimits) -> tuple[list[Logged], UserFacts, datetime]:
    """Decide on a proposal every 12 hours, forget or expire facts in between, and check the limits.

    Returns:
        The events with their ids and times, the facts of the user after them, and the time of the last step.
    """
    known, log, now = UserFacts(), list[Logged](), BEGIN

    def logged(event: Event, event_id: str) -> None:
        log.append((event, event_id, now))
        known.apply(event, event_id, now)

    for number, step in enumerate(steps):
        now += timedelta(hours=12)
        first = min(known.facts, default=None)
        if step["end"] == "forget" and first:
            logged(FactForgottenV1(fact_id=first), f"forgotten {number}")
        for known_fact in list(known.facts.values()):
            if step["end"] == "expire" and not known_fact.is_live(now):
                date = known_fact.fact.expires_at or now
                logged(
                    FactExpiredV1(fact_id=known_fact.id, expires_at=date), f"expired {number} {known_fact.id}"
                )
        event = FactProposedV1(
            text=step["text"],
            tier=step["tier"],
            importance=step["importance"],
            expires_at=now + timedelta(days=step["days"]) if step["days"] else None,
            supersedes=step["supersedes"],
        )
        nearest = [NearestFact(step["nearest"], step["similarity"])] if step["similarity"] else []
        proposal = Proposal(f"p{number}", now, event)
        for _, decided in decide_proposal(proposal, known, nearest, SettingsV1(limits=limits), LIKENESS):
            logged(decided, str(decided.id))
            within_limits(known, limits, now)
        assert proposal.id in known.decided
    return log, known, now


def within_limits(known: UserFacts, limits: FactLimits, now: datetime) -> None:
    live = known.list_live(now)
    assert len(live) <= limits.per_user
    assert sum(fact.fact.tier == "profile" for fact in live) <= limits.profile
    assert sum(fact.fact.tier == "working" for fact in live) <= limits.working


@given(_STEPS, _LIMITS)
@settings(max_examples=scale_examples(60))
def test_limits_hold_after_every_event_and_ids_have_no_gaps(
    steps: list[dict[str, Any]], limits: FactLimits
) -> None:
    log, _, _ = run(steps, limits)
    ids = [event.fact_id for event, _, _ in log if isinstance(event, FactSavedV1)]
    for prefix in ("pf", "wk", "ar"):
        numbers = [int(each[3:]) for each in ids if each.startswith(prefix)]
        assert numbers == list(range(1, len(numbers) + 1))


@given(_STEPS, _LIMITS, st.data())
@settings(max_examples=scale_examples(60))
def test_state_from_the_log_equals_the_decisions(
    steps: list[dict[str, Any]], limits: FactLimits, data: st.DataObject
) -> None:
    log, known, _ = run(steps, limits)
    again = fold_events(log)
    assert (again.facts, again.decided) == (known.facts, known.decided)
    copies = data.draw(st.lists(st.sampled_from(log), max_size=10)) if log else []
    assert fold_events([*log, *copies]).facts == known.facts
    assert all(
        fold_events([*log, *copies]).find_next_id(tier) == known.find_next_id(tier)
        for tier in ("profile", "archive")
    )


@given(_STEPS, _LIMITS)
@settings(max_examples=scale_examples(60))
def test_no_two_facts_have_equal_words(steps: list[dict[str, Any]], limits: FactLimits) -> None:
    said = [step | {"supersedes": None, "similarity": None} for step in steps]
    _, known, now = run(said, limits)
    texts = [fact.fact.text for fact in known.list_live(now)]
    assert len(set(texts)) == len(texts)


@given(_STEPS, _LIMITS, st.randoms())
@settings(max_examples=scale_examples(60))
def test_ended_fact_stays_ended_in_any_order(
    steps: list[dict[str, Any]], limits: FactLimits, chance: Any
) -> None:
    log, known, _ = run(steps, limits)
    shuffled = list(log)
    chance.shuffle(shuffled)
    mixed = fold_events(shuffled)
    assert mixed.facts.keys() == known.facts.keys()
    assert mixed.decided == known.decided
