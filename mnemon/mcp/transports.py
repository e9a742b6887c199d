"""Transports of the server: the standard streams of a process, or HTTP with a token."""

import hmac
import re
import sys
from io import TextIOWrapper
from math import ceil
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import anyio
from anyio.abc import ObjectReceiveStream
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from mnemon.http.login_attempts import LoginAttempts
from mnemon.mcp.server import NoUser

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream, WriteStream

PATH: Final = "/mcp"
"""Path of streamable HTTP."""

USER_HEADER: Final = "Mnemon-User"
"""Header that names the user of a request if the server is for all users of a tenant."""

_ESCAPE: Final = re.compile(
    r"\\(?:ud[89ab][\da-f]{2}\\ud[c-f][\da-f]{2}|(ud[89a-f][\da-f]{2})|.)", re.IGNORECASE
)
"""An escape in JSON: a pair of surrogates, a lone surrogate, which is the group, or any other."""


async def serve_stdio(server: Server[Any]) -> None:
    """Serve the parent process until it closes the standard input."""
    lines = _RequestLines(TextIOWrapper(sys.stdin.buffer, "utf-8", "replace"))
    async with stdio_server(lines) as (items, replies):
        requests = _Requests(items, replies)
        await server.run(requests, replies, server.create_initialization_options())


class _RequestLines(anyio.AsyncFile[str]):
    """Lines of the standard input that are not blank, with U+FFFD in the place of lone surrogates.

    The MCP library cannot read lone surrogates. Clients in JavaScript send half of an emoji as one, if they
    or a model cut a text in the middle of the emoji.
    """

    async def readline(self) -> str:
        while (line := await super().readline()).isspace():
            pass
        return replace_lone_surrogates(line)


class _Requests(ObjectReceiveStream[SessionMessage | Exception]):
    """Messages of a client; a line that is no message is answered with an error, as JSON-RPC requires.

    The MCP library drops such a line, so the client would get no answer.

    Args:
        items: the client's messages, and, for each line that is no message, the error of its reader.
        replies: stream of answers, for the errors.
    """

    def __init__(
        self, items: "ReadStream[SessionMessage | Exception]", replies: "WriteStream[SessionMessage]"
    ) -> None:
        self._items, self._replies = items, replies

    async def receive(self) -> SessionMessage | Exception:
        while isinstance(item := await self._items.receive(), ValidationError):
            error = _describe_unreadable_line(item)
            await self._replies.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=None, error=error)))
        return item

    async def aclose(self) -> None:
        await self._items.aclose()


def _describe_unreadable_line(error: ValidationError) -> ErrorData:
    if error.errors()[0]["type"] == "json_invalid":
        return ErrorData(code=PARSE_ERROR, message="the line is not JSON: send each message as one line")
    problem = "the line is not a message of JSON-RPC 2.0: send one request or one notification as an object"
    return ErrorData(code=INVALID_REQUEST, message=problem)


def replace_lone_surrogates(json: str) -> str:
    """Return JSON with U+FFFD in the place of each escaped lone surrogate."""
    return _ESCAPE.sub(lambda escape: r"\ufffd" if escape[1] else escape[0], json)


def create_http_application(server: Server[Any], host: str, token: str) -> ASGIApp:
    """Return an application that serves streamable HTTP at `/mcp`.

    The application has no sessions, so that several processes may share one address.

    Args:
        server: the server.
        host: the address on which the server listens; on a loopback address, the application accepts only
            requests for a loopback host.
        token: the token that clients have to send.
    """
    app = server.streamable_http_app(json_response=True, stateless_http=True, host=host)
    posted = Starlette(routes=[create_mcp_route(app)], lifespan=lambda _: server.session_manager.run())
    return _TokenGuard(posted, token)


def create_mcp_route(app: ASGIApp) -> Route:
    """Return a route that passes POST at `PATH` to an application, and answers other methods with 405.

    Clients also open a stream of the server's messages with GET, for as long as they run. The server sends
    none, and each stream would keep a connection and a request open.
    """
    return Route(PATH, endpoint=app, methods=["POST"])


def read_user_header(context: ServerRequestContext[Any], default: str | None = None) -> str:
    """Return the user that an HTTP request names, or `default` if it names none.

    Raises:
        NoUser: the request names no user and there is no default, or the header is not UTF-8.
    """
    request = context.request
    given = request.headers.get(USER_HEADER, "") if isinstance(request, Request) else ""
    try:
        # Starlette decodes header bytes as Latin-1, whatever their encoding.
        user = unquote(given.encode("latin-1").decode(), errors="strict")
    except UnicodeError as error:
        raise NoUser(
            f"the header {USER_HEADER} is not UTF-8: send the id of the user in UTF-8 or percent-encoded"
        ) from error
    if not (named := user or default):
        raise NoUser(f"the request names no user: send the header {USER_HEADER}")
    return named


class _TokenGuard:
    """ASGI middleware that accepts only requests with the token.

    After several wrong tokens, an address has to wait before any further request.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected_header = f"Bearer {token}".encode()
        self._attempts = LoginAttempts()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (refusal := self._check_token(scope)):
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _check_token(self, scope: Scope) -> Response | None:
        address = scope["client"][0] if scope["client"] else ""
        if wait := self._attempts.get_wait(address):
            said = f"Too many wrong tokens. Try again in {ceil(wait)} s.\n"
            return PlainTextResponse(said, 429, {"Retry-After": str(ceil(wait))})
        given = dict(scope["headers"]).get(b"authorization")
        if given is not None and hmac.compare_digest(given, self._expected_header):
            self._attempts.record_success(address)
            return None
        if given is not None:  # a request without a token is not an attempt to guess it
            self._attempts.record_failure(address)
        said = "The token is missing or wrong. Send the header: Authorization: Bearer TOKEN\n"
        return PlainTextResponse(said, 401, {"WWW-Authenticate": "Bearer"})
