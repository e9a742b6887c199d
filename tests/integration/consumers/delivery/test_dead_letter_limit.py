"""The limit of dead letters: a consumer that exceeds it stops, reports the reason and loses no event."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from nats.aio.client import Client
from structlog.testing import capture_logs

from mnemon_consumers.app import run_consumers
from mnemon_contracts.streams import LOG
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.broker.streams.applied_position import AppliedPosition
from mnemon_infra.config import Deployment
from tests.support.log.dead_letters import kept
from tests.support.stock_client import Stock

TIMEOUT = 60.0

Stopped = Callable[[], Awaitable[None]]


@pytest.fixture
def stopped(connection: Client) -> Stopped:
    """Return a function that waits until the server has paused `persist`."""

    async def wait() -> None:
        async with asyncio.timeout(TIMEOUT):
            while not (await connection.jetstream().consumer_info(LOG, "persist")).paused:
                await asyncio.sleep(0.02)

    return wait


async def test_consumer_stops_beyond_the_dead_letter_limit(
    connection: Client, stock: Stock, deployment: Deployment, stopped: Stopped
) -> None:
    await stock.say("before")
    for _ in range(10):
        await stock.publish("chat.acme.u1.-.whispered.v1", {})
    end = await stock.say("after")
    jetstream = connection.jetstream()
    with capture_logs() as said:
        async with run_consumers(("persist",), deployment.model_copy(update={"dead_limit": 3})):
            await stopped()
            late = await stock.say("while it is stopped")
    [error] = [line for line in said if line["log_level"] == "error"]
    assert (error["consumer"], error["dead_letters"], error["commonest_reason"]) == (
        "persist",
        3,
        "unknown_event",
    )
    assert error["next_step"] == "mnemon dead list --consumer persist"
    assert len(await kept(connection)) == 3
    info = await jetstream.consumer_info(LOG, "persist")
    assert (info.num_ack_pending, info.num_pending) == (7, 1), "what it did not handle waits"

    # As an operator does after the cause is removed.
    await jetstream.resume_consumer(LOG, "persist")
    async with run_consumers(("persist", "retrieve"), deployment):
        assert await AppliedPosition().wait_for(jetstream, late, TIMEOUT) == late
        assert await stock.contents(min_seq=end) == ["before", "after", "while it is stopped"]
    letters = [each.sequence for each in await kept(connection)]
    assert sorted(letters) == list(range(2, 12)), "each once"


async def test_consumer_runs_at_the_dead_letter_limit(
    connection: Client, stock: Stock, deployment: Deployment
) -> None:
    for _ in range(3):
        await stock.publish("chat.acme.u1.-.whispered.v1", {})
    end = await stock.say("after")
    async with run_consumers(("persist",), deployment.model_copy(update={"dead_limit": 3})):
        assert await AppliedPosition().wait_for(connection.jetstream(), end, TIMEOUT) == end
    assert not (await connection.jetstream().consumer_info(LOG, "persist")).paused
    assert len(await kept(connection)) == 3


async def test_provisioning_keeps_a_stopped_consumer_paused(
    connection: Client, stock: Stock, deployment: Deployment, stopped: Stopped
) -> None:
    """A process that starts updates the durables; this must not resume a paused one."""
    for _ in range(2):
        await stock.publish("chat.acme.u1.-.whispered.v1", {})
    async with run_consumers(("persist",), deployment.model_copy(update={"dead_limit": 1})):
        await stopped()
    changes = await provision(connection)
    assert {change.action for change in changes} == {"unchanged"}
    assert (await connection.jetstream().consumer_info(LOG, "persist")).paused
