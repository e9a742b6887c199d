"""Queries that derive tasks from the rows of their events."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import DateTime, Select, cast, select

from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Connection, Lookup, query
from mnemon_infra.database.query_parts.event_order import bind_owner
from mnemon_infra.database.query_parts.item_states import select_last_position, select_newest


class StoredTask(NamedTuple):
    """A task that was added and not removed since; tasks sort by log position."""

    seq: int
    id: str
    text: str
    due_at: datetime | None
    done: bool


def _select_tasks() -> Select[Any]:
    last = select_newest(
        ("task.added",),
        ("task.done", "task.removed"),
        done_seq=select_last_position("task.done"),
        removed_seq=select_last_position("task.removed"),
    )
    return select(
        last.c.seq,
        last.c.item,
        last.c.body["text"].astext,
        cast(last.c.body["due_at"].astext, DateTime(timezone=True)),
        last.c.done_seq > last.c.seq,
    ).where(last.c.place == 1, last.c.event == "task.added", last.c.seq > last.c.removed_seq)


_TASKS = Lookup(_select_tasks())


@query
async def load_tasks(connection: Connection, owners: Sequence[Owner]) -> list[list[StoredTask]]:
    """Return the tasks of users, oldest first. A task that was added again counts as a new task."""
    found = await _TASKS.fetch_each(connection, [bind_owner(*each) for each in owners])
    return [sorted(map(StoredTask._make, rows)) for rows in found]
