"""Connections to NATS that reconnect for ever, and errors that say why a connection fails."""

import asyncio
import os
import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import nats
import nats.errors
import structlog
from nats.aio.client import Client

from mnemon_contracts.login import (
    AUTHORITY,
    CREDENTIALS,
    NKEY_SEED,
    LoginUnusable,
    read_login_options,
    redact_address,
)
from mnemon_infra.broker import patches
from mnemon_infra.config import Deployment
from mnemon_infra.process.fault import end_process

log = structlog.get_logger("broker")


MINIMUM_VERSION = (2, 14)
"""The first version of nats-server that has all that mnemon needs: schedules, and atomic batches."""

MAX_PAYLOAD: Final = 8 * 1024 * 1024
"""`max_payload` that mnemon needs from a NATS server, in bytes.

It exceeds the limit of a body, so that a dead letter can contain a refused body, and leaves room for replies.
"""

MAX_PAYLOAD_STEP: Final = (
    "set `max_payload: 8MB` in the configuration of the NATS server, reload it, and restart consumers, "
    "gateways and bots, which learn the limit when they connect"
)
"""Next step if `max_payload` of the server is below `MAX_PAYLOAD`."""


class BrokerUnreachable(ConnectionError):
    """No NATS server is configured, or none that mnemon can use answers; the message names the next step."""


class BrokerRefused(BrokerUnreachable):
    """The server refuses the login or a request, or the login or TLS of this process cannot be used."""


class BrokerTooOld(BrokerUnreachable):
    """The server's version is below `MINIMUM_VERSION`."""


async def report_error(error: Exception) -> None:
    """Log an error that nats-py reports in the background, such as a denied permission.

    A request without permission ends with a timeout, and a subscription without permission with no error.
    """
    if "permissions violation" in str(error).lower():
        log.error(
            "permission denied by the server",
            error=str(error),
            next_step="write the logins again with `mnemon auth` and reload the NATS server; or allow the "
            "subject in its configuration, if you write that yourself",
        )
    else:
        log.warning("NATS connection error reported", error=str(error) or type(error).__name__)


@contextmanager
def explain_denials(connection: Client) -> Iterator[None]:
    """Raise `BrokerRefused` in place of a timeout in the block if the server denied a permission.

    The server does not reply to a request that it denies; it sends an error. nats-py keeps the last error.

    Raises:
        BrokerRefused: a request was not answered, and the login lacks a permission.
    """
    try:
        yield
    except nats.errors.TimeoutError as error:
        denial = str(connection.last_error)
        if "permissions violation" not in denial.lower():
            raise
        raise BrokerRefused(
            f"the login at the NATS server may not do this ({denial.removeprefix('nats: ')}): put the "
            "name and password that `mnemon auth operator` creates into MNEMON_NATS_URL"
        ) from error


CHECK_TIMEOUT = 8.0
"""Seconds per configured server within which one of the servers must accept or refuse the connection."""

OPTIONS: Mapping[str, Any] = {
    # nats-py blocks the event loop for ever once a finite number of attempts is used up.
    "max_reconnect_attempts": -1,
    "reconnect_time_wait": 0.5,
    # With the default of two minutes nats-py finds a dead link after minutes.
    "ping_interval": 10,
    "max_outstanding_pings": 2,
    "error_cb": report_error,
}


def split_servers(url: str) -> list[str]:
    """Return the addresses in a comma-separated list of servers."""
    return [server.strip() for server in url.split(",") if server.strip()]


async def connect(url: str, *, name: str) -> Client:
    """Connect to NATS, after a check that a server answers. A lost connection is retried without a limit.

    Args:
        url: addresses of the servers, comma-separated.
        name: name of the connection, which the server's monitoring shows.

    Raises:
        BrokerUnreachable: no server that mnemon can use answers.
    """
    patches.apply()
    await check_server(url)
    return await nats.connect(split_servers(url), name=name, **OPTIONS, **parse_login(url))


async def connect_deployment(deployment: Deployment, *, name: str) -> Client:
    """Connect to a deployment's servers, like `connect`.

    Raises:
        BrokerUnreachable: no server is configured, or no server that mnemon can use answers.
    """
    return await connect(require_servers(deployment), name=name)


def require_servers(deployment: Deployment) -> str:
    """Return the addresses of a deployment's servers, comma-separated.

    Raises:
        BrokerUnreachable: no server is configured.
    """
    if deployment.nats_url is None:
        raise BrokerUnreachable("no NATS server is configured: set MNEMON_NATS_URL")
    return deployment.nats_url


