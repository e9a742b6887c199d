"""Decisions on one user's proposals and comparisons, under the user's lock, in the order of the log.

A delivery is only a trigger: the worker that holds the lock decides on the oldest undecided events, so any
number of workers take the same decisions as one worker. Decisions are stored in the log only.
"""

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime

import structlog
from cachetools import LRUCache
from nats.aio.client import Client

from mnemon_consumers.dedupe.comparison import Likeness
from mnemon_consumers.dedupe.decide import (
    CandidateFact,
    DecisionEvent,
    Proposal,
    evict_excess,
    examine_proposal,
    find_text_to_compare,
    reject_undecidable_proposal,
    settle_candidate,
)
from mnemon_consumers.dedupe.discarded_facts import forget_discarded_facts
from mnemon_consumers.dedupe.merge import Comparison, IgnoredComparison, merge_facts
from mnemon_consumers.dedupe.neighbours import Neighbours
from mnemon_consumers.dedupe.state.log import build_log_event, parse_event
from mnemon_consumers.dedupe.state.user import TURN_SECONDS, UserState
from mnemon_consumers.dedupe.turns import FAILED
from mnemon_consumers.domain.alignment.parser import parse_fact
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.decode import UnknownEvent
from mnemon_contracts.events.fact_comparison import FactComparedV1
from mnemon_contracts.events.memory import FactProposedV1
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import InvalidSubject, Owner, build_thing_filter
from mnemon_infra.broker.dead_letters.listing import remove_message
from mnemon_infra.broker.erasure.purge import read_erasures
from mnemon_infra.broker.erasure.scope import Erasures
from mnemon_infra.broker.streams.applied_position import read_applied_position
from mnemon_infra.broker.streams.log_reader import read_event_pages
from mnemon_infra.broker.streams.log_writer import LogEvent, append_events
from mnemon_infra.database.engine import Database
from mnemon_infra.database.facts.fact_repository import load_fact_events
from mnemon_infra.database.generations.watch import load_generation_identity
from mnemon_infra.database.locks import hold_lock
from mnemon_infra.database.projections.rows import decode_event, get_event_time
from mnemon_infra.models.embedders.wordllama import load_word_similarity
from mnemon_infra.process.request_priority import yield_to_requests
from mnemon_infra.settings.store import LiveSettings
from mnemon_infra.telemetry import tracing
from mnemon_infra.vectors.vector_index import VectorIndex

log = structlog.get_logger("dedupe")

CACHED_USERS = 1000
"""Maximum number of users whose facts a process keeps in memory from one decision to the next."""

PARSED_AT_ONCE = 50
"""Number of facts to parse before other tasks may run: 5 ms of work."""


