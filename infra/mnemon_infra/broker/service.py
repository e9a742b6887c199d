"""Service that answers requests: an endpoint per version of a verb, which NATS tools list and measure."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Self

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.micro.request import ERROR_CODE_HEADER, ERROR_HEADER
from nats.micro.service import EndpointInfo, EndpointStats, Service, ServiceConfig, ServiceInfo, ServiceStats

from mnemon_contracts.base import Contract, InvalidBody
from mnemon_contracts.identity import MESSAGE_ID
from mnemon_contracts.registry import VERBS
from mnemon_contracts.subjects import Address, InvalidSubject, build_ask_pattern, parse_subject
from mnemon_contracts.verbs.ask import AskError, ContextReplyV1, ErrorCode, ErrorReply, Reply
from mnemon_contracts.verbs.tools import SearchReplyV2
from mnemon_infra.broker.admission import Admission
from mnemon_infra.broker.broker import Broker, confirm_subscriptions
from mnemon_infra.broker.headers import fold_header
from mnemon_infra.broker.outcomes import measure_message
from mnemon_infra.durables import GRACEFUL_TIMEOUT
from mnemon_infra.process.request_priority import prioritise_request
from mnemon_infra.telemetry import metrics, tracing
from mnemon_infra.telemetry.tracing import RequestTrace

log = structlog.get_logger("service")

_ALL_REQUESTS: Final = "ask.>"

_WARNINGS: Final = 10
"""Maximum number of a request's unknown fields for which the reply has a warning."""

_MAX_NAME_LENGTH: Final = 64
"""Maximum number of characters of an unknown field's name that a warning repeats."""

MAX_WAITING = 512
"""Maximum number of requests of a process that wait for a server at the same time; further ones queue."""


_request_id: ContextVar[str | None] = ContextVar("request_id", default=None)


def get_request_id() -> str | None:
    """Return the id of the request that is being answered, from its header `Nats-Msg-Id`.

    A client that repeats a request sends the same id. Return None if the request has no id, or if no request
    is being answered.
    """
    return _request_id.get()


@contextmanager
def _identify_request(message: Msg) -> Iterator[None]:
    before = _request_id.set((message.headers or {}).get(MESSAGE_ID))
    try:
        yield
    finally:
        _request_id.reset(before)


class Refusal(Exception):
    """Exception with which a handler refuses a request; `error` is sent in the reply."""

    def __init__(
        self, code: ErrorCode, message: str, *, retryable: bool = False, field: str | None = None
    ) -> None:
        super().__init__(message)
        self.error = AskError(code=code, message=message, retryable=retryable, field=field)

    @classmethod
    def from_error(cls, error: AskError) -> Self:
        """Return a refusal whose reply has `error`."""
        refusal = cls(error.code, error.message)
        refusal.error = error
        return refusal


VerbReply = Reply | bytes
"""A reply, or its JSON."""

VerbHandler = Callable[[Address, bytes], VerbReply | Coroutine[Any, Any, VerbReply]]
"""Function that returns the reply to a request, or a coroutine if the reply has to wait for a server.

It raises `Refusal` to refuse the request.
"""


@dataclass(slots=True)
class _VerbEndpoint:
    """Endpoint of one version of a verb, with its counters."""

    verb: str
    version: int
    subject: str
    answer: VerbHandler
    request: type[Contract]
    reply: type[Reply]
    requests: int = 0
    errors: int = 0
    nanoseconds: int = 0
    last_error: str = ""

    @property
    def name(self) -> str:
        """Name of the endpoint in tools such as `nats service`."""
        return self.verb if self.version == 1 else f"{self.verb}-v{self.version}"


@dataclass(slots=True)
class _PendingRequest:
    """A request that is not answered yet.

    `begun` is the moment at which its handling began, in nanoseconds of `time.perf_counter_ns`.
    """

    endpoint: _VerbEndpoint
    message: Msg
    begun: int
    trace: RequestTrace


