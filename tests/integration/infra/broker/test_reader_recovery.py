"""A process creates its deleted durables and renews lost subscriptions without a restart."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from nats.aio.client import Client
from structlog.testing import capture_logs

from mnemon_consumers.app import run_consumers
from mnemon_contracts.streams import LOG
from mnemon_infra.broker import durable_progress
from mnemon_infra.broker.provisioning import presence
from mnemon_infra.broker.provisioning.topology import list_drift
from mnemon_infra.broker.streams.applied_position import AppliedPosition
from mnemon_infra.config import Deployment
from mnemon_infra.durables import DURABLES
from tests.support.processes.faulty_persist import forget_readers
from tests.support.stock_client import Stock

TIMEOUT = 60.0


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check every 0.1 s; a reader counts as stalled after 3 s, because it requests messages every 2 s."""
    monkeypatch.setattr(presence, "CHECK_INTERVAL", 0.1)
    monkeypatch.setattr(durable_progress, "STALL_SECONDS", 3.0)


@pytest.mark.parametrize("name", ["persist", "persist-sweep"])
async def test_starting_process_creates_deleted_durable_as_declared(
    connection: Client, deployment: Deployment, stock: Stock, name: str
) -> None:
    seq = await stock.say("said before")
    await connection.jetstream().delete_consumer(DURABLES[name].stream, name)
    async with run_consumers(["persist"], deployment):
        assert await AppliedPosition().wait_for(connection.jetstream(), seq, TIMEOUT) == seq
        assert [change for change in await list_drift(connection) if change.action != "unchanged"] == []


@pytest.mark.long
@pytest.mark.usefixtures("often")
async def test_reader_that_the_server_forgot_subscribes_again(
    connection: Client, deployment: Deployment, stock: Stock
) -> None:
    jetstream = connection.jetstream()
    async with run_consumers(["persist"], deployment):
        seq = await stock.say("said before")
        assert await AppliedPosition().wait_for(jetstream, seq, TIMEOUT) == seq
        await forget_readers()
        with capture_logs() as lines:
            for number in range(3):
                seq = await stock.say(f"said meanwhile {number}")
            assert await AppliedPosition().wait_for(jetstream, seq, TIMEOUT) == seq
            seq = await stock.say("said after")
            assert await AppliedPosition().wait_for(jetstream, seq, TIMEOUT) == seq
    said = [line for line in lines if line["event"] == "consumer stalled, subscribing again"]
    assert {line["consumer"] for line in said} == {"persist"}


@pytest.mark.long
@pytest.mark.usefixtures("often")
async def test_paused_durable_does_not_count_as_stalled(
    connection: Client, deployment: Deployment, stock: Stock
) -> None:
    jetstream = connection.jetstream()
    async with run_consumers(["persist"], deployment):
        until = datetime.now(UTC) + timedelta(seconds=6)
        await jetstream.pause_consumer(LOG, "persist", f"{until:%Y-%m-%dT%H:%M:%SZ}")
        with capture_logs() as lines:
            seq = await stock.say("said during the pause")
            async with asyncio.timeout(TIMEOUT):
                assert await AppliedPosition().wait_for(jetstream, seq, TIMEOUT) == seq
    assert not [line for line in lines if "subscribing again" in line["event"]]
