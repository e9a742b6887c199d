"""Rows that are missing because the database is older than the log and its consumers' positions."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from nats.aio.client import Client

from mnemon.operations.health.report import examine_deployment
from mnemon_consumers.app import run_consumers
from mnemon_contracts.streams import LOG
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.broker.streams.applied_position import read_applied_position
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.health.consistency import LOOKED_BACK, find_first_missing
from tests.support.log.audited_log import AuditedLog, every_kind
from tests.support.stock_client import Stock

CONSUMERS = "persist", "retrieve"


@pytest_asyncio.fixture
async def database(deployment: Deployment) -> AsyncIterator[Database]:
    async with Database(deployment) as database:
        yield database


@pytest.fixture
def audited(stock: Stock, deployment: Deployment, database: Database) -> AuditedLog:
    return AuditedLog(stock, deployment, database)


async def emptied(database: Database, after: int = 0) -> None:
    """Delete the rows beyond the position `after`; the durables keep their positions."""
    async with database.transaction() as connection:
        for table in "messages", "memory_events", "starts", "clears":
            await connection.execute(f"DELETE FROM {table} WHERE seq > {after}".encode())


async def problems(deployment: Deployment) -> list[str]:
    return [each for each in (await examine_deployment(deployment)).problems if "has no row" in each]


@pytest.mark.long
async def test_rows_of_an_empty_database_are_made_from_the_log(
    stock: Stock, connection: Client, deployment: Deployment, audited: AuditedLog
) -> None:
    async with run_consumers(CONSUMERS, deployment):
        await stock.say("said before")
        await audited.settled()
    await emptied(audited.database)
    assert ["position 1 " in each for each in await problems(deployment)] == [True]
    async with run_consumers(CONSUMERS, deployment):
        await audited.settled()
        assert await stock.contents() == ["said before"]
    assert not await problems(deployment)
    assert not await audited.faults()


@pytest.mark.long
async def test_rows_of_an_older_backup_are_completed(
    stock: Stock, deployment: Deployment, audited: AuditedLog
) -> None:
    async with run_consumers(CONSUMERS, deployment):
        for number in range(2 * LOOKED_BACK):
            await stock.say(f"{number}")
        await audited.settled()
    await emptied(audited.database, after=100)
    assert ["position 101 " in each for each in await problems(deployment)] == [True]
    async with run_consumers(CONSUMERS, deployment):
        await audited.settled()
    assert not await audited.faults()


async def test_rows_missing_below_newer_ones_are_noticed(
    stock: Stock, connection: Client, deployment: Deployment, audited: AuditedLog
) -> None:
    async with run_consumers(CONSUMERS, deployment):
        for _ in range(3):
            seq = await stock.say("x")
        await audited.settled()
        await audited.change("DELETE FROM messages WHERE seq = %s", seq - 1)
        assert await find_first_missing(connection, audited.database) == seq - 1


@pytest.mark.long
async def test_nothing_is_replayed_if_no_row_is_missing(
    stock: Stock, connection: Client, deployment: Deployment, audited: AuditedLog
) -> None:
    async with run_consumers(CONSUMERS, deployment):
        await every_kind(audited)
        await stock.ask("erase", "acme.u2")
        await audited.settled()
        assert await find_first_missing(connection, audited.database) is None
    created = (await connection.jetstream().consumer_info(LOG, "persist")).created
    async with run_consumers(CONSUMERS, deployment):
        assert (await connection.jetstream().consumer_info(LOG, "persist")).created == created


async def test_several_processes_begin_one_replay(
    stock: Stock, connection: Client, deployment: Deployment, audited: AuditedLog
) -> None:
    async with run_consumers(CONSUMERS, deployment):
        seq = await stock.say("said before")
        await audited.settled()
    await emptied(audited.database)

    async def run() -> None:
        async with run_consumers(CONSUMERS, deployment):
            await audited.settled()

    await asyncio.gather(run(), run())
    assert await read_applied_position(connection.jetstream()) >= seq
    assert not await audited.faults()


async def test_an_audit_names_rows_beyond_the_end_of_the_log(
    stock: Stock, connection: Client, deployment: Deployment, audited: AuditedLog
) -> None:
    async with run_consumers(["persist"], deployment):
        positions = [await stock.say("x") for _ in range(3)]
        await audited.settled()
    await connection.jetstream().delete_stream(LOG)
    await provision(connection)
    assert await audited.faults() == [("beyond_log", seq) for seq in positions]
    await stock.say("another")
    assert ("beyond_log", positions[-1]) in await audited.faults()
