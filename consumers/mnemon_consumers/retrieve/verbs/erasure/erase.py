"""`erase`: remove a user or a conversation for good, with a receipt, or verify an erasure.

An erasure of a conversation removes its messages, and all that was made from them alone.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from uuid import uuid4

from pydantic import JsonValue

from mnemon_consumers.retrieve.moving_tenant import describe_copy, holds_copy
from mnemon_consumers.retrieve.verbs.erasure.receipt import (
    RegisteredEvent,
    count_event_points,
    count_matches_by_store,
    count_orphaned_points,
    count_stores,
    find_unfinished_stores,
    select_removed,
    sum_counts,
    wait_for_stores,
)
from mnemon_consumers.retrieve.verbs.request_context import await_reply
from mnemon_consumers.retrieve.verbs.user_log import UserLog
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.events.erasure import ALL_BEFORE, Span, UserErasedV1
from mnemon_contracts.subjects import Address, Owner, build_user_filters
from mnemon_contracts.verbs.ask import Reply
from mnemon_contracts.verbs.tools import EraseReplyV1, EraseV1
from mnemon_infra.broker.broker import Broker
from mnemon_infra.broker.erasure.scope import (
    EVERYWHERE,
    ErasedConversation,
    ErasedUser,
    ErasureScope,
    build_full_erasure,
)
from mnemon_infra.broker.service import Refusal
from mnemon_infra.broker.streams.applied_position import AppliedPosition
from mnemon_infra.broker.streams.log_reader import read_last_position
from mnemon_infra.database.engine import Database
from mnemon_infra.database.erasure.conversations import (
    list_event_ids,
    list_message_positions,
    load_conversation_erasures,
    load_spans,
)
from mnemon_infra.database.erasure.erased_rows import (
    count_covered_rows,
    count_in_inactive_generations,
    list_provider_batches,
)
from mnemon_infra.database.erasure.users import load_erasure
from mnemon_infra.database.facts.sources import find_events_from_conversation
from mnemon_infra.database.locks import hold_lock
from mnemon_infra.settings.store import LiveSettings
from mnemon_infra.storage.erasure_register import ErasureRegister
from mnemon_infra.vectors.port import Collection, VectorsUnavailable
from mnemon_infra.vectors.vector_index import VectorIndex

ERASURE_TIMEOUT: Final = 6.0
"""Seconds after the request at which an erasure stops waiting for the projections or the stores, and replies.

