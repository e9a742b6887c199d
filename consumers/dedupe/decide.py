"""What becomes of a proposed fact. No I/O, no clock, no randomness.

`examine` decides what words decide. What it leaves open, a `Candidate`, is compared with the nearest fact by
`settle`. "Now" is when the proposal came into the log: a decision is the same whenever it is made.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Final

from consumers.dedupe.classify import classify
from consumers.dedupe.rewriting import restated, rewritten
from consumers.dedupe.room import Eviction, make_room
from consumers.dedupe.state import KnownFact, UserFacts
from consumers.policy.refusing import refusal
from consumers.policy.wording import Overlap, overlap, words
from contracts.base import ID_LIMIT, Event
from contracts.memory import (
    Decision,
    Fact,
    FactConfirmedV1,
    FactEvictedV1,
    FactForgottenV1,
    FactProposedV1,
    FactRejectedV1,
    FactSavedV1,
    FactUpdatedV1,
    Reason,
)
from contracts.settings import Dedupe, SettingsV1
from infra.models.embedding import Thresholds

Decided = tuple[str, Event]
"""The name of an event, such as `fact.saved`, and the event. Its `id` follows from the proposal's."""

_BEST_FIRST: Final = (Overlap.SAME, Overlap.LESS, Overlap.DENIED, Overlap.MORE)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed fact, with the id of its event, its time in the log, and the trace that it is part of."""

    id: str
    at: datetime
    event: FactProposedV1
    traceparent: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposal that no rule refuses and whose words are new, as the fact that it would be."""

    proposal: Proposal
    fact: Fact


@dataclass(frozen=True, slots=True)
class Nearest:
    """The user's fact that is nearest in meaning, and its cosine similarity."""

    fact_id: str
    similarity: float


def decide(
    proposal: Proposal,
    known: UserFacts,
    nearest: Nearest | None,
    settings: SettingsV1,
    thresholds: Thresholds | None = None,
    model: str | None = None,
) -> list[Decided]:
    """`examine`, and `settle` if need be: for callers who have the nearest fact at hand."""
    match examine(proposal, known, settings):
        case Candidate() as candidate:
            return settle(candidate, known, nearest, settings, thresholds, model)
        case decided:
            return decided


def examine(proposal: Proposal, known: UserFacts, settings: SettingsV1) -> Candidate | list[Decided]:
    """Refuse a proposal, or find the fact whose words it repeats or whose place it takes.

    Returns:
        The events, in the order in which they are to be published; or what is left to compare by meaning.
    """
    event, at = proposal.event, proposal.at
    if refused := refusal(event.text, settings.policy):
        return [_rejected(proposal, *refused)]
    if event.expires_at is not None and event.expires_at <= at:
        return [_rejected(proposal, "expired", "Its date had passed when it was proposed.")]
    fact = classify(event, at, settings)
    candidate = Candidate(proposal, fact)
    met = _met_in_words(fact.text, known.live(at))
    replaced = known.live_fact(event.supersedes, at) if event.supersedes else None
    if replaced is not None:
        return _supersede(candidate, replaced, met, known, settings)
    if met is None:
        return candidate
    other, how = met
    by = Decision(proposal_id=proposal.id, nearest=other.id)
    if how in (Overlap.SAME, Overlap.LESS):
        return _write(candidate, other, restated(other.fact, event, at, settings), by, known, settings)
    return _write(candidate, other, rewritten(other.fact, fact, event, at, settings), by, known, settings)


def settle(
    candidate: Candidate,
    known: UserFacts,
    nearest: Nearest | None,
    settings: SettingsV1,
    thresholds: Thresholds | None = None,
    model: str | None = None,
) -> list[Decided]:
    """Decide by the nearest fact in meaning; None when there is none, or nothing embeds.

    Returns:
        The events, in the order in which they are to be published.
    """
    proposal, at = candidate.proposal, candidate.proposal.at
    other = known.live_fact(nearest.fact_id, at) if nearest else None
    by = _compared(proposal, nearest if other else None, settings.dedupe, thresholds, model)
    similarity, duplicate, update = by.similarity, by.duplicate_threshold, by.update_threshold
    if other is None or similarity is None:
        return _save(candidate, by, known, settings)
    event = proposal.event
    if duplicate is not None and similarity > duplicate and settings.dedupe.on_duplicate == "confirm":
        return _write(candidate, other, restated(other.fact, event, at, settings), by, known, settings)
    lowest = min((bound for bound in (duplicate, update) if bound is not None), default=None)
    if lowest is not None and similarity > lowest:
        fact = rewritten(other.fact, candidate.fact, event, at, settings)
        return _write(candidate, other, fact, by, known, settings)
    return _save(candidate, by, known, settings)


def undecidable(proposal: Proposal, error: str) -> Decided:
    """The end of a proposal that cannot be decided: nothing ends silently."""
    return _rejected(proposal, "other", f"It cannot be decided ({error}); the log of dedupe says more.")


