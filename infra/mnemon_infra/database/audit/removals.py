"""Check that content is removed exactly where a watermark or an ending requires it."""

from collections.abc import AsyncGenerator, Sequence
from typing import Final, NamedTuple

from sqlalchemy import and_, not_, or_, select

from mnemon_contracts.subjects import Owner
from mnemon_infra.database.audit.row_places import open_long_read
from mnemon_infra.database.engine import Database, Lookup, make_parameter
from mnemon_infra.database.projections.rows import ENDINGS, REMOVALS
from mnemon_infra.database.projections.sweep import (
    is_below_watermark,
    is_memory_gone,
    is_message_gone,
    is_summary_gone,
)
from mnemon_infra.database.query_parts.event_order import bind_owner, is_owned
from mnemon_infra.database.query_parts.item_states import SUMMARIES, has_name
from mnemon_infra.database.tables import memory_events, messages

OWNERS_PER_QUERY: Final = 16
"""Maximum number of users, or of summaries, that one query checks."""

_OWNERS: Final = """
    SELECT tenant, user_id FROM clears
    UNION SELECT tenant, user_id FROM starts WHERE discard_previous
    UNION SELECT tenant, user_id FROM messages WHERE role IS NULL
    UNION SELECT tenant, user_id FROM memory_events WHERE body IS NULL OR event = ANY(%(takes_away)s)
"""


class WrongRemoval(NamedTuple):
    """An event whose content was wrongly removed (`is_gone` is true) or wrongly kept (`is_gone` is false)."""

    owner: Owner
    seq: int
    is_gone: bool


class GoneSummary(NamedTuple):
    """A summary without content. `from_seq` comes from the log, because the row no longer contains it."""

    owner: Owner
    seq: int
    conversation: str
    from_seq: int


_LIMIT: Final = make_parameter("last", int)
_MESSAGES = Lookup(
    select(messages.c.seq, messages.c.role.is_(None)).where(
        is_owned(messages),
        messages.c.seq <= _LIMIT,
        messages.c.role.is_(None).is_distinct_from(is_message_gone()),
    )
)
_MEMORIES = Lookup(
    select(memory_events.c.seq, memory_events.c.body.is_(None)).where(
        is_owned(memory_events),
        memory_events.c.seq <= _LIMIT,
        or_(
            and_(memory_events.c.body.isnot(None), or_(is_memory_gone(), is_summary_gone())),
            and_(memory_events.c.body.is_(None), not_(is_memory_gone()), not_(has_name(SUMMARIES))),
        ),
    )
)
_SUMMARY = Lookup(
    select(
        is_below_watermark(make_parameter("of_conversation", str), make_parameter("begins", int)).label(
            "is_below"
        )
    )
)


async def stream_watermarked_owners(database: Database) -> AsyncGenerator[list[Owner], None]:
    """Yield the users who have events without content, or events that may remove content, page by page."""
    async with open_long_read(database) as connection, connection.cursor(name="watermarked") as cursor:
        await cursor.execute(_OWNERS, {"takes_away": [*ENDINGS, *REMOVALS]})
        while page := await cursor.fetchmany(OWNERS_PER_QUERY):
            yield [(tenant, user) for tenant, user in page]


async def find_wrong_removals(
    database: Database, owners: Sequence[Owner], *, limit: int, up_to: int
) -> list[WrongRemoval]:
    """Return those events of users that wrongly lost or wrongly kept their content.

    Summaries without content are left out; `find_wrong_summary_removals` checks them.

    Args:
        database: the generation to check.
        owners: the users whose events are checked.
        limit: events above this log position are left out.
        up_to: watermarks and endings above this log position do not count yet, because not all events before
            them are applied.
    """
    wanted = [bind_owner(*each) | {"last": limit, "up_to": up_to} for each in owners]
    async with open_long_read(database) as connection:
        found = [await lookup.fetch_each(connection, wanted) for lookup in (_MESSAGES, _MEMORIES)]
    return [
        WrongRemoval(each, seq, is_gone)
        for of_users in found
        for each, rows in zip(owners, of_users, strict=True)
        for seq, is_gone in rows
    ]


async def find_wrong_summary_removals(
    database: Database, summaries: Sequence[GoneSummary], *, up_to: int
) -> list[WrongRemoval]:
    """Return the summaries whose content was removed although no watermark lies above their first message.

    Watermarks above the log position `up_to` do not count.
    """
    found: list[WrongRemoval] = []
    for start in range(0, len(summaries), OWNERS_PER_QUERY):
        some = summaries[start : start + OWNERS_PER_QUERY]
        wanted = [
            bind_owner(*each.owner)
            | {"of_conversation": each.conversation, "begins": each.from_seq, "up_to": up_to}
            for each in some
        ]
        async with open_long_read(database) as connection:
            answers = await _SUMMARY.fetch_each(connection, wanted)
        found += [
            WrongRemoval(each.owner, each.seq, True)
            for each, ((is_below,),) in zip(some, answers, strict=True)
            if not is_below
        ]
    return found
