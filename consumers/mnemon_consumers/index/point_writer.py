"""Point writer for messages, documents and summaries."""

from typing import Final

from pydantic import JsonValue

from mnemon_consumers.index.decide import IndexedDocument, IndexPlan
from mnemon_consumers.index.document_chunks import split_chunks
from mnemon_contracts.identity import derive_point_id
from mnemon_infra.process.request_priority import yield_to_requests
from mnemon_infra.vectors.port import Collection
from mnemon_infra.vectors.texts import build_chunk_texts
from mnemon_infra.vectors.vector_index import SearchableItem, VectorIndex, build_points

CHUNKS: Final = 10
"""Number of chunks of a document to cut, in some milliseconds, before waiting requests run."""


async def write_batch(vector_index: VectorIndex, batch: IndexPlan) -> None:
    """Write the points of a batch, so that its content can be searched.

    Raises:
        EmbeddingUnavailable, VectorsUnavailable: the embedder or the vector store does not answer. A part of
            the batch may be written; the call can be repeated.
    """
    found = {
        Collection.MESSAGES: batch.messages,
        Collection.DOCUMENTS: [
            chunk for each in batch.documents for chunk in await build_document_items(each)
        ],
        Collection.SUMMARIES: batch.summaries,
    }
    for collection, items in found.items():
        if items:
            await vector_index.vectors.upsert(collection, await build_points(vector_index, items))


async def build_document_items(indexed: IndexedDocument) -> list[SearchableItem]:
    """Return the searchable items of a document's chunks.

    After every `CHUNKS` chunks, the function lets waiting requests run first.
    """
    whole = indexed.document
    found: list[SearchableItem] = []
    for number, chunk in enumerate(split_chunks(whole.text, whole.source)):
        if number % CHUNKS == CHUNKS - 1:
            await yield_to_requests()
        payload: dict[str, JsonValue] = {
            "document_id": whole.document_id,
            "event_id": indexed.event_id,
            "chunk": number,
            "start": chunk.start,
            "end": chunk.end,
            "collection": whole.collection,
            "origin": whole.origin,
        }
        point_id = derive_point_id(*indexed.owner, "chunk", whole.document_id, str(number))
        found.append(
            SearchableItem(point_id, indexed.owner, payload, *build_chunk_texts(chunk.text, whole.title))
        )
    return found
