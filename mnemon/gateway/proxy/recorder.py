"""Recorder of conversations: publishes the new messages of a request, and then the answer."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, NamedTuple

import structlog
from cachetools import LRUCache, TTLCache
from nats.errors import Error as BrokerError

from mnemon.gateway.memory_access import MemoryAccess
from mnemon.gateway.proxy.answers import Answer
from mnemon.gateway.proxy.messages import ChatMessage, IdentifiedMessage, build_event, identify_messages
from mnemon.gateway.proxy.usage import UsageRecorder
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.subjects import InvalidId
from mnemon_contracts.verbs.ask import MAX_HISTORY, ContextReplyV1, ContextV1, HistoryReplyV1, HistoryV1
from mnemon_producers.errors import AskFailed, PublishFailed
from mnemon_producers.events import ChatEvent, encode_event

log = structlog.get_logger("proxy")

REMEMBERED_IDS: Final = 100_000
"""Maximum number of ids of stored messages that a process remembers, to avoid publishing histories again."""

PERSISTED_WITHIN_SECONDS: Final = 600.0
"""Seconds for which a process remembers the contents that it published: `history` may not have them yet."""

MAX_TASKS: Final = 256
"""Maximum number of running tasks: each may keep a whole history in memory.

While so many tasks run, the messages of a new request, and later its answer, are not published. The next
request of the conversation has these messages again. Answers to earlier requests are published nevertheless.
"""

STOP_SECONDS: Final = 4.0
"""Maximum seconds that a stopping process waits for messages that are being published."""

_OVERLAP: Final = 100
"""Number of stored messages that are compared, besides one for each message that may be new."""


class Thread(NamedTuple):
    """A user's conversation; `conversation` is None for the current one."""

    tenant: str
    user: str
    conversation: str | None


