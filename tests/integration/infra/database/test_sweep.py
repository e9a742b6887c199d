"""Sweep of a user's rows: columns that a message below a watermark keeps."""

import json

from sqlalchemy import select

from mnemon_consumers.persist.decide import plan_batch
from mnemon_contracts.subjects import build_chat_subject
from mnemon_infra.database.engine import Connection, Database, Lookup
from mnemon_infra.database.projections.sweep import sweep_owner
from mnemon_infra.database.projections.writer import write_rows
from mnemon_infra.database.tables import messages
from mnemon_infra.delivery import Delivery

MESSAGE = {
    "role": "assistant",
    "content": "Anna moved to Leeds",
    "name": "Bot",
    "task_id": "t1",
    "tool_calls": [{"name": "find", "id": "c1", "arguments": {"city": "Leeds"}}],
    "metadata": {"mood": "glad"},
    "sent_at": "2026-03-01T10:00:00Z",
}

_ROWS = Lookup(select(messages))


async def _load_rows(database: Database) -> list[dict[str, object]]:
    async def query(connection: Connection) -> list[dict[str, object]]:
        return [dict(zip(messages.c.keys(), row, strict=True)) for row in await _ROWS.fetch(connection)]

    return await database.run_query(query)


async def test_sweep_keeps_identity_position_and_time_of_a_message_only(database: Database) -> None:
    events = [("message", MESSAGE), ("cleared", {})]
    deliveries = [
        Delivery(
            build_chat_subject("acme", "anna", "a", name),
            json.dumps(body).encode(),
            name,
            "LOG",
            seq,
            1,
            1.8e9,
        )
        for seq, (name, body) in enumerate(events, 1)
    ]
    await write_rows(database, plan_batch(deliveries).rows)
    (stored,) = await _load_rows(database)
    assert None not in stored.values()

    await sweep_owner(database, "acme", "anna", up_to=2)

    (swept,) = await _load_rows(database)
    kept = {"tenant", "user_id", "event_id", "seq", "conversation", "sent_at"}
    assert {name for name, value in swept.items() if value is not None} == kept
