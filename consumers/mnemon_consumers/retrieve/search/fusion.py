"""Fusion of the rankings by words and by meaning into one ranking. No I/O."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from pydantic import JsonValue

from mnemon_consumers.retrieve.search.query.intent import LOOKED_AT
from mnemon_consumers.retrieve.search.text_properties import describe_text
from mnemon_infra.models.words import bm25, concepts
from mnemon_infra.vectors.port import PointHit

WORDS, MEANING = 0.5, 0.5

LEAST_SPREAD = 0.2
"""Minimum range of cosines: smaller differences are mostly noise and are not scaled up to the full range."""

LEAST_SHARE = 0.5
"""Minimum range of term weights, as a share of the best weight. It applies if the ranking by words has every
item with a word of the query, because such a ranking may have only two items."""

CONCEPT_SHARE = 0.5
"""Share of a word of the query that a text has if it has only a concept of the word."""

BOTTOM_DISTANCE = 0.02
"""Distance from the last item to the score 0, as a share of the range of scores, so that every match scores
above 0."""


class FusedCandidate(NamedTuple):
    """A candidate that words, meaning or both have found, or a message that was found by its time.

    Attributes:
        payload: payload of its point.
        score: the weighted sum of `words` and `meaning`, 0 to 1; an item that is best in both has 1, and so
            has a message that was found by its time.
        words: its scaled score by words, 0 to 1; 0 if words did not find the candidate. For a message that
            was found by its time, its informativeness.
        meaning: its scaled score by meaning, 0 to 1; 0 if meaning did not find the candidate.
        overlap: its term weight divided by that of the best candidate by words, 0 to 1.
        similarity: cosine with the query; 0 if the ranking by meaning lacks the candidate, None without
            vectors.
        trust: share of the cosine that counts: an embedding model may not know the script of the query.
    """

    payload: Mapping[str, JsonValue]
    score: float
    words: float
    meaning: float
    overlap: float
    similarity: float | None
    trust: float = 1.0


UNRANKED: Final = FusedCandidate({}, 0.0, 0.0, 0.0, 0.0, None)
"""Candidate that is in no ranking."""


def fuse_rankings(
    by_words: Sequence[PointHit], by_meaning: Sequence[PointHit] | None, limit: int
) -> list[FusedCandidate]:
    """Return all candidates, best first. Without a ranking by meaning, words alone decide.

    Each ranking is scaled to 0 to 1 before the two are added: term weights and cosines have no common scale,
    and ranks alone would lose the distances between items. Cosines of a few messages may be nearly equal;
    scaled to the full range, their noise would outweigh a word that only one message has.

    Args:
        by_words: hits by words, best first.
        by_meaning: hits by meaning, best first; None if there is no vector.
        limit: number of hits that were requested of each ranking. If `by_words` has fewer hits, it has every
            item with a word of the query.
    """
    is_complete = len(by_words) < limit
    words = _scale_scores(by_words, LEAST_SHARE * by_words[0].score if is_complete and by_words else 0.0)
    meaning = _scale_scores(by_meaning or (), LEAST_SPREAD)
    of_words, of_meaning = (1.0, 0.0) if by_meaning is None else (WORDS, MEANING)
    best = by_words[0].score if by_words else 1.0
    unknown = None if by_meaning is None else 0.0
    # The integer of an id has a faster hash than the id.
    candidates = {
        hit.id.int: FusedCandidate(hit.payload, of_words * one, one, 0.0, hit.score / best, unknown)
        for hit, one in zip(by_words, words, strict=True)
    }
    for hit, other in zip(by_meaning or (), meaning, strict=True):
        known = candidates.get(hit.id.int, UNRANKED)
        score = known.score + of_meaning * other
        candidates[hit.id.int] = FusedCandidate(
            hit.payload, score, known.words, other, known.overlap, hit.score
        )
    return sorted(candidates.values(), key=lambda each: -each.score)


def compute_relevance(similarity: float | None, overlap: float, trust: float = 1.0) -> float:
    """Return the relevance of an item to the query, 0 to 1, independent of other items.

    The value is the cosine; an item with all words of the query gets half of the distance to 1 added. So a
    threshold has the same meaning as a threshold on cosines, and exact words count where vectors are weak.
    Without a cosine the value is `overlap`, the share of the query's words that the item has. `trust` is the
    share of the cosine that counts; the lower it is, the more the words count.
    """
    if similarity is None:
        return overlap
    return 1 - (1 - trust * min(max(similarity, 0.0), 1.0)) * (1 - overlap * (1 - trust / 2))


class QueryWords:
    """The words of a query with their weights, and the concepts that its phrases imply."""

    def __init__(self, query: str, weights: Mapping[int, float] | None = None) -> None:
        """Take the words of a query.

        Args:
            query: the query, of which the first `LOOKED_AT` characters count.
            weights: weights of the words, by the ids of their stems; None if all weigh the same.
        """
        beginning = query[:LOOKED_AT]
        self._weights = (
            dict.fromkeys(bm25.weigh_query(beginning).indices, 1.0) if weights is None else weights
        )
        self._concepts = {term: concepts.find_concepts([term]) for term in self._weights}
        self._implied = concepts.find_implied_concepts(beginning)
        self._total = sum(self._weights.values())

    def measure_share(self, text: str) -> float:
        """Return the share of the words, 0 to 1, that a text has in its first `LOOKED_AT` characters.

        A word of which the text has only a concept counts `CONCEPT_SHARE`, and so does an implied concept.
        """
        terms = describe_text(text).terms
        found = sum(
            weight if term in terms else CONCEPT_SHARE * weight
            for term, weight in self._weights.items()
            if term in terms or concepts.has_concept(terms, self._concepts[term])
        )
        implied = CONCEPT_SHARE * concepts.has_concept(terms, self._implied)
        if not self._total:
            return implied
        return min(1.0, found / self._total + implied / len(self._weights))


def measure_best_share(query: str, candidates: Iterable[tuple[FusedCandidate, str]]) -> float:
    """Return the share of the query's words, 0 to 1, that an item with overlap 1 would have.

    The product of this share and the overlap of another item estimates the share that the other item has.

    Args:
        query: the query.
        candidates: the candidates with their texts.
    """
    best, text = max(candidates, key=lambda each: each[0].overlap, default=(None, ""))
    return min(1.0, QueryWords(query).measure_share(text) / best.overlap) if best and best.overlap else 0.0


def find_lowest_similarity(candidates: Iterable[FusedCandidate]) -> float:
    """Return the lowest similarity of candidates that meaning has found; 0 if it has found none."""
    return min((each.similarity for each in candidates if each.similarity), default=0.0)


def _scale_scores(hits: Sequence[PointHit], least_spread: float) -> list[float]:
    """Scale scores so that the best is 1 and the lowest slightly above 0.

    The lowest score is the last one, or the best score minus `least_spread` if that is lower.
    """
    if not hits:
        return []
    best = hits[0].score
    lowest = min(hits[-1].score, best - least_spread)
    bottom = lowest - BOTTOM_DISTANCE * (best - lowest)
    return [(hit.score - bottom) / (best - bottom) if best > bottom else 1.0 for hit in hits]
