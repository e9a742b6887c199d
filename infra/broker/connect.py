"""Connections to NATS that never give up, and say what goes wrong."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import nats
import structlog
from nats.aio.client import Client

log = structlog.get_logger("broker")


class BrokerUnreachable(ConnectionError):
    """No NATS server answers at the address."""


async def report_error(error: Exception) -> None:
    """Say what nats-py met in the background; a denied permission is shown nowhere else."""
    if "permissions violation" in str(error).lower():
        log.error("permission denied: the server's configuration must allow this subject", error=str(error))
    else:
        log.warning("connection error", error=str(error) or type(error).__name__)


OPTIONS: Mapping[str, Any] = {
    # A finite number of attempts, once used up, blocks the event loop for ever.
    "max_reconnect_attempts": -1,
    "reconnect_time_wait": 0.5,
    # With the default of two minutes a dead link is found after minutes.
    "ping_interval": 10,
    "max_outstanding_pings": 2,
    "error_cb": report_error,
}


def servers(url: str) -> list[str]:
    """The servers of a comma-separated list."""
    return [server.strip() for server in url.split(",") if server.strip()]


async def connect(url: str, *, name: str) -> Client:
    """A connection that reconnects for ever once it stands.

    Raises:
        BrokerUnreachable: no server answered the first time.
    """
    await check(url)
    return await nats.connect(servers(url), name=name, **OPTIONS)


@contextmanager
def reconnects(connection: Client) -> Iterator[asyncio.Event]:
    """An event that is set whenever the connection stands again: what its server kept for it may be gone."""
    event = asyncio.Event()
    # nats-py tells one listener only, which it is given before it connects.
    listener = connection._reconnected_cb

    async def reconnected() -> None:
        event.set()
        if listener is not None:
            await listener()

    connection._reconnected_cb = reconnected
    try:
        yield event
    finally:
        connection._reconnected_cb = listener


async def check(url: str) -> None:
    """Look whether a server answers: a connection that reconnects for ever would wait for one for ever.

    Raises:
        BrokerUnreachable: none does.
    """
    first_attempt = {**OPTIONS, "max_reconnect_attempts": 1, "connect_timeout": 3, "error_cb": _quiet}
    try:
        probe = await nats.connect(servers(url), name="mnemon-probe", **first_attempt)
    except Exception as error:
        raise BrokerUnreachable(
            f"no NATS server answers at {url}: {error or type(error).__name__}"
        ) from error
    await probe.close()


async def _quiet(error: Exception) -> None:
    """The first attempt's error is raised; there is no need to say it twice."""
