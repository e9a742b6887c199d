"""`read`, `update` and `forget`: return, change and remove the facts of a user."""

from collections.abc import Coroutine
from contextlib import ExitStack
from typing import Any

from mnemon_consumers.domain.policy.refusal import find_refusal
from mnemon_consumers.retrieve.decide import select_unexpired_facts
from mnemon_consumers.retrieve.memory.cache import PositionedValue
from mnemon_consumers.retrieve.memory.eager_projection import EagerProjection
from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_consumers.retrieve.verbs.facts.points import FactPoints
from mnemon_consumers.retrieve.verbs.facts.query import (
    FactQuery,
    refuse_unknown_fact,
    report_unconfirmed_query,
)
from mnemon_consumers.retrieve.verbs.facts.rewrite import find_conflict, rewrite_fact
from mnemon_consumers.retrieve.verbs.facts.view import build_fact_reply, build_page
from mnemon_consumers.retrieve.verbs.request_context import await_reply, get_current_time, identify_event
from mnemon_consumers.retrieve.verbs.user_log import UserLog
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.events.memory import Fact, FactForgottenV1, FactUpdatedV1, Lineage
from mnemon_contracts.subjects import Address
from mnemon_contracts.verbs.ask import Reply
from mnemon_contracts.verbs.tools import (
    FactChanges,
    FactReplyV1,
    FactsReplyV1,
    ForgetReplyV1,
    ForgetV1,
    ReadV1,
    SaveV1,
    UpdateReplyV2,
    UpdateV1,
    UpdateV2,
)
from mnemon_infra.broker.service import Refusal, get_request_id
from mnemon_infra.database.engine import Database
from mnemon_infra.database.facts.fact_repository import FactHistory, FactRecord
from mnemon_infra.database.locks import hold_lock
from mnemon_infra.settings.store import LiveSettings
from mnemon_infra.vectors.vector_index import VectorIndex


