"""Retention: finished work is removed after some days, also from the log; events for projections stay."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from nats.aio.client import Client
from sqlalchemy import insert

from mnemon.operations.audit.ledger import Audit
from mnemon.operations.audit.run import run_audit
from mnemon_consumers.app import run_consumers
from mnemon_consumers.maintain import retention
from mnemon_consumers.maintain.handler import RETENTION
from mnemon_consumers.maintain.retention import RetentionEnforcer
from mnemon_contracts.settings.document import set_value
from mnemon_contracts.streams import DEAD, LOG, WORK
from mnemon_infra.broker.dead_letters.listing import find_message
from mnemon_infra.broker.streams.applied_position import AppliedPosition
from mnemon_infra.config import Deployment
from mnemon_infra.database.audit.events import UserSample
from mnemon_infra.database.engine import Database, Statement
from mnemon_infra.database.messages.uncovered_messages import UncoveredQuery, load_uncovered_messages
from mnemon_infra.database.tables import batches, model_calls, windows
from mnemon_infra.settings.residence import Residence, write_residence
from mnemon_infra.settings.store import LiveSettings, change_settings
from tests.support.stock_client import Stock

TIMEOUT = 60.0
NOW = datetime.now(UTC)
OLD, RECENT = NOW - timedelta(days=31), NOW - timedelta(days=29)
CALL = {"provider": "openai", "model": "m", "purpose": "extract", "tokens": {"input": 3}, "usd": 0.5}


@asynccontextmanager
async def opened(deployment: Deployment, connection: Client, **days: int) -> AsyncIterator[RetentionEnforcer]:
    """Open a retention with the given settings, such as `model_call_days=31`."""
    for name, value in days.items():
        await change_settings(connection, partial(set_value, name=f"retention.{name}", value=value))
    settings = LiveSettings()
    async with Database(deployment) as database, settings.watch_bucket(connection):
        yield RetentionEnforcer(database, settings)


def window(number: int, conversation: str = "c1", **fields: Any) -> dict[str, Any]:
    common = {"tenant": "acme", "user_id": "u1", "conversation": conversation, "from_seq": number}
    times = {"cut_at": OLD, "due_at": OLD, "attempts": 0}
    return {**common, **times, "to_seq": number, "is_answered": True, "batch_id": None, **fields}


def batch(batch_id: str, state: str) -> dict[str, Any]:
    times = {"created_at": OLD, "changed_at": OLD, "deadline_at": OLD}
    return {
        "batch_id": batch_id, "provider": "openai", "model": "m", "purpose": "extract", "state": state,
        "lines": 1, **times,
    }  # fmt: skip


async def put_windows(database: Database, *rows: dict[str, Any]) -> None:
    async with database.transaction() as connection:
        for row in rows:
            await Statement(insert(windows).values(row)).execute_each(connection, [{}])


async def list_positions(deployment: Deployment) -> list[tuple[str, int]]:
    """List conversation and first position of each window."""
    async with Database(deployment) as database, database.transaction() as connection:
        cursor = await connection.execute("SELECT conversation, from_seq FROM windows ORDER BY 1, 2")
        return [(conversation, from_seq) for conversation, from_seq in await cursor.fetchall()]


async def count_calls(deployment: Deployment) -> int:
    async with Database(deployment) as database, database.transaction() as connection:
        cursor = await connection.execute(f"SELECT count(*) FROM {model_calls.name}")
        ((count,),) = await cursor.fetchall()
        return int(count)


async def audit(deployment: Deployment, connection: Client) -> Audit:
    async with Database(deployment) as database:
        return await run_audit(connection, database, UserSample(), lambda *_: None)


async def count_letters(connection: Client) -> int:
    return (await connection.jetstream().stream_info(DEAD)).state.messages


async def test_old_answered_windows_go_and_others_stay(deployment: Deployment, connection: Client) -> None:
    async with Database(deployment) as database:
        async with database.transaction() as transaction:
            for row in (batch("open", "submitted"), batch("over", "completed")):
                await Statement(insert(batches).values(row)).execute_each(transaction, [{}])
        await put_windows(
            database,
            window(1),
            window(2, batch_id="over", line=0),
            window(3, batch_id="open", line=0),
            window(4, is_answered=False),
            window(5, cut_at=RECENT),
            window(6),
            window(1, "c2"),
        )
    async with opened(deployment, connection) as kept:
        assert not await kept.remove_old_work(connection, NOW)

    newest = [("c1", 6), ("c2", 1)]
    assert await list_positions(deployment) == sorted([("c1", 3), ("c1", 4), ("c1", 5), *newest])


async def test_finished_batch_goes_once_no_window_and_no_event_names_it(
    deployment: Deployment, connection: Client, stock: Stock
) -> None:
    asked = {"batch_id": "logged", "provider": "openai", "model": "m", "purpose": "extract", "windows": []}
    async with run_consumers(["persist"], deployment):
        intended = await stock.publish("memory.acme.u1.batch.intended.v1", asked)
        await AppliedPosition().wait_for(connection.jetstream(), intended, TIMEOUT)
    async with Database(deployment) as database:
        states = {"erased": "completed", "logged": "completed", "held": "failed", "open": "submitted"}
        async with database.transaction() as transaction:
            for name, state in states.items():
                await Statement(insert(batches).values(batch(name, state))).execute_each(transaction, [{}])
        await put_windows(database, window(1, batch_id="held", line=0))

        async with opened(deployment, connection) as kept:
            await kept.remove_old_work(connection, NOW)

        async with database.transaction() as transaction:
            cursor = await transaction.execute("SELECT batch_id FROM batches ORDER BY 1")
            assert [name for (name,) in await cursor.fetchall()] == ["held", "logged", "open"]


async def test_messages_of_removed_windows_are_not_cut_again(
    deployment: Deployment, connection: Client, stock: Stock
) -> None:
    async with run_consumers(["persist"], deployment):
        seqs = [await stock.say(f"message {number}", "acme.u1.c1") for number in range(4)]
        await AppliedPosition().wait_for(connection.jetstream(), seqs[-1], TIMEOUT)
    async with Database(deployment) as database, opened(deployment, connection) as kept:
        await put_windows(database, *(window(seq) for seq in seqs[:3]))
        wanted = [UncoveredQuery("acme", "u1", 10, seqs[-1])]
        before = await database.run_query(load_uncovered_messages(wanted, "windows"))
        await kept.remove_old_work(connection, NOW)

        assert await list_positions(deployment) == [("c1", seqs[2])]
        assert await database.run_query(load_uncovered_messages(wanted, "windows")) == before
        assert [each.seq for each in before[0][0].messages] == seqs[3:]


async def test_old_calls_leave_log_and_table_only_if_a_setting_says_so(
    deployment: Deployment, connection: Client, stock: Stock
) -> None:
    async with run_consumers(["persist"], deployment):
        said = await stock.say("hello")
        called = await stock.publish("memory.acme.u1.model.called.v1", CALL)
        await AppliedPosition().wait_for(connection.jetstream(), called, TIMEOUT)
    later = datetime.now(UTC) + timedelta(days=32)
    async with opened(deployment, connection) as kept:
        await kept.remove_old_work(connection, later)
    assert await count_calls(deployment) == 1

    async with opened(deployment, connection, model_call_days=31) as kept:
        await kept.remove_old_work(connection, later - timedelta(days=2))
        assert await count_calls(deployment) == 1
        await kept.remove_old_work(connection, later)

    assert await count_calls(deployment) == 0
    assert await find_message(connection, LOG, called) is None
    assert await find_message(connection, LOG, said) is not None
    found = await audit(deployment, connection)
    assert (found.persist.events, found.faults.total) == (1, 0)


async def test_calls_stay_while_a_rebuild_has_a_next_generation(
    deployment: Deployment, connection: Client, stock: Stock
) -> None:
    async with run_consumers(["persist"], deployment):
        called = await stock.publish("memory.acme.u1.model.called.v1", CALL)
        await AppliedPosition().wait_for(connection.jetstream(), called, TIMEOUT)
    later = datetime.now(UTC) + timedelta(days=32)
    async with opened(deployment, connection, model_call_days=31) as kept, Database(deployment) as database:
        async with database.transaction() as transaction:
            await transaction.execute(f'CREATE SCHEMA "{deployment.database_schema}_next"'.encode())
        await kept.remove_old_work(connection, later)
        assert await count_calls(deployment) == 1
        async with database.transaction() as transaction:
            await transaction.execute(f'DROP SCHEMA "{deployment.database_schema}_next"'.encode())
        await kept.remove_old_work(connection, later)
        assert await count_calls(deployment) == 0


async def test_dead_letters_stay_by_default_and_go_with_their_event_if_a_setting_says_so(
    deployment: Deployment, connection: Client, stock: Stock
) -> None:
    async with run_consumers(["persist"], deployment):
        unreadable = await stock.publish("chat.acme.u1.-.message.v1", b"{")
        said = await stock.say("hello")
        await AppliedPosition().wait_for(connection.jetstream(), said, TIMEOUT)
    assert await count_letters(connection) == 1
    now = datetime.now(UTC)
    async with opened(deployment, connection) as kept:
        await kept.remove_old_work(connection, now + timedelta(days=4000))
    assert await count_letters(connection) == 1

    async with opened(deployment, connection, dead_letter_days=7) as kept:
        await kept.remove_old_work(connection, now + timedelta(days=6))
        assert await count_letters(connection) == 1
        await kept.remove_old_work(connection, now + timedelta(days=8))

    assert await count_letters(connection) == 0
    assert await find_message(connection, LOG, unreadable) is None
    found = await audit(deployment, connection)
    assert (found.persist.events, found.faults.total) == (1, 0)


@pytest.mark.parametrize(
    "residence",
    [
        Residence("copying", "m1", "nats://new:4222"),
        Residence("moved", "m1", "nats://new:4222"),
        Residence("moved", "m1", "nats://new:4222", is_confirmed=True),
    ],
    ids=["copying", "moved", "confirmed"],
)
async def test_events_of_a_tenant_stay_until_its_move_has_ended(
    deployment: Deployment, connection: Client, stock: Stock, residence: Residence
) -> None:
    async with run_consumers(["persist"], deployment):
        await stock.publish("chat.acme.u1.-.message.v1", b"{")
        called = await stock.publish("memory.acme.u1.model.called.v1", CALL)
        await AppliedPosition().wait_for(connection.jetstream(), called, TIMEOUT)
    await write_residence(connection, "acme", residence, 0)
    async with opened(deployment, connection, model_call_days=31, dead_letter_days=7) as kept:
        await kept.remove_old_work(connection, datetime.now(UTC) + timedelta(days=32))
    left = 0 if residence.is_confirmed else 1
    assert (await count_calls(deployment), await count_letters(connection)) == (left, left)


@pytest.mark.long
async def test_a_trigger_removes_everything_old_in_bounded_rounds(
    deployment: Deployment, connection: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "MOST_WINDOWS", 2)
    async with Database(deployment) as database:
        await put_windows(database, *(window(number) for number in range(1, 8)))
    async with run_consumers(["maintain"], deployment):
        await connection.jetstream().publish(RETENTION, b"", stream=WORK)
        async with asyncio.timeout(TIMEOUT):
            while await list_positions(deployment) != [("c1", 7)]:
                await asyncio.sleep(0.05)
