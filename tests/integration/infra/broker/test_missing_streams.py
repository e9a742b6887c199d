"""Deleted streams: the error names the next step, and no new log starts while rows of a former log exist."""

import asyncio

import pytest
from nats.aio.client import Client
from nats.js.errors import NotFoundError
from structlog.testing import capture_logs

from mnemon.operations.health.report import examine_deployment
from mnemon_consumers.app import run_consumers
from mnemon_contracts.streams import DEAD, LOG, SETTINGS, WORK
from mnemon_infra.broker.dead_letters.listing import LetterFilter, read_letters
from mnemon_infra.broker.provisioning import presence
from mnemon_infra.broker.provisioning.presence import StreamsMissing
from mnemon_infra.broker.provisioning.topology import ProvisionedChange, list_drift, provision
from mnemon_infra.broker.streams.applied_position import AppliedPosition, read_log_end
from mnemon_infra.broker.streams.log_format import FORMAT
from mnemon_infra.broker.streams.restored_log import UNFINISHED
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.health.consistency import LogLost
from mnemon_infra.settings.bucket import SettingsNotProvisioned
from tests.integration.consumers.delivery.test_redelivery import swept
from tests.support.log.projected_state import contents_of
from tests.support.stock_client import Stock

TIMEOUT = 60.0


async def consumed(deployment: Deployment, *names: str) -> None:
    async with run_consumers(names, deployment):
        pass


async def persisted(stock: Stock) -> int:
    """Publish a message, wait until it is persisted, and return its position."""
    seq = await stock.say("said before")
    assert await AppliedPosition().wait_for(stock.connection.jetstream(), seq, TIMEOUT) == seq
    return seq


@pytest.mark.parametrize("stream", [LOG, WORK, DEAD])
async def test_consumers_do_not_start_without_a_stream(
    connection: Client, deployment: Deployment, stream: str
) -> None:
    await connection.jetstream().delete_stream(stream)
    with pytest.raises(StreamsMissing, match=rf"\b{stream}\b.*`mnemon provision`"):
        await consumed(deployment, "persist", "retrieve")
    await provision(connection)
    await consumed(deployment, "persist", "retrieve")


async def test_consumers_do_not_start_without_the_settings(
    connection: Client, deployment: Deployment
) -> None:
    await connection.jetstream().delete_key_value(SETTINGS)
    with pytest.raises(SettingsNotProvisioned, match="`mnemon provision`"):
        await consumed(deployment, "retrieve")


@pytest.mark.long
async def test_rows_of_a_former_log_prevent_events_in_a_new_log(
    stock: Stock, connection: Client, deployment: Deployment
) -> None:
    async with run_consumers(["persist", "retrieve"], deployment):
        seq = await persisted(stock)
        assert await stock.contents() == ["said before"]
    await connection.jetstream().delete_stream(LOG)
    await provision(connection)
    with pytest.raises(LogLost, match=f"ends at position 0.*position {seq}.*mnemon restore"):
        await consumed(deployment, "persist", "retrieve")
    problems = (await examine_deployment(deployment)).problems
    assert any(each.startswith("the log ends at position 0") for each in problems)
    assert await read_log_end(connection.jetstream()) == 0
    for _ in range(seq):  # as a restore does
        await stock.say("said before")
    await consumed(deployment, "persist", "retrieve")
    assert not any("the log ends" in each for each in (await examine_deployment(deployment)).problems)


async def test_status_advises_the_backup_before_a_new_log(
    stock: Stock, connection: Client, deployment: Deployment
) -> None:
    async with run_consumers(["persist"], deployment):
        await persisted(stock)
    for stream in (LOG, WORK):
        await connection.jetstream().delete_stream(stream)
    first, *others = (await examine_deployment(deployment)).problems
    assert "first restore its newest backup" in first
    assert not any("provision" in each for each in others)


@pytest.fixture
async def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "CHECK_INTERVAL", 0.05)
    monkeypatch.setattr(presence, "CONFIRM_SECONDS", 0.05)


@pytest.mark.long
@pytest.mark.usefixtures("often")
async def test_deleted_log_is_reported_once_and_not_recreated(
    stock: Stock, connection: Client, deployment: Deployment, terminated: asyncio.Event
) -> None:
    async with run_consumers(["persist"], deployment):
        await persisted(stock)
        with capture_logs() as lines:
            await connection.jetstream().delete_stream(LOG)
            asked = (await connection.jetstream().account_info()).api.total
            async with asyncio.timeout(TIMEOUT):
                while (await connection.jetstream().account_info()).api.total < asked + 100:
                    await asyncio.sleep(0.05)
            with pytest.raises(NotFoundError):
                await connection.jetstream().stream_info(LOG)
            assert not terminated.is_set()
            await provision(connection)
            await asyncio.wait_for(terminated.wait(), TIMEOUT)
    said = [line for line in lines if line["log_level"] in ("error", "critical")]
    assert [line["event"] for line in said] == [
        "log stream deleted, nothing is stored",
        "log stream replaced, ending this process",
    ]
    assert said[0]["next_step"].startswith("if the stream was deleted, first restore")


@pytest.mark.usefixtures("often")
async def test_deleted_work_and_dead_letter_streams_are_recreated(
    stock: Stock, connection: Client, deployment: Deployment, terminated: asyncio.Event
) -> None:
    jetstream = connection.jetstream()
    async with run_consumers(["persist"], deployment):
        await persisted(stock)
        for stream in (WORK, DEAD):
            await jetstream.delete_stream(stream)
        async with asyncio.timeout(TIMEOUT):
            while await absent(connection):
                await asyncio.sleep(0.02)
        await stock.publish("chat.acme.u1.-.cleared.v1")
        end = await stock.publish("chat.acme.u1.-.message.v1", b"{")
        assert await AppliedPosition().wait_for(jetstream, end, TIMEOUT) == end
        assert [each.sequence async for each in read_letters(connection, LetterFilter())] == [end]
        await swept(connection)
        async with Database(deployment) as database:
            assert await contents_of(database) == set()
    assert not terminated.is_set()


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("mark", [FORMAT, UNFINISHED])
async def test_durables_are_watched_while_the_log_forbids_provisioning(
    stock: Stock, connection: Client, deployment: Deployment, mark: str
) -> None:
    jetstream = connection.jetstream()
    config = (await jetstream.stream_info(LOG)).config
    async with run_consumers(["persist"], deployment):
        await persisted(stock)
        await jetstream.update_stream(config.evolve(metadata={**(config.metadata or {}), mark: "99"}))
        with capture_logs() as lines:
            await jetstream.delete_consumer(LOG, "persist")
            async with asyncio.timeout(TIMEOUT):
                while [line["event"] for line in lines].count("stream check failed, retrying") < 2:
                    await asyncio.sleep(0.02)
        assert [change.what for change in await absent(connection)] == ["consumer persist of LOG"]
        await jetstream.update_stream(config)
        async with asyncio.timeout(TIMEOUT):
            while await absent(connection):
                await asyncio.sleep(0.02)


async def absent(connection: Client) -> list[ProvisionedChange]:
    return [change for change in await list_drift(connection) if change.action == "created"]