class FactVerbs:
    """Answers `read` (a page of facts), `update` (a change of one fact) and `forget`.

    `forget` removes a fact from all later replies, except those with an earlier `as_of`. `update` and
    `forget` take the id of the fact, or a query that clearly means the fact.
    """

    def __init__(
        self,
        memory: Memory,
        query: FactQuery,
        settings: LiveSettings,
        log: UserLog,
        projection: EagerProjection,
        database: Database,
        vector_index: VectorIndex | None,
    ) -> None:
        self._memory = memory
        self._query = query
        self._settings = settings
        self._log = log
        self._projection = projection
        self._database = database
        self._points = FactPoints(vector_index)

    def read(self, address: Address, body: bytes) -> Reply | Coroutine[Any, Any, Reply]:
        request = ReadV1.parse(body or b"{}")
        owner = address.owner

        def build_reply(seen: PositionedValue[list[FactRecord]]) -> Reply:
            wanted = [fact for fact in seen.value if request.tier in (None, fact.tier)]
            page = build_page(
                select_unexpired_facts(wanted, get_current_time()), request.limit, request.after
            )
            return FactsReplyV1.model_construct(
                seen_seq=seen.seq,
                facts=tuple(build_fact_reply(fact) for fact in page.facts),
                total=page.total,
                next=page.next,
            )

        async def read_facts() -> Reply:
            return build_reply(await self._memory.load_facts(owner, request.min_seq))

        cached = self._memory.find_cached_facts(owner, request.min_seq)
        return build_reply(cached) if cached is not None else await_reply(read_facts())

    def update(self, address: Address, body: bytes) -> Coroutine[Any, Any, Reply]:
        if address.version == 1:
            by_id = UpdateV1.parse(body)
            return await_reply(self._update_by_id(address, by_id.id, by_id, FactReplyV1))
        request = UpdateV2.parse(body)
        if request.id is not None and request.query is None:
            return await_reply(self._update_by_id(address, request.id, request, UpdateReplyV2))
        if request.query is not None and request.id is None:
            return await_reply(self._update_by_query(address, request.query, request))
        raise _build_naming_error()

    def forget(self, address: Address, body: bytes) -> Coroutine[Any, Any, Reply]:
        request = ForgetV1.parse(body)
        if request.id is not None and request.query is None:
            return await_reply(self._forget_by_id(address, request.id))
        if request.query is not None and request.id is None:
            return await_reply(self._forget_by_query(address, request.query))
        raise _build_naming_error()

    async def _update_by_id(
        self, address: Address, fact_id: str, changes: FactChanges, expected: type[FactReplyV1]
    ) -> Reply:
        owner = address.owner
        # The lock serialises all rewrites of the user's facts, so that no rewrite undoes another.
        async with hold_lock(self._database, *owner):
            seen = await self._memory.load_fact_history(owner, fact_id, await self._log.read_end())
            history, event_id = _require_fact(seen.value, fact_id), identify_event(address, fact_id)
            # A request repeated with its id must not undo changes that were made after it.
            if event_id not in history.event_ids:
                seen = await self._rewrite_fact(address, history.fact, changes, seen.seq, event_id)
        return _build_reply(seen, fact_id, expected)

    async def _update_by_query(self, address: Address, query: str, changes: FactChanges) -> Reply:
        owner = address.owner
        await self._query.load_lexicon()
        # The stack is outside the lock, because the end of the lock's transaction may fail, too.
        with ExitStack() as stack:
            # The choice happens under the lock, so that no fact is rewritten before its change.
            async with hold_lock(self._database, *owner):
                queried = await self._query.choose_fact(owner, query, await self._log.read_end())
                if queried.named is not None:
                    stack.enter_context(report_unconfirmed_query("change", queried.named))
                    seen = await self._rewrite_fact(
                        address,
                        queried.named,
                        changes,
                        queried.seq,
                        identify_event(address, queried.named.id),
                    )
            if queried.named is not None:
                return _build_reply(seen, queried.named.id, UpdateReplyV2)
        return UpdateReplyV2(
            seen_seq=queried.seq, candidates=await self._query.list_candidates(owner, queried)
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

    async def _rewrite_fact(
        self, address: Address, stored: FactRecord, changes: FactChanges, seq: int, event_id: str
    ) -> PositionedValue[FactHistory | None]:
        """Change a fact by an event with the id `event_id`; return the changed fact.

        `seq` is the log position that `stored` reflects. Nothing is written if the fact already is as
        requested and the request has no id; a request with an id writes its event, so that a repetition is
        recognised.
        """
        owner, former = address.owner, _build_fact(stored)
        fact = rewrite_fact(former, changes, get_current_time(), self._settings.get_settings(address.tenant))
        if fact == former and get_request_id() is None:
            return await self._memory.load_fact_history(owner, stored.id, seq)
        await self._check_change(address, stored.id, fact, former, seq)
        event = FactUpdatedV1(fact_id=stored.id, fact=fact, former=former, lineage=Lineage(extractor="tool"))
        new = await self._points.build_points(owner, stored.id, event_id, fact.text)
        position = await self._log.publish_event(address, event, event_id)
        await self._projection.project_event(owner, position)
        seen = await self._memory.load_fact_history(owner, stored.id, position)
        # A repetition whose event the log has already changes nothing.
        if seen.value is not None and seen.value.fact.event_id == event_id:
            await self._points.write_points(new)
        return seen

    async def _check_change(
        self, address: Address, fact_id: str, fact: Fact, former: Fact, position: int
    ) -> None:
        settings = self._settings.get_settings(address.tenant)
        if fact.text != former.text and (refused := find_refusal(fact.text, settings.policy)):
            rule, reason = refused
            problem = f"text: {rule}: {reason.removesuffix('.')}; give another text"
            raise Refusal("refused", problem, field="text")
        seen = await self._memory.load_facts(address.owner, position)
        others = [
            other for other in select_unexpired_facts(seen.value, get_current_time()) if other.id != fact_id
        ]
        if conflict := find_conflict(fact, former, others, settings.limits):
            raise Refusal("refused", f"{conflict.field}: {conflict.problem}", field=conflict.field)

    async def _remove_fact(self, address: Address, fact: FactRecord) -> ForgetReplyV1:
        owner = address.owner
        position = await self._log.publish_event(address, FactForgottenV1(fact_id=fact.id))
        await self._projection.project_event(owner, position)
        await self._points.delete_point(owner, fact.id)
        restore = (
            _build_restoring_request(fact) if select_unexpired_facts([fact], get_current_time()) else None
        )
        return ForgetReplyV1(seen_seq=position, id=fact.id, text=fact.text, restore=restore)


def _build_naming_error() -> InvalidBody:
    return InvalidBody(
        "id",
        "`id` and `query` are both given or both missing; name the fact either by `id` or by `query`",
    )


def _build_fact(fact: FactRecord) -> Fact:
    return Fact(
        text=fact.text,
        kind=fact.kind,
        tier=fact.tier,
        importance=fact.importance,
        expires_at=fact.expires_at,
        names=fact.names,
    )


def _require_fact(history: FactHistory | None, fact_id: str) -> FactHistory:
    if history is None or not select_unexpired_facts([history.fact], get_current_time()):
        refuse_unknown_fact(fact_id)
    return history


def _build_reply(
    seen: PositionedValue[FactHistory | None], fact_id: str, expected: type[FactReplyV1]
) -> FactReplyV1:
    history = _require_fact(seen.value, fact_id)
    return expected.model_construct(
        seen_seq=seen.seq, fact=build_fact_reply(history.fact), versions=tuple(history.versions)
    )


def _build_restoring_request(fact: FactRecord) -> SaveV1:
    return SaveV1(
        text=fact.text,
        kind=fact.kind,
        tier=fact.tier,
        importance=fact.importance,
        expires_at=fact.expires_at,
    )
