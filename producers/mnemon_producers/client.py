"""Client for the memory of a bot's users: publishes messages and requests contexts."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Any, Self

from nats.aio.client import Client
from pydantic import JsonValue

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.events.chat import ClearedV1, MessageV1, Role, StartedV1, ToolCall
from mnemon_contracts.registry import VERBS
from mnemon_contracts.subjects import build_inbox_prefix
from mnemon_contracts.verbs.ask import (
    AskError,
    ContextReplyV1,
    ContextV1,
    EventOutcome,
    Format,
    HistoryReplyV1,
    HistoryV1,
    Reply,
    StatusReplyV1,
    StatusV1,
)
from mnemon_contracts.verbs.tools import EraseReplyV1, EraseV1
from mnemon_producers.connection import connect
from mnemon_producers.errors import AskFailed, EventRejected
from mnemon_producers.events import ChatEvent, check_id
from mnemon_producers.publisher import FIRST_PAUSE, Events, Published, Publisher, PublishProgress
from mnemon_producers.requests import Questioner
from mnemon_producers.timeouts import DEFAULTS, Timeouts
from mnemon_producers.tools import MemoryTools

log = logging.getLogger("mnemon.client")


class MemoryClient(MemoryTools):
    """Client of a bot for the users of one tenant.

        async with MemoryClient.connect("nats://127.0.0.1:4222", tenant="acme") as memory:
            said = await memory.publish("u42", "user", "My sister's name is Vera.")
            context = await memory.context("u42", query="What is my sister's name?", min_seq=said)
            answer = await model([message.model_dump(exclude_none=True) for message in context.messages])
            await memory.publish("u42", "assistant", answer)

    Ids are non-empty strings of up to 255 bytes, without U+0000. `conversation=None` means the user's current
    conversation, which was started last, by `start` or by its first message.

    The client retries a publish with the same event id, so an event is stored once even if an answer was
    lost. A publish returns the event's log position. A request with this position as `min_seq` waits for the
    event; `seen_seq` of the reply shows whether the reply reflects it.

    A method with an invalid argument raises `InvalidId` or `InvalidBody`, which names the argument, and does
    not send the request or event. A request without a result raises `AskFailed`; a publish without a
    confirmation raises `PublishFailed`. `context` raises none of these errors: it returns an empty context,
    and a bot can answer without memory.

    Args:
        connection: an open connection of nats-py, which the caller closes. `connect` opens a connection.
        tenant: the tenant of the users.
        timeouts: the timeouts of requests. Default: those of `Timeouts`.
    """

    def __init__(self, connection: Client, *, tenant: str, timeouts: Timeouts = DEFAULTS) -> None:
        super().__init__(Questioner(connection, tenant, timeouts))
        self._publisher = Publisher(connection, tenant, timeouts)
        self._timeouts = timeouts

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        url: str = "nats://127.0.0.1:4222",
        *,
        tenant: str,
        timeouts: Timeouts = DEFAULTS,
        **options: Any,
    ) -> AsyncIterator[Self]:
        """Connect for the duration of the block; a lost connection is restored, without a limit of attempts.

        At the end of the block, the client waits for requests and events of other tasks that are under way,
        without further attempts, and then closes the connection. From then on, errors are not retryable.

        Args:
            url: NATS servers, comma-separated.
            tenant: the tenant of the users.
            timeouts: the timeouts of requests. Default: those of `Timeouts`.
            options: arguments of `nats.connect`, such as `user_credentials`, `tls` or `inbox_prefix`. Replies
                come to an inbox of the tenant, the only inbox that `mnemon auth tenant` permits.

        Raises:
            InvalidId: the tenant cannot be an id.
            NotConnected: `url` is not a string or has no address, no server answered or accepted the
                credentials, or the login that the environment names cannot be used.
        """
        check_id("tenant", tenant)
        own = {"flush_timeout": timeouts.publish, "inbox_prefix": build_inbox_prefix(tenant)}
        connection = await connect(url, **{**own, **options})
        try:
            memory = cls(connection, tenant=tenant, timeouts=timeouts)
            try:
                yield memory
            finally:
                await asyncio.gather(memory._questioner.close(), memory._publisher.close())
        finally:
            # `close` writes pending data to a lost connection, too; uvloop then raises RuntimeError.
            with suppress(ConnectionError, RuntimeError):
                await connection.close()

    async def publish(
        self,
        user: str,
        role: Role,
        content: str,
        *,
        conversation: str | None = None,
        sent_at: datetime | None = None,
        name: str | None = None,
        task_id: str | None = None,
        tool_calls: Iterable[ToolCall] | None = None,
        metadata: Mapping[str, JsonValue] | None = None,
        id: str | None = None,  # noqa: A002
        wait: bool = False,
    ) -> int:
        """Add a message to a conversation.

        Args:
            user: the user whose conversation it is.
            role: the speaker: `user`, `assistant`, `tool` or `system`.
            content: the text of the message; may be empty, for example if `tool_calls` is given.
            conversation: None means the user's current conversation.
            sent_at: the time of the message, UTC unless it has an offset. Default: the time at which the log
                stores it.
            name: the speaker's name, if several people speak.
            task_id: the id of the bot's task that a tool's result belongs to.
            tool_calls: tools that the assistant used for this answer.
            metadata: any data of the bot; mnemon keeps it. For a message that repeats a context, pass the
                `metadata` of the context: mnemon then extracts no facts from it.
            id: the event's identity among the user's events, such as the message's id on the chat platform.
                Publishing the same id again changes nothing. None creates an id for this call only.
            wait: whether to return only when the message is applied, for up to `Timeouts.save` seconds.
                Default: return when the log has the message.

        Returns:
            The log position.

        Raises:
            PublishFailed: the message is not known to be stored.
            EventRejected: with `wait`: the message is stored but cannot be used.
            AskFailed: with `wait`: the message is stored, but its outcome is not known yet.
        """
        message = MessageV1.create_strict(
            role=role,
            content=content,
            sent_at=sent_at,
            name=name,
            task_id=task_id,
            tool_calls=tool_calls,
            metadata=metadata,
            id=id,
        )
        seq = await self._publisher.publish(ChatEvent(user, message, conversation))
        if wait:
            await self._await_applied(user, seq)
        return seq

    async def outcome(self, user: str, seq: int) -> EventOutcome:
        """Return the outcome of the user's event at a log position: `applied`, `rejected` or `waiting`.

        For a rejected event, the field `rejected` of the result has the reason.

        Raises:
            InvalidBody: `seq` is not the position of an event, which is 1 or higher.
            AskFailed: the request got no result, or `retrieve` is too old to return an outcome.
        """
        request = StatusV1.create_strict(event_seq=seq)
        if not request.event_seq:
            raise InvalidBody("seq", "must be 1 or higher; give the log position that a publish returned")
        reply = await self._questioner.ask(user, "status", request, StatusReplyV1)
        if reply.outcome is None:
            problem = "`retrieve` is too old to return the outcome of an event; upgrade mnemon on the server"
            raise AskFailed(AskError(code="not_implemented", message=problem, retryable=False))
        return reply.outcome

    async def _await_applied(self, user: str, seq: int) -> None:
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._timeouts.save
        # A request waits for the event only for the time of the setting `wait_for_log_ms`.
        while not await self._is_applied(user, seq):
            if clock() >= deadline:
                problem = f"event {seq} is stored, but not known to be applied; request its outcome later"
                raise AskFailed(AskError(code="timeout", message=problem, retryable=True))
            await asyncio.sleep(FIRST_PAUSE)

    async def _is_applied(self, user: str, seq: int) -> bool:
        """Return whether an event is known to be applied. It is not if the request gets no reply in time.

        Raises:
            EventRejected: the event cannot be used.
        """
        try:
            outcome = await self.outcome(user, seq)
        except AskFailed as error:
            if error.code == "timeout":
                return False
            raise
        if outcome.rejected is not None:
            raise EventRejected(outcome.rejected)
        return outcome.outcome == "applied"

    async def publish_many(self, events: Events, *, progress: PublishProgress | None = None) -> Published:
        """Add many events, in their order, in atomic batches, for example for an import; return the totals.

        Events may come from any iterable, also from an asynchronous iterable. The client reads them at the
        rate at which the log accepts them. If the server refuses a batch, the client publishes the events of
        the batch separately and at the same time, so their order may change.

        Args:
            events: events such as `ChatEvent("u42", MessageV1(role="user", content="hi", id="import:1"))`.
                Publishing an event with an id again changes nothing.
            progress: function that is called after each batch with the totals so far.

        Raises:
            InvalidId, InvalidBody: an event cannot be sent; all events before it are published.
            PublishFailed: an event is not known to be stored; `progress` has reported all batches before its
                batch.
        """
        return await self._publisher.publish_many(events, progress)

    async def start(
        self,
        user: str,
        conversation: str | None = None,
        *,
        discard_previous: bool = False,
        id: str | None = None,  # noqa: A002
    ) -> int:
        """Start a conversation, which becomes the user's current one. Return the log position.

        Args:
            user: the user whose conversation it is.
            conversation: the id of the conversation; None makes a UUID from the event's id.
            discard_previous: remove all earlier messages and summaries of the user, in every conversation.
            id: the event's identity, as in `publish`.

        Raises:
            PublishFailed: the event is not known to be stored.
        """
        started = StartedV1.create_strict(discard_previous=discard_previous, id=id)
        return await self._publisher.publish(ChatEvent(user, started, conversation))

    async def clear(
        self,
        user: str,
        conversation: str | None = None,
        *,
        id: str | None = None,  # noqa: A002
    ) -> int:
        """Remove all messages and summaries of a conversation so far, and keep the conversation.

        Args:
            user: the user whose conversation it is.
            conversation: None means the user's current conversation.
            id: the event's identity, as in `publish`.

        Returns:
            The log position.

        Raises:
            PublishFailed: the event is not known to be stored.
        """
        return await self._publisher.publish(ChatEvent(user, ClearedV1.create_strict(id=id), conversation))

    async def context(
        self,
        user: str,
        *,
        query: str | None = None,
        format: Format = "messages",  # noqa: A002
        budget: int | None = None,
        min_seq: int | None = None,
        as_of: datetime | int | None = None,
        task_id: str | None = None,
        conversation: str | None = None,
        preceding: Iterable[str] = (),
        now: datetime | None = None,
    ) -> ContextReplyV1:
        """Return the context to put before a model for its next answer to the user.

        If the request gets no result, the context is empty: `degraded` is `("memory",)` and `error` gives the
        reason.

        Args:
            user: the user whose context it is.
            query: the user's message, for which memory is searched. Default: the user's last message.
            format: `messages` gives messages with roles; `xml`, `blocks` and `markdown` give one text, as
                `text` of the reply and as its only message.
            budget: the maximum number of tokens. Default: the tenant's setting.
            min_seq: reflect the log up to this position, which a publish returned.
            as_of: answer as of this former time, UTC unless it has an offset, or log position. The answer
                needs a snapshot as of it, which `mnemon rebuild --until` makes.
            task_id: the id of the bot's task whose tool results are added to the query.
            conversation: None means the user's current conversation.
            preceding: the last messages before the query, oldest first, at most four. A query that depends
                on them, such as `and when was that?`, is searched with their words too.
            now: the time to which words of the query such as `yesterday` are relative, UTC unless it has an
                offset. Default: the time of the request, or that of `as_of`.
        """
        try:
            request = ContextV1.create_strict(
                query=query,
                format=format,
                budget=budget,
                min_seq=min_seq,
                as_of=as_of,
                task_id=task_id,
                conversation=conversation,
                preceding=preceding or None,
                now=now,
            )
            return await self._questioner.ask(user, "context", request, ContextReplyV1)
        except AskFailed as failed:
            error = failed.error
        except ValueError as invalid:
            field = invalid.field if isinstance(invalid, InvalidBody) else None
            error = AskError(code="bad_request", message=str(invalid), retryable=False, field=field)
        log.warning("context request failed user=%r error=%s", user, error.message)
        return ContextReplyV1(degraded=("memory",), error=error)

    async def history(
        self,
        user: str,
        *,
        limit: int = 30,
        conversation: str | None = None,
        before: int | None = None,
        min_seq: int | None = None,
        as_of: datetime | int | None = None,
    ) -> HistoryReplyV1:
        """Return the last messages of a conversation, oldest first; `min_seq` and `as_of` as in `context`.

        With `before`, a log position, return the last messages before it. To read page by page, give the
        `seq` of the first message of the previous reply, and the `conversation` of that reply, until a reply
        has no messages.

        Raises:
            AskFailed: the request got no result, or `retrieve` is too old for `before`.
        """
        request = HistoryV1.create_strict(
            limit=limit, conversation=conversation, before=before, min_seq=min_seq, as_of=as_of
        )
        reply = await self._questioner.ask(user, "history", request, HistoryReplyV1)
        if before is not None and reply.messages and reply.messages[-1].seq >= before:
            problem = "`retrieve` is too old for `before` in `history`; upgrade mnemon on the server"
            raise AskFailed(AskError(code="not_implemented", message=problem, retryable=False))
        return reply

    async def status(self, user: str, *, min_seq: int | None = None) -> StatusReplyV1:
        """Return counts and times of the user's messages, and the user's rejected events.

        Returns:
            The current `conversation`; the numbers of `conversations` and `messages`; the times of the oldest
            and the newest message; the last position of the log as `log_seq`; and in `rejected` the latest
            rejected events of the user, at most ten.
        """
        request = StatusV1.create_strict(min_seq=min_seq)
        return await self._questioner.ask(user, "status", request, StatusReplyV1)

    async def erase(
        self, user: str, *, conversation: str | None = None, verify: bool = False, text: str | None = None
    ) -> EraseReplyV1:
        """Erase a user permanently, or only `conversation` if it is given.

        With `verify`, erase nothing: the reply counts the remaining items and the matches of `text`.

        Raises:
            AskFailed: no receipt arrived; the user, or the conversation, may be erased or not.
        """
        request = EraseV1.create_strict(conversation=conversation, verify=verify, text=text)
        return await self._questioner.ask(user, "erase", request, EraseReplyV1)

    async def ask(self, user: str, verb: str, **fields: Any) -> Reply:
        """Send a request by the name of its verb, with fields of the verb's latest version.

            await memory.ask("u42", "search", query="tea")

        The client sends the oldest version that accepts these fields. The reply has the type of the latest
        version, here `SearchReplyV2`.

        Raises:
            InvalidBody: no verb has this name, or a field is unknown, missing or wrong.
        """
        contract = VERBS.get(verb)
        if contract is None:
            raise InvalidBody("verb", f"{verb!r} is not a verb; use one of {', '.join(VERBS)}")
        request = contract.requests[-1].create_strict(**fields)
        return await self._questioner.ask(
            user, verb, request, contract.replies[-1], version=contract.find_oldest_version(request)
        )
