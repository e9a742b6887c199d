"""`read`, `get` and `update`: the facts that are kept of a user."""

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

from consumers.policy.refusing import refusal
from consumers.retrieve.cache import Seen
from consumers.retrieve.memory import Memory
from consumers.retrieve.projection import Projection
from consumers.retrieve.verbs.asking import available, now, owner_of
from consumers.retrieve.verbs.rewriting import conflict, rewritten
from consumers.retrieve.verbs.shown import fact_as_kept, page_of, unexpired
from consumers.retrieve.verbs.user_log import UserLog
from contracts.ask import Reply
from contracts.memory import Fact, FactUpdatedV1, Lineage
from contracts.subjects import Address
from contracts.tools import (
    FactReplyV1,
    FactsReplyV1,
    GetV1,
    ReadV1,
    UpdateV1,
)
from infra.broker.service import Answer, Refusal
from infra.database.engine import Database
from infra.database.facts import FactHistory, StoredFact
from infra.database.locking import locked
from infra.finding import Finding, points
from infra.finding import fact as findable
from infra.models.embedding import EmbeddingUnavailable
from infra.settings.store import LiveSettings
from infra.vectors.port import Collection, Owner, VectorsUnavailable

EMBEDDING_PATIENCE: Final = 1.0
"""Seconds that a change waits for its vector; later, the index makes up for it."""


class FactVerbs:
    """The facts of a user, read and changed by hand."""

    def __init__(
        self,
        memory: Memory,
        settings: LiveSettings,
        log: UserLog,
        projection: Projection,
        database: Database,
        finding: Finding | None,
    ) -> None:
        self._memory = memory
        self._settings = settings
        self._log = log
        self._projection = projection
        self._database = database
        self._finding = finding

    @property
    def answers(self) -> Mapping[str, Answer]:
        return {"read": self.read, "get": self.get, "update": self.update}

    def read(self, address: Address, body: bytes) -> Reply | Coroutine[Any, Any, Reply]:
        request = ReadV1.read(body or b"{}")
        owner = owner_of(address)

        def reply(seen: Seen[list[StoredFact]]) -> Reply:
            wanted = [fact for fact in seen.value if request.tier in (None, fact.tier)]
            page = page_of(unexpired(wanted, now()), request.limit, request.after)
            return FactsReplyV1.model_construct(
                seen_seq=seen.seq,
                facts=tuple(fact_as_kept(fact) for fact in page.facts),
                total=page.total,
                next=page.next,
            )

        async def read() -> Reply:
            return reply(await self._memory.facts(owner, request.min_seq))

        at_hand = self._memory.facts_at_hand(owner, request.min_seq)
        return reply(at_hand) if at_hand is not None else available(read())

    def get(self, address: Address, body: bytes) -> Coroutine[Any, Any, Reply]:
        request = GetV1.read(body)

        async def read() -> Reply:
            seen = await self._memory.fact(owner_of(address), request.id, request.min_seq)
            return _reply(_found(seen.value, request.id), seen.seq)

        return available(read())

    def update(self, address: Address, body: bytes) -> Coroutine[Any, Any, Reply]:
        request = UpdateV1.read(body)

        async def change() -> Reply:
            # One at a time with whoever else rewrites the user's facts: none is to undo what another did.
            async with locked(self._database, *owner_of(address)):
                seen = await self._newest(address, request.id)
                former = _as_event(_found(seen.value, request.id).fact)
                settings = self._settings.of(address.tenant)
                fact = rewritten(former, request, now(), settings)
                position = seen.seq
                if fact != former:
                    await self._check(address, request.id, fact, former, position)
                    event = FactUpdatedV1(
                        fact_id=request.id, fact=fact, former=former, lineage=Lineage(extractor="tool")
                    )
                    # Before anybody can name its position: from there on it is found by what it says now.
                    event_id = str(uuid4())
                    await self._make_findable(owner_of(address), request.id, event_id, fact.text)
                    position = await self._log.publish(address, event, event_id)
                    await self._projection.apply(owner_of(address), position)
            seen = await self._memory.fact(owner_of(address), request.id, position)
            return _reply(_found(seen.value, request.id), seen.seq)

        return available(change())

    async def _check(self, address: Address, fact_id: str, fact: Fact, former: Fact, position: int) -> None:
        settings = self._settings.of(address.tenant)
        if fact.text != former.text and (refused := refusal(fact.text, settings.policy)):
            rule, reason = refused
            raise Refusal("refused", f"text: {rule}: {reason}")
        seen = await self._memory.facts(owner_of(address), position)
        others = [other for other in unexpired(seen.value, now()) if other.id != fact_id]
        if problem := conflict(fact, former, others, settings.limits):
            raise Refusal("refused", problem)

    async def _make_findable(self, owner: Owner, fact_id: str, event_id: str, text: str) -> None:
        if self._finding is None:
            return
        with suppress(EmbeddingUnavailable, VectorsUnavailable, TimeoutError):
            async with asyncio.timeout(EMBEDDING_PATIENCE):
                new = await points(self._finding, [findable(owner, fact_id, event_id, text)])
            async with self._finding.gate.passed():
                await self._finding.vectors.upsert(Collection.MEMORIES, new)

    async def _newest(self, address: Address, fact_id: str) -> Seen[FactHistory | None]:
        return await self._memory.fact(owner_of(address), fact_id, await self._log.end())


def _as_event(fact: StoredFact) -> Fact:
    return Fact(
        text=fact.text,
        kind=fact.kind,
        tier=fact.tier,
        importance=fact.importance,
        expires_at=fact.expires_at,
    )


def _found(history: FactHistory | None, fact_id: str) -> FactHistory:
    if history is None or not unexpired([history.fact], now()):
        raise _no_fact(fact_id)
    return history


def _no_fact(fact_id: str) -> Refusal:
    return Refusal("not_found", f"there is no fact {fact_id!r}")


def _reply(history: FactHistory, seq: int) -> FactReplyV1:
    return FactReplyV1.model_construct(
        seen_seq=seq, fact=fact_as_kept(history.fact), versions=tuple(history.versions)
    )
