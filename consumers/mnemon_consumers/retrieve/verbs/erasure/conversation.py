"""`erase` of one conversation: its messages, and everything that was learned from it alone, for good."""

from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

from nats.aio.client import Client
from pydantic import JsonValue

from mnemon_consumers.retrieve.verbs.erasure.receipt import (
    PATIENCE,
    count_old_points,
    count_points_of,
    counted_stores,
    found_with,
    not_done,
    pending,
    removed,
)
from mnemon_consumers.retrieve.verbs.request_context import owner_of
from mnemon_consumers.retrieve.verbs.user_log import UserLog
from mnemon_contracts.events.erasure import Span, UserErasedV1
from mnemon_contracts.subjects import Address, Owner, user_filters
from mnemon_contracts.verbs.tools import EraseReplyV1
from mnemon_infra.broker.service import Refusal
from mnemon_infra.broker.streams.applied_position import Position
from mnemon_infra.broker.streams.erasure_scope import EVERYWHERE, ErasedConversation
from mnemon_infra.broker.streams.log_reader import read_last_position
from mnemon_infra.database.engine import Database
from mnemon_infra.database.erasure.conversations import conversation_erasures_of
from mnemon_infra.database.erasure.inactive_generations import counted_elsewhere
from mnemon_infra.database.facts.sources import drawn_alone
from mnemon_infra.database.locks import locked
from mnemon_infra.database.messages import conversations as contents
from mnemon_infra.vectors.port import VectorsUnavailable
from mnemon_infra.vectors.vector_index import VectorIndex


class ConversationErasing:
    """Erases conversations and verifies erasures."""

    def __init__(
        self, connection: Client, log: UserLog, database: Database, finding: VectorIndex | None
    ) -> None:
        self._connection = connection
        self._log = log
        self._database = database
        self._finding = finding

    async def erase(self, address: Address, conversation: str) -> EraseReplyV1:
        """Erase a conversation: everything that the log has of it now.

        Raises:
            Refusal: the projections do not have all of it yet.
        """
        owner = owner_of(address)
        # The lock keeps out decisions about the user, which would enter the log after the erasure.
        async with locked(self._database, *owner):
            event, erased = await self._planned(owner, conversation)
            there = await self._count(erased)
            batches = await self._database.read(contents.held_by_providers(erased))
            elsewhere = await self._database.read(counted_elsewhere(erased))
            position = await self._log.publish(address, event)
        left = await pending(partial(self._not_done, owner, position))
        return EraseReplyV1(
            seen_seq=position,
            removed=removed(there, left),
            pending=left,
            provider_batches=tuple(batches),
            generations=tuple(elsewhere),
        )

    async def verify(self, owner: Owner, conversation: str, words: str | None) -> EraseReplyV1:
        """Count what is left of an erased conversation, or all of one that was not erased.

        Raises:
            Refusal: the projections do not have all of it yet.
        """
        (stored,) = await self._database.read(conversation_erasures_of([owner]))
        erasures = [each.erased for each in stored if each.erased.conversation == conversation]
        if erasures:
            counts = [await self._count_left(each) for each in erasures]
            left: dict[str, JsonValue] = {
                name: sum(int(str(each[name])) for each in counts) for name in counts[0]
            }
        else:
            left = await self._count((await self._planned(owner, conversation))[1])
        found = await found_with(self._connection, self._database, owner, words) if words else None
        return EraseReplyV1(
            seen_seq=erasures[-1].seq if erasures else 0,
            left={**left},
            found=found,
        )

    async def _planned(self, owner: Owner, conversation: str) -> tuple[UserErasedV1, ErasedConversation]:
        """Return the event and the scope of an erasure of everything that the log has now."""
        last = max([await read_last_position(self._connection, each) for each in user_filters(*owner)])
        if await Position().reach(self._connection.jetstream(), last, PATIENCE) < last:
            raise Refusal(
                "unavailable", "the projections are behind the log: nothing is erased", retryable=True
            )
        below = last + 1
        spans, discarded = await self._database.read(contents.spans_of(owner, conversation, below))
        event = UserErasedV1(
            up_to_seq=below,
            conversation=conversation,
            spans=tuple(Span(from_seq=begin, to_seq=end) for begin, end in spans),
            discarded_seq=discarded,
        )
        at = datetime.max.replace(tzinfo=UTC)
        of_messages = ErasedConversation.of(owner, event, "", EVERYWHERE, at)
        said = await self._database.read(contents.positions_of(of_messages))
        derived = await drawn_alone(self._connection, owner, conversation, below, said)
        event = event.model_copy(update={"derived": tuple(derived)})
        return event, ErasedConversation.of(owner, event, "", EVERYWHERE, at)

    async def _count(self, erased: ErasedConversation) -> dict[str, JsonValue]:
        """Count by store what an erasure would remove."""
        counts = await self._count_rows(erased)
        with suppress(VectorsUnavailable):
            if self._finding is not None:
                events = await self._database.read(contents.events_of(erased))
                counts["vectors"] = await count_points_of(self._finding, erased.owner, events)
        return counts

    async def _count_left(self, erased: ErasedConversation) -> dict[str, JsonValue]:
        counts = await self._count_rows(erased)
        with suppress(VectorsUnavailable):
            if self._finding is not None:
                counts["vectors"] = await count_old_points(
                    self._database, self._finding, erased.owner, erased.below
                )
        return counts

    async def _count_rows(self, erased: ErasedConversation) -> dict[str, JsonValue]:
        rows = await self._database.read(contents.counted(erased))
        return await counted_stores(self._connection, self._database, erased, rows)

    async def _not_done(self, owner: Owner, position: int) -> tuple[str, ...]:
        (stored,) = await self._database.read(conversation_erasures_of([owner]))
        is_settled = next((each.is_settled for each in stored if each.erased.seq == position), None)
        return await not_done(self._connection, owner, position, is_settled)
