"""Who answers bots, by the NATS services protocol."""

import json
from collections import Counter
from contextlib import suppress
from typing import Any, Final, NamedTuple

import nats.errors
from nats.aio.client import Client

_SILENCE: Final = 0.25
"""Seconds after which nobody else is expected to answer."""


class ServiceCounts(NamedTuple):
    """What the processes of a service have answered since they began."""

    processes: int = 0
    requests: int = 0
    errors: int = 0
    seconds: float = 0.0

    def since(self, before: "ServiceCounts") -> "ServiceCounts":
        """The same since another look; a process that began anew has begun at 0."""
        if self.requests < before.requests:
            return self
        return self._replace(
            requests=self.requests - before.requests,
            errors=self.errors - before.errors,
            seconds=self.seconds - before.seconds,
        )


async def processes(connection: Client) -> dict[str, int]:
    """Processes that answer, by the name of their service."""
    return dict(Counter(str(reply["name"]) for reply in await _replies(connection, "$SRV.PING")))


async def served(connection: Client, name: str) -> ServiceCounts:
    """What the processes of one service have answered."""
    replies = await _replies(connection, f"$SRV.STATS.{name}")
    endpoints = [endpoint for reply in replies for endpoint in reply["endpoints"]]
    return ServiceCounts(
        len(replies),
        sum(each["num_requests"] for each in endpoints),
        sum(each["num_errors"] for each in endpoints),
        sum(each["processing_time"] for each in endpoints) / 1e9,
    )


async def _replies(connection: Client, subject: str) -> list[dict[str, Any]]:
    return [json.loads(reply) for reply in await replies(connection, subject)]


async def replies(connection: Client, subject: str) -> list[bytes]:
    """What each process replies that listens to a subject."""
    inbox = connection.new_inbox()
    subscription = await connection.subscribe(inbox)
    await connection.publish(subject, reply=inbox)
    found = []
    with suppress(nats.errors.TimeoutError):
        while reply := await subscription.next_msg(timeout=_SILENCE):
            if not reply.data:  # the server's word that nobody is there
                break
            found.append(reply.data)
    await subscription.unsubscribe()
    return found
