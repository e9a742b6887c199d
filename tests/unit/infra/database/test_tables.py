"""A rebuild and an erasure of a user handle every table."""

from mnemon_infra.database.erasure.users import PROJECTED_TABLES
from mnemon_infra.database.tables import WORK_TABLES, erasures, metadata

NEXT_STEP = (
    "a rebuild fills, and the erasure of a user empties, only tables of events. Define a table that is "
    "written by `persist` with `_define_event_table`; add another table to WORK_TABLES, and delete its rows "
    "of erased users in infra/mnemon_infra/database/erasure"
)


def test_every_table_is_rebuilt_from_events_or_moved_by_a_swap() -> None:
    known = {*PROJECTED_TABLES, erasures, *WORK_TABLES}
    assert [table.name for table in metadata.tables.values() if table not in known] == [], NEXT_STEP
