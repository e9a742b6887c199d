"""Routes that publish events: one event of a user, or up to 1,000 events of several users."""

from collections.abc import Callable, Iterator
from http import HTTPStatus
from itertools import count, repeat
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Response
from pydantic import Discriminator, Field, Tag

from mnemon.gateway.callers import CallerOfRequest
from mnemon.gateway.request_bodies import annotate_body
from mnemon.gateway.routes.parameters import Conversation, HeaderText, Memory, User
from mnemon_contracts.base import Contract, Identifier, InvalidBody, LogPosition, check_identifier
from mnemon_contracts.events.chat import ClearedV1, MessageV1, StartedV1
from mnemon_contracts.registry import EVENTS, EventContract
from mnemon_producers.events import ChatEvent, encode_event
from mnemon_producers.publisher import Published

MAX_EVENTS: Final = 1000
"""Maximum number of events of one request."""

IdempotencyKey = Annotated[
    HeaderText | None,
    Header(
        min_length=1,
        max_length=240,
        description="Id of the event if its body has none; for several events, the beginning of their ids, "
        "`KEY:1`, `KEY:2` and so on. A repeated request then has no further effect.",
    ),
]
ChatBody = MessageV1 | StartedV1 | ClearedV1


class PublishedV1(Contract):
    """Confirmation that events are in the log."""

    seq: LogPosition = Field(description="Highest log position of the events, for `min_seq` of a request.")
    count: int = Field(description="Number of events in the request.")
    duplicates: int = Field(
        description="Number of events in the request that were not stored again, because the log received "
        "events with the same ids in the last two minutes."
    )


class EventOfUser(Contract):
    """The user and the conversation of an event to publish."""

    user: Identifier = Field(description="Id of the user.")
    conversation: Identifier | None = Field(
        default=None,
        description="Id of the conversation. Default: the current conversation; for `started`, a new one.",
    )


class MessageOfUser(EventOfUser):
    """A message with its user and conversation."""

    message: MessageV1 = Field(description="The message.")


class StartOfUser(EventOfUser):
    """The start of a conversation, with its user."""

    started: StartedV1 = Field(description="The start of the conversation.")


class ClearOfUser(EventOfUser):
    """The removal of a conversation's earlier messages, with its user."""

    cleared: ClearedV1 = Field(description="The removal of the earlier messages.")


def _tag_event(value: object) -> str | None:
    given = value if isinstance(value, dict) else vars(value) if isinstance(value, EventOfUser) else {}
    return next((f"<{name}>" for name in ("message", "started", "cleared") if name in given), None)


AnyEventOfUser = Annotated[
    Annotated[MessageOfUser, Tag("<message>")]
    | Annotated[StartOfUser, Tag("<started>")]
    | Annotated[ClearOfUser, Tag("<cleared>")],
    # Without the discriminator, an error in any event would be that `message` is missing.
    Discriminator(
        _tag_event,
        custom_error_type="no_event",
        custom_error_message="must have one of `message`, `started` and `cleared`",
    ),
]


class EventsV1(Contract):
    """Events to publish, in this order."""

    events: tuple[AnyEventOfUser, ...] = Field(
        min_length=1, max_length=MAX_EVENTS, description="The events, at most 1,000."
    )


def create_event_routes() -> APIRouter:
    """Return the routes that publish one chat event each, and the route that publishes several."""
    router = APIRouter(tags=["events"])
    answers: dict[str, Any] = {
        "methods": ["POST"],
        "status_code": HTTPStatus.CREATED,
        "response_model": PublishedV1,
    }
    for event in EVENTS.values():
        if event.space == "chat":
            router.add_api_route(
                f"/v1/users/{{user:path}}/events/{event.name}",
                _create_endpoint(event),
                operation_id=f"publish_{event.name}",
                summary=f"Publish the event `{event.name}`",
                description=event.latest.__doc__,
                **answers,
            )
    router.add_api_route(
        "/v1/events",
        _publish_events,
        operation_id="publish_events",
        summary="Publish events of several users",
        description="Publish up to 1,000 events in their order. With an Idempotency-Key, the events get "
        "the ids `KEY:1`, `KEY:2` and so on.",
        **answers,
    )
    return router


def _create_endpoint(event: EventContract) -> Callable[..., Any]:
    async def publish(
        user: User,
        body: Any,
        caller: CallerOfRequest,
        memory: Memory,
        conversation: Conversation = None,
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        caller.require_permission("write", user)
        event = ChatEvent(user, _set_event_id(body, idempotency_key), conversation)
        return _build_receipt(await memory.get_publisher(caller.tenant).store(event))

    publish.__annotations__["body"] = annotate_body(event.latest)
    return publish


async def _publish_events(
    body: Any,
    caller: CallerOfRequest,
    memory: Memory,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    for each in body.events:
        caller.require_permission("write", each.user)
    events = [
        ChatEvent(each.user, _set_event_id(_get_event(each), key), each.conversation)
        for each, key in zip(body.events, _number_keys(idempotency_key), strict=False)
    ]
    for index, event in enumerate(events):  # all or nothing: check each event before the first is sent
        try:
            encode_event(caller.tenant, event, "-")
        except InvalidBody as error:
            (kind,) = type(body.events[index]).model_fields.keys() & {"message", "started", "cleared"}
            path = f"events.{index}.{kind}"
            raise InvalidBody(
                path if error.field == "body" else f"{path}.{error.field}", error.problem
            ) from error
    return _build_receipt(await memory.get_publisher(caller.tenant).publish_many(events))


_publish_events.__annotations__["body"] = annotate_body(EventsV1)


def _get_event(given: AnyEventOfUser) -> ChatBody:
    match given:
        case MessageOfUser():
            return given.message
        case StartOfUser():
            return given.started
        case ClearOfUser():
            return given.cleared


def _number_keys(key: str | None) -> Iterator[str | None]:
    return repeat(None) if key is None else (f"{key}:{number}" for number in count(1))


def _set_event_id(event: ChatBody, key: str | None) -> ChatBody:
    """Return an event with the id `key` of the header `Idempotency-Key`; unchanged if `key` is None.

    Raises:
        InvalidBody: the event has another id, or the key cannot be an id.
    """
    if key is None:
        return event
    if event.id not in (None, key):
        raise InvalidBody("Idempotency-Key", "differs from the `id` in the body; send only one of them")
    return event.model_copy(update={"id": check_identifier("Idempotency-Key", key)})


def _build_receipt(stored: Published) -> Response:
    receipt = PublishedV1(seq=stored.last_seq, count=stored.count, duplicates=stored.duplicates)
    return Response(receipt.encode_body(), HTTPStatus.CREATED, media_type="application/json")