class ProposalProcessor:
    """Decides on the proposals and comparisons of one user per call, under the user's lock.

    The user's state is cached for later calls.
    """

    def __init__(self, database: Database, vector_index: VectorIndex, settings: LiveSettings) -> None:
        self._database = database
        self._vector_index = vector_index
        self._settings = settings
        self._users: LRUCache[Owner, UserState] = LRUCache(CACHED_USERS)
        self._cached_stores: tuple[int, int] | None = None
        """The stores from which `_users` was read: the number of exchanges of the points, and the generation
        of the rows. None before the first call."""

    async def decide(
        self, connection: Client, owner: Owner, *, limits_at: datetime | None = None
    ) -> int | None:
        """Decide on the proposals and comparisons of one turn of a user, and append the decisions to the log.

        With `limits_at`, the time of a trigger, also check the user's limits and the facts of discarded
        messages, unless proposals or comparisons wait.

        Returns:
            The log position of the first event that waits for another turn; None if no event waits; `FAILED`
            if the server has received the id of a decision before, so that the call has to be repeated.

        Raises:
            DatabaseUnavailable, EmbeddingUnavailable, VectorsUnavailable, nats.errors.Error: a server does
                not answer, or another process holds the lock. Nothing is lost, and the call can be repeated.
            mnemon_infra.settings.bucket.SettingsNotProvisioned: the bucket of settings does not exist.
        """
        async with self._vector_index.gate.enter(), hold_lock(self._database, *owner) as lock:
            stores = self._vector_index.gate.exchanges, await load_generation_identity(lock)
            if self._cached_stores != stores:
                # The cached state belongs to points or rows that are no longer live.
                self._cached_stores = stores
                self._users.clear()
            await yield_to_requests()
            # The cache gets the user back only after success: after a failure, the log is read again.
            known = self._users.pop(owner, None)
            erased = await read_erasures(connection, owner)
            if known is None or known.erased != erased:
                known = await self._load_state(connection, owner, erased)
            await self._apply_new_events(connection, owner, known)
            neighbours = Neighbours(self._vector_index, owner, known)
            events = await self._decide_turn(owner, known, neighbours)
            waits = known.next_position
            if limits_at is not None and waits is None:
                decided = evict_excess(known.facts, self._settings.get_settings(owner[0]).limits, limits_at)
                if self._settings.get_settings(owner[0]).discard_facts:
                    decided += await forget_discarded_facts(connection, owner, known.facts.facts)
                events += _apply_decisions(owner, known, decided, limits_at, neighbours)
            await neighbours.write_points()
            if waits is None:
                known.meanings = {}
            await yield_to_requests()
            appended = await append_events(connection, events)
            if any(each.known for each in appended):
                # The log may lack such an event: the server remembers the ids of erased events, too.
                return FAILED
            self._users[owner] = known
            return waits

    def has_decided(self, owner: Owner, seq: int) -> bool:
        """Return whether this process knows that a user's events up to a log position are decided."""
        known = self._users.get(owner)
        return known is not None and seq <= known.position and known.next_position is None

    async def _load_state(self, connection: Client, owner: Owner, erased: Erasures) -> UserState:
        stream_context = connection.jetstream()
        # Up to the lower of both positions, every event is projected and every proposal decided.
        position = min(
            await read_applied_position(stream_context), await read_applied_position(stream_context, "dedupe")
        )
        known = UserState(position=max(position, erased.below - 1), erased=erased)
        (rows,) = await self._database.run_query(load_fact_events([owner]))
        for row in rows:
            if erased.removes_fact(row.seq, None):
                continue
            if row.seq > known.position:
                break
            if row.body is not None:
                known.apply(parse_event(row.name, row.body), row.event_id, row.at)
            elif row.proposal_id is not None:
                known.facts.decided.add(row.proposal_id)
        for place, each in enumerate(known.facts.facts.values()):
            parse_fact(each.fact.text)
            if place % PARSED_AT_ONCE == PARSED_AT_ONCE - 1:
                await asyncio.sleep(0)
        return known

    async def _apply_new_events(self, connection: Client, owner: Owner, known: UserState) -> None:
        """Apply the events that the log has received since the user's position.

        Proposals and comparisons are queued. Proposals that an erasure covers are removed from the log.
        """
        async for page in read_event_pages(connection, build_thing_filter(*owner, "fact"), known.position):
            await yield_to_requests()
            for delivery in page:
                known.position = delivery.sequence
                try:
                    _, event, event_id = decode_event(delivery)
                except (InvalidSubject, UnknownEvent, InvalidBody):
                    continue  # persist makes a dead letter of the event
                at = datetime.fromtimestamp(get_event_time(event, delivery), UTC)
                if known.erased.removes_fact(delivery.sequence, getattr(event, "lineage", None)):
                    if isinstance(event, FactProposedV1):
                        # The model read the messages during the erasure, and proposed a fact after the
                        # erasure.
                        await remove_message(connection, LOG, delivery.sequence)
                    continue
                if isinstance(event, FactProposedV1):
                    proposal = Proposal(event_id, at, event, tracing.derive_traceparent(delivery))
                    known.waiting.setdefault(event_id, (delivery.sequence, proposal))
                elif isinstance(event, FactComparedV1):
                    comparison = Comparison(event_id, at, event, tracing.derive_traceparent(delivery))
                    known.waiting.setdefault(event_id, (delivery.sequence, comparison))
                else:
                    known.apply(event, event_id, at)

    async def _decide_turn(self, owner: Owner, known: UserState, neighbours: Neighbours) -> list[LogEvent]:
        settings, undecided = self._settings.get_settings(owner[0]), known.list_turn()
        proposals = [each for each in undecided if isinstance(each, Proposal)]
        await neighbours.look_up_texts(_find_texts_to_compare(proposals, known, settings))
        events: list[LogEvent] = []
        begun = time.monotonic()
        for each in undecided:
            if events and time.monotonic() - begun > TURN_SECONDS:
                break
            await yield_to_requests()
            with tracing.trace_block("dedupe decide", each.traceparent):
                if isinstance(each, Comparison):
                    decided = _merge_compared_facts(owner, known, each, settings)
                else:
                    decided = await self._decide_proposal(known, each, settings, neighbours)
                events += _apply_decisions(owner, known, decided, each.at, neighbours)
            known.waiting.pop(each.id)
        return events

    async def _decide_proposal(
        self, known: UserState, proposal: Proposal, settings: SettingsV1, neighbours: Neighbours
    ) -> list[DecisionEvent]:
        try:
            match examine_proposal(proposal, known.facts, settings):
                case CandidateFact() as candidate:
                    nearest = await neighbours.find_nearest(candidate.fact.text, proposal.at)
                    return settle_candidate(candidate, known.facts, nearest, settings, self._build_likeness())
                case decided:
                    return decided
        except ValueError as error:
            # A retry would fail too, and all later proposals of the user would wait for this one.
            log.exception("proposal decision failed, proposal rejected", event_id=proposal.id)
            return [reject_undecidable_proposal(proposal, type(error).__name__)]

    def _build_likeness(self) -> Likeness:
        model = self._vector_index.embedder
        words = load_word_similarity()
        return Likeness(model.model, model.thresholds, words) if model else Likeness(words=words)


def _find_texts_to_compare(
    proposals: Iterable[Proposal], known: UserState, settings: SettingsV1
) -> list[str]:
    texts = []
    for proposal in proposals:
        with suppress(ValueError):  # `_decide_proposal` logs the error
            if (text := find_text_to_compare(proposal, known.facts, settings)) is not None:
                texts.append(text)
    return texts


def _apply_decisions(
    owner: Owner, known: UserState, decided: Iterable[DecisionEvent], at: datetime, neighbours: Neighbours
) -> list[LogEvent]:
    """Apply decisions to the user's state, and return their events for the log."""
    events = []
    for each in decided:
        neighbours.record_decision(each)
        known.apply(each[1], str(each[1].id), at)
        events.append(build_log_event(owner, each))
    return events


def _merge_compared_facts(
    owner: Owner, known: UserState, comparison: Comparison, settings: SettingsV1
) -> list[DecisionEvent]:
    known.facts.apply(comparison.event, comparison.id, comparison.at)
    match merge_facts(owner, comparison, known.facts, known.wording, settings.dedupe, load_word_similarity()):
        case IgnoredComparison(reason):
            log.info("comparison ignored", reason=reason, event_id=comparison.id, tenant=owner[0])
            return []
        case decided:
            return decided