def parse_login(url: str) -> dict[str, Any]:
    """Return the arguments of `nats.connect` that log in to a server.

    Raises:
        BrokerRefused: the login that the environment names cannot be used.
    """
    try:
        return read_login_options(url, os.environ)
    except LoginUnusable as error:
        raise BrokerRefused(str(error)) from error


@contextmanager
def watch_reconnects(connection: Client) -> Iterator[asyncio.Event]:
    """Yield an `asyncio.Event` that each reconnect sets: the server may then lack the state of the client."""
    event = asyncio.Event()
    # nats-py has one listener for reconnects: this one replaces it, and calls it.
    listener = connection._reconnected_cb

    async def report_reconnect() -> None:
        event.set()
        if listener is not None:
            await listener()

    connection._reconnected_cb = report_reconnect
    try:
        yield event
    finally:
        connection._reconnected_cb = listener


def end_process_after_close(name: str) -> None:
    """End this process, because the server has closed its connection `name` permanently.

    nats-py does not reconnect after some errors of the server, such as a login that no longer exists. A
    process without a connection would only seem alive.
    """
    log.critical("connection closed by the server, ending this process", connection=name)
    end_process(
        f"the NATS server closed the connection {name} for good; see the log messages before this one"
    )


@contextmanager
def end_process_when_closed(connection: Client) -> Iterator[None]:
    """End this process if the server closes the connection permanently during the block."""

    async def handle_close() -> None:
        end_process_after_close(str(connection.options["name"]))

    connection._closed_cb = handle_close
    try:
        yield
    finally:
        connection._closed_cb = None


async def check_server(url: str) -> None:
    """Check that a server that mnemon can use answers.

    Without this check, a connection that reconnects for ever would wait for an absent server.

    Raises:
        BrokerUnreachable: no server answers.
        BrokerRefused: a server refuses the login, or the login or TLS of this process cannot be used.
        BrokerTooOld: the server's version is below `MINIMUM_VERSION`.
    """
    failures: list[Exception] = []

    async def note(error: Exception) -> None:
        failures.append(error)

    options = parse_login(url)
    first_attempt = {
        **OPTIONS,
        **options,
        "max_reconnect_attempts": 1,
        "connect_timeout": 3,
        "error_cb": note,
    }
    try:
        # If TLS fails, nats-py waits for ever for the connection to end.
        async with asyncio.timeout(CHECK_TIMEOUT * len(split_servers(url))):
            probe = await nats.connect(split_servers(url), name="mnemon-probe", **first_attempt)
    except Exception as error:
        raise _explain_failure(url, [*failures, error]) from error
    version = str(probe._server_info.get("version", ""))
    await probe.close()
    if is_too_old(version):
        needed = ".".join(map(str, MINIMUM_VERSION))
        raise BrokerTooOld(
            f"NATS server {version} is too old: mnemon needs {needed} or newer. "
            f"Upgrade the server at {redact_address(url)}; its streams are kept"
        )


def is_too_old(version: str) -> bool:
    """Return whether a version of the NATS server, such as `2.12.1`, is below `MINIMUM_VERSION`.

    False if the text is not a version.
    """
    numbers = re.match(r"v?(\d+)\.(\d+)", version)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) < MINIMUM_VERSION


def _explain_failure(url: str, failures: Sequence[Exception]) -> BrokerUnreachable:
    """Return the error for a failed attempt to connect, by the kinds and texts of its failures."""
    said = str(failures[0]) or type(failures[0]).__name__
    refused = any(re.search("authorization|authentication", str(each), re.IGNORECASE) for each in failures)
    if refused or any(isinstance(each, ConnectionResetError) for each in failures):
        # The server's message is sometimes lost with the connection.
        how = "rejects" if refused else "closed the connection, as it does when it rejects"
        return BrokerRefused(
            f"the NATS server at {redact_address(url)} {how} the credentials: check name and password in "
            f"MNEMON_NATS_URL, such as nats://name:password@host:4222, or check {CREDENTIALS} or {NKEY_SEED}"
        )
    if any(isinstance(each, ssl.SSLError) for each in failures):
        return BrokerRefused(
            f"no encrypted connection to the NATS server at {redact_address(url)}: {said}. Check "
            f"that the server's certificate is valid, and that {AUTHORITY} names the file with the "
            "certificate of the authority that signed it"
        )
    return BrokerUnreachable(
        f"no NATS server answers at {redact_address(url)}: {said}. Start the server, or check MNEMON_NATS_URL"
    )