def _met_in_words(text: str, facts: Sequence[KnownFact]) -> tuple[KnownFact, Overlap] | None:
    """The fact whose words hold the text's or are held by them: the closest, of those the longest."""
    said = words(text)
    met = [(known, how) for known in facts if (how := overlap(said, words(known.fact.text)))]
    return min(met, key=lambda pair: (_BEST_FIRST.index(pair[1]), -len(pair[0].fact.text)), default=None)


def _supersede(
    candidate: Candidate,
    replaced: KnownFact,
    met: tuple[KnownFact, Overlap] | None,
    known: UserFacts,
    settings: SettingsV1,
) -> list[Decided]:
    proposal = candidate.proposal
    if met is not None and met[1] is Overlap.SAME and met[0].id != replaced.id:
        # Rewritten, the replaced fact would say what another one says already.
        forgotten = FactForgottenV1(
            id=_id("supersede", proposal.id, replaced.id), fact_id=replaced.id, reason="superseded"
        )
        by = Decision(proposal_id=proposal.id, nearest=met[0].id)
        fact = restated(met[0].fact, proposal.event, proposal.at, settings)
        return [("fact.forgotten", forgotten), *_write(candidate, met[0], fact, by, known, settings)]
    by = Decision(proposal_id=proposal.id, nearest=replaced.id)
    fact = rewritten(replaced.fact, candidate.fact, proposal.event, proposal.at, settings)
    return _write(candidate, replaced, fact, by, known, settings)


def _compared(
    proposal: Proposal,
    nearest: Nearest | None,
    dedupe: Dedupe,
    thresholds: Thresholds | None,
    model: str | None,
) -> Decision:
    duplicate, update = dedupe.duplicate_threshold, dedupe.update_threshold
    if thresholds is not None:
        duplicate = thresholds.duplicate if duplicate is None else duplicate
        update = thresholds.update if update is None else update
    return Decision(
        proposal_id=proposal.id,
        nearest=nearest.fact_id if nearest else None,
        similarity=nearest.similarity if nearest else None,
        duplicate_threshold=duplicate,
        update_threshold=update,
        embedding_model=model,
    )


def _save(candidate: Candidate, by: Decision, known: UserFacts, settings: SettingsV1) -> list[Decided]:
    proposal, fact = candidate.proposal, candidate.fact
    evicted = make_room(fact, known.live(proposal.at), settings.limits, joins=True)
    if evicted is None:
        return [_rejected(proposal, "limit", "There is no room, and what is kept matters more.")]
    saved = FactSavedV1(
        id=decision_id(proposal.id),
        fact_id=known.next_id(fact.tier),
        fact=fact,
        decision=by,
        lineage=proposal.event.lineage,
    )
    return [*_evictions(evicted, proposal), ("fact.saved", saved)]


def _write(
    candidate: Candidate, other: KnownFact, fact: Fact, by: Decision, known: UserFacts, settings: SettingsV1
) -> list[Decided]:
    """The fact as it is to be from now on; confirmed when that is what it is already."""
    proposal = candidate.proposal
    event_id, lineage = decision_id(proposal.id), proposal.event.lineage
    if fact == other.fact:
        confirmed = FactConfirmedV1(id=event_id, fact_id=other.id, decision=by, lineage=lineage)
        return [("fact.confirmed", confirmed)]
    evictions: list[Decided] = []
    if fact.tier != other.fact.tier:
        others = [one for one in known.live(proposal.at) if one.id != other.id]
        evicted = make_room(fact, others, settings.limits, joins=False)
        if evicted is None:
            return [_rejected(proposal, "limit", f"{fact.tier} is full of what matters more.", other.id)]
        evictions = _evictions(evicted, proposal)
    updated = FactUpdatedV1(
        id=event_id, fact_id=other.id, fact=fact, former=other.fact, decision=by, lineage=lineage
    )
    return [*evictions, ("fact.updated", updated)]


def _evictions(evicted: Sequence[Eviction], proposal: Proposal) -> list[Decided]:
    return [
        (
            "fact.evicted",
            FactEvictedV1(
                id=_id("evict", proposal.id, known.id), fact_id=known.id, tier=known.fact.tier, limit=limit
            ),
        )
        for known, limit in evicted
    ]


def _rejected(proposal: Proposal, reason: Reason, detail: str, fact_id: str | None = None) -> Decided:
    rejected = FactRejectedV1(
        id=decision_id(proposal.id),
        proposal_id=proposal.id,
        reason=reason,
        detail=detail,
        fact_id=fact_id,
    )
    return "fact.rejected", rejected


def decision_id(proposal_id: str) -> str:
    """The id of the one event that says what became of a proposal."""
    return _id("dedupe", proposal_id)


def _id(*parts: str) -> str:
    """An id that follows from other ids: readable, unless that would be too long for one."""
    readable = ":".join(parts)
    if len(readable.encode()) <= ID_LIMIT:
        return readable
    return f"{parts[0]}:{sha256(readable.encode()).hexdigest()}"
