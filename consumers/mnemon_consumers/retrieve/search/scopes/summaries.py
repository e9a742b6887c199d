"""Search of summaries."""

from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_consumers.retrieve.search.candidates import CandidateFinder
from mnemon_consumers.retrieve.search.fusion import compute_relevance, measure_best_share
from mnemon_consumers.retrieve.search.hits import RankedHit, list_score_parts, mark_doubtful
from mnemon_consumers.retrieve.search.scopes.inputs import ScopeAnswer, ScopeInputs
from mnemon_infra.vectors.port import Collection


class SummarySearch:
    """Search of a user's summaries."""

    def __init__(self, memory: Memory, finder: CandidateFinder) -> None:
        self._memory = memory
        self._finder = finder

    async def find_hits(self, inputs: ScopeInputs) -> ScopeAnswer:
        """Return the summaries that are relevant to the query; of equal scores, the newer comes first.

        Raises:
            VectorsUnavailable, DatabaseUnavailable, nats.errors.Error: the summaries cannot be searched now.
        """
        query = inputs.query
        candidates = await self._finder.find_candidates(
            Collection.SUMMARIES, query, inputs.breadth.candidates
        )
        found = {str(each.payload["summary_id"]): each for each in candidates}
        seen = await self._memory.load_summaries_by_id(query.owner, tuple(found), inputs.min_seq)
        share = measure_best_share(
            query.intent.resolved_text, [(found[each.id], each.text) for each in seen.value]
        )
        hits = [
            RankedHit(
                each.id,
                "summaries",
                each.text,
                compute_relevance(
                    found[each.id].similarity, found[each.id].overlap * share, found[each.id].trust
                ),
                each.at,
                list_score_parts(found[each.id]) if inputs.explain else None,
                each,
            )
            for each in reversed(seen.value)
        ]
        return mark_doubtful(sorted(hits, key=lambda hit: -hit.score)), seen.seq
