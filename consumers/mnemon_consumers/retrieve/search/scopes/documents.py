"""Search of documents, by their chunks."""

from typing import Literal

from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_consumers.retrieve.search.candidates import CandidateFinder
from mnemon_consumers.retrieve.search.fusion import FusedCandidate, compute_relevance, measure_best_share
from mnemon_consumers.retrieve.search.hits import RankedHit, list_score_parts, mark_doubtful
from mnemon_consumers.retrieve.search.scopes.inputs import ScopeAnswer, ScopeInputs
from mnemon_infra.vectors.port import Collection


class DocumentSearch:
    """Search of a user's documents, by their chunks."""

    def __init__(self, memory: Memory, finder: CandidateFinder) -> None:
        self._memory = memory
        self._finder = finder

    async def find_hits(self, inputs: ScopeInputs) -> ScopeAnswer:
        """Return the chunks that are relevant to the query.

        Raises:
            VectorsUnavailable, DatabaseUnavailable, nats.errors.Error: the documents cannot be searched now.
        """
        query = inputs.query
        found = await self._finder.find_candidates(
            Collection.DOCUMENTS, query, inputs.breadth.candidates, where=inputs.documents
        )
        ids = tuple(dict.fromkeys(str(each.payload["document_id"]) for each in found))
        seen = await self._memory.load_documents_by_id(query.owner, ids, inputs.min_seq)
        # The places of a chunk of a former version do not apply to the current text, so such chunks are
        # skipped.
        documents = {document.event_id: document for document in seen.value}
        shown = [
            (each, document, _cut_chunk(document.text, each))
            for each in found
            if (document := documents.get(str(each.payload["event_id"])))
        ]
        share = measure_best_share(query.intent.resolved_text, [(each, text) for each, _, text in shown])
        hits = [
            RankedHit(
                document.id,
                "documents",
                text,
                compute_relevance(each.similarity, each.overlap * share, each.trust),
                None,
                list_score_parts(each) if inputs.explain else None,
                document,
                _read_position(each, "start"),
            )
            for each, document, text in shown
        ]
        return mark_doubtful(hits), seen.seq


def _cut_chunk(text: str, chunk: FusedCandidate) -> str:
    return text[_read_position(chunk, "start") : _read_position(chunk, "end")]


def _read_position(chunk: FusedCandidate, edge: Literal["start", "end"]) -> int:
    position = chunk.payload[edge]
    assert isinstance(position, int)
    return position
