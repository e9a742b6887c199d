"""Dead letters of an older version for events that this version can handle."""

from typing import Any

from nats.aio.client import Client

from mnemon_contracts.streams import LOG, WORK
from mnemon_infra.broker.dead_letters.listing import Letter, LetterFilter, read_letters
from mnemon_infra.broker.outcomes import Dead, settle_batch
from mnemon_infra.delivery import Delivery
from tests.support.stock_client import Stock

FAULT = Dead("invalid_body", "an older version could not read it")


async def bury_next(
    connection: Client, *, stream: str = LOG, durable: str = "persist", dead: Dead = FAULT
) -> Letter:
    """Make a dead letter of the next message that waits for the durable, and return the dead letter."""
    waiting = await connection.jetstream().pull_subscribe_bind(durable, stream)
    [message] = await waiting.fetch(1, timeout=60)
    await settle_batch(connection, durable, [(message, Delivery.from_message(message), dead)])
    await waiting.unsubscribe()
    return (await kept(connection))[-1]


async def bury_said(stock: Stock, content: str, place: str = "acme.u1.-", **fields: Any) -> Letter:
    """Publish a message, make a dead letter of the next message for `persist`, and return the dead letter."""
    await stock.say(content, place, **fields)
    return await bury_next(stock.connection)


async def bury_trigger(connection: Client, subject: str, body: bytes, durable: str) -> Letter:
    """Publish a trigger, make a dead letter of the durable's next trigger, and return the dead letter."""
    await connection.jetstream().publish(subject, body, stream=WORK)
    return await bury_next(connection, stream=WORK, durable=durable)


async def kept(connection: Client) -> list[Letter]:
    """Return all dead letters."""
    return [each async for each in read_letters(connection, LetterFilter())]
