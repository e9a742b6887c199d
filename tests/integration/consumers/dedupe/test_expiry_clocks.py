"""Facts expire by the time of the log; while clocks differ or decisions are unprojected, no fact expires."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.aio.subscription import Subscription
from structlog.testing import capture_logs

from mnemon.operations.health.report import examine_deployment
from mnemon_consumers.app import run_consumers
from mnemon_consumers.maintain.handler import EXPIRE
from mnemon_contracts.streams import WORK
from mnemon_infra.broker.streams.applied_position import AppliedPosition
from mnemon_infra.broker.streams.log_reader import read_last_position
from mnemon_infra.config import Deployment
from mnemon_infra.health import clock_skew
from tests.support.stock_client import Stock, handled

HOURS = 2
TIMEOUT = 60.0


class Fast:
    """A clock that runs `ahead` seconds before the clock of the machine."""

    ahead = 0.0

    def time(self) -> float:
        return time.time() + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Fast:
    fast = Fast()
    monkeypatch.setattr(clock_skew, "time", fast)
    return fast


@pytest_asyncio.fixture
async def expired(connection: Client) -> AsyncIterator[Subscription]:
    yield await connection.subscribe("memory.acme.u1.fact.expired.v1")


@pytest_asyncio.fixture
async def maintained(deployment: Deployment) -> AsyncIterator[Deployment]:
    # No schedule runs during the test: the test publishes the trigger.
    seldom = deployment.model_copy(update={"maintain_seconds": 86_400})
    async with run_consumers(("persist", "maintain"), seldom):
        yield seldom


def build_fact(fact_id: str, expires_at: datetime) -> dict[str, str]:
    return {"text": f"Stays at {fact_id}", "tier": "working", "expires_at": expires_at.isoformat()}


async def save(stock: Stock, fact_id: str, expires_at: datetime, user: str = "u1") -> None:
    body = {
        "fact_id": fact_id,
        "fact": build_fact(fact_id, expires_at),
        "decision": {"proposal_id": fact_id},
    }
    seq = await stock.publish(f"memory.acme.{user}.fact.saved.v1", body)
    assert await AppliedPosition().wait_for(stock.connection.jetstream(), seq, TIMEOUT) >= seq


async def maintain(connection: Client) -> None:
    """Publish the trigger that expires facts, and wait until it is handled."""
    await ended(connection, (await connection.jetstream().publish(EXPIRE, b"", stream=WORK)).seq)


async def ended(connection: Client, trigger: int) -> None:
    async with asyncio.timeout(TIMEOUT):
        while True:
            info = await connection.jetstream().consumer_info(WORK, "maintain")
            if info.ack_floor and info.ack_floor.stream_seq >= trigger:
                return
            await asyncio.sleep(0.02)


@pytest.mark.long
async def test_process_with_fast_clock_expires_no_fact(
    stock: Stock, connection: Client, maintained: Deployment, expired: Subscription, clock: Fast
) -> None:
    now = datetime.now(UTC)
    await save(stock, "past", now - timedelta(seconds=1))
    await save(stock, "future", now + timedelta(hours=1))
    clock.ahead = HOURS * 3600
    with capture_logs() as lines:
        await maintain(connection)
    assert expired.pending_msgs == 0
    (said,) = [line for line in lines if line["event"] == "expiry skipped, clocks differ"]
    assert said["problem"].startswith("this machine's clock is 7,")
    assert any(
        each.startswith("this machine's clock is 7,")
        for each in (await examine_deployment(maintained)).problems
    )

    clock.ahead = 0.0
    await maintain(connection)
    assert b"past" in (await expired.next_msg(TIMEOUT)).data
    await maintain(connection)
    assert expired.pending_msgs == 0
    assert not [each for each in (await examine_deployment(maintained)).problems if "clock" in each]


@pytest.mark.long
async def test_facts_expire_by_the_time_of_the_log(
    stock: Stock, connection: Client, deployment: Deployment, expired: Subscription
) -> None:
    seldom = deployment.model_copy(update={"maintain_seconds": 86_400})
    async with run_consumers(("persist",), seldom):
        trigger = await connection.jetstream().publish(EXPIRE, b"", stream=WORK)
        await save(stock, "since", datetime.now(UTC))
    async with run_consumers(("persist", "maintain"), seldom):
        await ended(connection, trigger.seq)
        assert expired.pending_msgs == 0
        await maintain(connection)
    assert b"since" in (await expired.next_msg(TIMEOUT)).data


async def test_fact_whose_later_end_is_not_projected_does_not_expire(
    stock: Stock, connection: Client, deployment: Deployment
) -> None:
    seldom = deployment.model_copy(update={"maintain_seconds": 86_400})
    past, later = datetime.now(UTC) - timedelta(seconds=1), datetime.now(UTC) + timedelta(hours=1)
    async with run_consumers(("persist",), seldom):
        await save(stock, "there", past)
        await save(stock, "here", past, "u2")
    body = {
        "fact_id": "there",
        "fact": build_fact("there", later),
        "former": build_fact("there", past),
    }
    await stock.publish("memory.acme.u1.fact.updated.v1", body)
    async with run_consumers(("maintain",), seldom):
        await maintain(connection)
    assert await read_last_position(connection, "memory.acme.u1.fact.expired.v1") == 0
    assert await read_last_position(connection, "memory.acme.u2.fact.expired.v1") > 0
    async with run_consumers(("persist", "retrieve"), seldom):
        await handled(connection, "persist")
        assert [each["id"] for each in (await stock.ask("read"))["facts"]] == ["there"]
