"""Routes of the liveness probe and the readiness probe."""

from http import HTTPStatus

from fastapi import APIRouter, Request, Response

from mnemon.gateway.problems import Problem


def create_probe_routes() -> APIRouter:
    """Return the routes `/healthz` and `/readyz` for GET and HEAD, which need no key.

    The OpenAPI document has GET only: an operation id belongs to one method.
    """
    router = APIRouter(tags=["health"])
    for name, answer in (("healthz", _answer_alive), ("readyz", _answer_ready)):
        router.add_api_route(
            f"/{name}", answer, methods=["GET"], operation_id=name, response_class=Response, status_code=204
        )
        router.add_api_route(f"/{name}", answer, methods=["HEAD"], include_in_schema=False)
    return router


async def _answer_alive() -> Response:
    """Answer that the process runs."""
    return Response(status_code=HTTPStatus.NO_CONTENT)


async def _answer_ready(request: Request) -> Response:
    """Answer whether the connection to NATS is open."""
    if not request.app.state.memory.connection.is_connected:
        raise Problem(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "unavailable",
            "the NATS server does not answer, and the gateway tries to reconnect; repeat the request later",
            retryable=True,
        )
    return Response(status_code=HTTPStatus.NO_CONTENT)
