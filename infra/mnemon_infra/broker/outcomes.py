"""Outcomes of deliveries: a consumer decides them, and only this module translates them for NATS.

`mnemon_consumers.persist.decide` decides which events of the log become dead letters of `persist`.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from mnemon_contracts.base import measure_headers
from mnemon_contracts.identity import MESSAGE_ID
from mnemon_contracts.streams import DEAD
from mnemon_contracts.subjects import build_dead_letter_subject
from mnemon_infra.broker.bulk_publish import publish_core_messages
from mnemon_infra.broker.headers import fold_header
from mnemon_infra.delivery import Delivery
from mnemon_infra.telemetry import metrics, tracing

log = structlog.get_logger("broker")

DELAYS = (0.1, 0.5, 2.0, 5.0, 15.0, 30.0)
"""Seconds to wait after the first delivery, the second and so on; the last value applies to all further ones.
"""

LONGEST_SUBJECT = 3000
"""Maximum bytes of an original's subject within the subject of its dead letter.

The server accepts at most 4096 bytes for the line of the protocol that has the subject.
"""

HEADROOM = 1024
"""Maximum bytes that nats-py adds to the headers of a message."""


@dataclass(frozen=True, slots=True)
class Ack:
    """Outcome: the message is handled.

    `reason` says why the message has no effect; None if the effect of the message is stored.
    """

    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """Outcome: the message is delivered again after `delay` seconds; None takes the seconds from `DELAYS`."""

    delay: float | None = None


@dataclass(frozen=True, slots=True)
class Dead:
    """Outcome: the message is kept as a dead letter. `reason` is for programs, `error` for operators.

    If `is_confidential` is true, the letter has neither headers nor body of the message. If the message is an
    event, the log still has both.
    """

    reason: str
    error: str
    is_confidential: bool = False


DeliveryOutcome = Ack | Retry | Dead
ACK = Ack()


def compute_retry_delay(deliveries: int) -> float:
    """Return the seconds until the next delivery of a message that was delivered `deliveries` times."""
    return DELAYS[min(max(deliveries, 1), len(DELAYS)) - 1]


def count_outcomes(outcomes: Sequence[DeliveryOutcome]) -> dict[str, int]:
    """Count outcomes by the words that metrics use for them, such as `applied`."""
    applied = outcomes.count(ACK)
    if applied == len(outcomes):  # the usual case, which costs one comparison per outcome
        return {"applied": applied}
    return dict(Counter(map(name_outcome, outcomes)))


def name_outcome(outcome: DeliveryOutcome) -> str:
    """Return the word for an outcome in metrics and traces."""
    match outcome:
        case Ack(reason):
            return "applied" if reason is None else "nothing"
        case Retry():
            return "retried"
        case Dead():
            return "dead"


async def settle_batch(
    connection: Client, consumer: str, settled: Iterable[tuple[Msg, Delivery, DeliveryOutcome]]
) -> None:
    """Report the outcome of each message to NATS. A dead letter is stored before its message is terminated.

    A message whose dead letter cannot be stored is retried.

    Raises:
        nats.errors.Error: the connection is closed, or its buffer of messages to send is full.
    """
    acknowledged: list[tuple[str, bytes]] = []
    dead: list[tuple[Msg, Delivery, Dead]] = []
    for message, delivery, outcome in settled:
        match outcome:
            case Ack():
                acknowledged.append((message.reply, b""))
            case Retry(delay):
                await message.nak(compute_retry_delay(delivery.deliveries) if delay is None else delay)
            case Dead():
                dead.append((message, delivery, outcome))
    await publish_core_messages(connection, acknowledged)
    stream_context = connection.jetstream()
    for start in range(0, len(dead), 64):
        await asyncio.gather(
            *(_store_dead_letter(stream_context, consumer, *each) for each in dead[start : start + 64])
        )


async def _store_dead_letter(
    stream_context: JetStreamContext, consumer: str, message: Msg, delivery: Delivery, outcome: Dead
) -> None:
    subject = delivery.subject.encode()[:LONGEST_SUBJECT].decode(errors="ignore").rstrip(".")
    headers, body = _compose_dead_letter(consumer, message, delivery, outcome)
    try:
        await stream_context.publish(
            build_dead_letter_subject(consumer, subject), body, headers=headers, stream=DEAD
        )
    except Exception as error:  # the message must stay, whatever the error is
        log.warning(
            "dead letter store failed, retrying",
            consumer=consumer,
            seq=delivery.sequence,
            error=repr(error),
        )
        await message.nak(compute_retry_delay(delivery.deliveries))
        return
    metrics.DEAD_LETTERS.add(consumer, outcome.reason)
    log.warning(
        "dead letter stored",
        consumer=consumer,
        seq=delivery.sequence,
        event_id=fold_header(delivery.message_id or f"{delivery.stream}:{delivery.sequence}", 255),
        reason=outcome.reason,
        error=outcome.error,
        **tracing.build_event_log_fields(delivery),
    )
    await message.term()


def measure_message(headers: Mapping[str, str], body: bytes) -> int:
    """Return an upper bound of the size of a message in bytes, which `max_payload` of the server limits."""
    return HEADROOM + len(body) + measure_headers(headers)


def _compose_dead_letter(
    consumer: str, message: Msg, delivery: Delivery, outcome: Dead
) -> tuple[dict[str, str], bytes]:
    """Return the headers and the body of a dead letter.

    The letter has neither headers nor body of the original if the outcome is confidential, or if the letter
    would exceed `max_payload` of the server: the server closes the connection permanently when a message
    is larger. If the original is an event, the log still has both; the content of a trigger is lost.
    """
    headers = {
        # A redelivery of the same message must not make a second letter.
        MESSAGE_ID: f"{consumer}:{delivery.stream}:{delivery.sequence}",
        "Mnemon-Consumer": consumer,
        "Mnemon-Reason": outcome.reason,
        "Mnemon-Error": fold_header(outcome.error),
        "Mnemon-Subject": delivery.subject,
        "Mnemon-Stream": delivery.stream,
        "Mnemon-Sequence": str(delivery.sequence),
    }
    whole = headers | {"Mnemon-Headers": json.dumps(message.headers or {})}
    if outcome.is_confidential or measure_message(whole, message.data) > message._client.max_payload:
        return headers | {"Mnemon-Left-Out": "headers and body"}, b""
    return whole, message.data
