"""Query parts that select the rows which an erasure of one conversation covers."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import ColumnElement, FromClause, Table, and_, any_, cast, exists, func, or_
from sqlalchemy.dialects.postgresql import INT8MULTIRANGE

from mnemon_infra.broker.erasure.scope import ErasedConversation
from mnemon_infra.database.engine import make_parameter
from mnemon_infra.database.query_parts.event_order import bind_owner, is_owned
from mnemon_infra.database.query_parts.item_states import extract_position
from mnemon_infra.database.tables import clears, memory_events, messages, starts, windows
from mnemon_infra.database.tables import conversation_erasures as erasures

CONVERSATION_TABLES: Final = (messages, starts, clears, memory_events)
"""Projections from which the erasure of a conversation deletes rows."""

Columns = Mapping[str, ColumnElement[Any]]


def is_covered(name: str, row: Columns, erased: Columns) -> ColumnElement[bool]:
    """Return the condition that the erasure `erased` covers a row of the table `name`.

    It does not compare tenant and user: the caller adds that condition.
    """
    its = row["conversation"] == erased["conversation"]
    if name == windows.name:
        return and_(its, row["from_seq"] < erased["up_to"])
    below = row["seq"] < erased["up_to"]
    if name == memory_events.name:
        begins = func.least(row["seq"], extract_position("from_seq"))
        return or_(row["seq"] == any_(erased["derived"]), and_(its, begins < erased["up_to"]))
    if name == starts.name:
        # An erasure keeps the starts that it or a later erasure writes. Their id is the event id
        # of that erasure, a colon and the position of the start.
        is_own = row["event_id"] == func.concat(erased["event_id"], ":", row["seq"])
        later = erasures.alias("later")
        is_of_later = exists().where(
            later.c.tenant == row["tenant"],
            later.c.user_id == row["user_id"],
            later.c.up_to > erased["up_to"],
            row["event_id"] == func.concat(later.c.event_id, ":", row["seq"]),
        )
        return and_(below, its, ~is_own, ~is_of_later.correlate_except(later))
    on_current = and_(row["conversation"].is_(None), row["seq"].op("<@")(erased["spans"]))
    return and_(below, or_(its, on_current))


def is_kept(name: str, row: Columns) -> ColumnElement[bool]:
    """Return the condition that no erasure of a conversation covers a row that is about to be written."""
    same = erasures.c.tenant == row["tenant"], erasures.c.user_id == row["user_id"]
    return ~exists().where(*same, is_covered(name, row, map_columns(erasures)))


def map_columns(table: FromClause) -> Columns:
    """Return the columns of a table, by name."""
    return dict(table.c.items())


PARAMETER_COLUMNS: Final[Columns] = {
    "event_id": make_parameter("erasure", str),
    "up_to": make_parameter("up_to", int),
    "conversation": make_parameter("conversation", str),
    "spans": cast(make_parameter("spans", str), INT8MULTIRANGE),
    "derived": make_parameter("derived", list[int]),
}


def is_covered_by_parameters(table: Table) -> ColumnElement[bool]:
    """Return the condition that the erasure in the parameters of `bind_erasure` covers a row."""
    return and_(is_owned(table), is_covered(table.name, map_columns(table), PARAMETER_COLUMNS))


def bind_erasure(erased: ErasedConversation) -> dict[str, Any]:
    """Return the parameters of an erasure for the query parts of this module."""
    spans = ",".join(f"[{begin},{end})" for begin, end in erased.spans)
    return bind_owner(*erased.owner) | {
        "erasure": erased.event_id,
        "up_to": erased.below,
        "conversation": erased.conversation,
        "spans": f"{{{spans}}}",
        "derived": sorted(erased.derived),
    }
