"""Comparison of a new fact with the known facts, by alignment first and by similarity second. No I/O."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from mnemon_consumers.dedupe.user_facts import KeptFact
from mnemon_consumers.domain.alignment.comparison import UNDECIDED_SHARE
from mnemon_consumers.domain.alignment.matching import WordSimilarity
from mnemon_consumers.domain.alignment.parser import parse_fact
from mnemon_consumers.domain.alignment.relation import relate_facts
from mnemon_consumers.domain.alignment.statement import ParsedFact
from mnemon_consumers.domain.alignment.term import TermKind
from mnemon_consumers.domain.alignment.verdict import FactRelation, RelationVerdict
from mnemon_contracts.settings.groups import Dedupe
from mnemon_infra.models.embedding import Thresholds

CANDIDATES: Final = 12
"""Maximum number of facts to align with a new fact because they have terms in common with it."""

MOST_UNDECIDED: Final = 3
"""Maximum number of facts that a decision names as undecided; a language model can compare each of them."""

_PRECEDENCE: Final = {
    FactRelation.SAME: 0,
    FactRelation.UPDATE: 1,
    FactRelation.UNDECIDED: 2,
    FactRelation.DIFFERENT: 3,
}


class NearestFact(NamedTuple):
    """A fact of the user that is near a text in meaning, with the cosine similarity of the two."""

    fact_id: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Likeness:
    """The embedding model with its thresholds of similarity, and the similarity of words.

    Attributes:
        model: the embedding model, such as `wordllama/l2_supercat_256`; None without an embedder.
        thresholds: the similarities above which two facts count as duplicates or as an update; None if the
            model has none.
        words: function that returns the cosine similarity of two English words; None if no static vectors are
            installed.
    """

    model: str | None = None
    thresholds: Thresholds | None = None
    words: WordSimilarity | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """A known fact, the relation of a new fact to it, and the similarity of the two facts if known."""

    known: KeptFact
    verdict: RelationVerdict
    similarity: float | None


@dataclass(frozen=True, slots=True)
class Matches:
    """The result of comparing a new fact with the known facts that are like it.

    Attributes:
        best: the fact that the new fact repeats or updates; None if the new fact is a separate fact.
        nearest: the fact that is most like the new fact; None if no known fact was like it.
        undecided: ids of up to `MOST_UNDECIDED` facts that may say the same, the likeliest first; empty if
            `best` is set.
    """

    best: Match | None = None
    nearest: Match | None = None
    undecided: tuple[str, ...] = field(default=())


def compare_facts(
    text: str,
    facts: Sequence[KeptFact],
    nearest: Iterable[NearestFact],
    likeness: Likeness,
    settings: Dedupe,
) -> Matches:
    """Compare a new fact with the known facts.

    Args:
        text: the new fact.
        facts: the known facts.
        nearest: the known facts that are near in meaning.
        likeness: the embedding model with its thresholds, and the similarity of words.
        settings: thresholds that override those of the model, and whether an update requires similarity.
    """
    similarities = {each.fact_id: each.similarity for each in nearest}
    new = parse_fact(text)
    matches = [
        _compare_with_known(text, new, known, similarities.get(known.id), likeness, settings)
        for known in _select_candidates(new, facts, similarities, find_thresholds(text, likeness, settings))
    ]
    matches.sort(key=_rank_match)
    if not matches:
        return Matches()
    first = matches[0]
    best = first if first.verdict.relation in (FactRelation.SAME, FactRelation.UPDATE) else None
    doubtful = [each.known.id for each in matches if each.verdict.relation is FactRelation.UNDECIDED]
    return Matches(best, first, () if best else tuple(doubtful[:MOST_UNDECIDED]))


def find_thresholds(text: str, likeness: Likeness, settings: Dedupe) -> tuple[float | None, float | None]:
    """Return two thresholds of similarity: for an update, and for a duplicate.

    A threshold comes from the settings, else from the embedding model; None if neither has the threshold. The
    model's threshold for a duplicate is raised to the threshold for an update, if that is higher.
    """
    update, duplicate = settings.update_threshold, settings.duplicate_threshold
    if likeness.thresholds is not None:
        if update is None:
            update = likeness.thresholds.choose_update_threshold(is_english=parse_fact(text).is_english)
        if duplicate is None:
            duplicate = max(update, likeness.thresholds.duplicate)
    return update, duplicate


def _select_candidates(
    new: ParsedFact,
    facts: Sequence[KeptFact],
    similarities: Mapping[str, float],
    thresholds: tuple[float | None, float | None],
) -> list[KeptFact]:
    """Select the known facts to align with a new fact.

    Selected are up to `CANDIDATES` facts with the most terms and slots in common (at least as many as
    `UNDECIDED_SHARE` of the shorter fact's words), the nearest fact, and all facts whose similarity is above
    the lower threshold. If the new fact reports a change, a thing of the same kind counts as a common term:
    "Switched to tea" is aligned with "Drinks coffee".
    """
    keys = frozenset().union(*(term.keys for term in new.terms if term.kind is not TermKind.LIGHT))
    enough = min((bound for bound in thresholds if bound is not None), default=None)
    chosen = {each for each, similarity in similarities.items() if enough is not None and similarity > enough}
    chosen |= set(sorted(similarities, key=lambda each: -similarities[each])[:1])
    kinds = new.kinds if new.is_changed else frozenset()
    shared = []
    for known in facts:
        old = parse_fact(known.fact.text)
        has_kind = bool(kinds) and not kinds.isdisjoint(old.kinds)
        if keys.isdisjoint(old.keys) and new.slots.isdisjoint(old.slots) and not has_kind:
            continue
        common = len([term for term in old.terms if not keys.isdisjoint(term.keys)])
        common += len(old.slots & new.slots) + has_kind
        if common and common >= UNDECIDED_SHARE * min(len(new.words), len(old.words)):
            shared.append((common, similarities.get(known.id, 0.0), known.id))
    shared.sort(key=lambda each: (-each[0], -each[1]))
    chosen |= {fact_id for _, _, fact_id in shared[:CANDIDATES]}
    return [known for known in facts if known.id in chosen]


def _compare_with_known(
    text: str,
    new: ParsedFact,
    known: KeptFact,
    similarity: float | None,
    likeness: Likeness,
    settings: Dedupe,
) -> Match:
    verdict = relate_facts(known.fact.text, text, likeness.words)
    update, duplicate = find_thresholds(text, likeness, settings)
    if similarity is not None and verdict.is_open:
        if duplicate is not None and similarity > duplicate:
            verdict = replace(
                verdict, relation=FactRelation.SAME, evidence=_describe_similarity(similarity, duplicate)
            )
        elif update is not None and similarity > update:
            verdict = replace(
                verdict, relation=FactRelation.UPDATE, evidence=_describe_similarity(similarity, update)
            )
    required = min((bound for bound in (update, duplicate) if bound is not None), default=None)
    if (
        settings.require_similarity
        and verdict.relation is FactRelation.UPDATE
        and likeness.model is not None
        and required is not None
        # A fact that is not among the nearest has no known similarity; the similarity is below theirs.
        and (similarity is None or similarity <= required)
    ):
        evidence = f"{verdict.evidence}, and the similarity of the facts is not above {required:.2f}"
        verdict = replace(verdict, relation=FactRelation.DIFFERENT, evidence=evidence)
    return Match(known, verdict, similarity)


def _describe_similarity(similarity: float, threshold: float) -> str:
    return f"no rule tells the facts apart, and their similarity {similarity:.2f} is above {threshold:.2f}"


def _rank_match(match: Match) -> tuple[int, float, float]:
    return _PRECEDENCE[match.verdict.relation], -match.verdict.score, -round(match.similarity or 0.0, 4)
