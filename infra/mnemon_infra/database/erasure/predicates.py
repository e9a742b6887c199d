"""What an erasure of one conversation takes, as query parts."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    FromClause,
    Table,
    Text,
    and_,
    any_,
    bindparam,
    cast,
    exists,
    func,
    or_,
)
from sqlalchemy.dialects.postgresql import INT8MULTIRANGE

from mnemon_infra.broker.streams.erasure_scope import ErasedConversation
from mnemon_infra.database.projections.event_order import owned, owner
from mnemon_infra.database.projections.item_states import sequence
from mnemon_infra.database.tables import clears, memory_events, messages, starts, windows
from mnemon_infra.database.tables import conversation_erasures as erasures

TAKEN: Final = (messages, starts, clears, memory_events)
"""Where rows of a conversation are."""

Columns = Mapping[str, ColumnElement[Any]]


def covered(name: str, row: Columns, erased: Columns) -> ColumnElement[bool]:
    """Of a row of a table, of the same user: whether an erasure takes it."""
    its = row["conversation"] == erased["conversation"]
    if name == windows.name:
        return and_(its, row["from_seq"] < erased["up_to"])
    below = row["seq"] < erased["up_to"]
    if name == memory_events.name:
        begins = func.least(row["seq"], sequence("from_seq"))
        return or_(row["seq"] == any_(erased["derived"]), and_(its, begins < erased["up_to"]))
    if name == starts.name:
        # Those that an erasure itself stands for are called after it.
        is_own = row["event_id"] == func.concat(erased["event_id"], ":", row["seq"])
        return and_(below, its, ~is_own)
    on_current = and_(row["conversation"].is_(None), row["seq"].op("<@")(erased["spans"]))
    return and_(below, or_(its, on_current))


def is_kept(name: str, row: Columns) -> ColumnElement[bool]:
    """Whether no erasure of a conversation takes a row that is about to be written."""
    same = erasures.c.tenant == row["tenant"], erasures.c.user_id == row["user_id"]
    return ~exists().where(*same, covered(name, row, columns_of(erasures)))


def columns_of(table: FromClause) -> Columns:
    """The columns of a table, by name."""
    return dict(table.c.items())


WANTED: Final[Columns] = {
    "event_id": bindparam("erasure", type_=Text),
    "up_to": bindparam("up_to", type_=BigInteger),
    "conversation": bindparam("conversation", type_=Text),
    "spans": cast(bindparam("spans", type_=Text), INT8MULTIRANGE),
    "derived": bindparam("derived", type_=ARRAY(BigInteger)),
}


def taken(table: Table) -> ColumnElement[bool]:
    """The rows that the erasure takes which `parameters` describe, noted or not."""
    return and_(owned(table), covered(table.name, columns_of(table), WANTED))


def parameters(erased: ErasedConversation) -> dict[str, Any]:
    """What the query parts here have to know of an erasure."""
    spans = ",".join(f"[{begin},{end})" for begin, end in erased.spans)
    return owner(*erased.owner) | {
        "erasure": erased.event_id,
        "up_to": erased.below,
        "conversation": erased.conversation,
        "spans": f"{{{spans}}}",
        "derived": sorted(erased.derived),
    }
