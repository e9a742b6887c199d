"""Middleware that checks the key of a request before its body is read."""

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from mnemon.gateway.callers import CALLER, Callers, read_credentials
from mnemon.gateway.problems import build_problem

_PREFIX = "/v1/"


class KeyCheck:
    """Identifies the callers of the routes below `/v1`, and counts their requests as open until they end.

    A client without a valid key gets 401 at once, and a body that it sends slowly holds no place among
    the open requests. `/mcp` and the proxy check keys themselves.

    Args:
        application: the application that gets requests with a valid key.
        callers: checks the keys.
    """

    def __init__(self, application: ASGIApp, callers: Callers) -> None:
        self._application = application
        self._callers = callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(_PREFIX):
            await self._application(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        address = connection.client.host if connection.client else ""
        try:
            caller = await self._callers.identify(address, read_credentials(connection))
            self._callers.open_request(caller.tenant)
        except Exception as error:
            await build_problem(error).to_response()(scope, receive, send)
            return
        scope[CALLER] = caller
        try:
            await self._application(scope, receive, send)
        finally:
            self._callers.close_request(caller.tenant)
