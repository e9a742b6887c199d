"""Query parts that derive the current state of items from the rows of memory events."""

from collections.abc import Iterable
from typing import Any, Final, Literal

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    FromClause,
    Subquery,
    Text,
    any_,
    case,
    cast,
    func,
    literal,
    literal_column,
    select,
)

from mnemon_infra.database.engine import make_parameter
from mnemon_infra.database.query_parts.event_order import is_owned
from mnemon_infra.database.tables import memory_events as events

VERSIONS: Final = ("fact.saved", "fact.updated", "fact.merged")
SUMMARIES: Final = ("summary.written", "summary.merged")

IS_WANTED: Final = events.c.item == any_(make_parameter("items", list[str]))
"""Condition that an item is in the parameter `items`."""


def has_name(names: Iterable[str], table: FromClause = events) -> ColumnElement[bool]:
    """Return the condition that an event has one of these names."""
    return table.c.event == any_(literal(list(names), ARRAY(Text)))


def extract_position(name: Literal["from_seq", "to_seq"], table: FromClause = events) -> ColumnElement[int]:
    """Return the SQL expression of a log position that the body of an event contains.

    For `to_seq`, it is exactly the expression of the index `memory_events_covering`: PostgreSQL does not use
    the index for another expression.
    """
    return cast(table.c.body.op("->>")(literal_column(f"'{name}'")), BigInteger)


def select_last_position(name: str) -> ColumnElement[int]:
    """Return the SQL expression of the log position of an item's last event `name`; 0 if there is none."""
    last = func.max(events.c.seq).filter(events.c.event == name).over(partition_by=events.c.item)
    return func.coalesce(last, 0)


def select_newest(
    versions: Iterable[str],
    others: Iterable[str],
    *only: ColumnElement[bool],
    **also: ColumnElement[Any],
) -> Subquery:
    """Select the memory events of the owner, ranked within each item in the column `place`, from 1.

    Events of `versions` come first, newest first; then those of `others`, newest first. So the row with the
    place 1 is the newest version of an item or, without a version, the newest of its other events.

    Args:
        versions: names of the events that contain the content of an item.
        others: names of further events.
        only: conditions on items or events.
        also: further columns, by name; an aggregate must be a window over `events.c.item`.
    """
    content = case((has_name(versions), 0), else_=1)
    place = func.row_number().over(partition_by=events.c.item, order_by=(content, events.c.seq.desc()))
    columns = [column.label(name) for name, column in also.items()]
    return (
        select(events, place.label("place"), *columns)
        .where(is_owned(events), has_name((*versions, *others)), *only)
        .subquery("newest")
    )
