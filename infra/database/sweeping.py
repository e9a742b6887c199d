"""Removing the content of what lies below a watermark."""

from typing import Any, Final

from sqlalchemy import BigInteger, Update, bindparam, exists, func, null, or_, select, union_all, update

from infra.database import timeline as parts
from infra.database.engine import Connection, Database, Statement
from infra.database.tables import clears, messages, starts
from infra.database.timeline import owned, owner

_CONTENT: Final = ("role", "content", "name", "task_id", "tool_calls", "metadata")


def _sweep() -> Update:
    timeline = parts.timeline()
    spans = parts.spans(timeline)
    cleared = parts.cleared(spans, clears.c.seq <= bindparam("up_to", type_=BigInteger))
    place = select(spans.c.conversation).where(messages.c.seq.op("<@")(spans.c.span)).correlate(messages)
    conversation = func.coalesce(messages.c.conversation, place.scalar_subquery())
    below_own_floor = exists().where(cleared.c.conversation == conversation, messages.c.seq < cleared.c.seq)
    return (
        update(messages)
        .where(
            owned(messages),
            messages.c.role.isnot(None),
            or_(messages.c.seq < parts.discarded(timeline), below_own_floor),
        )
        .values({name: null() for name in _CONTENT})
    )


def _last_watermark() -> Any:
    seqs = union_all(
        select(clears.c.seq).where(owned(clears)),
        select(starts.c.seq).where(owned(starts), starts.c.discard_previous),
    ).subquery()
    return select(func.coalesce(func.max(seqs.c.seq), 0))


_SWEEP = Statement(_sweep())
_LAST_WATERMARK = Statement(_last_watermark())


async def last_watermark(database: Database, tenant: str, user: str) -> int:
    """The log position of the user's last `cleared` or discarding `started`; 0 without one.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
    """

    async def query(connection: Connection) -> int:
        (seq,) = await _LAST_WATERMARK.row(connection, owner(tenant, user))
        return int(seq)

    return await database.read(query)


async def sweep(database: Database, tenant: str, user: str, *, up_to: int) -> int:
    """Remove the content of the user's messages that lie below a watermark; their event ids stay known.

    Args:
        database: where.
        tenant: whose.
        user: whose.
        up_to: clears beyond this log position wait; everything up to it must be applied. Otherwise a start
            that is still to come could put a message into another conversation than the one cleared.

    Returns:
        How many messages lost their content.

    Raises:
        DatabaseUnavailable: nothing is removed.
    """
    async with database.transaction() as connection:
        return await _SWEEP.change(connection, [owner(tenant, user) | {"up_to": up_to}])
