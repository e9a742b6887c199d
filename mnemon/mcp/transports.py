"""How clients reach the server: by the standard streams of a process, or by HTTP with a token."""

import hmac
from typing import Any, Final
from urllib.parse import unquote

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from mnemon.mcp.server import NoUser

USER_HEADER: Final = "Mnemon-User"
"""Says whose memory a request is about, where the server is for all users of a tenant."""


async def serve_stdio(server: Server[Any]) -> None:
    """Serve whoever started this process, until it closes our standard input."""
    async with stdio_server() as (requests, replies):
        await server.run(requests, replies, server.create_initialization_options())


def http_application(server: Server[Any], host: str, token: str) -> ASGIApp:
    """The server over streamable HTTP, at `/mcp`.

    There are no sessions, so that any number of such processes may stand behind one address.

    Args:
        server: what is served.
        host: where it listens: at this machine's own address, only requests that name it are taken.
        token: what a client has to know.
    """
    app = server.streamable_http_app(json_response=True, stateless_http=True, host=host)
    return _Guarded(app, token)


def named_user(context: ServerRequestContext[Any]) -> str:
    """The user that an HTTP request names.

    Raises:
        NoUser: it names none.
    """
    request = context.request
    given = request.headers.get(USER_HEADER, "") if isinstance(request, Request) else ""
    try:
        # Bytes that are not ASCII come as Latin-1, whatever they are.
        user = unquote(given.encode("latin-1").decode(), errors="strict")
    except UnicodeError as error:
        raise NoUser(f"the header {USER_HEADER} is not UTF-8, percent-encoded or not") from error
    if not user:
        raise NoUser(f"whose memory? Send the header {USER_HEADER}, or start the server with --user")
    return user


class _Guarded:
    """Lets in who knows the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._right = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self._right):
                refusal = PlainTextResponse(
                    "Send the header: Authorization: Bearer TOKEN\n", 401, {"WWW-Authenticate": "Bearer"}
                )
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)
