"""Subscriptions to durables on FastStream: batches in, one outcome per message out."""

import time
from collections.abc import Awaitable, Callable, Sequence

import structlog
from faststream import AckPolicy
from faststream.nats import JStream, NatsBroker, PullSub
from faststream.nats.message import NatsBatchMessage
from nats.aio.msg import Msg

from mnemon_infra.broker.dead_letters.limit import DeadLimit
from mnemon_infra.broker.outcomes import DeliveryOutcome, Retry, end_of, ends, settle
from mnemon_infra.delivery import Delivery
from mnemon_infra.process.request_priority import give_way
from mnemon_infra.telemetry import metrics, tracing

log = structlog.get_logger("broker")

Consume = Callable[[Sequence[Delivery]], Awaitable[Sequence[DeliveryOutcome]]]
"""Handles a batch and returns one outcome per message, in the same order."""


async def undecoded(message: NatsBatchMessage) -> NatsBatchMessage:
    """Return the message unchanged: one bad body must not keep the handler from the rest of the batch."""
    return message


async def unparsed(messages: list[Msg]) -> NatsBatchMessage:
    """Wrap a batch without touching its messages; FastStream would copy each body and its headers."""
    return NatsBatchMessage(raw_message=messages, body=b"")


def consume_stream(
    broker: NatsBroker,
    *,
    stream: str,
    durable: str,
    batch: int,
    linger: float,
    overlap: int,
    consume: Consume,
    dead_limit: int,
) -> None:
    """Subscribe a batch consumer to a durable that `topology` provides.

    Args:
        broker: where to subscribe.
        stream: the stream.
        durable: the consumer's name on the server.
        batch: messages per call, at most.
        linger: seconds a batch may collect.
        overlap: batches in work at the same time, so that one is fetched while another is written.
        consume: handles a batch; if it raises, the error is logged and the whole batch retried.
        dead_limit: dead letters within a minute that are allowed; beyond it the server pauses the consumer.
    """
    given_up = DeadLimit(stream, durable, dead_limit)
    metrics.show(durable)

    async def handle(message: NatsBatchMessage) -> None:
        messages: list[Msg] = message.raw_message
        deliveries = [Delivery.of(each) for each in messages]
        # Every log line of this batch names the consumer.
        structlog.contextvars.bind_contextvars(consumer=durable)
        await give_way()
        begun, at = time.perf_counter(), time.time()
        try:
            outcomes = await consume(deliveries)
        except Exception:
            log.exception(
                "delivery batch failed, retrying",
                messages=len(messages),
                seq=deliveries[0].sequence,
                to_seq=deliveries[-1].sequence,
            )
            outcomes = [Retry()] * len(messages)
        connection = broker.config.connection_state.connection
        outcomes = await given_up.heed(connection, outcomes)
        await settle(connection, durable, zip(messages, deliveries, outcomes, strict=True))
        seconds = time.perf_counter() - begun
        _count(durable, deliveries, outcomes, seconds, at + seconds)
        if tracing.is_on():
            ended = [end_of(outcome) for outcome in outcomes]
            await tracing.record(durable, deliveries, ended, at, at + seconds)

    for _ in range(overlap):
        broker.subscriber(
            ">",
            stream=JStream(stream, declare=False),
            durable=durable,
            pull_sub=PullSub(batch=True, batch_size=batch, timeout=linger),
            ack_policy=AckPolicy.MANUAL,
            parser=unparsed,
            decoder=undecoded,
        )(handle)


def _count(
    durable: str,
    deliveries: Sequence[Delivery],
    outcomes: Sequence[DeliveryOutcome],
    seconds: float,
    now: float,
) -> None:
    done = deliveries
    ended = ends(outcomes)
    if "retried" in ended:
        both = zip(deliveries, outcomes, strict=True)
        done = [delivery for delivery, outcome in both if not isinstance(outcome, Retry)]
    metrics.batch(durable, ended, done, seconds, now)
