"""`erase`: a user is forgotten for good, with a receipt; or it is looked what is left."""

from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final

from faststream.nats import NatsBroker
from nats.aio.client import Client
from pydantic import JsonValue
from tenacity import AsyncRetrying, RetryCallState, retry_if_result, stop_after_delay, wait_fixed

from consumers.retrieve.verbs.asking import available, owner_of
from consumers.retrieve.verbs.user_log import UserLog
from contracts.ask import Reply
from contracts.base import InvalidBody
from contracts.memory import ALL_BEFORE, UserErasedV1
from contracts.streams import WORK
from contracts.subjects import Address, work_subject
from contracts.tools import EraseReplyV1, EraseV1
from infra.broker.position import applied_position
from infra.broker.purging import found_in, left_of
from infra.broker.service import Answer, Refusal
from infra.database.engine import Database
from infra.database.erasing import (
    Erasure,
    counted_below,
    counted_with,
    erasure,
    held_by_providers,
    known_events,
)
from infra.database.locking import locked
from infra.erased import EVERYWHERE, ErasedUser, whole
from infra.finding import Finding
from infra.vectors.port import Collection, Owner, VectorsUnavailable

PATIENCE: Final = 5.0
"""Seconds for which it is waited until all stores are done; they go on without being waited for."""

PAUSE: Final = 0.05


class EraseVerb:
    """Forgets users."""

    def __init__(self, broker: NatsBroker, log: UserLog, database: Database, finding: Finding | None) -> None:
        self._broker = broker
        self._log = log
        self._database = database
        self._finding = finding

    @property
    def answers(self) -> Mapping[str, Answer]:
        return {"erase": self.erase}

    def erase(self, address: Address, body: bytes) -> Coroutine[Any, Any, Reply]:
        request = EraseV1.read(body or b"{}")
        if request.text is not None and not request.verify:
            raise InvalidBody("text", "goes with `verify` only: a user is erased whole")
        if request.conversation is not None:
            raise Refusal(
                "not_implemented",
                "one conversation cannot be erased yet; `cleared` hides it, and removes its rows' text",
            )
        return available(
            self._verify(owner_of(address), request.text) if request.verify else self._erase(address)
        )

    async def _erase(self, address: Address) -> Reply:
        owner = owner_of(address)
        there = await self._count(owner, None)
        batches = await self._database.read(held_by_providers(*owner, EVERYWHERE))
        # Not while something is decided about the user: it would be in the log after this.
        async with locked(self._database, *owner):
            position = await self._log.publish(address, UserErasedV1(up_to_seq=ALL_BEFORE))
        pending = await self._pending(owner, position)
        return EraseReplyV1(
            seen_seq=position,
            removed={name: count for name, count in there.items() if name not in pending},
            pending=pending,
            provider_batches=tuple(batches),
        )

    async def _verify(self, owner: Owner, words: str | None) -> Reply:
        erased = await self._database.read(erasure(*owner))
        left = await self._count(owner, erased)
        found: dict[str, JsonValue] | None = None
        if words:
            rows = await self._database.read(counted_with(*owner, words))
            found = {**await found_in(self._connection, owner, words), "database": rows}
        return EraseReplyV1(seen_seq=erased.seq if erased else 0, left=left, found=found)

    async def _count(self, owner: Owner, erased: Erasure | None) -> dict[str, JsonValue]:
        """What there is of a user below an erasure, or at all, by store."""
        below = erased.seq if erased else EVERYWHERE
        rows = await self._database.read(counted_below(*owner, below))
        batches = rows.pop("windows", 0)
        counts: dict[str, JsonValue] = {
            **await left_of(self._connection, ErasedUser(owner, *erased[:2]) if erased else whole(owner)),
            "database": sum(rows.values()),
            "model_batches": batches,
        }
        with suppress(VectorsUnavailable):
            if self._finding is not None:
                counts["vectors"] = await self._count_points(self._finding, owner, below)
        return counts

    async def _count_points(self, finding: Finding, owner: Owner, below: int) -> int:
        if below == EVERYWHERE:
            return sum([await finding.vectors.count(each, owner) for each in Collection])
        count = 0
        for collection in Collection:
            async for page in finding.vectors.scroll(collection, owner):
                # Of a message it is said where it is from; of others, whether there is a row of it.
                old = [each.payload for each in page if int(str(each.payload.get("seq", 0))) < below]
                events = [str(payload["event_id"]) for payload in old]
                known = await self._database.read(known_events(*owner, events))
                count += sum(event not in known for event in events)
        return count

    async def _pending(self, owner: Owner, position: int) -> tuple[str, ...]:
        """The stores that are not done within the time that a bot is made to wait."""
        waiting = AsyncRetrying(
            retry=retry_if_result(bool),
            stop=stop_after_delay(PATIENCE),
            wait=wait_fixed(PAUSE),
            retry_error_callback=_last,
        )
        return await waiting(self._not_done, owner, position)

    async def _not_done(self, owner: Owner, position: int) -> tuple[str, ...]:
        erased = await self._database.read(erasure(*owner))
        if erased is None or erased.seq < position:
            return "log", "dead_letters", "work", "database", "model_batches", "vectors"
        not_done = () if erased.is_settled else ("log", "dead_letters", "work", "model_batches")
        return not_done if await self._are_points_gone(owner, position) else (*not_done, "vectors")

    async def _are_points_gone(self, owner: Owner, position: int) -> bool:
        """`index` has come to the erasure, and has looked through the user's points."""
        stream_context = self._connection.jetstream()
        if await applied_position(stream_context, "index") < position:
            return False
        trigger = work_subject("index", *owner)
        return not (await stream_context.stream_info(WORK, subjects_filter=trigger)).state.subjects

    @property
    def _connection(self) -> Client:
        connection: Client = self._broker.config.connection_state.connection
        return connection


def _last(state: RetryCallState) -> tuple[str, ...]:
    assert state.outcome, "it was tried"
    pending: tuple[str, ...] = state.outcome.result()
    return pending
