"""Problem details (RFC 9457): the body of the gateway's own error responses."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from nats.errors import Error as BrokerError
from pydantic import Field
from starlette.exceptions import HTTPException

from mnemon_contracts.base import Contract, InvalidBody
from mnemon_contracts.subjects import InvalidId
from mnemon_contracts.verbs.ask import ErrorCode
from mnemon_producers.errors import AskFailed, EventRejected, PublishFailed

RETRY_AFTER: Final = 1
"""Seconds after which a client may repeat a request that failed for a reason that may pass."""

_STATUS: Final[Mapping[ErrorCode, HTTPStatus]] = {
    "bad_request": HTTPStatus.UNPROCESSABLE_ENTITY,
    "not_found": HTTPStatus.NOT_FOUND,
    "refused": HTTPStatus.CONFLICT,
    "moved": HTTPStatus.CONFLICT,
    "unavailable": HTTPStatus.SERVICE_UNAVAILABLE,
    "timeout": HTTPStatus.SERVICE_UNAVAILABLE,
    "not_implemented": HTTPStatus.NOT_IMPLEMENTED,
    "unknown_verb": HTTPStatus.NOT_IMPLEMENTED,
    "internal": HTTPStatus.BAD_GATEWAY,
}
"""HTTP status by error code of the contracts. `internal` is an error inside `retrieve`: a bad gateway."""

_CODE: Final[Mapping[int, str]] = {
    HTTPStatus.UNAUTHORIZED: "unauthorized",
    HTTPStatus.FORBIDDEN: "forbidden",
    HTTPStatus.NOT_FOUND: "not_found",
    HTTPStatus.METHOD_NOT_ALLOWED: "method_not_allowed",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "too_large",
}
"""Code of a problem by HTTP status, for errors that the web framework raises."""


class ProblemDetails(Contract):
    """The reason why a request has no result."""

    type: str = Field(
        default="about:blank", description="Always `about:blank`; `code` names the kind of the problem."
    )
    title: str = Field(description="Name of the HTTP status.")
    status: int = Field(description="Code of the HTTP status, such as 404.")
    detail: str = Field(description="Description of the problem, with the next step, for people.")
    code: str = Field(description="Kind of the problem, for programs, such as `bad_request`.")
    retryable: bool = Field(default=False, description="True if the same request can succeed later.")
    field: str | None = Field(
        default=None, description="The first invalid field of the request; absent if no field is invalid."
    )
    moved_to: str | None = Field(
        default=None,
        description="With the code `moved`: address of the NATS servers of the deployment that the tenant "
        "has moved to, if the address is known.",
    )


class Problem(HTTPException):
    """A request has no result; the client receives the reason as problem details.

    Args:
        status: the HTTP status.
        code: kind of the problem.
        detail: description of the problem, with the next step.
        retryable: whether the same request can succeed later; the answer then has `Retry-After`.
        field: the first invalid field.
        moved_to: address of the NATS servers to which the tenant has moved.
        headers: further headers of the answer.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        retryable: bool = False,
        field: str | None = None,
        moved_to: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        shown = {**({"Retry-After": str(RETRY_AFTER)} if retryable else {}), **(headers or {})}
        super().__init__(status, detail, shown)
        self.details = ProblemDetails(
            title=HTTPStatus(status).phrase,
            status=status,
            detail=detail,
            code=code,
            retryable=retryable,
            field=field,
            moved_to=moved_to,
        )

    def to_response(self) -> Response:
        """Return the response with the problem details."""
        return Response(
            self.details.encode_body(),
            self.details.status,
            self.headers,
            media_type="application/problem+json",
        )


def build_problem(error: Exception) -> Problem:
    """Return the problem for an error that a route raised.

    Raises:
        Exception: `error` itself, if no problem is defined for it.
    """
    match error:
        case Problem():
            return error
        case AskFailed(message=message) if error.error.limit is not None:
            return Problem(HTTPStatus.TOO_MANY_REQUESTS, "too_many_requests", message, retryable=True)
        case AskFailed(code=code, message=message, retryable=retryable):
            field, moved_to = error.error.field, error.error.moved_to
            return Problem(_STATUS[code], code, message, retryable=retryable, field=field, moved_to=moved_to)
        case PublishFailed(retryable=True):
            return Problem(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", str(error), retryable=True)
        case PublishFailed():
            return Problem(HTTPStatus.CONFLICT, "refused", str(error))
        case EventRejected():
            return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, error.reason, str(error))
        case InvalidBody(field=field):
            return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "bad_request", str(error), field=field)
        case InvalidId():
            return Problem(
                HTTPStatus.UNPROCESSABLE_ENTITY, "bad_request", str(error), field=str(error).partition(":")[0]
            )
        case RequestValidationError():
            return _describe_invalid_request(error)
        case BrokerError():
            return Problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "unavailable",
                "the NATS server does not answer; repeat the request later",
                retryable=True,
            )
        case HTTPException(status_code=HTTPStatus.BAD_REQUEST):
            # FastAPI raises it for a body that is not UTF-8, or nested too deeply.
            return _build_malformed_body()
        case HTTPException(status_code=HTTPStatus.NOT_FOUND):
            return Problem(
                HTTPStatus.NOT_FOUND,
                _CODE[HTTPStatus.NOT_FOUND],
                "there is no such address; `/docs` of the gateway lists the addresses below `/v1`, and "
                "docs/proxy.md lists the paths of the proxy",
            )
        case HTTPException(status_code=HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": allowed}):
            return Problem(
                HTTPStatus.METHOD_NOT_ALLOWED,
                _CODE[HTTPStatus.METHOD_NOT_ALLOWED],
                f"the address takes another method; send the request with {allowed}",
                headers=error.headers,
            )
        case HTTPException(status_code=status, detail=detail):
            return Problem(
                status, _CODE.get(status, "bad_request"), str(detail), headers=error.headers or None
            )
    raise error


def add_problem_handlers(application: FastAPI) -> None:
    """Make an application answer each error that `build_problem` knows with problem details."""

    async def answer_problem(_: Request, error: Exception) -> Response:
        return build_problem(error).to_response()

    for kind in (
        Problem,
        AskFailed,
        PublishFailed,
        EventRejected,
        InvalidBody,
        InvalidId,
        RequestValidationError,
        BrokerError,
        HTTPException,
    ):
        application.add_exception_handler(kind, answer_problem)


def _build_malformed_body() -> Problem:
    return Problem(
        HTTPStatus.BAD_REQUEST,
        "bad_request",
        "body: is not JSON in UTF-8, or is nested too deeply; correct it",
        field="body",
    )


def _describe_invalid_request(error: RequestValidationError) -> Problem:
    first: Mapping[str, Any] = error.errors()[0]
    if first["type"] == "json_invalid":
        return _build_malformed_body()
    if isinstance(invalid := first.get("ctx", {}).get("error"), InvalidBody):
        return build_problem(invalid)
    field = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "bad_request", f"{field}: {first['msg']}", field=field)
