"""`erase` of one conversation: removes its messages, and all that was made from them alone, for good."""

from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from uuid import uuid4

from nats.aio.client import Client
from pydantic import JsonValue

from mnemon_consumers.retrieve.verbs.erasure.receipt import (
    ERASURE_TIMEOUT,
    RegisteredEvent,
    count_event_points,
    count_matches_by_store,
    count_orphaned_points,
    count_stores,
    find_unfinished_stores,
    select_removed,
    wait_for_stores,
)
from mnemon_consumers.retrieve.verbs.user_log import UserLog
from mnemon_contracts.events.erasure import Span, UserErasedV1
from mnemon_contracts.subjects import Address, Owner, build_user_filters
from mnemon_contracts.verbs.tools import EraseReplyV1
from mnemon_infra.broker.erasure.scope import EVERYWHERE, ErasedConversation
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
from mnemon_infra.database.facts.sources import find_events_from_conversation
from mnemon_infra.database.locks import hold_lock
from mnemon_infra.storage.erasure_register import ErasureRegister
from mnemon_infra.vectors.port import VectorsUnavailable
from mnemon_infra.vectors.vector_index import VectorIndex


class ConversationEraser:
    """Erases conversations and verifies erasures."""

    def __init__(
        self,
        connection: Client,
        log: UserLog,
        database: Database,
        vector_index: VectorIndex | None,
        register: ErasureRegister | None,
    ) -> None:
        self._connection = connection
        self._log = log
        self._database = database
        self._vector_index = vector_index
        self._register = register

    async def erase_conversation(self, address: Address, conversation: str) -> EraseReplyV1:
        """Erase a conversation, up to the user's last event in the log; return the receipt.

        Raises:
            Refusal: the projections do not have the whole conversation yet.
            DatabaseUnavailable, nats.errors.Error: PostgreSQL or NATS does not answer.
        """
        owner = address.owner
        # The lock keeps out decisions about the user, which would enter the log after the erasure.
        async with hold_lock(self._database, *owner):
            event, erased = await self._plan_erasure(owner, conversation)
            counts = await self._count_contents(erased)
            batches = await self._database.run_query(list_provider_batches(erased))
            inactive = await self._database.run_query(count_in_inactive_generations(erased))
            registered = RegisteredEvent(self._register, owner, str(uuid4()))
            position = await self._log.publish_event(address, event, registered.event_id)
        left = await wait_for_stores(partial(self._find_unfinished_stores, registered, position))
        return EraseReplyV1(
            seen_seq=position,
            removed=select_removed(counts, left),
            pending=left,
            provider_batches=tuple(batches),
            generations=tuple(inactive),
        )

    async def verify_conversation(self, owner: Owner, conversation: str, words: str | None) -> EraseReplyV1:
        """Count the remains of an erased conversation, or everything of a conversation that was not erased.

        With `words`, also count the user's entries of any conversation that contain this text.

        Raises:
            Refusal: the projections do not have the whole conversation yet.
            DatabaseUnavailable, nats.errors.Error: PostgreSQL or NATS does not answer.
        """
        (stored,) = await self._database.run_query(load_conversation_erasures([owner]))
        erasures = [each.erased for each in stored if each.erased.conversation == conversation]
        if erasures:
            counts = [await self._count_remains(each) for each in erasures]
            left: dict[str, JsonValue] = {
                name: sum(int(str(each[name])) for each in counts) for name in counts[0]
            }
        else:
            left = await self._count_contents((await self._plan_erasure(owner, conversation))[1])
        found = (
            await count_matches_by_store(self._connection, self._database, owner, words) if words else None
        )
        return EraseReplyV1(
            seen_seq=erasures[-1].seq if erasures else 0,
            left={**left},
            found=found,
        )

    async def _plan_erasure(self, owner: Owner, conversation: str) -> tuple[UserErasedV1, ErasedConversation]:
        """Return the event and the scope that erase a conversation, up to the user's last event.

        Raises:
            Refusal: the projections do not have the whole conversation yet.
            DatabaseUnavailable, nats.errors.Error: PostgreSQL or NATS does not answer.
        """
        last = max([await read_last_position(self._connection, each) for each in build_user_filters(*owner)])
        if await AppliedPosition().wait_for(self._connection.jetstream(), last, ERASURE_TIMEOUT) < last:
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
        derived = await find_events_from_conversation(self._connection, owner, conversation, below, said)
        event = event.model_copy(update={"derived": tuple(derived)})
        return event, ErasedConversation.from_event(owner, event, "", EVERYWHERE, at)

    async def _count_contents(self, erased: ErasedConversation) -> dict[str, JsonValue]:
        """Count by store what an erasure would remove.

        `vectors` is absent if the vector store does not answer, or this process has no vector index.
        """
        counts = await self._count_rows(erased)
        with suppress(VectorsUnavailable):
            if self._vector_index is not None:
                events = await self._database.run_query(list_event_ids(erased))
                counts["vectors"] = await count_event_points(self._vector_index, erased.owner, events)
        return counts

    async def _count_remains(self, erased: ErasedConversation) -> dict[str, JsonValue]:
        counts = await self._count_rows(erased)
        with suppress(VectorsUnavailable):
            if self._vector_index is not None:
                counts["vectors"] = await count_orphaned_points(
                    self._database, self._vector_index, erased.owner, erased.below
                )
        return counts

    async def _count_rows(self, erased: ErasedConversation) -> dict[str, JsonValue]:
        rows = await self._database.run_query(count_covered_rows(erased))
        return await count_stores(self._connection, self._database, erased, rows)

    async def _find_unfinished_stores(self, registered: RegisteredEvent, position: int) -> tuple[str, ...]:
        (stored,) = await self._database.run_query(load_conversation_erasures([registered.owner]))
        is_settled = next((each.is_settled for each in stored if each.erased.seq == position), None)
        return await find_unfinished_stores(self._connection, registered, position, is_settled)
