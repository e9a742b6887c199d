"""Hits of a search. No I/O."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from mnemon_consumers.retrieve.search.fusion import FusedCandidate
from mnemon_contracts.verbs.tools import FoundScope
from mnemon_infra.database.facts.fact_repository import FactRecord
from mnemon_infra.database.memory.documents import StoredDocument
from mnemon_infra.database.memory.summaries import ConversationSummary
from mnemon_infra.database.messages.lookup import VisibleMessage

DOUBTFUL_SHARE: Final = 0.25
"""Share of the best score below which a fact, a summary or a chunk of a document is doubtful.

Among the first ten hits of questions with one topic, none of the answers is below this share, but one seventh
of the other hits is. Of questions with two topics, 3 % of the answers are below it. A link gives a
fact 0.3 of the relevance of another fact, which is more than this share.
"""


class RankedHit(NamedTuple):
    """A hit of a search with its score.

    Attributes:
        at: time when a fact was first saved, a message was sent or a summary was written; None for a
            document.
        parts: components of the score; None unless the search explains its scores.
        source: the whole item that was found.
        is_doubtful: whether the hit probably does not answer the query; a search without a threshold leaves
            such hits out. False for a hit that a reranker has scored.
        start: position in a document of the first character of `text`.
    """

    id: str
    scope: FoundScope
    text: str
    score: float
    at: datetime | None
    parts: Mapping[str, float] | None
    source: FactRecord | VisibleMessage | StoredDocument | ConversationSummary
    start: int = 0
    is_doubtful: bool = False

    def add_part(self, name: str, value: float) -> "RankedHit":
        """Return the hit with one more component of its score in `parts`; unchanged if `parts` is None."""
        return self if self.parts is None else self._replace(parts={**self.parts, name: value})


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits of a search, best first.

    Attributes:
        hits: the hits; their scores are comparable across scopes, see `compute_relevance`.
        degraded: the scopes that could not be searched; also `embedding` if the query could not be embedded,
            so that the search used words only, and `reranker` if a model should have reranked the hits but
            did not.
        seq: the log position that the hits reflect; 0 if nothing could be read.
    """

    hits: Sequence[RankedHit]
    degraded: tuple[str, ...]
    seq: int


def mark_doubtful(hits: Sequence[RankedHit]) -> list[RankedHit]:
    """Mark the hits as doubtful whose score is below `DOUBTFUL_SHARE` of the best score."""
    least = DOUBTFUL_SHARE * max((hit.score for hit in hits), default=0.0)
    return [hit._replace(is_doubtful=True) if hit.score < least else hit for hit in hits]


def limit_scopes(hits: Sequence[RankedHit], limit: int) -> list[RankedHit]:
    """Return the first `limit` hits of each scope, in the same order."""
    counts: Counter[FoundScope] = Counter()
    kept = []
    for hit in hits:
        counts[hit.scope] += 1
        if counts[hit.scope] <= limit:
            kept.append(hit)
    return kept


def list_score_parts(candidate: FusedCandidate) -> dict[str, float]:
    """Return the components of a candidate's score, for a hit with `parts`."""
    return {
        "words": candidate.words,
        "meaning": candidate.meaning,
        "similarity": candidate.similarity or 0.0,
    }
