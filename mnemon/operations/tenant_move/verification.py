"""Comparison of a moved tenant with the original: its log event by event, its rows one by one."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from nats.js.errors import NotFoundError

from mnemon.operations.tenant_move.copy import TenantCopy
from mnemon.operations.tenant_move.deployment import TenantSite
from mnemon.operations.tenant_move.events import SourceEvent, build_moved_message
from mnemon.operations.tenant_move.positions import RANGES, PositionMap, parse_body_with_positions
from mnemon_contracts.events.erasure import ALL_BEFORE
from mnemon_contracts.identity import MESSAGE_ID
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import Owner, build_event_filter, find_origin
from mnemon_infra.broker.streams.stream_reader import StreamMessage
from mnemon_infra.database.audit.tenant_rows import COMPARED_TABLES, list_tenant_users, load_tenant_rows

USERS_AT_ONCE: Final = 100
"""Number of users whose rows are compared at a time."""

_SPAN: Final = re.compile(r"\[(\d+),(\d+)\)")
_UNCOMPARED: Final = frozenset({"is_settled"})
_POSITIONS: Final = frozenset({"seq", "up_to", "discarded", "derived", "spans"})
"""Columns with log positions, which mean other events in the other log."""

Row = dict[str, Any]
VerificationProgress = Callable[[int, int], None]


@dataclass(slots=True)
class RowComparison:
    """Result of a comparison of rows.

    Attributes:
        rows: number of compared rows of the source.
        users: users whose rows differ, each with a description of the user's first difference.
    """

    rows: int = 0
    users: dict[str, str] = field(default_factory=dict)


async def compare_logs(copy: TenantCopy, source: TenantSite, after: int, up_to: int) -> list[str]:
    """Compare the events of a log after `after` and up to `up_to` with their copies; return the differences.

    A missing copy is not a difference if the user has an erasure in the source's log, or the event is gone.

    Raises:
        nats.errors.Error: a server does not answer.
    """
    differences: list[str] = []
    erased = await _list_erased_users(source)
    first = copy.positions.find_last(after)
    async with (
        aclosing(copy.read_source(after, up_to)) as events,
        aclosing(copy.read_copies(first)) as copies,
    ):
        present = await anext(copies, None)
        async for event in events:
            new = copy.positions.find(event.position)
            if copy.is_from_target(event):
                continue
            while new is not None and present is not None and present[1].sequence < new:
                present = await anext(copies, None)  # erased in the source since
            if present is not None and present[1].sequence == new:
                if not _is_same_event(present, event, copy):
                    differences.append(
                        f"the event at position {event.position:,} differs from its copy at {new:,}"
                    )
                present = await anext(copies, None)
            elif not _is_erased(event, erased) and await _has_event(source, event.position):
                differences.append(f"the event at position {event.position:,} has no copy")
    return differences


async def compare_tenant_rows(
    copy: TenantCopy,
    source: TenantSite,
    target: TenantSite,
    users: Sequence[str] | None,
    up_to: int,
    progress: VerificationProgress,
) -> RowComparison:
    """Compare the rows of users in both databases.

    Without `users`, all users of the tenant are compared. Only events up to the position `up_to` of the
    source's log count. `progress` is called with the number of compared users and the number of all users to
    compare.

    Raises:
        DatabaseUnavailable: a database does not answer.
    """
    result = RowComparison()
    if users is None:
        source_users = await source.database.run_query(list_tenant_users(source.tenant))
        target_users = await target.database.run_query(list_tenant_users(source.tenant))
        users = sorted({*source_users, *target_users})
    for start in range(0, len(users), USERS_AT_ONCE):
        some = users[start : start + USERS_AT_ONCE]
        for table in COMPARED_TABLES:
            load = load_tenant_rows(source.tenant, some, table, up_to)
            original = _key_rows(table, await source.database.run_query(load))
            load = load_tenant_rows(source.tenant, some, table, copy.positions.find_last(up_to))
            moved = _key_rows(table, await target.database.run_query(load))
            result.rows += len(original)
            for user, difference in _find_differences(table, original, moved, copy.positions):
                result.users.setdefault(user, difference)
        progress(min(start + USERS_AT_ONCE, len(users)), len(users))
    return result


def _find_differences(
    table: str,
    original: dict[tuple[str, str], Row],
    moved: dict[tuple[str, str], Row],
    positions: PositionMap,
) -> Iterator[tuple[str, str]]:
    for key in original.keys() | moved.keys():
        one, other = original.get(key), moved.get(key)
        if one is None or other is None:
            place = "the original" if one is None else "the copy"
            yield key[0], f"{table}: the event {key[1]} of user {key[0]} has no row in {place}"
        elif names := sorted(_compare_row(table, one, other, positions)):
            yield key[0], f"{table}: the rows of event {key[1]} of user {key[0]} differ in {', '.join(names)}"


def _compare_row(table: str, original: Row, moved: Row, positions: PositionMap) -> Iterable[str]:
    """Yield the names of the columns that differ; corresponding positions count as equal."""
    for name in (original.keys() | moved.keys()) - _UNCOMPARED:
        one, other = original.get(name), moved.get(name)
        if one == other and (one is None or name not in {*_POSITIONS, "body"}):
            continue  # equal positions may mean other events
        match name:
            case "seq" | "up_to" | "discarded":
                is_same = _is_same_position(one, other, positions)
            case "body" if one is not None and other is not None:
                is_same = _align_body(original["event"], one, other, positions) == other
            case "derived":
                is_same = _align_known(one, other, positions) == other
            case "spans":
                is_same = _has_same_spans(one, other, positions)
            case _:
                is_same = False
        if not is_same:
            yield name


def _is_same_position(one: int | None, other: int | None, positions: PositionMap) -> bool:
    """Return whether `one`, a position of the source's log, corresponds to `other`, one of the target's.

    Two positions correspond if they are those of an event and its copy, or if the same number of copied
    events lies below both.
    """
    if one is None or other is None:
        return one is other
    return positions.find(one) == other or positions.count_old(one) == positions.count_new(other)


def _align_body(name: str, one: Row, other: Row, positions: PositionMap) -> Row:
    """Return `one`, a body of the source, with the equivalent positions of `other`, the body of the copy."""
    lineage, copied = one.get("lineage") or {}, other.get("lineage") or {}
    if "sources" in lineage and "sources" in copied:
        sources = _align_known(lineage["sources"], copied["sources"], positions)
        one = {**one, "lineage": {**lineage, "sources": sources}}
    if name == "batch.intended":
        pairs = zip(one.get("windows", ()), other.get("windows", ()), strict=False)
        return {**one, "windows": [_align_range(*each, positions) for each in pairs]}
    return _align_range(one, other, positions) if name in RANGES else one


def _align_range(one: Row, other: Row, positions: PositionMap) -> Row:
    aligned = dict(one)
    for name, beyond in (("from_seq", 0), ("to_seq", 1)):
        old, new = one.get(name), other.get(name)
        if old is not None and new is not None:
            is_same = positions.find(old) == new or positions.count_old(old + beyond) == positions.count_new(
                new + beyond
            )
            aligned[name] = new if is_same else None
    return aligned


def _align_known(
    one: Iterable[int] | None, other: Iterable[int] | None, positions: PositionMap
) -> list[int] | None:
    """Return `other`, the positions in the copy, if it names the same copied events as `one`; else None."""
    copies = [new for each in one or () if (new := positions.find(each)) is not None]
    found = list(other or ())
    return found if copies == [each for each in found if positions.has_new(each)] else None


def _has_same_spans(one: str | None, other: str | None, positions: PositionMap) -> bool:
    """Return whether two multiranges cover the same events; ranges without an event do not count."""
    originals = [
        each for each in _parse_spans(one) if positions.count_old(each[0]) < positions.count_old(each[1])
    ]
    copies = [
        each for each in _parse_spans(other) if positions.count_new(each[0]) < positions.count_new(each[1])
    ]
    return len(originals) == len(copies) and all(
        _is_same_position(old, new, positions)
        for original, copy in zip(originals, copies, strict=True)
        for old, new in zip(original, copy, strict=True)
    )


def _parse_spans(text: str | None) -> list[tuple[int, int]]:
    return [(int(begin), int(end)) for begin, end in _SPAN.findall(text or "")]


def _key_rows(table: str, rows: Iterable[Row]) -> dict[tuple[str, str], Row]:
    """Return rows by user and event id.

    The erasure of a conversation writes rows of `starts` whose event ids end with a log position, which
    differs in the other log: in the key, a running number replaces the position.
    """
    keyed: dict[tuple[str, str], Row] = {}
    for row in sorted(rows, key=lambda row: int(row["seq"])):
        user, event_id = row["user_id"], row.get("event_id", "")
        cause, _, position = event_id.rpartition(":")
        if table == "starts" and position == str(row["seq"]) and cause != LOG:
            number = sum(key[0] == user and key[1].startswith(f"{cause} ") for key in keyed)
            keyed[user, f"{cause} {number}"] = {**row, "event_id": cause}
        else:
            keyed[user, event_id] = row
    return keyed


async def _list_erased_users(site: TenantSite) -> set[Owner]:
    """Return the users of a tenant who have an erasure in the log: copies of their events may be gone."""
    info = await site.connection.jetstream().stream_info(
        LOG, subjects_filter=build_event_filter("user.erased")
    )
    origins = (find_origin(subject) for subject in info.state.subjects or ())
    return {origin.owner for origin in origins if origin is not None and origin.owner[0] == site.tenant}


def _is_erased(event: SourceEvent, erased: set[Owner]) -> bool:
    origin = find_origin(event.delivery.subject)
    return origin is not None and origin.owner in erased


def _is_same_event(copied: StreamMessage, event: SourceEvent, copy: TenantCopy) -> bool:
    """Return whether `copied` is the copy of `event`, even if events that both name were erased since."""
    message, _ = copied
    expected = build_moved_message(event, copy.positions, copy.prefix)
    headers = {
        name: value
        for name, value in (message.headers or {}).items()
        if name == MESSAGE_ID or not name.startswith("Nats-")
    }
    if (message.subject, headers) != (expected.subject, expected.headers):
        return False
    if message.data == expected.body:
        return True
    fields = None if event.fields is None else parse_body_with_positions(message.data)
    return fields is not None and _align_event(event, fields, copy.positions) == fields


def _align_event(event: SourceEvent, other: Row, positions: PositionMap) -> Row:
    """Return the body of an event, with the equivalent positions of `other`, the body of its copy."""
    assert event.fields is not None
    one = _align_body(event.name, event.fields, other, positions)
    if event.name != "user.erased":
        return one
    aligned = dict(one)
    for name in ("up_to_seq", "discarded_seq"):
        if name in one and _is_same_bound(one[name], other.get(name), event.position, positions):
            aligned[name] = other.get(name)
    if "derived" in one:
        aligned["derived"] = _align_known(one["derived"], other.get("derived"), positions)
    if "spans" in one:
        pairs = zip(one["spans"] or (), other.get("spans") or (), strict=False)
        aligned["spans"] = [
            each[1]
            if all(
                _is_same_bound(each[0][name], each[1].get(name), event.position, positions)
                for name in each[0]
            )
            else each[0]
            for each in pairs
        ]
    return aligned


def _is_same_bound(one: int | None, other: int | None, own: int, positions: PositionMap) -> bool:
    """Return whether two bounds of an erasure include the same events.

    Args:
        one: the bound in the event of the source.
        other: the bound in the copy; `ALL_BEFORE` includes all events before the copy.
        own: position of the event of the source.
        positions: positions of the copied events.
    """
    if other == ALL_BEFORE:
        return one is not None and one >= own
    return _is_same_position(one, other, positions)


async def _has_event(site: TenantSite, position: int) -> bool:
    """Return whether the log of a deployment still has an event at a position."""
    try:
        await site.connection.jetstream().get_msg(LOG, position)
    except NotFoundError:
        return False
    return True
