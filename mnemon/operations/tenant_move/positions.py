"""Positions of a moved tenant's events in both logs, and mapping of positions that events name. No I/O."""

import json
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeGuard

from mnemon_contracts.events.erasure import ALL_BEFORE

_POSITIONS: Final = b'_seq"', b'"sources"'
"""Parts of a body in JSON: each event that names positions has at least one of them."""

Body = dict[str, Any]


class PositionMap:
    """Positions of copied events in the log that they come from, and in the log that they are copied to."""

    def __init__(self) -> None:
        self._old: array[int] = array("q")
        self._new: array[int] = array("q")
        self._sorted: array[int] | None = None

    def __len__(self) -> int:
        return len(self._old)

    @property
    def last_old(self) -> int:
        """Position of the last copied event in the log that it comes from; 0 if no event was copied."""
        return self._old[-1] if self._old else 0

    @property
    def last_new(self) -> int:
        """Position of the copy of the last event; 0 if no event was copied."""
        return self._new[-1] if self._new else 0

    def add(self, old: int, new: int) -> None:
        """Add the position `old` of an event and the position `new` of its copy, unless `old` is known."""
        if old > self.last_old:
            self._old.append(old)
            self._new.append(new)
            return
        place = bisect_left(self._old, old)
        if self._old[place] != old:
            self._old.insert(place, old)
            self._new.insert(place, new)

    def find(self, old: int) -> int | None:
        """Return the position of the copy of the event at `old`; None if the event was not copied."""
        place = bisect_left(self._old, old)
        return self._new[place] if place < len(self._old) and self._old[place] == old else None

    def find_last(self, old: int) -> int:
        """Return the position of the copy of the last event up to `old`; 0 if there is no such event."""
        place = bisect_right(self._old, old)
        return self._new[place - 1] if place else 0

    def count_old(self, below: int) -> int:
        """Return the number of copied events below the position `below` of the log that they come from."""
        return bisect_left(self._old, below)

    def count_new(self, below: int) -> int:
        """Return the number of copies below the position `below` of the log that they are copied to."""
        if self._sorted is None or len(self._sorted) != len(self._new):
            self._sorted = array("q", sorted(self._new))
        return bisect_left(self._sorted, below)

    def has_new(self, new: int) -> bool:
        """Return whether a copy has the position `new`."""
        return self.count_new(new) < self.count_new(new + 1)

    def find_bound(self, old: int) -> int:
        """Return 1 plus the position of the copy of the last event before `old`; 1 if there is none."""
        return self.find_last(old - 1) + 1


def list_span_starts(fields: Body) -> list[int]:
    """Return the first position of each span in the body of a `user.erased`, then its `discarded_seq`.

    Values that are not positions are left out.
    """
    spans = _list_mappings(fields.get("spans"))
    return _list_valid_positions([each.get("from_seq") for each in spans] + [fields.get("discarded_seq")])


def parse_body_with_positions(body: bytes) -> Body | None:
    """Return the parsed body of an event that may name positions; None for any other event."""
    if not any(each in body for each in _POSITIONS):
        return None
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def list_positions(name: str, fields: Body) -> Iterator[int]:
    """Yield the positions that the body of an event names; `name` is its name, such as `fact.saved`."""
    yield from _list_valid_positions(_get_mapping(fields, "lineage").get("sources"))
    ranges = [fields] if name in RANGES else []
    ranges += _list_mappings(fields.get("windows")) if name == "batch.intended" else []
    ranges += _list_mappings(fields.get("spans")) if name == "user.erased" else []
    for each in ranges:
        yield from _list_valid_positions([each.get("from_seq"), each.get("to_seq")])
    if name == "user.erased":
        yield from _list_valid_positions([fields.get("up_to_seq"), fields.get("discarded_seq")])
        yield from _list_valid_positions(fields.get("derived"))


RANGES: Final = frozenset({"summary.written", "summary.merged", "window.answered"})
"""Events that name the first and the last position of a range."""


def map_event_positions(name: str, fields: Body, own: int, positions: PositionMap) -> Body:
    """Return a body with the positions of the other log.

    Sources that are gone are left out. If the event at a bound of a range is gone, the bound becomes the
    nearest position at which the range contains the same events.

    Args:
        name: name of the event.
        fields: its body, which is not modified.
        own: position of the event; it names no later event.
        positions: positions of all events before this one.
    """
    mapped = dict(fields)
    lineage = _get_mapping(fields, "lineage")
    if lineage.get("sources"):
        mapped["lineage"] = {**lineage, "sources": _map_known(lineage["sources"], own, positions)}
    if name in RANGES:
        mapped |= _map_range(fields, own, positions)
    if name == "batch.intended" and isinstance(fields.get("windows"), list):
        mapped["windows"] = [
            {**each, **_map_range(each, own, positions)} if isinstance(each, dict) else each
            for each in fields["windows"]
        ]
    if name == "user.erased":
        mapped |= _map_erasure(fields, own, positions)
    return mapped


def _map_range(fields: Mapping[str, Any], own: int, positions: PositionMap) -> Body:
    mapped: Body = {}
    first, last = fields.get("from_seq"), fields.get("to_seq")
    if _is_position(first):
        known = positions.find(first) if first < own else None
        mapped["from_seq"] = known or positions.find_bound(min(first, own))
    if _is_position(last):
        known = positions.find(last) if last < own else None
        mapped["to_seq"] = known or positions.find_last(min(last, own - 1))
    return mapped


def _map_erasure(fields: Body, own: int, positions: PositionMap) -> Body:
    mapped: Body = {}
    if _is_position(limit := fields.get("up_to_seq")):
        mapped["up_to_seq"] = ALL_BEFORE if limit >= own else positions.find_bound(limit)
    if isinstance(spans := fields.get("spans"), list):
        mapped["spans"] = [
            {
                **each,
                **{
                    bound: ALL_BEFORE if each[bound] > own else positions.find_bound(each[bound])
                    for bound in ("from_seq", "to_seq")
                    if _is_position(each.get(bound))
                },
            }
            if isinstance(each, dict)
            else each
            for each in spans
        ]
    if _is_position(discarded := fields.get("discarded_seq")):
        known = positions.find(discarded) if discarded < own else None
        mapped["discarded_seq"] = known or positions.find_bound(min(discarded, own))
    if fields.get("derived"):
        mapped["derived"] = _map_known(fields["derived"], own, positions)
    return mapped


def _map_known(named: Any, own: int, positions: PositionMap) -> list[int]:
    found = (positions.find(each) for each in _list_valid_positions(named) if each < own)
    return [each for each in found if each is not None]


def _list_valid_positions(named: Any) -> list[int]:
    """Return those items that can be positions; an empty list if the value is not a list."""
    return [each for each in named if _is_position(each)] if isinstance(named, list) else []


def _is_position(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _get_mapping(fields: Body, name: str) -> Body:
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def _list_mappings(value: Any) -> list[Body]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