class ConversationRecorder:
    """Recorder that publishes messages in background tasks, which continue when the client disconnects."""

    def __init__(self, memory: MemoryAccess) -> None:
        self._memory = memory
        self._usage = UsageRecorder(memory.connection)
        self._stored: LRUCache[tuple[str, str, str], bool] = LRUCache(REMEMBERED_IDS)
        self._published: TTLCache[tuple[Thread, str], bool] = TTLCache(
            REMEMBERED_IDS, PERSISTED_WITHIN_SECONDS
        )
        self._tasks: set[asyncio.Task[Any]] = set()
        self._last: dict[Thread, asyncio.Task[Any]] = {}

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """At the end of the block, wait up to `STOP_SECONDS` for the running tasks; then cancel them."""
        try:
            yield
        finally:
            if self._tasks:
                _, unfinished = await asyncio.wait(self._tasks, timeout=STOP_SECONDS)
                for task in unfinished:
                    task.cancel()
                if unfinished:
                    log.warning("messages not published before the stop", tasks=len(unfinished))

    def record_request(self, thread: Thread, messages: Sequence[ChatMessage]) -> asyncio.Task[bool]:
        """Start a task that publishes the new messages.

        The task returns True if they are published, False if they cannot be published or if `MAX_TASKS` other
        tasks run.
        """
        if len(self._tasks) >= MAX_TASKS:
            log.warning("messages not published", tenant=thread.tenant, messages=len(messages), reason="busy")
            return self._start_task(_return_false())
        return self._start_in_order(thread, self._publish_new_messages(thread, messages))

    def record_answer(
        self,
        thread: Thread,
        provider: str,
        messages: Sequence[ChatMessage],
        answer: Answer,
        asked: asyncio.Task[bool],
    ) -> None:
        """Publish an answer after the messages of its request, and the tokens of the call.

        The tokens are not published while at least half of `MAX_TASKS` tasks are running.

        Args:
            thread: the conversation.
            provider: name of the provider.
            messages: the messages of the request.
            answer: the answer; without a message, only its tokens are published.
            asked: the task that publishes the messages of the request. If it returns False, the answer is not
                published: the history in the next request has messages and answer in the right order.
        """
        # Tokens leave half of the tasks to messages.
        if (answer.message or answer.tokens) and len(self._tasks) < MAX_TASKS // 2:
            self._start_task(self._usage.record((thread.tenant, thread.user), provider, answer))
        if answer.message is None:
            return
        metadata = {"model": answer.model, **_describe_tokens(answer)}
        conversation = [*messages, answer.message]

        async def publish_answer() -> None:
            if not await asked:
                return
            *_, identified = await _identify_all(thread, conversation)
            if await self._publish_messages(thread, [identified], metadata):
                self._start_task(self._warm_cache(thread))

        self._start_in_order(thread, publish_answer())

    def _start_in_order(self, thread: Thread, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Start a task that waits for the former task of the thread, so that messages keep their order."""
        former = self._last.get(thread)

        async def wait_and_work() -> Any:
            if former:
                await asyncio.wait({former})
            return await work

        task = self._last[thread] = self._start_task(wait_and_work())
        task.add_done_callback(lambda done: self._forget_task(thread, done))
        return task

    def _forget_task(self, thread: Thread, done: asyncio.Task[Any]) -> None:
        if self._last.get(thread) is done:
            del self._last[thread]

    def _start_task(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _publish_new_messages(self, thread: Thread, messages: Sequence[ChatMessage]) -> bool:
        identified = await _identify_all(thread, messages)
        new = [each for each in identified if not self._is_stored(thread, each)]
        if len(new) > 1 or any(each.is_head for each in new):
            new = await self._drop_stored_messages(thread, new)
        return await self._publish_messages(thread, new)

    async def _drop_stored_messages(
        self, thread: Thread, messages: list[IdentifiedMessage]
    ) -> list[IdentifiedMessage]:
        """Return the messages that the stored conversation lacks; remember the others as stored.

        Another process may have stored some of them.
        The first message of a history gets another id when the client leaves out the messages before it, so
        it is compared by its content, also with the messages that this process published in the last
        `PERSISTED_WITHIN_SECONDS`. At most `MAX_HISTORY` stored messages are compared. If the conversation
        cannot be read, only a message with `is_head` is left out.
        """
        request = HistoryV1(
            limit=min(MAX_HISTORY, len(messages) + _OVERLAP), conversation=thread.conversation
        )
        try:
            reply = await self._memory.get_questioner(thread.tenant).ask(
                thread.user, "history", request, HistoryReplyV1
            )
        except AskFailed:
            return [each for each in messages if not each.is_head]  # the next request has it again
        ids = {each.id for each in reply.messages}
        contents = {(each.role, each.content) for each in reply.messages}
        new = []
        for each in messages:
            is_stored_head = each.is_head and (
                (thread, each.content_digest) in self._published
                or (each.message.role, each.message.text) in contents
            )
            if each.id in ids or is_stored_head:
                self._remember_message(thread, each)
            else:
                new.append(each)
        return new

    async def _warm_cache(self, thread: Thread) -> None:
        """Ask for a context, so that `retrieve` reads the user's changed memory before the next request."""
        request = ContextV1.create_strict(format="xml", conversation=thread.conversation)
        with suppress(AskFailed, BrokerError):
            await self._memory.get_questioner(thread.tenant).ask(
                thread.user, "context", request, ContextReplyV1
            )

    async def _publish_messages(
        self,
        thread: Thread,
        messages: Sequence[IdentifiedMessage],
        metadata: dict[str, Any] | None = None,
    ) -> bool:
        events = await asyncio.to_thread(_build_events, thread, messages, metadata)
        try:
            if events:
                await self._memory.get_publisher(thread.tenant).publish_many(events)
        except (PublishFailed, InvalidBody, InvalidId, BrokerError) as error:
            log.warning(
                "messages not published",
                tenant=thread.tenant,
                messages=len(events),
                error=type(error).__name__,
            )
            return False
        for each in messages:
            self._remember_message(thread, each)
            self._published[thread, each.content_digest] = True
        return True

    def _remember_message(self, thread: Thread, message: IdentifiedMessage) -> None:
        self._stored[thread.tenant, thread.user, message.id] = True

    def _is_stored(self, thread: Thread, message: IdentifiedMessage) -> bool:
        return (thread.tenant, thread.user, message.id) in self._stored


async def _identify_all(thread: Thread, messages: Sequence[ChatMessage]) -> list[IdentifiedMessage]:
    """Identify messages in another thread: a history of 8 MiB may have 200,000, which takes seconds."""
    return await asyncio.to_thread(lambda: list(identify_messages(thread.conversation, messages)))


def _build_events(
    thread: Thread, messages: Iterable[IdentifiedMessage], metadata: dict[str, Any] | None
) -> list[ChatEvent]:
    """Return the events of messages, without those of messages that cannot be stored."""
    events = []
    for each in messages:
        try:
            event = build_event(each, metadata)
            if event is None:
                continue
            chat_event = ChatEvent(thread.user, event, thread.conversation)
            # `publish_many` ends at an event that is too large: leave it out, and publish the others.
            encode_event(thread.tenant, chat_event, each.id)
        except (InvalidBody, ValueError) as error:
            log.warning("message ignored as invalid", tenant=thread.tenant, error=type(error).__name__)
        else:
            events.append(chat_event)
    return events


async def _return_false() -> bool:
    return False


def _describe_tokens(answer: Answer) -> dict[str, Any]:
    return {"tokens": answer.tokens.model_dump()} if answer.tokens else {}
