"""`erase`: remove a user or a conversation for good, with a receipt, or verify what is left."""

from collections.abc import Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from pydantic import JsonValue

from mnemon_consumers.retrieve.verbs.erasure.conversation import ConversationErasing
from mnemon_consumers.retrieve.verbs.erasure.receipt import (
    count_old_points,
    counted_stores,
    found_with,
    not_done,
    pending,
    removed,
)
from mnemon_consumers.retrieve.verbs.request_context import available, owner_of
from mnemon_consumers.retrieve.verbs.user_log import UserLog
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.events.erasure import ALL_BEFORE, UserErasedV1
from mnemon_contracts.subjects import Address, Owner
from mnemon_contracts.verbs.ask import Reply
from mnemon_contracts.verbs.tools import EraseReplyV1, EraseV1
from mnemon_infra.broker.broker import Broker
from mnemon_infra.broker.service import VerbHandler
from mnemon_infra.broker.streams.erasure_scope import EVERYWHERE, ErasedUser, whole
from mnemon_infra.database.engine import Database
from mnemon_infra.database.erasure.inactive_generations import counted_elsewhere
from mnemon_infra.database.erasure.users import (
    Erasure,
    counted_below,
    erasure,
    held_by_providers,
)
from mnemon_infra.database.locks import locked
from mnemon_infra.vectors.port import Collection, VectorsUnavailable
from mnemon_infra.vectors.vector_index import VectorIndex


class EraseVerb:
    """Answers `erase` for users, and passes conversations on to `ConversationErasing`."""

    def __init__(self, broker: Broker, log: UserLog, database: Database, finding: VectorIndex | None) -> None:
        self._broker = broker
        self._log = log
        self._database = database
        self._finding = finding

    @property
    def answers(self) -> Mapping[str, VerbHandler]:
        return {"erase": self.erase}

    def erase(self, address: Address, body: bytes) -> Coroutine[Any, Any, Reply]:
        request = EraseV1.read(body or b"{}")
        if request.text is not None and not request.verify:
            raise InvalidBody("text", "goes with `verify` only")
        if request.conversation is not None:
            of_one = ConversationErasing(self._broker.connection, self._log, self._database, self._finding)
            if request.verify:
                return available(of_one.verify(owner_of(address), request.conversation, request.text))
            return available(of_one.erase(address, request.conversation))
        return available(
            self._verify(owner_of(address), request.text) if request.verify else self._erase(address)
        )

    async def _erase(self, address: Address) -> Reply:
        owner = owner_of(address)
        there = await self._count(owner, None)
        batches = await self._database.read(held_by_providers(*owner, EVERYWHERE))
        elsewhere = await self._database.read(counted_elsewhere(whole(owner)))
        # The lock keeps out decisions about the user, which would enter the log after the erasure.
        async with locked(self._database, *owner):
            position = await self._log.publish(address, UserErasedV1(up_to_seq=ALL_BEFORE))
        left = await pending(partial(self._not_done, owner, position))
        return EraseReplyV1(
            seen_seq=position,
            removed=removed(there, left),
            pending=left,
            provider_batches=tuple(batches),
            generations=tuple(elsewhere),
        )

    async def _verify(self, owner: Owner, words: str | None) -> Reply:
        erased = await self._database.read(erasure(*owner))
        left = await self._count(owner, erased)
        found = await found_with(self._broker.connection, self._database, owner, words) if words else None
        return EraseReplyV1(seen_seq=erased.seq if erased else 0, left=left, found=found)

    async def _count(self, owner: Owner, erased: Erasure | None) -> dict[str, JsonValue]:
        """Count by store what a user has below an erasure, or in total without one."""
        taking = ErasedUser(owner, *erased[:2]) if erased else whole(owner)
        below = taking.below
        rows = await self._database.read(counted_below(*owner, below))
        counts = await counted_stores(self._broker.connection, self._database, taking, rows)
        with suppress(VectorsUnavailable):
            if self._finding is not None:
                counts["vectors"] = (
                    await count_old_points(self._database, self._finding, owner, below)
                    if erased
                    else sum([await self._finding.vectors.count(each, owner) for each in Collection])
                )
        return counts

    async def _not_done(self, owner: Owner, position: int) -> tuple[str, ...]:
        erased = await self._database.read(erasure(*owner))
        is_settled = erased.is_settled if erased and erased.seq >= position else None
        return await not_done(self._broker.connection, owner, position, is_settled)
