"""The order and number of deliveries do not change the state: it always equals that of the log."""

import asyncio
import os
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from mnemon_consumers.persist.decide import plan_batch
from mnemon_infra.database.engine import Database
from mnemon_infra.database.memory import user_memory
from mnemon_infra.database.memory.user_memory import NewestMessagesQuery
from mnemon_infra.database.projections.sweep import load_last_watermark, sweep_owner
from mnemon_infra.database.projections.writer import write_rows
from tests.support.hypothesis_profiles import scale_examples
from tests.support.log.interleaving import Interleaving
from tests.support.log.projected_state import delivery_of, shown, texts_of
from tests.support.log.reference_fold import TENANT, USER, ReferenceEvent, ReferenceState, fold

RUNS = int(os.environ.get("INTERLEAVINGS", scale_examples(20)))
"""Number of interleavings to try. For thousands, set INTERLEAVINGS=5000."""


async def state_of(database: Database, *places: str) -> ReferenceState:
    state = await database.run_query(shown(places))
    return replace(state, texts=await texts_of(database))


@pytest.mark.long
async def test_any_interleaving_gives_the_state_of_the_log(
    database: Database, other_database: Database
) -> None:
    schemas = await _schema_of(database), await _schema_of(other_database)
    machine: Any = partial(Interleaving, asyncio.get_running_loop(), database, other_database, schemas)
    await asyncio.to_thread(
        run_state_machine_as_test,
        machine,
        settings=settings(
            max_examples=RUNS,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[*HealthCheck],
            phases=[Phase.reuse, Phase.generate, Phase.shrink],
            report_multiple_bugs=False,
        ),
    )


async def _schema_of(database: Database) -> str:
    async with database.transaction() as connection:
        ((schema,),) = await (await connection.execute("SELECT current_schema()")).fetchall()
    return str(schema)


async def test_removed_merged_summary_replaces_no_summary(database: Database) -> None:
    log = [
        ReferenceEvent(1, "first", "message", "c1"),
        ReferenceEvent(2, "clear", "cleared", "c1"),
        ReferenceEvent(3, "second", "message", "c1"),
        ReferenceEvent(4, "of the second", "summary.written", "c1", from_seq=3),
        ReferenceEvent(5, "of both", "summary.merged", "c1", from_seq=1, merged=("of the second",)),
    ]
    await write_rows(database, plan_batch([delivery_of(event) for event in log]).rows)
    for _ in range(2):
        state = await state_of(database)
        assert state.summaries == {"c1": {"of the second"}} == fold(log).summaries
        await sweep_owner(database, TENANT, USER, up_to=5)
    assert await texts_of(database) == {"of the second"}


async def test_swept_event_may_be_delivered_again(database: Database) -> None:
    """A sweep also removes updates of a fact after its end; a task that is added again stays."""
    early = [
        ReferenceEvent(1, "saved", "fact.saved"),
        ReferenceEvent(2, "forgotten", "fact.forgotten"),
        ReferenceEvent(3, "added", "task.added"),
        ReferenceEvent(4, "removed", "task.removed"),
    ]
    late = [ReferenceEvent(5, "updated", "fact.updated"), ReferenceEvent(6, "again", "task.added")]
    for part in early, late:
        rows = plan_batch([delivery_of(event) for event in part]).rows
        await write_rows(database, rows)
        assert rows.find_watermarked_owners() == {(TENANT, USER)}
        await sweep_owner(database, TENANT, USER, up_to=6)
    assert await state_of(database) == fold([*early, *late])
    assert await texts_of(database) == {"again"}
    assert await load_last_watermark(database, TENANT, USER) == 4


async def test_clear_waits_for_earlier_events(database: Database) -> None:
    """The start of c2 is delivered late; its messages must not be swept with those of c1."""
    log = [
        ReferenceEvent(1, "in c1", "message", "c1"),
        ReferenceEvent(2, "c2", "started", "c2"),
        ReferenceEvent(3, "in c2", "message"),
        ReferenceEvent(4, "back", "started", "c1"),
        ReferenceEvent(5, "clear", "cleared"),
    ]
    early = [event for event in log if event.id not in ("c2", "back")]
    await write_rows(database, plan_batch([delivery_of(event) for event in early]).rows)
    assert await sweep_owner(database, TENANT, USER, up_to=1) == 0
    await write_rows(database, plan_batch([delivery_of(event) for event in log]).rows)
    await sweep_owner(database, TENANT, USER, up_to=5)
    assert await state_of(database, "c2") == fold(log)
    assert fold(log).messages == {"c2": ["in c2"]}


@pytest.mark.parametrize("copies", [1, 3])
async def test_event_twice_in_a_batch_is_applied_once(database: Database, copies: int) -> None:
    events = [ReferenceEvent(seq, "same", "message", "c1") for seq in range(1, copies + 1)]
    await write_rows(database, plan_batch([delivery_of(event) for event in reversed(events)]).rows)
    (view,) = await database.run_query(
        user_memory.load_newest_messages([NewestMessagesQuery(TENANT, USER, "c1", 10)])
    )
    assert [(row.seq, row.event_id) for row in view.messages] == [(1, "same")]
