"""Reading summaries, derived from the rows of their events and the watermarks of their conversations."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Select, String, bindparam, cast, exists, func, select

from infra.database import timeline as parts
from infra.database.engine import Connection, Lookup, Query
from infra.database.memories import SUMMARIES, named
from infra.database.reading import Newest
from infra.database.tables import memory_events as events
from infra.database.timeline import owned, owner


class StoredSummary(NamedTuple):
    """A summary that no other stands for; they sort by what they cover."""

    from_seq: int
    to_seq: int
    id: str
    event_id: str
    seq: int
    at: datetime
    text: str


def _newest() -> Select[Any]:
    timeline = parts.timeline()
    cleared = parts.cleared(parts.spans(timeline))
    conversation = func.coalesce(bindparam("conversation", type_=String), parts.current(timeline))
    own_floor = select(cleared.c.seq).where(cleared.c.conversation == conversation).scalar_subquery()
    lowest = func.greatest(parts.discarded(timeline), func.coalesce(own_floor, 0))
    floor = select(lowest.label("seq")).cte("floor").prefix_with("MATERIALIZED")
    floor_seq = select(floor.c.seq).scalar_subquery()
    from_seq = cast(events.c.body["from_seq"].astext, BigInteger)
    to_seq = cast(events.c.body["to_seq"].astext, BigInteger)
    others = events.alias("others")
    merged = exists().where(
        owned(others),
        others.c.event == "summary.merged",
        others.c.conversation == conversation,
        cast(others.c.body["from_seq"].astext, BigInteger) >= floor_seq,
        others.c.body["merged"].has_key(events.c.item),
    )
    return (
        select(
            from_seq,
            to_seq,
            events.c.item,
            events.c.event_id,
            events.c.seq,
            events.c.at,
            events.c.body["text"].astext,
        )
        .where(
            owned(events),
            named(SUMMARIES),
            events.c.conversation == conversation,
            events.c.body.isnot(None),
            from_seq >= floor_seq,
            ~merged,
        )
        .order_by(to_seq.desc(), events.c.seq.desc())
        .limit(bindparam("at_most", type_=BigInteger))
    )


_NEWEST = Lookup(_newest())


def newest_summaries(wanted: Sequence[Newest]) -> Query[list[list[StoredSummary]]]:
    """The newest summaries of conversations, oldest first."""
    parameters: list[dict[str, Any]] = [
        owner(each.tenant, each.user) | {"conversation": each.conversation, "at_most": each.limit}
        for each in wanted
    ]

    async def query(connection: Connection) -> list[list[StoredSummary]]:
        found = await _NEWEST.rows(connection, parameters)
        return [sorted(StoredSummary._make(row[1:]) for row in rows) for rows in found]

    return query
