"""Positions in the bodies of a moved tenant's events: each range keeps the same events."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon.operations.tenant_move.positions import PositionMap, list_positions, map_event_positions
from mnemon_contracts.events.erasure import ALL_BEFORE

OWN = 100
events = st.sets(st.integers(1, OWN - 1), max_size=30)
positions = st.integers(1, OWN - 1)


def build_map(copied: set[int]) -> PositionMap:
    """Return a map of positions to a log in which events of other tenants lie between the copies."""
    found = PositionMap()
    for number, old in enumerate(sorted(copied)):
        found.add(old, 1000 + 3 * number)
    return found


@given(events, positions, positions)
def test_range_has_the_same_events(copied: set[int], one: int, other: int) -> None:
    first, last = min(one, other), max(one, other)
    known = build_map(copied)
    mapped = map_event_positions("window.answered", {"from_seq": first, "to_seq": last}, OWN, known)
    inside = {old for old in copied if first <= old <= last}
    assert inside == {old for old in copied if mapped["from_seq"] <= copy_of(known, old) <= mapped["to_seq"]}
    assert mapped["from_seq"] <= mapped["to_seq"] + 1


@given(events, positions, positions)
def test_erasure_covers_the_same_events(copied: set[int], limit: int, begin: int) -> None:
    known = build_map(copied)
    fields = {"up_to_seq": limit, "spans": [{"from_seq": begin, "to_seq": OWN}], "derived": [begin]}
    mapped = map_event_positions("user.erased", fields, OWN, known)
    (span,) = mapped["spans"]
    for old in copied:
        new = copy_of(known, old)
        assert (old < limit) == (new < mapped["up_to_seq"])
        assert (old >= begin) == (span["from_seq"] <= new < span["to_seq"])
    assert mapped["derived"] == ([copy_of(known, begin)] if begin in copied else [])


@given(events)
def test_copies_are_counted_as_their_events(copied: set[int]) -> None:
    known = build_map(copied)
    for old in copied:
        assert known.count_old(old) == known.count_new(copy_of(known, old))
        assert known.has_new(copy_of(known, old))
    assert not known.has_new(1001)


def copy_of(known: PositionMap, old: int) -> int:
    found = known.find(old)
    assert found is not None
    return found


@pytest.mark.parametrize("limit", [OWN, OWN + 5, ALL_BEFORE])
def test_limit_at_the_erasure_itself_covers_all_before(limit: int) -> None:
    assert (
        map_event_positions("user.erased", {"up_to_seq": limit}, OWN, build_map({3}))["up_to_seq"]
        == ALL_BEFORE
    )


def test_sources_that_are_gone_are_left_out() -> None:
    fields = {"fact_id": "ar_001", "lineage": {"sources": [3, 4, OWN + 1], "model": "m"}}
    mapped = map_event_positions("fact.saved", fields, OWN, build_map({3}))
    assert mapped == {"fact_id": "ar_001", "lineage": {"sources": [1000], "model": "m"}}
    assert fields["lineage"] == {"sources": [3, 4, OWN + 1], "model": "m"}


@pytest.mark.parametrize(
    ("name", "fields", "expected"),
    [
        ("fact.saved", {"lineage": {"sources": [3, "x", True]}}, [3]),
        ("summary.written", {"from_seq": 3, "to_seq": 4}, [3, 4]),
        ("batch.intended", {"windows": [{"from_seq": 3, "to_seq": 4}, None]}, [3, 4]),
        ("user.erased", {"up_to_seq": 9, "derived": [5], "discarded_seq": None}, [9, 5]),
        ("profile.set", {"fields": {"from_seq": 3}}, []),
        ("document.added", {"metadata": {"sources": [3]}, "from_seq": 7}, []),
    ],
)
def test_positions_in_an_event_are_listed(name: str, fields: dict[str, Any], expected: list[int]) -> None:
    assert list(list_positions(name, fields)) == expected
