"""NATS client that uses only subjects and JSON, as a bot in any language can."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from nats.aio.client import Client

from mnemon_contracts.streams import LOG, WORK
from mnemon_infra.broker.streams.applied_position import AppliedPosition, read_applied_position
from mnemon_infra.broker.streams.log_reader import read_last_position


@dataclass(frozen=True)
class Stock:
    """A client that uses only subjects and JSON, not the contracts."""

    connection: Client

    async def publish(self, subject: str, body: Any = None, **headers: str) -> int:
        """Publish an event, and return its log position; `Nats_Msg_Id` sets the header of this name."""
        data = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
        acknowledgement = await self.connection.jetstream(timeout=60).publish(
            subject, data, headers={name.replace("_", "-"): value for name, value in headers.items()} or None
        )
        return acknowledgement.seq

    async def say(self, content: str, place: str = "acme.u1.-", **fields: Any) -> int:
        return await self.publish(f"chat.{place}.message.v1", {"role": "user", "content": content, **fields})

    async def ask(self, verb: str, owner: str = "acme.u1", **request: Any) -> dict[str, Any]:
        message = await self.connection.request(
            f"ask.{owner}.{verb}.v1", json.dumps(request).encode(), timeout=60
        )
        reply: dict[str, Any] = json.loads(message.data)
        return reply

    async def contents(self, owner: str = "acme.u1", **request: Any) -> list[str]:
        """Return the texts of the messages in a reply of `history`."""
        return [message["content"] for message in (await self.ask("history", owner, **request))["messages"]]


async def persisted(connection: Client, seq: int) -> int:
    """Wait until `persist` has applied the log up to the position `seq`, and return the position.

    A request with `min_seq` cannot replace this wait: after half a second, it reads unapplied events from the
    log, and the next request without `min_seq` may lack them.
    """
    assert await AppliedPosition().wait_for(connection.jetstream(), seq, 60) >= seq
    return seq


async def handled(connection: Client, consumer: str, timeout: float = 60) -> None:
    """Wait until a consumer has handled every event that the log has for the consumer now.

    `num_pending` of the consumer may be too low: the server counts an event a moment after it has
    acknowledged the publication.
    """
    stream_context = connection.jetstream()
    config = (await stream_context.consumer_info(LOG, consumer)).config
    patterns = config.filter_subjects or [config.filter_subject or ">"]
    end = max([await read_last_position(connection, pattern) for pattern in patterns])
    assert await AppliedPosition(consumer).wait_for(stream_context, end, timeout) >= end


async def indexed(stock: Stock, seq: int) -> int:
    """Wait until `index` has indexed the log up to the position `seq`, and return the position."""
    stream_context = stock.connection.jetstream()
    async with asyncio.timeout(60):
        for consumer in ("persist", "index"):
            while await read_applied_position(stream_context, consumer) < seq:
                await asyncio.sleep(0.02)
        while (await stream_context.stream_info(WORK, subjects_filter="work.index.>")).state.subjects:
            await asyncio.sleep(0.02)
    return seq


async def acknowledge_messages(connection: Client, consumer: str, count: int) -> None:
    """Fetch up to `count` messages of the log that wait for a consumer, and acknowledge them."""
    durable = await connection.jetstream().pull_subscribe_bind(consumer, LOG)
    for message in await durable.fetch(count, 60):
        await message.ack_sync()
    await durable.unsubscribe()
