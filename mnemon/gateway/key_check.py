"""Check of the key of a request before its body is read."""

from http import HTTPStatus

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from mnemon.gateway.callers import CALLER, Callers, read_credentials
from mnemon.gateway.problems import build_problem


class KeyCheck:
    """ASGI middleware that identifies callers, and counts each request as open until it ends.

    A request without a valid key is refused before its body is read, and does not count toward the limit of
    open requests.

    Args:
        application: the application that gets requests with a valid key, and requests outside `prefix`.
        callers: checks the keys.
        prefix: beginning of the paths that need a key; the proxy checks keys in `ProxyCallers`.
        metadata_path: path at which a client without a key learns how to log in (RFC 9728).
    """

    def __init__(
        self,
        application: ASGIApp,
        callers: Callers,
        *,
        prefix: str = "/",
        metadata_path: str | None = None,
    ) -> None:
        self._application = application
        self._callers = callers
        self._prefix = prefix
        self._metadata_path = metadata_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(self._prefix):
            await self._application(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        address = connection.client.host if connection.client else ""
        try:
            caller = await self._callers.identify(address, read_credentials(connection))
            self._callers.open_request(caller.tenant)
        except Exception as error:
            problem = build_problem(error)
            if self._metadata_path and problem.status_code == HTTPStatus.UNAUTHORIZED:
                metadata = connection.url.replace(path=self._metadata_path, query="")
                problem.headers = {"WWW-Authenticate": f'Bearer resource_metadata="{metadata}"'}
            await problem.to_response()(scope, receive, send)
            return
        scope[CALLER] = caller
        try:
            await self._application(scope, receive, send)
        finally:
            self._callers.close_request(caller.tenant)
