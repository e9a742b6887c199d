"""Messages of windows, and lookup of the windows that the log has an answer to."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Select, cast, func, or_, select, true, union_all
from sqlalchemy.dialects.postgresql import INT8RANGE

from mnemon_infra.database.engine import Connection, Lookup, make_parameter, query
from mnemon_infra.database.messages.uncovered_messages import SpokenRow
from mnemon_infra.database.query_parts import event_order as parts
from mnemon_infra.database.query_parts.event_order import bind_owner, is_owned
from mnemon_infra.database.query_parts.item_states import extract_position
from mnemon_infra.database.tables import memory_events as events
from mnemon_infra.database.tables import messages
from mnemon_infra.database.windows.window_repository import StoredWindow

_CONVERSATION: Final = make_parameter("conversation", str)
_FROM: Final = make_parameter("from_seq", int)
_TO: Final = make_parameter("to_seq", int)
_ATTEMPTS: Final = make_parameter("attempts", int)


def _select_spoken() -> Select[Any]:
    timeline = parts.select_timeline()
    spans = parts.select_spans(timeline)
    lowest = parts.select_watermark(timeline, spans, _CONVERSATION)
    # Materialized: otherwise each of the scans would derive the watermark again.
    watermark = select(lowest.label("seq")).cte("watermark").prefix_with("MATERIALIZED")
    window_range = func.int8range(_FROM, _TO, "[]", type_=INT8RANGE)
    its = (
        select((spans.c.span * window_range).label("span"))
        .where(spans.c.conversation == _CONVERSATION, spans.c.span.op("&&")(window_range))
        .cte("its")
    )

    def select_scan(*place: ColumnElement[bool]) -> Select[Any]:
        columns = (messages.c[name] for name in SpokenRow._fields)
        beyond = messages.c.seq > select(watermark.c.seq).scalar_subquery()
        return select(*columns).where(is_owned(messages), messages.c.role.isnot(None), beyond, *place)

    named = select_scan(
        messages.c.conversation == _CONVERSATION, messages.c.seq >= _FROM, messages.c.seq <= _TO
    )
    on_current = select_scan(
        messages.c.conversation.is_(None),
        messages.c.seq >= func.lower(its.c.span),
        messages.c.seq < func.upper(its.c.span),
    ).correlate(its)
    within = on_current.lateral("within")
    return select(
        union_all(named, select(*within.c).select_from(its.join(within, true()))).subquery("spoken")
    )


_SPOKEN = Lookup(_select_spoken())
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
async def load_window_messages(
    connection: Connection, windows: Sequence[StoredWindow]
) -> list[list[SpokenRow]]:
    """Return for each window its visible messages, oldest first."""
    found = await _SPOKEN.fetch_each(connection, [_bind_window(each) for each in windows])
    return [sorted(map(SpokenRow._make, rows)) for rows in found]


@query
async def find_answered_windows(connection: Connection, windows: Sequence[StoredWindow]) -> set[StoredWindow]:
    """Return the windows whose answer in the log is projected.

    A window that was reopened after an answer with the outcome `dead` is left out: the window has had more
    attempts than that answer records.
    """
    places = [{**_bind_window(each), "attempts": each.attempts} for each in windows]
    found = await _NOTED.fetch_each(connection, places)
    return {each for each, rows in zip(windows, found, strict=True) if rows}


def _bind_window(window: StoredWindow) -> dict[str, Any]:
    return bind_owner(window.tenant, window.user) | {
        "conversation": window.conversation,
        "from_seq": window.from_seq,
        "to_seq": window.to_seq,
    }
