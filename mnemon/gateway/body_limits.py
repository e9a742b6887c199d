"""Limits of request bodies: their size, and the time until they have arrived."""

import asyncio
from contextlib import suppress
from http import HTTPStatus
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mnemon.gateway.problems import Problem

MAX_BODY: Final = 8 * 1024 * 1024
"""Maximum size of a request's body in bytes: 1,000 events of 8 KiB. One event has at most 1 MiB."""

READ_BODY: Final = 64 * 1024 * 1024
"""Maximum number of bytes that are read of a body that is too large: a client that still sends when the
connection closes would not get the answer.
"""

BODY_SECONDS: Final = 30.0
"""Maximum seconds for a request's body to arrive."""


class BodyLimiter:
    """ASGI middleware that refuses requests whose body is too large or arrives too slowly."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            receive = _limit_body(receive)
        await self._application(scope, receive, send)


def _limit_body(receive: Receive) -> Receive:
    deadline = asyncio.get_running_loop().time() + BODY_SECONDS
    size = 0
    is_whole = False

    async def receive_part() -> Message:
        nonlocal size, is_whole
        if is_whole:  # the application waits for a disconnect
            return await receive()
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError as error:
            raise Problem(
                HTTPStatus.REQUEST_TIMEOUT,
                "timeout",
                f"the body did not arrive within {BODY_SECONDS:.0f} s; repeat the request",
                retryable=True,
            ) from error
        size += len(message.get("body", b""))
        if size > MAX_BODY:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    while message.get("more_body") and size < READ_BODY:
                        message = await receive()
                        size += len(message.get("body", b""))
            raise Problem(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                "too_large",
                f"the body has more than {MAX_BODY:,} bytes; send a smaller body, or the events in several "
                "requests",
                headers={"Connection": "close"},
            )
        is_whole = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    return receive_part
