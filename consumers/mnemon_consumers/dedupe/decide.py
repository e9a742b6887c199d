"""Decisions on a proposed fact. No I/O, no clock, no randomness.

`examine_proposal` decides the proposals that need no comparison of meaning. `settle_candidate` compares each
remaining `CandidateFact` with the known facts. "Now" is the time at which the log stored the proposal, so a
later decision has the same result.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256

from mnemon_consumers.dedupe.classification import classify_proposal, find_named_end
from mnemon_consumers.dedupe.comparison import Likeness, Matches, NearestFact, compare_facts, find_thresholds
from mnemon_consumers.dedupe.eviction import Eviction, choose_evictions, find_excess_facts
from mnemon_consumers.dedupe.user_facts import KeptFact, UserFacts
from mnemon_consumers.domain.alignment.relation import find_event_year, relate_facts
from mnemon_consumers.domain.alignment.verdict import FactRelation, RelationVerdict
from mnemon_consumers.domain.policy.default_expiry import compute_rewritten_expiry, compute_tier_expiry
from mnemon_consumers.domain.policy.refusal import find_refusal
from mnemon_consumers.domain.policy.wording import join_lines, join_words
from mnemon_contracts.base import ID_LIMIT, Event
from mnemon_contracts.events.memory import (
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
from mnemon_contracts.settings.groups import Dedupe, FactLimits, SettingsV1

DecisionEvent = tuple[str, Event]
"""The name of an event, such as `fact.saved`, and the event. The `id` of the event is derived from the cause
of the decision, so that the same decision taken again has the same id."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed fact, with the id of its event, its time in the log, and its trace."""

    id: str
    at: datetime
    event: FactProposedV1
    traceparent: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CandidateFact:
    """A proposal that neither a rule nor equal words decide, with the fact that it would become."""

    proposal: Proposal
    fact: Fact


def decide_proposal(
    proposal: Proposal,
    known: UserFacts,
    nearest: Sequence[NearestFact],
    settings: SettingsV1,
    likeness: Likeness,
) -> list[DecisionEvent]:
    """Return the events that decide a proposal, in the order in which they are to be published."""
    match examine_proposal(proposal, known, settings):
        case CandidateFact() as candidate:
            return settle_candidate(candidate, known, nearest, settings, likeness)
        case decided:
            return decided


def examine_proposal(
    proposal: Proposal, known: UserFacts, settings: SettingsV1
) -> CandidateFact | list[DecisionEvent]:
    """Decide a proposal without comparing meanings, or return it as a candidate.

    A proposal is rejected if the policy forbids it or its `expires_at` has passed. A proposal with the words
    of a live fact updates or confirms that fact, or is rejected because of a limit; letter case and
    punctuation do not count. A proposal that names a live fact to replace is either rejected or becomes a
    candidate.

    Returns:
        The events, in the order in which they are to be published; or the candidate to compare.
    """
    event, at = proposal.event, proposal.at
    if refused := find_refusal(event.text, settings.policy):
        return [_reject_proposal(proposal, *refused)]
    if event.expires_at is not None and event.expires_at <= at:
        return [
            _reject_proposal(proposal, "expired", "The date of the fact had passed when it was proposed.")
        ]
    other = _find_repeated_fact(proposal, known)
    if other is None:
        return CandidateFact(proposal, classify_proposal(event, at, settings))
    return _restate_fact_with_same_words(proposal, other, known, settings)


def find_text_to_compare(proposal: Proposal, known: UserFacts, settings: SettingsV1) -> str | None:
    """Return the text of a proposal that must be compared with the facts.

    Returns:
        None if the policy rejects the proposal, or the proposal repeats a fact (`_find_repeated_fact`).
    """
    event = proposal.event
    if find_refusal(event.text, settings.policy) or _find_repeated_fact(proposal, known):
        return None
    return join_lines(event.text)


