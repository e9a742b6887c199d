"""Queries that derive facts from the rows of their events."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, DateTime, Integer, Select, cast, func, select

from mnemon_contracts.events.memory import Fact, Kind, Tier
from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Connection, Lookup, query
from mnemon_infra.database.projections.rows import ENDINGS
from mnemon_infra.database.query_parts.event_order import bind_owner, is_owned
from mnemon_infra.database.query_parts.item_states import IS_WANTED, VERSIONS, has_name, select_newest
from mnemon_infra.database.tables import memory_events as events

FACT_EVENTS: Final = (
    "fact.saved",
    "fact.updated",
    "fact.confirmed",
    "fact.compared",
    "fact.merged",
    "fact.rejected",
    *ENDINGS,
)

MOST_VERSIONS: Final = 100
"""Maximum number of versions of a fact that are read, the current one included: the newest ones."""


OWNERS_PER_PAGE: Final = 500
"""Maximum number of users that `list_fact_owners` returns."""


class FactRecord(NamedTuple):
    """A fact that was saved and has not ended.

    Attributes:
        id: its short id, such as `pf_001`.
        kind: kind of the fact, such as `preference`.
        importance: 1 to 10.
        expires_at: the time from which readers leave the fact out; None for never.
        saved_at: the time of its first version: when the log stored it, or the original time of an imported
            fact.
        changed_at: the time of its current version, defined as for `saved_at`.
        seq: the log position of the event that wrote its current version.
        event_id: that event's id.
        unsupported: names, numbers and dates of the text that its source messages do not support.
        names: names of people, places and things that a model extracted with the fact, spelled as in the
            text.
    """

    id: str
    text: str
    kind: Kind
    tier: Tier
    importance: int
    expires_at: datetime | None
    saved_at: datetime
    changed_at: datetime
    seq: int
    event_id: str
    unsupported: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


class FactHistory(NamedTuple):
    """The current version of a fact, and its former versions, newest first, at most `MOST_VERSIONS` - 1.

    `event_ids` are the ids of the events of all these versions.
    """

    fact: FactRecord
    versions: Sequence[Fact]
    event_ids: frozenset[str]


class FactEventRecord(NamedTuple):
    """An event about a fact; instances sort by log position. `body` is None for a removed version."""

    seq: int
    event_id: str
    name: str
    at: datetime
    item: str | None
    proposal_id: str | None
    body: dict[str, Any] | None


def _select_facts(*only: ColumnElement[bool]) -> Select[Any]:
    saved_at = func.min(events.c.at).filter(events.c.event == "fact.saved")
    last = select_newest(
        VERSIONS,
        ENDINGS,
        *only,
        saved_at=saved_at.over(partition_by=events.c.item),
        ended=func.bool_or(has_name(ENDINGS)).over(partition_by=events.c.item),
    )
    fact = last.c.body["fact"]
    return select(
        last.c.item,
        fact["text"].astext,
        fact["kind"].astext,
        fact["tier"].astext,
        cast(fact["importance"].astext, Integer),
        cast(fact["expires_at"].astext, DateTime(timezone=True)),
        *last.c["saved_at", "at", "seq", "event_id"],
        last.c.body["lineage"]["unsupported"].astext,
        fact["names"].astext,
    ).where(last.c.place == 1, last.c.saved_at.isnot(None), ~last.c.ended)


def _select_events() -> Select[Any]:
    return select(
        *events.c["seq", "event_id", "event", "at", "item", "proposal_id", "body"],
    ).where(is_owned(events), has_name(FACT_EVENTS))


def _select_versions() -> Select[Any]:
    # Read the recorded versions, not the former text in an update: two updates at once name the same one.
    return (
        select(events.c.seq, events.c.event_id, events.c.body["fact"].astext)
        .where(is_owned(events), has_name(VERSIONS), IS_WANTED, events.c.body.isnot(None))
        .order_by(events.c.seq.desc())
        .limit(MOST_VERSIONS)
    )


_FACTS = Lookup(_select_facts())
_BY_ID = Lookup(_select_facts(IS_WANTED))
_EVENTS = Lookup(_select_events())
_VERSIONS = Lookup(_select_versions())


@query
async def load_facts(connection: Connection, owners: Sequence[Owner]) -> list[list[FactRecord]]:
    """Return all facts of each user, sorted by id, including facts that have expired and not ended yet."""
    found = await _FACTS.fetch_each(connection, [bind_owner(*each) for each in owners])
    return [_make_facts(rows) for rows in found]


@query
async def load_facts_by_id(
    connection: Connection, keys: Sequence[tuple[Owner, Sequence[str]]]
) -> list[list[FactRecord]]:
    """Return each user's facts with these ids, in the order of the ids; missing facts are left out."""
    parameters = [bind_owner(*each) | {"items": list(ids)} for each, ids in keys]
    found = await _BY_ID.fetch_each(connection, parameters)
    answers = []
    for rows, (_, ids) in zip(found, keys, strict=True):
        known = {fact.id: fact for fact in _make_facts(rows)}
        answers.append([known[each] for each in dict.fromkeys(ids) if each in known])
    return answers


