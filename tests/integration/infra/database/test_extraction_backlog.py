"""Counts of the windows that extraction has not finished."""

import json
from datetime import UTC, datetime, timedelta

from sqlalchemy import Table, insert

from mnemon_consumers.persist.decide import plan_batch
from mnemon_contracts.subjects import build_memory_subject
from mnemon_infra.database.engine import Database, Statement
from mnemon_infra.database.projections.writer import write_rows
from mnemon_infra.database.tables import batches, windows
from mnemon_infra.database.windows.backlog import Backlog, OpenBatches, load_backlog
from mnemon_infra.delivery import Delivery

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
MIDNIGHT = datetime(2026, 11, 21, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


async def put(database: Database, table: Table, *rows: dict[str, object]) -> None:
    for row in rows:
        async with database.transaction() as connection:
            await Statement(insert(table).values(row)).execute_each(connection, [{}])


def window(number: int, **fields: object) -> dict[str, object]:
    common = {"tenant": "acme", "user_id": f"u{number % 2}", "conversation": "c1", "from_seq": number}
    rest = {"to_seq": number, "cut_at": NOW, "due_at": NOW, "attempts": 0, "is_answered": False}
    return {**common, **rest, **fields}


def batch(batch_id: str, state: str, lines: int, age: timedelta) -> dict[str, object]:
    created = {"created_at": NOW - age, "changed_at": NOW, "deadline_at": NOW + 600 * MINUTE}
    common = {"batch_id": batch_id, "provider": "openai", "model": "m", "purpose": "extract"}
    return {**common, **created, "state": state, "lines": lines}


def answered(seq: int, outcome: str, at: datetime) -> Delivery:
    event = {"conversation": "c1", "from_seq": seq, "to_seq": seq, "outcome": outcome, "batch_id": "b1"}
    body = json.dumps(event).encode()
    subject = build_memory_subject("acme", "u1", "window.answered")
    return Delivery(subject, body, f"e{seq}", "LOG", seq, 1, at.timestamp())


async def test_backlog_of_empty_database_is_zero(database: Database) -> None:
    assert await database.run_query(load_backlog(NOW, MIDNIGHT)) == Backlog(0, 0, 0, 0, [])


async def test_backlog_counts_windows_and_batches(database: Database) -> None:
    await put(
        database,
        windows,
        window(1),
        window(2, due_at=NOW - MINUTE),
        window(3, due_at=NOW + MINUTE, attempts=2),
        window(4, batch_id="b1", line=0),
        window(5, batch_id="b2", line=0),
        window(6, batch_id="b2", line=1, is_answered=True),
        window(7, is_answered=True),
    )
    await put(
        database,
        batches,
        batch("b1", "submitted", 1, 3 * MINUTE),
        batch("b2", "submitted", 2, 5 * MINUTE),
        batch("b3", "intended", 4, MINUTE),
        batch("b4", "completed", 8, 99 * MINUTE),
        batch("b5", "failed", 8, 99 * MINUTE),
    )
    letters = [
        answered(1, "dead", MIDNIGHT - MINUTE),
        answered(2, "dead", MIDNIGHT),
        answered(3, "proposed", NOW),
        answered(4, "dead", NOW),
    ]
    await write_rows(database, plan_batch(letters).rows)
    assert await database.run_query(load_backlog(NOW, MIDNIGHT)) == Backlog(
        due=2,
        later=1,
        in_batches=2,
        dead=2,
        batches=[
            OpenBatches("intended", 1, 4, MINUTE),
            OpenBatches("submitted", 2, 3, 5 * MINUTE),
        ],
    )