def settle_candidate(
    candidate: CandidateFact,
    known: UserFacts,
    nearest: Sequence[NearestFact],
    settings: SettingsV1,
    likeness: Likeness,
) -> list[DecisionEvent]:
    """Decide on a candidate by comparing it with the known facts.

    `nearest` has the known facts that are nearest in meaning; without an embedder it is empty.

    Returns:
        The events, in the order in which they are to be published.
    """
    proposal, at, text = candidate.proposal, candidate.proposal.at, candidate.fact.text
    facts = known.list_live(at)
    replaced = known.find_live(proposal.event.supersedes, at) if proposal.event.supersedes else None
    doubt = None
    if replaced is not None:
        verdict = relate_facts(replaced.fact.text, text, likeness.words)
        if verdict.is_related:
            return _supersede_fact(candidate, replaced, verdict, known, settings)
        if not verdict.is_covered:
            facts = [each for each in facts if each.id != replaced.id]
        doubt = f"the proposal names a fact to replace, but {verdict.evidence}: that fact is kept"
    matches = compare_facts(text, facts, nearest, likeness, settings.dedupe)
    by = _describe_decision(proposal, text, matches, likeness, settings.dedupe, doubt)
    best = matches.best
    if best is None:
        return save_candidate(candidate, by, known, settings)
    if best.verdict.relation is FactRelation.UPDATE and (doubt := _find_doubt(proposal, best.known)):
        undecided = by.model_copy(
            update={
                "relation": "undecided",
                "undecided": (best.known.id,),
                "evidence": f"{doubt}: both facts are kept",
            }
        )
        return save_candidate(candidate, undecided, known, settings)
    event, other = proposal.event, best.known
    is_said = best.verdict.relation is FactRelation.SAME
    # "Is in Lisbon" must not get the end of "Is in Lisbon until Friday".
    is_longer = other.fact.expires_at is not None and candidate.fact.expires_at is None
    keeps_words = best.verdict.is_covered or settings.dedupe.on_duplicate == "confirm"
    if is_said and keeps_words and not is_longer:
        return _write_fact(
            proposal, other, restate_fact(other.fact, event, at, settings), by, known, settings
        )
    return _write_fact(
        proposal, other, rewrite_fact(other.fact, candidate.fact, event, at, settings), by, known, settings
    )


def _find_doubt(proposal: Proposal, known: KeptFact) -> str | None:
    """Return the reason why a proposal must not replace a fact that its words update, or None."""
    lineage = proposal.event.lineage
    if lineage.answer is not None and lineage.answer == known.answer:
        return "one answer of a model contains both facts"
    if lineage.unsupported:
        return "the sources lack a name, number or date of the proposal"
    year = find_event_year(known.fact.text, proposal.event.text)
    if year is not None and year < known.saved_at.year:
        return "the newer fact tells an event of a year before the older fact was saved"
    return None


def reject_undecidable_proposal(proposal: Proposal, error: str) -> DecisionEvent:
    """Return the event that rejects a proposal whose decision failed, so that every proposal is decided."""
    return _reject_proposal(
        proposal, "other", f"The decision failed ({error}); the log messages of dedupe have the cause."
    )


def _find_repeated_fact(proposal: Proposal, known: UserFacts) -> KeptFact | None:
    """Return the live fact whose words a proposal repeats.

    Returns:
        None if there is no such fact, or if the proposal names a live fact to replace.
    """
    event, at = proposal.event, proposal.at
    if event.supersedes and known.find_live(event.supersedes, at):
        return None
    return _find_fact_with_same_words(event.text, known.list_live(at))


def _find_fact_with_same_words(text: str, facts: Sequence[KeptFact]) -> KeptFact | None:
    said = join_words(text)
    return next((known for known in facts if join_words(known.fact.text) == said), None)


def _restate_fact_with_same_words(
    proposal: Proposal, other: KeptFact, known: UserFacts, settings: SettingsV1
) -> list[DecisionEvent]:
    by = Decision(
        proposal_id=proposal.id, nearest=other.id, relation="same", evidence="both facts have the same words"
    )
    fact = restate_fact(other.fact, proposal.event, proposal.at, settings)
    return _write_fact(proposal, other, fact, by, known, settings)


