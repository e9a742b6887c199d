"""Deciding on one user's proposals and comparisons, under the user's lock, in the order of the log.

A delivery is a trigger only: whoever holds the lock decides on all that is undecided, so that any number of
workers come to what one alone would come to. What is decided stands in the log and nowhere else.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

import structlog
from cachetools import LRUCache
from nats.aio.client import Client

from consumers.alignment.parser import parse
from consumers.dedupe.comparison import Likeness, NearestFact
from consumers.dedupe.decide import (
    Candidate,
    Decided,
    Proposal,
    examine,
    settle,
    text_to_compare,
    undecidable,
)
from consumers.dedupe.known import TURN_SECONDS, Known, Undecided
from consumers.dedupe.log_events import event_of, log_event
from consumers.dedupe.merging import Comparison, IgnoredComparison, merge_facts
from consumers.dedupe.trimming import trim
from contracts.base import InvalidBody
from contracts.decode import UnknownEvent
from contracts.identity import point_id
from contracts.memory import (
    FactEvictedV1,
    FactForgottenV1,
    FactProposedV1,
    FactSavedV1,
    FactUpdatedV1,
)
from contracts.merging import FactComparedV1, FactMergedV1
from contracts.settings import SettingsV1
from contracts.streams import LOG
from contracts.subjects import InvalidSubject, thing_filter
from infra.broker.appending import LogEvent, append
from infra.broker.letters import remove
from infra.broker.log_reader import pages
from infra.broker.position import applied_position
from infra.broker.purging import erasures_of
from infra.database.engine import Database
from infra.database.facts import fact_events
from infra.database.locking import locked
from infra.database.rows import happened_at, read
from infra.erased import Erasures
from infra.finding import Finding, fact, points
from infra.models.wordllama import word_similarity
from infra.precedence import give_way
from infra.settings.store import LiveSettings
from infra.telemetry import tracing
from infra.vectors.port import Collection, Dense, Owner

log = structlog.get_logger("dedupe")

USERS = 1000
"""Users whose facts a process remembers from one decision to the next."""

NEAREST = 10
"""Hits that are compared; some of them belong to facts that have changed or ended."""

PARSED = 50
"""Facts that are taken apart at a time: 5 ms."""


class Deciding:
    """Decides for one user at a time, and remembers the user for the next time."""

    def __init__(self, database: Database, finding: Finding, settings: LiveSettings) -> None:
        self._database = database
        self._finding = finding
        self._settings = settings
        self._users: LRUCache[Owner, Known] = LRUCache(USERS)
        self._exchanges = finding.gate.exchanges

    async def decide(
        self, connection: Client, owner: Owner, *, limits_at: datetime | None = None
    ) -> int | None:
        """Decide on the next of a user's proposals and comparisons in the log, and publish what is decided.

        Args:
            connection: where the log is.
            owner: the user.
            limits_at: then, too, were the user's limits to be looked at. They are not while proposals wait.

        Returns:
            The log position of the first event that waits for another turn; None when none does.

        Raises:
            DatabaseUnavailable, EmbeddingUnavailable, VectorsUnavailable, nats.errors.Error: nothing is lost,
                and it can be asked for again.
        """
        async with self._finding.gate.passed(), locked(self._database, *owner):
            if self._exchanges != self._finding.gate.exchanges:
                # Of the points that are there now nothing is known.
                self._exchanges = self._finding.gate.exchanges
                self._users.clear()
            await give_way()
            # Forgotten until all is well: after a failure the log is read anew.
            known = self._users.pop(owner, None)
            erased = await erasures_of(connection, owner)
            if known is None or known.erased != erased:
                known = await self._load(connection, owner, erased)
            await self._catch_up(connection, owner, known)
            events = await self._decide(owner, known, known.turn())
            waits = known.next
            if waits is None:
                known.meanings = {}
            if limits_at is not None and waits is None:
                events += await self._trim(owner, known, limits_at)
            await give_way()
            appended = await append(connection, events)
            if not any(each.known for each in appended):
                self._users[owner] = known
            return waits

    def has_decided(self, owner: Owner, seq: int) -> bool:
        """Whether this process knows that all of a user up to a log position is decided, and in the log."""
        known = self._users.get(owner)
        return known is not None and seq <= known.position and known.next is None

    async def _load(self, connection: Client, owner: Owner, erased: Erasures) -> Known:
        stream_context = connection.jetstream()
        # Below either position every event is projected, and every proposal decided.
        position = min(
            await applied_position(stream_context), await applied_position(stream_context, "dedupe")
        )
        known = Known(position=max(position, erased.below - 1), erased=erased)
        (rows,) = await self._database.read(fact_events([owner]))
        for row in rows:
            if erased.has_learned(row.seq, None):
                continue
            if row.seq > known.position:
                break
            if row.body is not None:
                known.apply(event_of(row.name, row.body), row.event_id, row.at)
            elif row.proposal_id is not None:
                known.facts.decided.add(row.proposal_id)
        for place, each in enumerate(known.facts.facts.values()):
            parse(each.fact.text)
            if place % PARSED == PARSED - 1:
                await asyncio.sleep(0)
        return known

    async def _catch_up(self, connection: Client, owner: Owner, known: Known) -> None:
        """Take into account what the log has since."""
        async for page in pages(connection, thing_filter(*owner, "fact"), known.position):
            await give_way()
            for delivery in page:
                known.position = delivery.sequence
                try:
                    _, event, event_id = read(delivery)
                except (InvalidSubject, UnknownEvent, InvalidBody):
                    continue  # persist makes a dead letter of it
                at = datetime.fromtimestamp(happened_at(event, delivery), UTC)
                if known.erased.has_learned(delivery.sequence, getattr(event, "lineage", None)):
                    if isinstance(event, FactProposedV1):
                        # A model was reading it while it was erased.
                        await remove(connection, LOG, delivery.sequence)
                    continue
                if isinstance(event, FactProposedV1):
                    proposal = Proposal(event_id, at, event, tracing.of_event(delivery))
                    known.waiting.setdefault(event_id, (delivery.sequence, proposal))
                elif isinstance(event, FactComparedV1):
                    comparison = Comparison(event_id, at, event, tracing.of_event(delivery))
                    known.waiting.setdefault(event_id, (delivery.sequence, comparison))
                else:
                    known.apply(event, event_id, at)

    async def _decide(self, owner: Owner, known: Known, undecided: Sequence[Undecided]) -> list[LogEvent]:
        settings = self._settings.of(owner[0])
        proposals = [each for each in undecided if isinstance(each, Proposal)]
        meanings = known.meanings = await self._meanings(known, proposals, settings)
        events: list[LogEvent] = []
        begun = time.monotonic()
        for each in undecided:
            if events and time.monotonic() - begun > TURN_SECONDS:
                break
            await give_way()
            with tracing.span("dedupe decide", each.traceparent):
                if isinstance(each, Comparison):
                    decided = _merged(owner, known, each, settings)
                else:
                    decided = await self._decided(owner, known, each, settings, meanings)
                await self._write(owner, known, decided, each.at, meanings)
                events += [log_event(owner, one) for one in decided]
            known.waiting.pop(each.id)
        return events

    async def _decided(
        self,
        owner: Owner,
        known: Known,
        proposal: Proposal,
        settings: SettingsV1,
        meanings: dict[str, Dense],
    ) -> list[Decided]:
        try:
            return await self._decide_one(owner, known, proposal, settings, meanings)
        except ValueError as error:
            # A retry would fail too, and all later proposals of the user would wait for it.
            log.exception("proposal decision failed", event_id=proposal.id)
            return [undecidable(proposal, type(error).__name__)]

    async def _decide_one(
        self,
        owner: Owner,
        known: Known,
        proposal: Proposal,
        settings: SettingsV1,
        meanings: dict[str, Dense],
    ) -> list[Decided]:
        match examine(proposal, known.facts, settings):
            case Candidate() as candidate:
                nearest = await self._nearest(owner, known, candidate, meanings)
                return settle(candidate, known.facts, nearest, settings, self._likeness())
            case decided:
                return decided

    def _likeness(self) -> Likeness:
        model = self._finding.embedder
        words = word_similarity()
        return Likeness(model.model, model.thresholds, words) if model else Likeness(words=words)

    async def _trim(self, owner: Owner, known: Known, at: datetime) -> list[LogEvent]:
        decided = trim(known.facts, self._settings.of(owner[0]).limits, at)
        await self._write(owner, known, decided, at, {})
        return [log_event(owner, each) for each in decided]

    async def _meanings(
        self, known: Known, proposals: Iterable[Proposal], settings: SettingsV1
    ) -> dict[str, Dense]:
        """The vectors of all that may have to be compared: a provider is asked once, and for each once."""
        if self._finding.embedder is None:
            return {}
        texts = []
        for proposal in proposals:
            with suppress(ValueError):  # said when it is decided
                if (text := text_to_compare(proposal, known.facts, settings)) is not None:
                    texts.append(text)
        meanings = {text: known.meanings[text] for text in texts if text in known.meanings}
        new = list(dict.fromkeys(text for text in texts if text not in meanings))
        if new:
            meanings |= zip(new, await self._finding.embedder.embed(new), strict=True)
        return meanings

    async def _nearest(
        self, owner: Owner, known: Known, candidate: Candidate, meanings: dict[str, Dense]
    ) -> list[NearestFact]:
        """The user's facts that are nearest in meaning. A point that stands for no fact is passed over."""
        text, at = candidate.fact.text, candidate.proposal.at
        if self._finding.embedder is None or not known.facts.facts:
            return []
        if not known.findable:
            await self._make_findable(owner, known)
        if text not in meanings:
            # Words that met a fact at first sight may meet none after what was decided since.
            (meanings[text],) = await self._finding.embedder.embed([text])
        (hits,) = await self._finding.vectors.search(Collection.MEMORIES, owner, [meanings[text]], NEAREST)
        return [
            NearestFact(fact_id, hit.score)
            for hit in hits
            if known.versions.get(fact_id := str(hit.payload["fact_id"])) == hit.payload["event_id"]
            and known.facts.live_fact(fact_id, at)
        ]

    async def _make_findable(self, owner: Owner, known: Known) -> None:
        """Whoever decided these facts may have been killed before their points were written."""
        found: dict[str, object] = {}
        async for page in self._finding.vectors.scroll(Collection.MEMORIES, owner):
            found |= {str(each.payload["fact_id"]): each.payload["event_id"] for each in page}
        absent = [
            fact(owner, each.id, known.versions[each.id], each.fact.text)
            for each in known.facts.facts.values()
            if found.get(each.id) != known.versions[each.id]
        ]
        await self._finding.vectors.upsert(Collection.MEMORIES, await points(self._finding, absent))
        known.findable = True

    async def _write(
        self,
        owner: Owner,
        known: Known,
        decided: Iterable[Decided],
        at: datetime,
        meanings: Mapping[str, Dense],
    ) -> None:
        """Take what is decided into account, and bring the points to it."""
        findable = known.findable
        for _, event in decided:
            known.apply(event, str(event.id), at)
            match event:
                case FactSavedV1() | FactUpdatedV1() | FactMergedV1():
                    written = [fact(owner, event.fact_id, str(event.id), event.fact.text)]
                    new = await points(self._finding, written, meanings)
                    await self._finding.vectors.upsert(Collection.MEMORIES, new)
                case FactEvictedV1() | FactForgottenV1():
                    place = point_id(*owner, "fact", event.fact_id)
                    await self._finding.vectors.delete(Collection.MEMORIES, owner, [place])
        known.findable = findable


def _merged(owner: Owner, known: Known, comparison: Comparison, settings: SettingsV1) -> list[Decided]:
    known.facts.apply(comparison.event, comparison.id, comparison.at)
    match merge_facts(owner, comparison, known.facts, known.wording, settings.dedupe, word_similarity()):
        case IgnoredComparison(reason):
            log.info("comparison ignored", reason=reason, event_id=comparison.id, tenant=owner[0])
            return []
        case decided:
            return decided
