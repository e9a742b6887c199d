"""Lookup of the windows that the log has an answer to."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import BigInteger, cast, func, or_, select

from mnemon_infra.database.engine import Connection, Lookup, make_parameter, query
from mnemon_infra.database.query_parts.event_order import bind_owner, is_owned
from mnemon_infra.database.query_parts.item_states import extract_position
from mnemon_infra.database.tables import memory_events as events
from mnemon_infra.database.windows.window_repository import StoredWindow

_CONVERSATION: Final = make_parameter("conversation", str)
_FROM: Final = make_parameter("from_seq", int)
_TO: Final = make_parameter("to_seq", int)
_ATTEMPTS: Final = make_parameter("attempts", int)

_NOTED = Lookup(
    select(events.c.seq)
    .where(
        is_owned(events),
        events.c.event == "window.answered",
        events.c.conversation == _CONVERSATION,
        events.c.body.isnot(None),
        extract_position("from_seq") == _FROM,
        extract_position("to_seq") == _TO,
        or_(
            events.c.body["outcome"].astext != "dead",
            func.coalesce(cast(events.c.body["attempts"].astext, BigInteger), 0) >= _ATTEMPTS,
        ),
    )
    .limit(1)
)


@query
async def find_answered_windows(connection: Connection, windows: Sequence[StoredWindow]) -> set[StoredWindow]:
    """Return the windows whose answer in the log is projected.

    A window that was reopened after an answer with the outcome `dead` is left out: the window has had more
    attempts than that answer records.
    """
    places = [
        bind_owner(each.tenant, each.user)
        | {
            "conversation": each.conversation,
            "from_seq": each.from_seq,
            "to_seq": each.to_seq,
            "attempts": each.attempts,
        }
        for each in windows
    ]
    found = await _NOTED.fetch_each(connection, places)
    return {each for each, rows in zip(windows, found, strict=True) if rows}
