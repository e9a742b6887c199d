"""Endpoint `/mcp` of the gateway: the Model Context Protocol, with the keys of the gateway."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, get_args

from fastapi import FastAPI, Request
from mcp.server.context import ServerRequestContext
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import Receive, Scope, Send

from mnemon.gateway.callers import CALLER, Caller, Callers
from mnemon.gateway.key_check import KeyCheck
from mnemon.gateway.memory_access import MemoryAccess
from mnemon.gateway.problems import Problem
from mnemon.mcp.server import McpTarget, NotPermitted, create_server
from mnemon.mcp.transports import PATH, create_mcp_route, read_user_header
from mnemon_infra.settings.api_keys import Scope as KeyScope

METADATA_PATH: Final = f"/.well-known/oauth-protected-resource{PATH}"
"""Path of the metadata by which a client learns how to log in (RFC 9728)."""


class McpEndpoint:
    """ASGI application that checks the key of a request, and passes the request to the MCP library."""

    def __init__(self, callers: Callers, memory: MemoryAccess) -> None:
        self._memory = memory
        self._server = create_server(self._resolve_target)
        # A key in a header protects against other web pages better than a list of host names.
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        application = self._server.streamable_http_app(
            json_response=True, stateless_http=True, transport_security=security
        )
        self._app = KeyCheck(application, callers, metadata_path=METADATA_PATH)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Handle requests until the end of the block."""
        async with self._server.session_manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    def _resolve_target(self, context: ServerRequestContext[Any]) -> McpTarget:
        assert isinstance(context.request, Request)
        caller: Caller = context.request.scope[CALLER]
        user = read_user_header(context, default=caller.user)
        try:
            caller.require_permission("read", user)
        except Problem as problem:
            raise NotPermitted(problem.details.detail) from problem
        return McpTarget(self._memory.get_client(caller.tenant), user, "write" in caller.scopes)


def add_mcp_routes(application: FastAPI, endpoint: McpEndpoint) -> None:
    """Add the endpoint, and the metadata that tells clients to log in with a key."""
    application.router.routes.append(create_mcp_route(endpoint))
    application.add_api_route(METADATA_PATH, _describe_resource, include_in_schema=False)


async def _describe_resource(request: Request) -> dict[str, Any]:
    return {
        "resource": str(request.url.replace(path=PATH, query="")),
        "resource_name": "mnemon",
        "bearer_methods_supported": ["header"],
        "scopes_supported": list(get_args(KeyScope)),
    }
