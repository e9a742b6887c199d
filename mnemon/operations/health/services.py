"""Processes that answer bots, found by the NATS services protocol."""

import json
from collections import Counter
from contextlib import suppress
from typing import Any, Final, NamedTuple

import nats.errors
from nats.aio.client import Client

_REPLY_TIMEOUT: Final = 0.25
"""Seconds without a reply after which no more replies are expected."""


class ServiceCounts(NamedTuple):
    """Totals of the processes of a service since they started; `seconds` is the time spent on requests."""

    processes: int = 0
    requests: int = 0
    errors: int = 0
    seconds: float = 0.0

    def compute_increase(self, before: "ServiceCounts") -> "ServiceCounts":
        """Return the difference from earlier counts; `processes` is the current number.

        If there are fewer requests than before, a process has ended or restarted at 0: return the current
        counts.
        """
        if self.requests < before.requests:
            return self
        return self._replace(
            requests=self.requests - before.requests,
            errors=self.errors - before.errors,
            seconds=self.seconds - before.seconds,
        )


async def count_processes(connection: Client) -> dict[str, int]:
    """Return the number of processes that answer, by name of the service.

    Raises:
        nats.errors.Error: the connection is closed.
    """
    return dict(Counter(str(reply["name"]) for reply in await _request_json(connection, "$SRV.PING")))


async def sum_service_counts(connection: Client, name: str) -> ServiceCounts:
    """Return the totals of the processes of one service.

    Raises:
        nats.errors.Error: the connection is closed.
    """
    replies = await _request_json(connection, f"$SRV.STATS.{name}")
    endpoints = [endpoint for reply in replies for endpoint in reply["endpoints"]]
    return ServiceCounts(
        len(replies),
        sum(each["num_requests"] for each in endpoints),
        sum(each["num_errors"] for each in endpoints),
        sum(each["processing_time"] for each in endpoints) / 1e9,
    )


async def _request_json(connection: Client, subject: str) -> list[dict[str, Any]]:
    return [json.loads(reply) for reply in await request_replies(connection, subject)]


async def request_replies(connection: Client, subject: str) -> list[bytes]:
    """Send an empty request; return the replies until none has arrived for 0.25 seconds.

    If no process listens to `subject`, return an empty list at once.

    Raises:
        nats.errors.Error: the connection is closed.
    """
    inbox = connection.new_inbox()
    subscription = await connection.subscribe(inbox)
    await connection.publish(subject, reply=inbox)
    found = []
    with suppress(nats.errors.TimeoutError):
        while reply := await subscription.next_msg(timeout=_REPLY_TIMEOUT):
            if not reply.data:  # the server reports that no process listens
                break
            found.append(reply.data)
    await subscription.unsubscribe()
    return found
