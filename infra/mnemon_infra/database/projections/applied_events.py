"""Check whether an event has a row."""

from functools import cache

from sqlalchemy import String, bindparam, func, select

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.decode import UnknownEvent
from mnemon_contracts.subjects import InvalidSubject
from mnemon_infra.database.engine import Connection, Database, Statement
from mnemon_infra.database.projections.rows import EventRow, MemoryRow, build_row
from mnemon_infra.database.tables import KEY, metadata
from mnemon_infra.delivery import Delivery


async def is_applied(database: Database, delivery: Delivery) -> bool | None:
    """Return whether an event has a row with its log position; None if such events have no rows.

    An event that cannot be decoded has no row.
    """
    try:
        row = build_row(delivery)
    except (InvalidSubject, UnknownEvent, InvalidBody):
        return False
    if row is None:
        return None
    match row:
        case EventRow():
            table = row.table
        case MemoryRow():
            table = "memory_events"
        case _:
            table = "messages"

    async def query(connection: Connection) -> bool:
        position = await _select_position(table).fetch_value(connection, dict(zip(KEY, row.key, strict=True)))
        return bool(position == delivery.sequence)

    return await database.run_query(query)


@cache
def _select_position(table: str) -> Statement:
    columns = metadata.tables[table].c
    mine = (columns[name] == bindparam(name, type_=String) for name in KEY)
    return Statement(select(func.max(columns.seq)).where(*mine))
