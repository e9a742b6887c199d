"""`forget`: remove one fact, by its id or by a query that clearly means it."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from consumers.alignment.lexicon import lexicon
from consumers.alignment.query import Choice, choose_fact
from consumers.retrieve.memory import Memory
from consumers.retrieve.projection import Projection
from consumers.retrieve.search.service import Search
from consumers.retrieve.verbs.asking import available, now, owner_of
from consumers.retrieve.verbs.shown import unexpired
from consumers.retrieve.verbs.user_log import UserLog
from contracts.ask import Reply
from contracts.base import InvalidBody
from contracts.identity import point_id
from contracts.memory import FactForgottenV1
from contracts.subjects import Address
from contracts.tools import ForgetCandidate, ForgetReplyV1, ForgetV1, SaveV1
from infra.broker.service import Answer, Refusal
from infra.database.engine import Database
from infra.database.facts import StoredFact
from infra.database.locking import locked
from infra.finding import Finding
from infra.settings.store import LiveSettings
from infra.vectors.port import Collection, Owner, VectorsUnavailable

CANDIDATES: Final = 5
"""Facts that are offered at most where a query names none."""


class _QueriedFacts(NamedTuple):
    """The facts that a query may mean, and the log position that they reflect."""

    choice: Choice
    facts: Mapping[str, StoredFact]
    seq: int


class ForgetVerb:
    """Removes a fact from every reply that follows."""

    def __init__(
        self,
        memory: Memory,
        search: Search,
        settings: LiveSettings,
        log: UserLog,
        projection: Projection,
        database: Database,
        finding: Finding | None,
    ) -> None:
        self._memory = memory
        self._search = search
        self._settings = settings
        self._log = log
        self._projection = projection
        self._database = database
        self._finding = finding

    @property
    def answers(self) -> Mapping[str, Answer]:
        return {"forget": self.forget}

    def forget(self, address: Address, body: bytes) -> Coroutine[Any, Any, Reply]:
        request = ForgetV1.read(body)
        if request.id is not None and request.query is None:
            return available(self._forget_by_id(address, request.id))
        if request.query is not None and request.id is None:
            return available(self._forget_by_query(address, request.query))
        raise InvalidBody("id", "name the fact by `id`, or by `query`: one of them")

    async def _forget_by_id(self, address: Address, fact_id: str) -> Reply:
        owner = owner_of(address)
        # Not while a proposal that meets it is decided: that would be kept in what is gone, and be lost.
        async with locked(self._database, *owner):
            seen = await self._memory.fact(owner, fact_id, await self._log.end())
            if seen.value is None:
                raise Refusal("not_found", f"there is no fact {fact_id!r}")
            return await self._remove(address, seen.value.fact)

    async def _forget_by_query(self, address: Address, query: str) -> Reply:
        owner = owner_of(address)
        # In a thread: loaded at the first use, in a second.
        await asyncio.to_thread(lexicon)
        # Chosen under the lock, so that no fact is rewritten between the choice and its removal.
        async with locked(self._database, *owner):
            seen = await self._memory.facts(owner, await self._log.end())
            facts = {fact.id: fact for fact in unexpired(seen.value, now())}
            choice = choose_fact(query, [(fact.id, fact.text) for fact in facts.values()])
            if choice.named is not None:
                return await self._remove(address, facts[choice.named])
        return await self._offer(address, query, _QueriedFacts(choice, facts, seen.seq))

    async def _remove(self, address: Address, fact: StoredFact) -> ForgetReplyV1:
        owner = owner_of(address)
        position = await self._log.publish(address, FactForgottenV1(fact_id=fact.id))
        await self._projection.apply(owner, position)
        await self._make_unfindable(owner, fact.id)
        restore = _restoring(fact) if unexpired([fact], now()) else None
        return ForgetReplyV1(seen_seq=position, id=fact.id, text=fact.text, restore=restore)

    async def _make_unfindable(self, owner: Owner, fact_id: str) -> None:
        if self._finding is None:
            return
        with suppress(VectorsUnavailable):
            place = point_id(*owner, "fact", fact_id)
            async with self._finding.gate.passed():
                await self._finding.vectors.delete(Collection.MEMORIES, owner, [place])

    async def _offer(self, address: Address, query: str, offer: _QueriedFacts) -> ForgetReplyV1:
        settings = self._settings.of(address.tenant).retrieval
        found = await self._search.find(
            owner_of(address), query, ("memories",), CANDIDATES, settings.threshold, settings, now()
        )
        if not offer.choice.ranked and "memories" in found.degraded:
            raise Refusal("unavailable", "facts cannot be searched now; name one by `id`", retryable=True)
        candidates = _candidates(offer, {hit.id: hit.score for hit in found.hits})
        if not candidates:
            raise Refusal(
                "not_found", "no fact fits the query; `search` finds facts, `forget` with an `id` removes one"
            )
        return ForgetReplyV1(seen_seq=offer.seq, candidates=tuple(candidates))


def _candidates(offer: _QueriedFacts, scores: Mapping[str, float]) -> Sequence[ForgetCandidate]:
    """The facts to choose from, best first, by their words and by how a search scores them."""
    fits = {each.id: each.fit for each in offer.choice.ranked}
    known = [each for each in dict.fromkeys((*fits, *scores)) if each in offer.facts]
    ranked = sorted(known, key=lambda each: (-_score(each, fits, scores), each))
    return [
        ForgetCandidate(id=each, text=offer.facts[each].text, score=round(_score(each, fits, scores), 3))
        for each in ranked[:CANDIDATES]
    ]


def _score(fact_id: str, fits: Mapping[str, float], scores: Mapping[str, float]) -> float:
    return (fits.get(fact_id, 0.0) + scores.get(fact_id, 0.0)) / 2


def _restoring(fact: StoredFact) -> SaveV1:
    return SaveV1(
        text=fact.text,
        kind=fact.kind,
        tier=fact.tier,
        importance=fact.importance,
        expires_at=fact.expires_at,
    )
