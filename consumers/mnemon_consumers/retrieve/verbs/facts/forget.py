"""`forget`: remove one fact, by its id or by a query that clearly means the fact."""

from collections.abc import Coroutine
from contextlib import ExitStack, suppress
from typing import Any

from mnemon_consumers.retrieve.decide import select_unexpired_facts
from mnemon_consumers.retrieve.memory.eager_projection import EagerProjection
from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_consumers.retrieve.verbs.facts.query import (
    FactQuery,
    refuse_unknown_fact,
    report_unconfirmed_query,
)
from mnemon_consumers.retrieve.verbs.request_context import await_reply, get_current_time
from mnemon_consumers.retrieve.verbs.user_log import UserLog
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.events.memory import FactForgottenV1
from mnemon_contracts.identity import derive_point_id
from mnemon_contracts.subjects import Address, Owner
from mnemon_contracts.verbs.ask import Reply
from mnemon_contracts.verbs.tools import ForgetReplyV1, ForgetV1, SaveV1
from mnemon_infra.database.engine import Database
from mnemon_infra.database.facts.fact_repository import FactRecord
from mnemon_infra.database.locks import hold_lock
from mnemon_infra.vectors.port import Collection, VectorsUnavailable
from mnemon_infra.vectors.vector_index import VectorIndex


class ForgetVerb:
    """Answers `forget`: removes a fact from all later replies, except those with an earlier `as_of`."""

    def __init__(
        self,
        memory: Memory,
        query: FactQuery,
        log: UserLog,
        projection: EagerProjection,
        database: Database,
        vector_index: VectorIndex | None,
    ) -> None:
        self._memory = memory
        self._query = query
        self._log = log
        self._projection = projection
        self._database = database
        self._vector_index = vector_index

    def forget(self, address: Address, body: bytes) -> Coroutine[Any, Any, Reply]:
        request = ForgetV1.parse(body)
        if request.id is not None and request.query is None:
            return await_reply(self._forget_by_id(address, request.id))
        if request.query is not None and request.id is None:
            return await_reply(self._forget_by_query(address, request.query))
        raise InvalidBody(
            "id",
            "`id` and `query` are both given or both missing; name the fact either by `id` or by `query`",
        )

    async def _forget_by_id(self, address: Address, fact_id: str) -> Reply:
        owner = address.owner
        # The lock prevents dedupe from merging a proposal into the removed fact, which would lose the
        # proposal.
        async with hold_lock(self._database, *owner):
            seen = await self._memory.load_fact_history(owner, fact_id, await self._log.read_end())
            if seen.value is None:
                refuse_unknown_fact(fact_id)
            return await self._remove_fact(address, seen.value.fact)

    async def _forget_by_query(self, address: Address, query: str) -> Reply:
        owner = address.owner
        await self._query.load_lexicon()
        # The stack is outside the lock, because the end of the lock's transaction may fail, too.
        with ExitStack() as stack:
            # The choice happens under the lock, so that no fact is rewritten before its removal.
            async with hold_lock(self._database, *owner):
                queried = await self._query.choose_fact(owner, query, await self._log.read_end())
                if queried.named is not None:
                    stack.enter_context(report_unconfirmed_query("removal", queried.named))
                    return await self._remove_fact(address, queried.named)
        return ForgetReplyV1(
            seen_seq=queried.seq, candidates=await self._query.list_candidates(owner, queried)
        )

    async def _remove_fact(self, address: Address, fact: FactRecord) -> ForgetReplyV1:
        owner = address.owner
        position = await self._log.publish_event(address, FactForgottenV1(fact_id=fact.id))
        await self._projection.project_event(owner, position)
        await self._delete_point(owner, fact.id)
        restore = (
            _build_restoring_request(fact) if select_unexpired_facts([fact], get_current_time()) else None
        )
        return ForgetReplyV1(seen_seq=position, id=fact.id, text=fact.text, restore=restore)

    async def _delete_point(self, owner: Owner, fact_id: str) -> None:
        if self._vector_index is None:
            return
        with suppress(VectorsUnavailable):
            place = derive_point_id(*owner, "fact", fact_id)
            async with self._vector_index.gate.enter():
                await self._vector_index.vectors.delete(Collection.MEMORIES, owner, [place])


def _build_restoring_request(fact: FactRecord) -> SaveV1:
    return SaveV1(
        text=fact.text,
        kind=fact.kind,
        tier=fact.tier,
        importance=fact.importance,
        expires_at=fact.expires_at,
    )
