"""Route that streams the events of a tenant from the log, after a position, as server-sent events."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import Response, StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from nats.errors import Error as BrokerError
from pydantic import Field
from pydantic_core import from_json
from starlette.types import Receive, Scope, Send

from mnemon.gateway.callers import Caller, CallerOfRequest, Callers
from mnemon.gateway.problems import Problem
from mnemon.gateway.routes.parameters import Memory, PositionParameter
from mnemon_contracts.base import Contract, Identifier, LogPosition, Moment, Text
from mnemon_contracts.subjects import InvalidSubject, build_owner_filter, parse_subject
from mnemon_infra.broker.streams.log_tail import TAIL_TIMEOUT, stream_log_tail
from mnemon_infra.delivery import Delivery
from mnemon_infra.settings.api_keys import CACHE_SECONDS
from mnemon_producers.events import check_id


class ChangeV1(Contract):
    """An event of the log, as the stream of changes sends it."""

    seq: LogPosition = Field(description="Log position of the event.")
    event: Text = Field(description="Name of the event, such as `message` or `fact.saved`.")
    version: int = Field(description="Version of the event's contract.")
    user: Identifier = Field(description="User of the event.")
    conversation: Identifier | None = Field(
        default=None,
        description="Conversation of a chat event; absent for the current conversation and for other events.",
    )
    at: Moment = Field(description="Time at which the log stored the event.")
    data: Any = Field(description="Body of the event, as it was published; it may violate the contract.")


class ChangeStream(StreamingResponse):
    """Server-sent events of a generator, which is closed when the client leaves.

    FastAPI's own stream of server-sent events raises an error in its task group when the client leaves
    while events wait for it, and leaves the generator to the garbage collector.
    """

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        # `X-Accel-Buffering` lets nginx pass on each event at once.
        super().__init__(events, headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events until they end or the client leaves."""
        async with aclosing(self._events):
            await super().__call__(scope, receive, send)


_EVENT_SCHEMA = {
    "type": "object",
    "properties": {
        "data": {"type": "string"},
        "event": {"type": "string"},
        "id": {"type": "string"},
        "retry": {"type": "integer", "minimum": 0},
    },
}


def create_change_routes() -> APIRouter:
    """Return the route `GET /v1/changes`."""
    router = APIRouter(tags=["changes"])
    router.add_api_route(
        "/v1/changes",
        _stream_changes,
        methods=["GET"],
        operation_id="changes",
        summary="Follow the log",
        response_class=Response,
        response_description="Events, each with a `ChangeV1` as its data.",
        responses={200: {"content": {ChangeStream.media_type: {"itemSchema": _EVENT_SCHEMA}}}},
    )
    return router


class SelectedEvents(NamedTuple):
    """The caller of a stream, and the filter of the events that the caller may follow."""

    caller: Caller
    pattern: str


async def _select_events(
    caller: CallerOfRequest,
    user: Annotated[
        str | None,
        Query(
            min_length=1, max_length=255, description="User of the events. Default: all users of the tenant."
        ),
    ] = None,
) -> SelectedEvents:
    """Return the filter of the events that a caller may follow.

    A refusal must happen here: once the stream has begun, the answer can no longer have an error status.

    Raises:
        InvalidId: `user` cannot be an id.
        Problem: the key does not permit the events.
    """
    caller.require_permission("read", user)
    if user is not None:
        check_id("user", user)
    return SelectedEvents(caller, build_owner_filter(caller.tenant, user))


async def _stream_changes(
    request: Request,
    memory: Memory,
    selected: Annotated[SelectedEvents, Depends(_select_events)],
    after: Annotated[
        PositionParameter, Query(description="Send only events after this log position. Default: all.")
    ] = 0,
    last_event_id: Annotated[
        PositionParameter | None,
        Header(description="Log position of the last received event; takes precedence over `after`."),
    ] = None,
    last_event_id_of_query: Annotated[
        PositionParameter | None,
        Query(
            alias="lastEventId",
            description="As the header `Last-Event-ID`, for libraries that send the position in the query.",
        ),
    ] = None,
) -> ChangeStream:
    """Send events as the log stores them.

    The stream ends when the key is revoked or changed, or could not be checked for 60 seconds. The `id` of
    each event is its log position. Messages with an invalid subject, or whose body is not JSON, are left out.
    """
    permission = _StreamPermission(request.app.state.callers, selected.caller)
    last_received = last_event_id_of_query if last_event_id is None else last_event_id
    start = after if last_received is None else last_received
    tail = stream_log_tail(memory.connection, selected.pattern, start, headers_only=False)
    return ChangeStream(_render_changes(tail, permission))


async def _render_changes(
    tail: AsyncGenerator[list[Delivery], None], permission: "_StreamPermission"
) -> AsyncGenerator[bytes, None]:
    async with aclosing(tail), aclosing(_take_pages_while(tail, permission.is_valid)) as pages:
        # Once the key is revoked, the stream ends; the client learns why when it connects again.
        async for page in pages:
            if not page:
                yield KEEPALIVE_COMMENT
            for delivery in page:
                if not await permission.is_valid():
                    return  # the key may be revoked while a slow client reads a page
                if change := _build_change(delivery):
                    yield format_sse_event(
                        id=str(change.seq), event=change.event, data_str=change.serialize().decode()
                    )


class _StreamPermission:
    """Permission of a caller to follow a stream, which is checked repeatedly."""

    def __init__(self, callers: Callers, caller: Caller) -> None:
        self._callers = callers
        self._caller = caller
        self._failing_since: float | None = None

    async def is_valid(self) -> bool:
        """Return whether the key is valid, with the permissions that it had when the stream began.

        While checks fail, return True for up to `TAIL_TIMEOUT` seconds.
        """
        try:
            is_accepted = await self._callers.is_accepted(self._caller)
        except (BrokerError, Problem):
            now = asyncio.get_running_loop().time()
            if self._failing_since is None:
                self._failing_since = now
            return now - self._failing_since < TAIL_TIMEOUT
        self._failing_since = None
        return is_accepted


async def _take_pages_while(
    tail: AsyncGenerator[list[Delivery], None], is_permitted: Callable[[], Awaitable[bool]]
) -> AsyncGenerator[list[Delivery], None]:
    """Yield the pages of a tail, until `is_permitted` returns False.

    While no page comes, call `is_permitted` and yield an empty page every `CACHE_SECONDS` seconds.
    """
    while True:
        coming = asyncio.ensure_future(anext(tail))
        try:
            while not (await asyncio.wait({coming}, timeout=CACHE_SECONDS))[0]:
                if not await is_permitted():
                    return
                yield []
            page = await coming
        finally:
            coming.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration, BrokerError):
                await coming
        yield page


def _build_change(delivery: Delivery) -> ChangeV1 | None:
    """Return the event of a delivery; None if the subject is invalid or the body is not JSON.

    Bodies are not checked against their contracts.
    """
    try:
        address = parse_subject(delivery.subject)
        data = from_json(delivery.body or b"{}")  # as consumers read it
    except (InvalidSubject, ValueError):
        return None
    return ChangeV1(
        seq=delivery.sequence,
        event=address.name,
        version=address.version,
        user=address.user,
        conversation=address.conversation,
        at=datetime.fromtimestamp(delivery.stored_at, UTC),
        data=data,
    )
