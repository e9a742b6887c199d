"""ASGI application of the gateway: routes, error handlers and request limits."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Final

from fastapi import Depends, FastAPI
from fastapi_offline import FastAPIOffline
from nats.aio.client import Client
from starlette.middleware.cors import CORSMiddleware
from starlette.types import Lifespan

from mnemon.gateway.body_limits import BodyLimiter
from mnemon.gateway.callers import Callers
from mnemon.gateway.key_check import KeyCheck
from mnemon.gateway.mcp_endpoint import McpEndpoint, add_mcp_routes
from mnemon.gateway.memory_access import MemoryAccess
from mnemon.gateway.openapi_document import read_document
from mnemon.gateway.problems import ProblemDetails, add_problem_handlers
from mnemon.gateway.proxy.routes import Proxy, create_proxy_routes
from mnemon.gateway.proxy.upstreams import Upstreams
from mnemon.gateway.routes.changes import create_change_routes
from mnemon.gateway.routes.documents import create_document_routes
from mnemon.gateway.routes.events import create_event_routes
from mnemon.gateway.routes.parameters import require_known_parameters, require_utf8
from mnemon.gateway.routes.probes import create_probe_routes
from mnemon.gateway.routes.verbs import create_verb_routes
from mnemon_infra.config import Deployment
from mnemon_infra.settings.api_keys import ApiKeys

_PROBLEMS: Final = (400, 401, 403, 404, 408, 409, 413, 422, 429, 501, 502, 503)


def create_application(
    connection: Client, keys: ApiKeys, deployment: Deployment, origins: tuple[str, ...] = ()
) -> FastAPI:
    """Return the application of the gateway.

    Args:
        connection: connection to NATS, which the caller closes.
        keys: the API keys that the gateway accepts.
        deployment: the configuration, with the providers of language models.
        origins: origins of web pages whose scripts may use the gateway (CORS).
    """
    callers, memory = Callers(keys), MemoryAccess(connection)
    endpoint = McpEndpoint(callers, memory)
    proxy = Proxy(callers, memory, Upstreams.from_deployment(deployment), deployment.proxy_memory_seconds)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with endpoint.run(), proxy.run():
            yield

    application = build_application(lifespan)
    application.state.callers = callers
    application.state.memory = memory
    application.state.proxy = proxy
    add_mcp_routes(application, endpoint)
    application.openapi = read_document  # type: ignore[method-assign]
    application.add_middleware(BodyLimiter)
    application.add_middleware(KeyCheck, callers=callers, prefix="/v1/")
    if origins:
        application.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=["Retry-After"],
        )
    return application


def build_application(lifespan: Lifespan[FastAPI] | None = None) -> FastAPI:
    """Return an application with the routes and their error handlers only.

    The OpenAPI document is generated from this application. `create_application` adds the connection to NATS,
    `/mcp`, the check of keys and the limits of request bodies.
    """
    application: FastAPI = FastAPIOffline(
        lifespan=lifespan,
        redoc_url=None,
        title="mnemon",
        summary="Replayable long-term memory for chat bots.",
        version=version("mnemon"),
        dependencies=[Depends(require_utf8)],
        responses={status: {"model": ProblemDetails} for status in _PROBLEMS},
    )
    # Uploads before verbs: a user's id may contain slashes.
    for routes in (
        create_event_routes,
        create_document_routes,
        create_verb_routes,
        create_change_routes,
    ):
        application.include_router(routes(), dependencies=[Depends(require_known_parameters)])
    for routes in (create_probe_routes, create_proxy_routes):
        application.include_router(routes())
    add_problem_handlers(application)
    return application
