"""Connections to NATS that never give up, and say what goes wrong."""

import asyncio
import os
import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import nats
import structlog
from nats.aio.client import Client

from mnemon_contracts.login import AUTHORITY, CREDENTIALS, NKEY_SEED, LoginUnusable, login_options
from mnemon_infra.broker import patches

log = structlog.get_logger("broker")


OLDEST = (2, 14)
"""The first version of nats-server that has all that is asked of it: schedules, and atomic batches."""


class BrokerUnreachable(ConnectionError):
    """No NATS server answers at the address, or none that will do; the message has the next step."""


class BrokerRefused(BrokerUnreachable):
    """The server does not take the credentials."""


class BrokerTooOld(BrokerUnreachable):
    """The server lacks what mnemon is built on."""


async def report_error(error: Exception) -> None:
    """Say what nats-py met in the background; a denied permission is shown nowhere else."""
    if "permissions violation" in str(error).lower():
        log.error("permission denied: the server's configuration must allow this subject", error=str(error))
    else:
        log.warning("connection error", error=str(error) or type(error).__name__)


_PATIENCE = 8.0
"""Seconds for a server to let us in or refuse, at the first look."""

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
    patches.apply()
    await check(url)
    return await nats.connect(servers(url), name=name, **OPTIONS, **login(url))


def login(url: str) -> dict[str, Any]:
    """How to log in there: arguments of `nats.connect`.

    Raises:
        BrokerRefused: what the environment names for that cannot be used.
    """
    try:
        return login_options(url, os.environ)
    except LoginUnusable as error:
        raise BrokerRefused(str(error)) from error


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
        BrokerRefused: one does, and does not take the credentials.
        BrokerTooOld: it lacks what mnemon is built on.
    """
    failures: list[Exception] = []

    async def note(error: Exception) -> None:
        failures.append(error)

    options = login(url)
    first_attempt = {
        **OPTIONS,
        **options,
        "max_reconnect_attempts": 1,
        "connect_timeout": 3,
        "error_cb": note,
    }
    try:
        # Where TLS fails, nats-py waits for ever for the end of the connection.
        async with asyncio.timeout(_PATIENCE * len(servers(url))):
            probe = await nats.connect(servers(url), name="mnemon-probe", **first_attempt)
    except Exception as error:
        raise _refusal(url, [*failures, error]) from error
    version = str(probe._server_info.get("version", ""))
    await probe.close()
    if too_old(version):
        raise BrokerTooOld(
            f"NATS server {version} is too old: mnemon needs {OLDEST[0]}.{OLDEST[1]} or newer. "
            f"Upgrade the one at {shown(url)}: its streams stay"
        )


def too_old(version: str) -> bool:
    """Whether a version such as `2.12.1` is below `OLDEST`. What is no version is another's own naming."""
    numbers = re.match(r"v?(\d+)\.(\d+)", version)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) < OLDEST


def shown(url: str) -> str:
    """Servers as they may be shown to anybody: without user, password or token."""
    return re.sub(r"//[^/,]*@", "//***@", url)


def _refusal(url: str, failures: Sequence[Exception]) -> BrokerUnreachable:
    """What a first attempt that failed means. The first failure says most: later ones are of the library."""
    said = str(failures[0]) or type(failures[0]).__name__
    refused = any(re.search("authorization|authentication", str(each), re.IGNORECASE) for each in failures)
    if refused or any(isinstance(each, ConnectionResetError) for each in failures):
        # What it said is lost with the line, now and then.
        how = "does not take" if refused else "cut the line, as it does when it does not take"
        return BrokerRefused(
            f"the NATS server at {shown(url)} {how} the credentials: look at user and password in "
            f"MNEMON_NATS_URL, such as nats://user:password@host:4222, or at {CREDENTIALS} or {NKEY_SEED}"
        )
    if any(isinstance(each, ssl.SSLError) for each in failures):
        return BrokerRefused(
            f"no encrypted connection to the NATS server at {shown(url)}: {said}. {AUTHORITY} names the file "
            "with the certificate that signs the server's"
        )
    return BrokerUnreachable(
        f"no NATS server answers at {shown(url)}: {said}. Start it, or look at MNEMON_NATS_URL"
    )
