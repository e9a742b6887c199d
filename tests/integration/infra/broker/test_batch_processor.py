"""A batch in work stays with its process for as long as the durable allows, and no longer."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext
from structlog.testing import capture_logs

from mnemon_contracts.streams import WORK
from mnemon_infra.broker.batch_processor import BatchProcessor
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.outcomes import ACK, DeliveryOutcome
from mnemon_infra.broker.provisioning.topology import build_consumer_config
from mnemon_infra.delivery import Delivery
from mnemon_infra.durables import DURABLES, DurableConsumer

ACK_WAIT = 0.5
"""Seconds after which the server of these tests redelivers a message without a sign of its process."""

SOON = 10.0
TRIGGER = "work.compact.acme.u1.main"

WithAckWait = tuple[DurableConsumer, JetStreamContext.PullSubscription]


@pytest.fixture
async def compact(connection: Client) -> WithAckWait:
    """`compact` with a short `ack_wait`; a process may have a batch in work for four times as long."""
    durable = replace(DURABLES["compact"], ack_wait=ACK_WAIT, handling_seconds=4 * ACK_WAIT)
    jetstream = connection.jetstream()
    await jetstream.add_consumer(WORK, build_consumer_config(durable))
    await jetstream.publish(TRIGGER, b"", stream=WORK)
    return durable, await jetstream.pull_subscribe_bind("compact", WORK)


class HeldBatch:
    """Handler whose batch ends when `released` is set."""

    def __init__(self) -> None:
        self.begun, self.released = asyncio.Event(), asyncio.Event()

    async def handle(self, deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        self.begun.set()
        await self.released.wait()
        return [ACK] * len(deliveries)


async def all_acknowledged(connection: Client) -> None:
    """Wait until the server has the outcome of each message; none was delivered twice."""
    async with asyncio.timeout(SOON):
        while (info := await connection.jetstream().consumer_info(WORK, "compact")).num_ack_pending:
            await asyncio.sleep(0.01)
    assert info.num_redelivered == 0


async def test_message_of_a_long_batch_is_not_redelivered(connection: Client, compact: WithAckWait) -> None:
    durable, subscription = compact
    held = HeldBatch()
    processor = BatchProcessor(durable, held.handle, 1000)
    (message,) = await subscription.fetch(1, timeout=SOON)
    working = asyncio.create_task(processor.process(connection, [message]))
    await held.begun.wait()
    with pytest.raises(TimeoutError):
        await subscription.fetch(1, timeout=2.5 * ACK_WAIT)
    held.released.set()
    await working
    await all_acknowledged(connection)


async def test_failed_progress_report_does_not_end_the_batch(
    connection: Client, compact: WithAckWait, nats_url: str
) -> None:
    durable, _ = compact
    closed = await connect(nats_url, name="closed")
    subscription = await closed.jetstream().pull_subscribe_bind("compact", WORK)
    (message,) = await subscription.fetch(1, timeout=SOON)
    await closed.close()
    held = HeldBatch()
    processor = BatchProcessor(durable, held.handle, 1000)
    with capture_logs() as logged:
        working = asyncio.create_task(processor.process(connection, [message]))
        async with asyncio.timeout(SOON):
            while len(logged) < 2:
                await asyncio.sleep(0.01)
        held.released.set()
        await working
    assert {each["event"] for each in logged} == {"progress report failed, retrying"}
    await all_acknowledged(connection)


async def test_message_of_a_stuck_batch_is_redelivered(connection: Client, compact: WithAckWait) -> None:
    durable, subscription = compact
    held = HeldBatch()
    processor = BatchProcessor(durable, held.handle, 1000)
    (message,) = await subscription.fetch(1, timeout=SOON)
    begun = asyncio.get_running_loop().time()
    working = asyncio.create_task(processor.process(connection, [message]))
    (again,) = await subscription.fetch(1, timeout=SOON)
    waited = asyncio.get_running_loop().time() - begun
    assert Delivery.from_message(again).deliveries == 2
    assert waited > durable.handling_seconds - ACK_WAIT
    held.released.set()
    await working


async def test_message_of_a_dead_process_is_redelivered_after_ack_wait(
    connection: Client, compact: WithAckWait
) -> None:
    durable, subscription = compact
    held = HeldBatch()
    processor = BatchProcessor(durable, held.handle, 1000)
    (message,) = await subscription.fetch(1, timeout=SOON)
    working = asyncio.create_task(processor.process(connection, [message]))
    await held.begun.wait()
    working.cancel()
    await asyncio.wait({working})
    begun = asyncio.get_running_loop().time()
    (again,) = await subscription.fetch(1, timeout=SOON)
    assert Delivery.from_message(again).deliveries == 2
    assert asyncio.get_running_loop().time() - begun < durable.handling_seconds - ACK_WAIT
