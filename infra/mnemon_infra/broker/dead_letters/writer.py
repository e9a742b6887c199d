"""Writer of dead letters whose original is in no stream, such as a model's unreadable answer."""

import json
from typing import Any

import structlog
from nats.aio.client import Client

from mnemon_contracts.identity import MESSAGE_ID
from mnemon_contracts.streams import DEAD
from mnemon_contracts.subjects import build_dead_letter_subject
from mnemon_infra.broker.headers import fold_header
from mnemon_infra.broker.outcomes import HEADROOM, Dead, measure_message
from mnemon_infra.telemetry import metrics

log = structlog.get_logger("broker")


async def store_letter(
    connection: Client,
    consumer: str,
    subject: str,
    dead: Dead,
    letter: dict[str, Any],
    letter_id: str,
    model: str | None = None,
) -> None:
    """Store a dead letter. Storing the same letter again within the stream's duplicate window has no effect.

    If the body is too large for the server, its longest text is cut.

    Args:
        connection: connection to the server.
        consumer: the consumer that stores the letter.
        subject: subject of the event that reports the failure in the log.
        dead: reason and error of the letter.
        letter: body of the letter, as JSON values.
        letter_id: identifies the letter among those of the consumer.
        model: name of the model that failed; None if the letter names no model.

    Raises:
        nats.errors.Error: it is unknown whether the letter is stored.
    """
    headers = {
        MESSAGE_ID: f"{consumer}:{letter_id}",
        "Mnemon-Consumer": consumer,
        "Mnemon-Reason": dead.reason,
        "Mnemon-Error": fold_header(dead.error),
        "Mnemon-Subject": subject,
    }
    if model is not None:
        headers["Mnemon-Model"] = fold_header(model)
    body = json.dumps(letter, ensure_ascii=False).encode(errors="replace")
    if measure_message(headers, body) > connection.max_payload:
        longest = max(letter, key=lambda name: len(str(letter[name])))
        # A character takes at most eight bytes in JSON.
        beginning = str(letter[longest])[: (connection.max_payload - HEADROOM) // 16]
        body = json.dumps({**letter, longest: beginning}, ensure_ascii=False).encode(errors="replace")
        headers["Mnemon-Left-Out"] = f"the end of {longest}"
    await connection.jetstream().publish(
        build_dead_letter_subject(consumer, subject), body, headers=headers, stream=DEAD
    )
    metrics.DEAD_LETTERS.add(consumer, dead.reason)
    log.warning("dead letter stored", consumer=consumer, reason=dead.reason, error=dead.error)