@dataclass(slots=True)
class AskService:
    """The verb endpoints of one process. Add endpoints before the broker starts.

    Attributes:
        name: name of the service, and queue group of its endpoints.
        find_absence: returns the error for a tenant that this deployment does not serve; None for others.
    """

    broker: Broker
    name: str
    version: str
    admission: Admission
    find_absence: Callable[[Address], AskError | None] = lambda _: None
    _endpoints: dict[tuple[str, int], _VerbEndpoint] = field(default_factory=dict)
    _waiting: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        # Subscribe in the queue group of the endpoints, so that the server delivers a request once: here or
        # to its endpoint. A second copy would use up the one reply that a login may send.
        self.broker.subscribe_subject(_ALL_REQUESTS, self.name, self._dispatch_request)

    def add_endpoint(self, verb: str, answer: VerbHandler) -> None:
        """Answer a verb in all its versions. Processes that answer the same verb share the requests."""
        contract = VERBS[verb]
        for version, (request, reply) in enumerate(
            zip(contract.requests, contract.replies, strict=True), start=1
        ):
            endpoint = _VerbEndpoint(verb, version, build_ask_pattern(verb, version), answer, request, reply)
            self._endpoints[verb, version] = endpoint
            self.broker.subscribe_subject(
                endpoint.subject, self.name, partial(self._handle_request, endpoint)
            )
        metrics.REQUESTS.add(verb, "ok", by=0)

    @asynccontextmanager
    async def show_endpoints(self) -> AsyncIterator[None]:
        """Show the endpoints to tools such as `nats service` until the block ends.

        The broker must have started.
        """
        config = ServiceConfig(
            name=self.name, version=self.version, description="Long-term memory for chat bots"
        )
        async with _Listing(self.broker.connection, config, list(self._endpoints.values())):
            await confirm_subscriptions(self.broker.connection)
            yield

    @asynccontextmanager
    async def complete_requests(self) -> AsyncIterator[None]:
        """Wait for pending requests when the block ends, for at most `GRACEFUL_TIMEOUT` seconds.

        The block must end after the subscribers have stopped.
        """
        try:
            yield
        finally:
            if self._waiting:
                await asyncio.wait(self._waiting, timeout=GRACEFUL_TIMEOUT)

    async def _dispatch_request(self, message: Msg) -> None:
        """Hand a request to its endpoint.

        Without an endpoint, answer with the error `unknown_verb`; if the subject is invalid, with
        `bad_request`.
        """
        try:
            address = parse_subject(message.subject)
        except InvalidSubject as invalid:
            error = AskError(code="bad_request", message=str(invalid), retryable=False)
        else:
            endpoint = self._endpoints.get((address.name, address.version))
            if endpoint is not None:
                await self._handle_request(endpoint, message)
                return
            error = AskError(code="unknown_verb", message=_describe_unknown_verb(address), retryable=False)
        if message.reply:
            headers = {ERROR_CODE_HEADER: error.code, ERROR_HEADER: fold_header(error.message)}
            await self.broker.connection.publish(
                message.reply, _serialize_reply(ErrorReply(error=error)), headers=headers
            )

    async def _handle_request(self, endpoint: _VerbEndpoint, message: Msg) -> None:
        """Answer at once if the reply needs no waiting; else in a task, so that other requests proceed."""
        asked = _PendingRequest(
            endpoint,
            message,
            time.perf_counter_ns(),
            tracing.begin_request_trace(endpoint.verb, message.headers),
        )
        endpoint.requests += 1
        with asked.trace, _identify_request(message):
            try:
                address = parse_subject(message.subject)
                if absence := self.find_absence(address):
                    raise Refusal.from_error(absence)
                if exceeded := self.admission.check_limits(address):
                    raise Refusal.from_error(exceeded)
                reply = endpoint.answer(address, message.data)
            except Exception as error:
                await self._send_reply(asked, _build_error_reply(endpoint.verb, error))
                return
            if isinstance(reply, VerbReply):
                await self._send_reply(asked, reply)
                return
            turn = self.admission.begin_request(address)
            task = asyncio.create_task(self._finish_request(asked, reply, turn))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)
        task.add_done_callback(lambda _: self.admission.end_request(address))
        if len(self._waiting) >= MAX_WAITING:
            await asyncio.wait(self._waiting, return_when=asyncio.FIRST_COMPLETED)

    async def _finish_request(
        self, pending_request: _PendingRequest, pending: Awaitable[VerbReply], turn: asyncio.Semaphore
    ) -> None:
        async with turn:
            with prioritise_request():
                try:
                    reply = await pending
                except Exception as error:
                    reply = _build_error_reply(pending_request.endpoint.verb, error)
                await self._send_reply(pending_request, reply)

    async def _send_reply(self, pending_request: _PendingRequest, reply: VerbReply) -> None:
        endpoint, to = pending_request.endpoint, pending_request.message.reply
        nanoseconds = time.perf_counter_ns() - pending_request.begun
        endpoint.nanoseconds += nanoseconds
        connection = self.broker.connection
        if unknown := endpoint.request.list_unknown_fields(pending_request.message.data):
            reply = _add_warning(endpoint, reply, unknown)
        body = reply if isinstance(reply, bytes) else _serialize_reply(reply)
        headers = dict(pending_request.trace.headers)
        if measure_message(headers, body) > connection.max_payload:
            problem = (
                f"the reply has {len(body):,} bytes without its headers, and the server accepts "
                f"{connection.max_payload:,} with them: {_suggest_smaller_request(endpoint.request)}"
            )
            reply = ErrorReply(error=AskError(code="refused", message=problem, retryable=False))
            body = _serialize_reply(reply)
        error = reply.error if isinstance(reply, Reply) else None
        if error is not None:
            endpoint.errors += 1
            endpoint.last_error = error.message
            headers |= {ERROR_CODE_HEADER: error.code, ERROR_HEADER: fold_header(error.message)}
        pending_request.trace.end(error.code if error else None)
        _count_request(endpoint.verb, reply, nanoseconds / 1e9)
        if to:
            await connection.publish(to, body, headers=headers or None)


