"""Redecide of any user's log: a second run or the same settings change nothing, and it can be undone."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mnemon_consumers.dedupe.user_facts import KeptFact, UserFacts
from mnemon_contracts.events.fact_comparison import FactMergedV1
from mnemon_contracts.events.memory import FactEvictedV1, FactExpiredV1, FactForgottenV1, FactProposedV1
from mnemon_contracts.settings.groups import FactLimits, SettingsV1
from tests.support.facts.decided_user import DecidedUser, by
from tests.support.hypothesis_profiles import scale_examples

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
        st.tuples(
            st.sampled_from(["decide", "forget", "evict", "rewrite", "merge", "later"]), st.integers(0, 9)
        ),
    ),
    min_size=6,
    max_size=25,
)

_PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""The phases of Hypothesis without `shrink`: the logs are long, and shrinking a failing one takes minutes."""


def live_on(user: DecidedUser, steps: Sequence[tuple[Any, ...]], settings: SettingsV1) -> None:
    """Perform the steps of a user in order, then decide on the proposals that are left."""
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
                elif command == "merge":
                    merge(user, kept[0], known)
                else:
                    user.rewrite(known.id, f"By hand number {number}")
    user.decide(settings)


def merge(user: DecidedUser, older: KeptFact, newer: KeptFact) -> None:
    """Publish the events with which `dedupe` merges two facts after a model's answer; ignore equal facts."""
    if older.id != newer.id:
        merged = FactMergedV1(
            fact_id=older.id,
            merged_id=newer.id,
            relation="same",
            fact=newer.fact,
            former=older.fact,
            compared_id="compared",
        )
        user.publish(merged)
        user.publish(FactForgottenV1(fact_id=newer.id, reason="superseded"))


@given(_STEPS, _SETTINGS)
@settings(max_examples=scale_examples(50), phases=_PHASES)
def test_the_same_settings_change_nothing(steps: list[tuple[Any, ...]], same: SettingsV1) -> None:
    user = DecidedUser()
    live_on(user, steps, same)
    assert user.redecide(same) == []


@pytest.mark.long
@given(_STEPS, _STEPS, _SETTINGS, _SETTINGS)
@settings(max_examples=scale_examples(50), phases=_PHASES)
def test_other_settings_change_facts_once_and_former_settings_restore_them(
    steps: list[tuple[Any, ...]], later: list[tuple[Any, ...]], first: SettingsV1, other: SettingsV1
) -> None:
    user = DecidedUser()
    live_on(user, steps, first)
    before = user.contents
    user.redecide(other)
    assert user.redecide(other) == []
    user.redecide(first)
    if not any(step[0] == "later" for step in steps):  # facts that have expired stay expired
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


def ended(user: DecidedUser) -> set[str]:
    """Return the texts of facts that were forgotten or evicted, if each was proposed only once."""
    kept, gone = UserFacts(), Counter[str]()
    merged = {event.merged_id for event, _, _ in user.log if isinstance(event, FactMergedV1)}
    said = Counter(event.text for event, _, _ in user.log if isinstance(event, FactProposedV1))
    for event, event_id, at in user.log:
        is_moved = getattr(event, "by", None) or getattr(event, "fact_id", None) in merged
        if isinstance(event, FactForgottenV1 | FactEvictedV1) and not is_moved:
            gone[kept.facts[event.fact_id].fact.text] += 1
        kept.apply(event, event_id, at)
    return {text for text in gone if said[text] == 1}