def _supersede_fact(
    candidate: CandidateFact,
    replaced: KeptFact,
    verdict: RelationVerdict,
    known: UserFacts,
    settings: SettingsV1,
) -> list[DecisionEvent]:
    proposal = candidate.proposal
    other = _find_fact_with_same_words(candidate.fact.text, known.list_live(proposal.at))
    if other is not None and other.id != replaced.id:
        # If rewritten, the replaced fact would repeat another fact.
        forgotten = FactForgottenV1(
            id=_derive_id("supersede", proposal.id, replaced.id), fact_id=replaced.id, reason="superseded"
        )
        restated = _restate_fact_with_same_words(proposal, other, known, settings)
        return [("fact.forgotten", forgotten), *restated]
    by = Decision(
        proposal_id=proposal.id,
        nearest=replaced.id,
        relation="update",
        evidence=f"the proposal names the fact to replace: {verdict.evidence}",
    )
    fact = rewrite_fact(replaced.fact, candidate.fact, proposal.event, proposal.at, settings)
    return _write_fact(proposal, replaced, fact, by, known, settings)


def _describe_decision(
    proposal: Proposal,
    text: str,
    matches: Matches,
    likeness: Likeness,
    dedupe: Dedupe,
    doubt: str | None,
) -> Decision:
    nearest = matches.nearest
    update, duplicate = find_thresholds(text, likeness, dedupe)
    return Decision(
        proposal_id=proposal.id,
        nearest=nearest.known.id if nearest else None,
        similarity=nearest.similarity if nearest else None,
        duplicate_threshold=duplicate,
        update_threshold=update,
        embedding_model=likeness.model,
        relation=nearest.verdict.relation.value if nearest else None,
        evidence=doubt or (nearest.verdict.evidence if nearest else None),
        undecided=matches.undecided,
    )


def save_candidate(
    candidate: CandidateFact, by: Decision, known: UserFacts, settings: SettingsV1
) -> list[DecisionEvent]:
    """Return the events that save a candidate as a separate fact, with the evictions that make room.

    The event of the fact records the decision `by`. If a fact of high importance would have to be evicted for
    a fact of lower than high importance, the only event rejects the proposal.
    """
    proposal, fact = candidate.proposal, candidate.fact
    evicted = choose_evictions(fact, known.list_live(proposal.at), settings.limits, joins=True)
    if evicted is None:
        return [
            _reject_proposal(
                proposal,
                "limit",
                "A limit on the user's facts is reached, and an important fact would have to be evicted.",
            )
        ]
    saved = FactSavedV1(
        id=derive_decision_id(proposal.id),
        fact_id=known.find_next_id(fact.tier),
        fact=fact,
        decision=by,
        lineage=proposal.event.lineage,
    )
    return [*_build_evictions(evicted, proposal), ("fact.saved", saved)]


def _write_fact(
    proposal: Proposal, other: KeptFact, fact: Fact, by: Decision, known: UserFacts, settings: SettingsV1
) -> list[DecisionEvent]:
    """Return the events that give `other` the content of `fact`, or confirm `other` if it has this content.

    The event of the fact records the decision `by`. A change of the tier may evict facts. If a fact of high
    importance would have to be evicted for a fact of lower than high importance, the only event rejects the
    proposal.
    """
    event_id, lineage = derive_decision_id(proposal.id), proposal.event.lineage
    if fact == other.fact:
        confirmed = FactConfirmedV1(id=event_id, fact_id=other.id, decision=by, lineage=lineage)
        return [("fact.confirmed", confirmed)]
    evictions: list[DecisionEvent] = []
    if fact.tier != other.fact.tier:
        others = [one for one in known.list_live(proposal.at) if one.id != other.id]
        evicted = choose_evictions(fact, others, settings.limits, joins=False)
        if evicted is None:
            return [
                _reject_proposal(
                    proposal,
                    "limit",
                    f"The limit of {fact.tier} is reached, and an important fact would have to be evicted.",
                    other.id,
                )
            ]
        evictions = _build_evictions(evicted, proposal)
    updated = FactUpdatedV1(
        id=event_id, fact_id=other.id, fact=fact, former=other.fact, decision=by, lineage=lineage
    )
    return [*evictions, ("fact.updated", updated)]


