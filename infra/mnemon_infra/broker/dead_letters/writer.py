"""Dead letters of what is no message: an answer that nobody can read, say. Those of messages: `outcomes`."""

import json
from typing import Any

import structlog
from nats.aio.client import Client

from mnemon_contracts.streams import DEAD
from mnemon_contracts.subjects import dead_subject
from mnemon_infra.broker.headers import header_value
from mnemon_infra.broker.outcomes import HEADROOM, Dead
from mnemon_infra.telemetry import metrics

log = structlog.get_logger("broker")


async def bury(
    connection: Client,
    consumer: str,
    subject: str,
    dead: Dead,
    letter: dict[str, Any],
    letter_id: str,
    model: str | None = None,
) -> None:
    """Keep a letter; the same again within the stream's window for duplicates makes no second one.

    Args:
        connection: where the stream is.
        consumer: who gives up.
        subject: of the event that says so in the log.
        dead: why.
        letter: the body, JSON; where it is too much for the server, its longest text is cut.
        letter_id: what the letter is known by.
        model: provider and model whose answer it is about.

    Raises:
        nats.errors.Error: it is not known whether it is stored.
    """
    headers = {
        "Nats-Msg-Id": f"{consumer}:{letter_id}",
        "Mnemon-Consumer": consumer,
        "Mnemon-Reason": dead.reason,
        "Mnemon-Error": header_value(dead.error),
        "Mnemon-Subject": subject,
    }
    if model is not None:
        headers["Mnemon-Model"] = header_value(model)
    body = json.dumps(letter, ensure_ascii=False).encode(errors="replace")
    size = len(body) + sum(len(name) + len(value.encode()) + 4 for name, value in headers.items())
    if size + HEADROOM > connection.max_payload:
        longest = max(letter, key=lambda name: len(str(letter[name])))
        # A character has eight bytes at most, however JSON writes it.
        beginning = str(letter[longest])[: (connection.max_payload - HEADROOM) // 16]
        body = json.dumps({**letter, longest: beginning}, ensure_ascii=False).encode(errors="replace")
        headers["Mnemon-Left-Out"] = f"the end of {longest}"
    await connection.jetstream().publish(dead_subject(consumer, subject), body, headers=headers, stream=DEAD)
    metrics.DEAD_LETTERS.add(consumer, dead.reason)
    log.warning("dead letter stored", consumer=consumer, reason=dead.reason, error=dead.error)
