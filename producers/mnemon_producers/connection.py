"""Connection of a bot to NATS without a limit of reconnects, and the denials of permission in its errors."""

import asyncio
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import nats.errors
from nats.aio.client import Client

from mnemon_contracts.base import measure_headers
from mnemon_contracts.login import LoginUnusable, read_login_options, redact_address
from mnemon_producers.errors import NotConnected

log = logging.getLogger("mnemon.client")

_HEADER_FRAME: Final = len("NATS/1.0\r\nNats-Expected-Stream: LOG\r\n\r\n")
"""Maximum bytes that nats-py adds to the headers of a message."""


async def connect(url: str, **options: Any) -> Client:
    """Try the servers in `url` in random order, and connect to one that answers.

    A login in `url` takes precedence over the login that environment variables name.

    Args:
        url: addresses of the servers, comma-separated.
        options: arguments of `nats.connect`, which override the arguments that this function sets.

    Raises:
        NotConnected: `url` is not a string or has no address, no server answered or accepted the credentials,
            or the login cannot be used.
    """
    example = "Give one, such as nats://127.0.0.1:4222"
    if not isinstance(url, str):
        raise NotConnected(f"url: must be a string, not {type(url).__name__}", example)
    try:
        login = read_login_options(url, os.environ)
    except LoginUnusable as error:
        raise NotConnected(str(error)) from error
    servers = [server.strip() for server in url.split(",") if server.strip()]
    if not servers:  # nats-py would block the event loop without end
        raise NotConnected("no address of a NATS server is given", example)
    connection = Client()
    connected = False
    failures: list[Exception] = []
    remarks: set[str] = set()

    async def report_error(error: Exception) -> None:
        failures.append(error)
        if not connected and len(failures) >= len(servers):
            raise error  # every server was tried; nats-py would retry without end
        remark = str(error) or type(error).__name__
        if remark in remarks:  # each attempt to reconnect fails with the same message, twice a second
            log.debug("NATS connection error reported error=%s", remark)
        else:
            log.warning("NATS connection error reported error=%s", remark)
            remarks.add(remark)

    async def report_reconnect() -> None:
        log.info("reconnected to NATS")
        remarks.clear()

    settings: dict[str, Any] = {
        "name": "mnemon-client",
        # After the last of a finite number of attempts, nats-py blocks the event loop for ever.
        "max_reconnect_attempts": -1,
        "reconnect_time_wait": 0.5,
        # With the default of two minutes, it takes minutes to detect a dead connection.
        "ping_interval": 10,
        "connect_timeout": 3,
        "error_cb": report_error,
        "reconnected_cb": report_reconnect,
    }
    try:
        await connection.connect(servers, **{**settings, **login, **options})
    except Exception as error:
        # If TLS fails, nats-py waits without end for the connection to close. With an invalid address it has
        # not begun to connect, and asserts that it has.
        with suppress(OSError, AssertionError):
            async with asyncio.timeout(1):
                await connection.close()
        cause = failures[-1] if failures else error
        problem = str(cause) or ("no answer in time" if isinstance(cause, TimeoutError) else repr(cause))
        if isinstance(cause, ConnectionResetError):
            # The server's error message is sometimes lost with the connection.
            problem += "; the server closed the connection, as it does when it rejects the credentials"
        raise NotConnected(
            f"no connection to NATS at {redact_address(url)}: {problem}",
            "Check the address, the login and the server",
        ) from error
    connected = True
    return connection


def require_payload_room(connection: Client, body: bytes, headers: Mapping[str, str]) -> None:
    """Check that the server accepts a message with headers, which nats-py does not count.

    Otherwise the server closes the connection permanently.

    Raises:
        nats.errors.MaxPayloadError: the message exceeds `max_payload` of the server.
    """
    if not headers or 2 * len(body) < connection.max_payload:
        return  # headers have a few KB
    if len(body) + measure_headers(headers) + _HEADER_FRAME > connection.max_payload:
        raise nats.errors.MaxPayloadError


def describe_excess(connection: Client) -> str:
    """Return why a message above `max_payload` of the server cannot be sent, with the next step."""
    limit = f"the NATS server accepts at most {connection.max_payload:,} bytes"
    return f"{limit}; send less, or raise `max_payload` of the server and connect again"


def find_denial(connection: Client, before: Exception | None, *subjects: str) -> str | None:
    """Return the server's denial of permission for a subject or for the inbox, with the next step.

    After a denial, the reply is missing, and the server sends an error. nats-py keeps only the last error, in
    lower case. `before` is the last error from before the request: it says nothing about the request, unless
    it denies the inbox, which the connection subscribes to once.

    Returns:
        None if the last error is no denial for `subjects` or for the connection's inbox.
    """
    remark = str(connection.last_error)
    if "permissions violation" not in remark:
        return None
    is_new = connection.last_error is not before
    if is_new and any(f'"{subject.lower()}"' in remark for subject in subjects):
        return (
            f"{remark}; connect with the tenant of this login, or allow the subject in the permissions of "
            "this NATS user"
        )
    inbox, _, _ = connection.new_inbox().rpartition(".")
    if f'"{inbox.lower()}.' in remark:
        return f"{remark}; connect with the inbox_prefix that the permissions of this NATS user allow"
    return None