class _Listing(Service):
    """Answers of NATS's services protocol for the endpoints of an `AskService`."""

    def __init__(self, connection: Client, config: ServiceConfig, endpoints: list[_VerbEndpoint]) -> None:
        super().__init__(connection, config)
        self._shown = endpoints

    def info(self) -> ServiceInfo:
        info = super().info()
        info.endpoints = [EndpointInfo(each.name, each.subject, self._name) for each in self._shown]
        return info

    def stats(self) -> ServiceStats:
        stats = super().stats()
        stats.endpoints = [
            EndpointStats(
                name=each.name,
                subject=each.subject,
                queue_group=self._name,
                num_requests=each.requests,
                num_errors=each.errors,
                processing_time=each.nanoseconds,
                average_processing_time=each.nanoseconds // max(each.requests, 1),
                last_error=each.last_error,
            )
            for each in self._shown
        ]
        return stats


def _count_request(verb: str, reply: VerbReply, seconds: float) -> None:
    metrics.REQUEST_SECONDS.observe(seconds, verb)
    error = None if isinstance(reply, bytes) else reply.error
    metrics.REQUESTS.add(verb, "ok" if error is None else error.code)
    if isinstance(reply, ContextReplyV1 | SearchReplyV2):
        for part in reply.degraded:
            metrics.DEGRADED.add(verb, part)


def _serialize_reply(reply: Reply) -> bytes:
    return reply.__pydantic_serializer__.to_json(reply, exclude_none=True)


def _add_warning(endpoint: _VerbEndpoint, reply: VerbReply, unknown: Sequence[str]) -> Reply:
    if isinstance(reply, bytes):
        reply = endpoint.reply.model_validate_json(reply)
    fields = ", ".join(endpoint.request.model_fields)
    warnings = tuple(
        f"{endpoint.verb} has no field {name[:_MAX_NAME_LENGTH]!a}, which is ignored; its fields: {fields}"
        for name in unknown[:_WARNINGS]
    )
    return reply.model_copy(update={"warnings": (*(reply.warnings or ()), *warnings)})


def _suggest_smaller_request(request: type[Contract]) -> str:
    """Return the next step after a request whose reply is too large."""
    field = next((name for name in ("limit", "budget") if name in request.model_fields), None)
    smaller = f"send the request with a smaller `{field}`, or " if field else ""
    return f"{smaller}raise `max_payload` of the NATS server"


def _describe_unknown_verb(address: Address) -> str:
    contract = VERBS.get(address.name)
    if contract is None:
        return f"there is no verb {address.name!r}; use one of: {', '.join(VERBS)}"
    latest = len(contract.requests)
    return (
        f"there is no version v{address.version} of {address.name}; the latest is v{latest}. Use this "
        "version, or upgrade mnemon"
    )


def _build_error_reply(verb: str, error: Exception) -> ErrorReply:
    match error:
        case Refusal():
            return ErrorReply(error=error.error)
        case InvalidBody(field=field):
            return ErrorReply(
                error=AskError(code="bad_request", message=str(error), retryable=False, field=field)
            )
        case InvalidSubject():
            return ErrorReply(error=AskError(code="bad_request", message=str(error), retryable=False))
    log.error("request failed", verb=verb, exc_info=error)
    return ErrorReply(
        error=AskError(
            code="internal",
            message="the request failed with an internal error: repeat it; if that fails too, the operator "
            "finds the cause in the log messages of `retrieve`",
            retryable=True,
        )
    )