def _build_evictions(evicted: Sequence[Eviction], proposal: Proposal) -> list[DecisionEvent]:
    return [_build_eviction(each, _derive_id("evict", proposal.id, each.known.id)) for each in evicted]


def _build_eviction(eviction: Eviction, event_id: str) -> DecisionEvent:
    known, limit = eviction
    event = FactEvictedV1(id=event_id, fact_id=known.id, tier=known.fact.tier, limit=limit)
    return "fact.evicted", event


def _reject_proposal(
    proposal: Proposal, reason: Reason, detail: str, fact_id: str | None = None
) -> DecisionEvent:
    rejected = FactRejectedV1(
        id=derive_decision_id(proposal.id),
        proposal_id=proposal.id,
        reason=reason,
        detail=detail,
        fact_id=fact_id,
    )
    return "fact.rejected", rejected


def derive_decision_id(proposal_id: str) -> str:
    """Return the id of the one event that decides a proposal."""
    return _derive_id("dedupe", proposal_id)


def _derive_id(*parts: str) -> str:
    """Derive an id from other ids: readable, or hashed if the readable id would exceed `ID_LIMIT` bytes."""
    readable = ":".join(parts)
    if len(readable.encode()) <= ID_LIMIT:
        return readable
    return f"{parts[0]}:{sha256(readable.encode()).hexdigest()}"


def restate_fact(former: Fact, proposed: FactProposedV1, at: datetime, settings: SettingsV1) -> Fact:
    """Return the fact `former` with its own words, and the attributes that the proposal `proposed` adds.

    The larger importance counts. `expires_at` of the proposal replaces the former end. Without `expires_at`,
    the end is that of `compute_tier_expiry`. In the tier `working`, a later end that the proposal's words
    name replaces it, as when a user says "away for two weeks" again a week later. The words give no end to a
    fact that has none.
    """
    tier = proposed.tier or former.tier
    expires_at = proposed.expires_at or compute_tier_expiry(former, tier, at, settings.limits)
    if proposed.expires_at is None and expires_at is not None and tier == "working":
        expires_at = max(expires_at, find_named_end(proposed, at, settings) or expires_at)
    importance = max(former.importance, proposed.importance or former.importance)
    return former.model_copy(update={"tier": tier, "importance": importance, "expires_at": expires_at})


def rewrite_fact(
    former: Fact, fact: Fact, proposed: FactProposedV1, at: datetime, settings: SettingsV1
) -> Fact:
    """Return the fact `former` with the words and names of `fact`, the fact that `proposed` would become.

    The larger importance counts. Kind and tier change only if the proposal names them. `expires_at` is
    that of the proposal; if the proposal has none, `compute_rewritten_expiry` computes it.
    """
    tier = proposed.tier or former.tier
    end = find_named_end(proposed, at, settings)
    expires_at = proposed.expires_at or compute_rewritten_expiry(
        former, fact.text, end, tier, at, settings.limits
    )
    return Fact(
        text=fact.text,
        kind=proposed.kind or former.kind,
        tier=tier,
        importance=max(former.importance, fact.importance),
        expires_at=expires_at,
        names=fact.names,
    )


def evict_excess(known: UserFacts, limits: FactLimits, at: datetime) -> list[DecisionEvent]:
    """Return the evictions that bring the user's facts within all limits."""
    return [
        _build_eviction(each, f"trim:{each.known.id}:{each.limit}")
        for each in find_excess_facts(known.list_live(at), limits)
    ]
