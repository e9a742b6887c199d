"""A bot's connection to NATS: it is restored without end, and its silences are explained."""

import asyncio
import logging
import os
import re
from contextlib import suppress
from typing import Any

from nats.aio.client import Client

from mnemon_contracts.login import LoginUnusable, login_options
from mnemon_producers.errors import NotConnected

log = logging.getLogger("mnemon.client")


async def connect(url: str, **options: Any) -> Client:
    """Connect to the first of some servers that answers, with the login that the environment names.

    Args:
        url: the servers, comma-separated.
        options: arguments of `nats.connect` that go before ours.

    Raises:
        NotConnected: no server answered, or none took the credentials.
    """
    try:
        login = login_options(url, os.environ)
    except LoginUnusable as error:
        raise NotConnected(str(error)) from error
    servers = [server.strip() for server in url.split(",") if server.strip()]
    connection = Client()
    connected = False
    failures: list[Exception] = []
    remarks: set[str] = set()

    async def report(error: Exception) -> None:
        failures.append(error)
        if not connected and len(failures) >= len(servers):
            raise error  # every server had its turn; nats-py would go on for ever
        remark = str(error) or type(error).__name__
        # Each attempt to connect again fails in the same words, twice a second.
        log.log(logging.DEBUG if remark in remarks else logging.WARNING, "%s", remark)
        remarks.add(remark)

    async def tell_again() -> None:
        log.info("reconnected")
        remarks.clear()

    settings: dict[str, Any] = {
        "name": "mnemon-client",
        # A finite number of attempts, once used up, blocks the event loop for ever.
        "max_reconnect_attempts": -1,
        "reconnect_time_wait": 0.5,
        # With the default of two minutes a dead link is found after minutes.
        "ping_interval": 10,
        "connect_timeout": 3,
        "error_cb": report,
        "reconnected_cb": tell_again,
    }
    try:
        await connection.connect(servers, **{**settings, **login, **options})
    except Exception as error:
        # Where TLS fails, nats-py waits for ever for the end of the connection.
        with suppress(OSError):
            async with asyncio.timeout(1):
                await connection.close()
        cause = failures[-1] if failures else error
        problem = str(cause) or type(cause).__name__
        if isinstance(cause, ConnectionResetError):
            # What it said is lost with the line, now and then.
            problem += "; the server cut the line, as it does when it does not take the credentials"
        raise NotConnected(f"no connection to NATS at {_shown(url)}: {problem}") from error
    connected = True
    return connection


def _shown(url: str) -> str:
    """Servers as they may be shown to anybody: without user, password or token."""
    return re.sub(r"//[^/,]*@", "//***@", url)


def denied(connection: Client, *subjects: str) -> str | None:
    """Why nothing came back for one of these subjects, if the server said that it is not permitted.

    A denied permission reaches a client as silence and a remark. nats-py keeps the last one, in lower case.
    """
    remark = str(connection.last_error)
    if "permissions violation" not in remark:
        return None
    if any(f'"{subject.lower()}"' in remark for subject in subjects):
        return f"{remark}; the permissions of this NATS user must allow it"
    inbox, _, _ = connection.new_inbox().rpartition(".")
    if f'"{inbox.lower()}.' in remark:
        return f"{remark}; replies need the inbox_prefix that the permissions of this NATS user allow"
    return None
