"""Two rankings become one. No I/O."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from mnemon_consumers.retrieve.search.query_intent import LOOKED_AT
from mnemon_infra.models import bm25
from mnemon_infra.vectors.port import PointHit

WORDS, MEANING = 0.5, 0.5

LEAST_SPREAD = 0.2
"""Of cosines: those nearer to each other hardly differ, and are not made to."""

LEAST_SHARE = 0.5
"""Share of the best term weight that is the bottom of the range, where the list has every item with a word of
the query: the last item may be one of two."""

LAST = 0.02
"""How far below the last the bottom lies, as a share of the range: a match keeps a score above zero."""


class FusedCandidate(NamedTuple):
    """Something that may be what is looked for.

    Attributes:
        payload: of its point.
        score: both rankings together, 0 to 1; 1 is the best of both.
        words: how it stands among those found by words, 0 to 1; 0 is not among them.
        meaning: how it stands among those found by meaning, in the same way.
        overlap: its term weights over those of the best found by words, 0 to 1.
        similarity: the cosine with the query, 0 where others are nearer; None where there are no vectors.
    """

    payload: Mapping[str, JsonValue]
    score: float
    words: float
    meaning: float
    overlap: float
    similarity: float | None


def fused(
    by_words: Sequence[PointHit], by_meaning: Sequence[PointHit] | None, limit: int
) -> list[FusedCandidate]:
    """All that was found, best first. Without meaning, words are all.

    Each ranking is stretched to 0 to 1 before they are added: term weights and cosines have no common scale,
    and ranks alone would forget by how much one is better than the next. Of a few messages all cosines may
    be much the same; stretched wholly, their noise would outweigh a word that only one of them has.

    Args:
        by_words: best first.
        by_meaning: best first; None where there is no vector.
        limit: how many were asked for of each; fewer by words are all that have a word of the query.
    """
    is_complete = len(by_words) < limit
    words = _stretched(by_words, LEAST_SHARE * by_words[0].score if is_complete and by_words else 0.0)
    meaning = _stretched(by_meaning or (), LEAST_SPREAD)
    of_words, of_meaning = (1.0, 0.0) if by_meaning is None else (WORDS, MEANING)
    best = by_words[0].score if by_words else 1.0
    overlaps = {hit.id.int: hit.score / best for hit in by_words}
    unknown = None if by_meaning is None else 0.0
    similarities = {hit.id.int: hit.score for hit in by_meaning or ()}
    candidates = []
    for point, payload in {hit.id.int: hit.payload for hit in (*by_words, *(by_meaning or ()))}.items():
        one, other = words.get(point, 0.0), meaning.get(point, 0.0)
        score = of_words * one + of_meaning * other
        overlap, similarity = overlaps.get(point, 0.0), similarities.get(point, unknown)
        candidates.append(FusedCandidate(payload, score, one, other, overlap, similarity))
    candidates.sort(key=lambda each: -each.score)
    return candidates


def relevance(similarity: float | None, overlap: float) -> float:
    """How well something answers the query, 0 to 1, whatever else was found.

    It is the cosine; what has all words of the query gets half of what is missing to 1. So a threshold means
    what one on cosines does, and the very words are found where vectors are weak. Without a cosine it is the
    share of the query's words.
    """
    if similarity is None:
        return overlap
    return 1 - (1 - min(max(similarity, 0.0), 1.0)) * (1 - overlap / 2)


def share_of_words(query: str, text: str) -> float:
    """How many of the query's words a text has, 0 to 1, as far as they are looked at."""
    asked = set(bm25.query(query[:LOOKED_AT]).indices)
    return len(asked.intersection(bm25.document(text[:LOOKED_AT]).indices)) / len(asked) if asked else 0.0


def _stretched(hits: Sequence[PointHit], least_spread: float) -> dict[int, float]:
    """1 for the best, a little for the last, or for what is `least_spread` below the best, if lower."""
    if not hits:
        return {}
    best = hits[0].score
    lowest = min(hits[-1].score, best - least_spread)
    bottom = lowest - LAST * (best - lowest)
    return {hit.id.int: (hit.score - bottom) / (best - bottom) if best > bottom else 1.0 for hit in hits}