@query
async def load_fact_histories(
    connection: Connection, keys: Sequence[tuple[Owner, str]]
) -> list[FactHistory | None]:
    """Return facts with their newest former versions; None for a fact that was never saved or has ended."""
    parameters = [bind_owner(*each) | {"items": [fact_id]} for each, fact_id in keys]
    versions = await _VERSIONS.fetch_each(connection, parameters)
    # Read the facts last: a fact that has ended since the first query then gets no history.
    found = await _BY_ID.fetch_each(connection, parameters)
    return [
        _make_history(_make_facts(rows)[0], past) if rows else None
        for rows, past in zip(found, versions, strict=True)
    ]


@query
async def load_fact_events(connection: Connection, owners: Sequence[Owner]) -> list[list[FactEventRecord]]:
    """Return the events about the facts of each user: one list per user, in log order."""
    found = await _EVENTS.fetch_each(connection, [bind_owner(*each) for each in owners])
    return [sorted(map(FactEventRecord._make, rows)) for rows in found]


@query
async def list_fact_owners(connection: Connection, after: Owner | None) -> list[Owner]:
    """Return the next page of users with a `fact.saved` event, sorted by owner.

    A user whose facts have all ended is included.

    `after` is the last owner of the page before; None starts with the first user.
    """
    cursor = await connection.execute(
        "SELECT DISTINCT tenant, user_id FROM memory_events"
        " WHERE event = 'fact.saved' AND (tenant, user_id) > (%s, %s)"
        " ORDER BY tenant, user_id LIMIT %s",
        (*(after or ("", "")), OWNERS_PER_PAGE),
    )
    return [(tenant, user) for tenant, user in await cursor.fetchall()]


async def count_fact_owners(connection: Connection) -> int:
    """Count the users with a `fact.saved` event, including users whose facts have all ended."""
    cursor = await connection.execute(
        "SELECT count(*) FROM (SELECT DISTINCT tenant, user_id FROM memory_events WHERE event = 'fact.saved')"
        " AS owners"
    )
    [[count]] = await cursor.fetchall()
    return int(count)


def _make_facts(rows: Sequence[tuple[Any, ...]]) -> list[FactRecord]:
    return sorted(_make_fact(row) for row in rows)


def _make_fact(row: tuple[Any, ...]) -> FactRecord:
    *fields, unsupported, names = row
    return FactRecord._make((*fields, _parse_texts(unsupported), _parse_texts(names)))


def _parse_texts(array: str | None) -> tuple[str, ...]:
    return tuple(json.loads(array)) if array else ()


def _make_history(fact: FactRecord, versions: Sequence[tuple[Any, ...]]) -> FactHistory:
    former = sorted((seq, body) for seq, _, body in versions if seq < fact.seq)
    return FactHistory(
        fact,
        [Fact.model_validate_json(body) for _, body in reversed(former)],
        frozenset(event_id for _, event_id, _ in versions),
    )
