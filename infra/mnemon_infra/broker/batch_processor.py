"""Processing of a durable's batches: handling, settling, counting and tracing."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg

from mnemon_infra.broker.dead_letters.limit import DeadLimit
from mnemon_infra.broker.outcomes import DeliveryOutcome, Retry, count_outcomes, name_outcome, settle_batch
from mnemon_infra.delivery import Delivery
from mnemon_infra.durables import DurableConsumer
from mnemon_infra.process.request_priority import yield_to_requests
from mnemon_infra.telemetry import metrics, tracing

log = structlog.get_logger("broker")

HandleBatch = Callable[[Sequence[Delivery]], Awaitable[Sequence[DeliveryOutcome]]]
"""A handler of batches returns one outcome for each message of a batch, in the same order."""

FAILURE_SECONDS: Final = 60.0
"""Seconds for which every batch of a durable fails before the durable counts as failing."""

REPORTS_PER_WAIT: Final = 3
"""Number of in-progress acknowledgements of a message per `ack_wait`, so that the loss of one is harmless."""

_failing_since: dict[str, float] = {}


def measure_failures(name: str) -> float:
    """Return the seconds for which every batch of a durable has failed in this process.

    A time below `FAILURE_SECONDS` counts as 0.
    """
    since = _failing_since.get(name)
    seconds = 0.0 if since is None else time.monotonic() - since
    return seconds if seconds >= FAILURE_SECONDS else 0.0


class BatchProcessor:
    """Processor of the batches of one durable in this process.

    Args:
        durable: the durable that the batches come from.
        handle: handles a batch; if it raises, the error is logged, and the whole batch is retried.
        dead_limit: maximum number of dead letters of the durable within a minute, counted in this process;
            beyond it, messages are retried instead, and the server pauses the durable.
    """

    def __init__(self, durable: DurableConsumer, handle: HandleBatch, dead_limit: int) -> None:
        self._durable = durable
        self._handle = handle
        self._dead_limit = DeadLimit(durable.stream, durable.name, dead_limit)
        metrics.start_counts(durable.name)

    async def process(self, connection: Client, messages: Sequence[Msg]) -> None:
        """Handle a batch, and report the outcome of each message to the server.

        While the batch is handled, the server redelivers none of its messages before the durable's
        `handling_seconds` are over, unless in-progress acknowledgements are lost.
        """
        deliveries = [Delivery.from_message(each) for each in messages]
        # Every log line of this batch names the consumer.
        structlog.contextvars.bind_contextvars(consumer=self._durable.name)
        await yield_to_requests()
        begun, at = time.perf_counter(), time.time()
        try:
            async with self._keep_in_progress(messages):
                outcomes = await self._handle(deliveries)
            _failing_since.pop(self._durable.name, None)
        except Exception:
            _failing_since.setdefault(self._durable.name, time.monotonic())
            log.exception(
                "delivery batch failed, retrying",
                consumer=self._durable.name,
                messages=len(messages),
                from_seq=deliveries[0].sequence,
                to_seq=deliveries[-1].sequence,
            )
            outcomes = [Retry()] * len(messages)
        outcomes = await self._dead_limit.apply(connection, outcomes)
        await settle_batch(connection, self._durable.name, zip(messages, deliveries, outcomes, strict=True))
        seconds = time.perf_counter() - begun
        self._count_batch(deliveries, outcomes, seconds, at + seconds)
        if tracing.is_tracing_on():
            ended = [name_outcome(outcome) for outcome in outcomes]
            await tracing.record_batch(self._durable.name, deliveries, ended, at, at + seconds)

    @asynccontextmanager
    async def _keep_in_progress(self, messages: Sequence[Msg]) -> AsyncIterator[None]:
        """Report the messages as in progress during the block, if `handling_seconds` exceeds `ack_wait`."""
        if self._durable.handling_seconds <= self._durable.ack_wait:
            yield
            return
        is_handled = asyncio.Event()
        reports = asyncio.create_task(self._report_progress(messages, is_handled))
        try:
            yield
        finally:
            # nats-py can swallow a cancellation, so the event ends the reports, too.
            is_handled.set()
            reports.cancel()

    async def _report_progress(self, messages: Sequence[Msg], is_handled: asyncio.Event) -> None:
        interval = self._durable.ack_wait / REPORTS_PER_WAIT
        extension = self._durable.handling_seconds - self._durable.ack_wait
        for _ in range(1 + math.ceil(extension / interval)):
            try:
                for message in messages:
                    if is_handled.is_set():
                        return
                    await message.in_progress()
            except Exception as error:
                log.warning(
                    "in-progress acknowledgement failed, retrying",
                    consumer=self._durable.name,
                    error=repr(error),
                )
            with suppress(TimeoutError):
                async with asyncio.timeout(interval):
                    await is_handled.wait()

    def _count_batch(
        self, deliveries: Sequence[Delivery], outcomes: Sequence[DeliveryOutcome], seconds: float, now: float
    ) -> None:
        done = deliveries
        ended = count_outcomes(outcomes)
        if "retried" in ended:
            both = zip(deliveries, outcomes, strict=True)
            done = [delivery for delivery, outcome in both if not isinstance(outcome, Retry)]
        metrics.count_batch(self._durable.name, ended, done, seconds, now)
