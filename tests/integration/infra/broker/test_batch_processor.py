"""Messages of a batch in work are not redelivered until the durable's `handling_seconds` have passed."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from structlog.testing import capture_logs

from mnemon_contracts.streams import WORK
from mnemon_infra.broker.batch_processor import BatchProcessor
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.outcomes import ACK, DeliveryOutcome
from mnemon_infra.broker.provisioning.topology import build_consumer_config
from mnemon_infra.delivery import Delivery
from mnemon_infra.durables import DURABLES, DurableConsumer

ACK_WAIT = 0.5
"""Seconds without a progress report after which the server redelivers a message in these tests."""

SOON = 10.0
TRIGGER = "work.compact.acme.u1.main"


class HeldBatch:
    """Handler whose batch ends when `released` is set."""

    def __init__(self) -> None:
        self.begun, self.released = asyncio.Event(), asyncio.Event()

    async def handle(self, deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        self.begun.set()
        await self.released.wait()
        return [ACK] * len(deliveries)


@dataclass
class Compact:
    """The durable `compact` with a short `ack_wait` and one message, and a handler that ends on request."""

    connection: Client
    durable: DurableConsumer
    held: HeldBatch

    async def take(self, connection: Client | None = None, seconds: float = SOON) -> Msg:
        """Fetch the next message, over the given connection or the one of the fixture."""
        jetstream = (connection or self.connection).jetstream()
        subscription = await jetstream.pull_subscribe_bind("compact", WORK)
        (message,) = await subscription.fetch(1, timeout=seconds)
        return message

    def process(self, message: Msg) -> asyncio.Task[None]:
        """Start a task that processes a message."""
        processor = BatchProcessor(self.durable, self.held.handle, 1000)
        return asyncio.create_task(processor.process(self.connection, [message]))

    async def all_acknowledged(self) -> None:
        """Wait until the server has the outcome of each message; assert that none was redelivered."""
        jetstream = self.connection.jetstream()
        async with asyncio.timeout(SOON):
            while (info := await jetstream.consumer_info(WORK, "compact")).num_ack_pending:
                await asyncio.sleep(0.01)
        assert info.num_redelivered == 0


@pytest.fixture
async def compact(connection: Client) -> Compact:
    """The durable `compact`, whose batches may be in work for four times `ack_wait`, with one message."""
    durable = replace(DURABLES["compact"], ack_wait=ACK_WAIT, handling_seconds=4 * ACK_WAIT)
    jetstream = connection.jetstream()
    await jetstream.add_consumer(WORK, build_consumer_config(durable))
    await jetstream.publish(TRIGGER, b"", stream=WORK)
    return Compact(connection, durable, HeldBatch())


async def test_message_of_a_long_batch_is_not_redelivered(compact: Compact) -> None:
    working = compact.process(await compact.take())
    await compact.held.begun.wait()
    with pytest.raises(TimeoutError):
        await compact.take(seconds=2.5 * ACK_WAIT)
    compact.held.released.set()
    await working
    await compact.all_acknowledged()


async def test_failed_progress_report_does_not_end_the_batch(compact: Compact, nats_url: str) -> None:
    closed = await connect(nats_url, name="closed")
    message = await compact.take(closed)
    await closed.close()
    with capture_logs() as logged:
        working = compact.process(message)
        async with asyncio.timeout(SOON):
            while len(logged) < 2:
                await asyncio.sleep(0.01)
        compact.held.released.set()
        await working
    assert {each["event"] for each in logged} == {"in-progress acknowledgement failed, retrying"}
    await compact.all_acknowledged()


@pytest.mark.long
async def test_message_of_a_stuck_batch_is_redelivered(compact: Compact) -> None:
    message = await compact.take()
    begun = asyncio.get_running_loop().time()
    working = compact.process(message)
    again = await compact.take()
    waited = asyncio.get_running_loop().time() - begun
    assert Delivery.from_message(again).deliveries == 2
    assert waited > compact.durable.handling_seconds - ACK_WAIT
    compact.held.released.set()
    await working


async def test_message_of_a_dead_process_is_redelivered_after_ack_wait(compact: Compact) -> None:
    compact.durable = replace(compact.durable, handling_seconds=10 * SOON)
    working = compact.process(await compact.take())
    await compact.held.begun.wait()
    working.cancel()
    await asyncio.wait({working})
    again = await compact.take()  # within `SOON`, which is a tenth of `handling_seconds`
    assert Delivery.from_message(again).deliveries == 2