A client waits 7 s. The reply is later if the user's lock is not free by then. After the reply the stores
continue.
"""


class _CoveredContent(NamedTuple):
    """Content that an erasure covers: counts by store, batches at providers, and inactive generations."""

    counts: dict[str, JsonValue]
    provider_batches: tuple[str, ...]
    generations: tuple[str, ...]


class EraseVerb:
    """Answers `erase`, for users and for conversations."""

    def __init__(
        self,
        broker: Broker,
        log: UserLog,
        database: Database,
        vector_index: VectorIndex | None,
        register: ErasureRegister | None,
        settings: LiveSettings,
    ) -> None:
        self._broker = broker
        self._log = log
        self._database = database
        self._vector_index = vector_index
        self._register = register
        self._settings = settings

    def erase(self, address: Address, body: bytes) -> Coroutine[Any, Any, Reply]:
        return self._add_copy_warning(address, self._answer_request(address, body))

    async def _add_copy_warning(self, address: Address, pending: Awaitable[Reply]) -> Reply:
        residence = self._settings.get_residence(address.tenant)
        reply = await pending
        if residence is None or not holds_copy(residence):
            return reply
        return reply.model_copy(update={"warnings": (describe_copy(residence),)})

    def _answer_request(self, address: Address, body: bytes) -> Coroutine[Any, Any, Reply]:
        request = EraseV1.parse(body or b"{}")
        if request.text is not None and not request.verify:
            raise InvalidBody("text", "the field is valid only with `verify`; set `verify`, or omit `text`")
        if request.verify:
            return await_reply(self._verify_erasure(address.owner, request.conversation, request.text))
        if request.conversation is not None:
            return await_reply(self._erase_conversation(address, request.conversation))
        return await_reply(self._erase_user(address))

    async def _erase_user(self, address: Address) -> Reply:
        until = _compute_deadline()
        covered = await self._find_covered_content(build_full_erasure(address.owner))
        # The lock keeps out decisions about the user, which would enter the log after the erasure.
        async with hold_lock(self._database, *address.owner):
            registered = RegisteredEvent(self._register, address.owner, str(uuid4()))
            event = UserErasedV1(up_to_seq=ALL_BEFORE)
            position = await self._log.publish_event(address, event, registered.event_id)
        return await self._build_receipt(covered, registered, position, self._is_user_settled, until)

    async def _erase_conversation(self, address: Address, conversation: str) -> Reply:
        """Erase a conversation, up to the user's last event in the log."""
        until = _compute_deadline()
        # The lock keeps out decisions about the user, which would enter the log after the erasure.
        async with hold_lock(self._database, *address.owner):
            event, scope = await self._plan_erasure(address.owner, conversation, until)
            covered = await self._find_covered_content(scope)
            registered = RegisteredEvent(self._register, address.owner, str(uuid4()))
            position = await self._log.publish_event(address, event, registered.event_id)
        return await self._build_receipt(covered, registered, position, self._is_conversation_settled, until)

    async def _plan_erasure(
        self, owner: Owner, conversation: str, until: float
    ) -> tuple[UserErasedV1, ErasedConversation]:
        """Return the event and the scope that erase a conversation, up to the user's last event.

        Raises:
            Refusal: the projections lack an event of the user at `until`, a time of the event loop.
        """
        connection = self._broker.connection
        last = await read_last_position(connection, *build_user_filters(*owner))
        seconds = until - asyncio.get_running_loop().time()
        if await AppliedPosition().wait_for(connection.jetstream(), last, seconds) < last:
            raise Refusal(
                "unavailable",
                "the projections are behind the log, so nothing was erased or counted; repeat the request",
                retryable=True,
            )
        below = last + 1
        spans, discarded = await self._database.run_query(load_spans(owner, conversation, below))
        event = UserErasedV1(
            up_to_seq=below,
            conversation=conversation,
            spans=tuple(Span(from_seq=begin, to_seq=end) for begin, end in spans),
            discarded_seq=discarded,
        )
        at = datetime.max.replace(tzinfo=UTC)
        of_messages = ErasedConversation.from_event(owner, event, "", EVERYWHERE, at)
        said = await self._database.run_query(list_message_positions(of_messages))
        derived = await find_events_from_conversation(connection, owner, conversation, below, said)
        event = event.model_copy(update={"derived": tuple(derived)})
        return event, ErasedConversation.from_event(owner, event, "", EVERYWHERE, at)

    async def _find_covered_content(self, scope: ErasureScope) -> _CoveredContent:
        counts = await self._count_stores(scope, self._count_points)
        batches = await self._database.run_query(list_provider_batches(scope))
        inactive = await self._database.run_query(count_in_inactive_generations(scope))
        return _CoveredContent(counts, tuple(batches), tuple(inactive))

    async def _build_receipt(
        self,
        covered: _CoveredContent,
        registered: RegisteredEvent,
        position: int,
        is_settled: Callable[[Owner, int], Awaitable[bool | None]],
        until: float,
    ) -> EraseReplyV1:
        """Wait for the stores until a time of the event loop, and return the receipt.

        `is_settled` returns whether `persist` has marked the row of the erasure as finished; None if there is
        no row yet.
        """

        async def find_unfinished() -> tuple[str, ...]:
            settled = await is_settled(registered.owner, position)
            return await find_unfinished_stores(self._broker.connection, registered, position, settled, until)

        left = await wait_for_stores(find_unfinished, until)
        return EraseReplyV1(
            seen_seq=position,
            removed=select_removed(covered.counts, left),
            pending=left,
            provider_batches=covered.provider_batches,
            generations=covered.generations,
        )

    async def _is_user_settled(self, owner: Owner, position: int) -> bool | None:
        erased = await self._database.run_query(load_erasure(*owner))
        return erased.is_settled if erased and erased.seq >= position else None

    async def _is_conversation_settled(self, owner: Owner, position: int) -> bool | None:
        (stored,) = await self._database.run_query(load_conversation_erasures([owner]))
        return next((each.is_settled for each in stored if each.erased.seq == position), None)

    async def _verify_erasure(self, owner: Owner, conversation: str | None, text: str | None) -> Reply:
        """Count what is left after the last erasure; without one, everything that an erasure would remove.

        With `text`, also count the user's entries of any conversation that contain the text.
        """
        seq, left = (
            await self._count_left_of_user(owner)
            if conversation is None
            else await self._count_left_of_conversation(owner, conversation)
        )
        found = (
            await count_matches_by_store(self._broker.connection, self._database, owner, text)
            if text
            else None
        )
        return EraseReplyV1(seen_seq=seq, left=left, found=found)

    async def _count_left_of_user(self, owner: Owner) -> tuple[int, dict[str, JsonValue]]:
        """Return the log position of the erasure, 0 without one, and the counts by store."""
        erased = await self._database.run_query(load_erasure(*owner))
        if erased is None:
            return 0, await self._count_stores(build_full_erasure(owner), self._count_points)
        scope = ErasedUser(owner, erased.seq, erased.at)
        return erased.seq, await self._count_stores(scope, self._count_orphaned_points)

    async def _count_left_of_conversation(
        self, owner: Owner, conversation: str
    ) -> tuple[int, dict[str, JsonValue]]:
        """Return the log position of the last erasure, 0 without one, and the counts by store."""
        (stored,) = await self._database.run_query(load_conversation_erasures([owner]))
        erasures = [each.erased for each in stored if each.erased.conversation == conversation]
        if not erasures:
            until = _compute_deadline()
            _, scope = await self._plan_erasure(owner, conversation, until)
            return 0, await self._count_stores(scope, self._count_points)
        counts = [await self._count_stores(each, self._count_orphaned_points) for each in erasures]
        return erasures[-1].seq, sum_counts(counts)

    async def _count_stores(
        self, scope: ErasureScope, count_points: Callable[[VectorIndex, ErasureScope], Awaitable[int]]
    ) -> dict[str, JsonValue]:
        """Count by store what an erasure covers.

        `vectors` is absent if the vector store does not answer, or this process has no vector index.
        """
        rows = await self._database.run_query(count_covered_rows(scope))
        counts = await count_stores(self._broker.connection, self._database, scope, rows)
        with suppress(VectorsUnavailable):
            if self._vector_index is not None:
                counts["vectors"] = await count_points(self._vector_index, scope)
        return counts

    async def _count_points(self, vector_index: VectorIndex, scope: ErasureScope) -> int:
        if isinstance(scope, ErasedConversation):
            events = await self._database.run_query(list_event_ids(scope))
            return await count_event_points(vector_index, scope.owner, events)
        return sum([await vector_index.vectors.count(each, scope.owner) for each in Collection])

    async def _count_orphaned_points(self, vector_index: VectorIndex, scope: ErasureScope) -> int:
        return await count_orphaned_points(self._database, vector_index, scope.owner, scope.below)


def _compute_deadline() -> float:
    """Return the time of the event loop at which an erasure that begins now stops waiting."""
    return asyncio.get_running_loop().time() + ERASURE_TIMEOUT
