"""Vector store and embedder, opened together."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pydantic import JsonValue

from mnemon_contracts.identity import derive_point_id
from mnemon_contracts.settings.groups import Embedding
from mnemon_contracts.subjects import Owner
from mnemon_infra.config import Deployment
from mnemon_infra.models.embedders.embedder_choice import open_embedder
from mnemon_infra.models.embedding import Dense, Embedder
from mnemon_infra.models.words import concepts
from mnemon_infra.process.gate import Gate
from mnemon_infra.vectors.engines import open_vectors
from mnemon_infra.vectors.generations import open_vectors_as_of
from mnemon_infra.vectors.port import Point, VectorStore
from mnemon_infra.vectors.texts import build_message_texts

IN_PLACE = 2_000
"""Maximum characters of all texts of a call whose words are weighed in the caller's thread, in about 1 ms.

A call with more characters uses another thread, which lets the event loop run between two texts.
"""


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """Vector store and embedder; without an embedder, points have no dense vectors.

    All writers pass the `gate`.
    """

    vectors: VectorStore
    embedder: Embedder | None
    gate: Gate = field(default_factory=Gate)


class SearchableItem(NamedTuple):
    """A searchable item: `words` give its sparse vector, `meaning` its dense one; the texts may differ."""

    id: UUID
    owner: Owner
    payload: Mapping[str, JsonValue]
    words: str
    meaning: str


def build_fact_item(owner: Owner, fact_id: str, event_id: str, text: str) -> SearchableItem:
    """Return the searchable item of a fact; `event_id` is the id of the event that wrote this version."""
    point_id = derive_point_id(*owner, "fact", fact_id)
    return SearchableItem(point_id, owner, {"fact_id": fact_id, "event_id": event_id}, text, text)


def build_message_item(
    owner: Owner, event_id: str, seq: int, content: str, name: str | None, sent_at: datetime
) -> SearchableItem:
    """Return the searchable item of a message; `seq` is its log position, and `name` that of its speaker."""
    point_id = derive_point_id(*owner, "message", event_id)
    texts = build_message_texts(content, name, sent_at)
    return SearchableItem(point_id, owner, {"event_id": event_id, "seq": seq}, *texts)


def build_summary_item(owner: Owner, summary_id: str, event_id: str, text: str) -> SearchableItem:
    """Return the searchable item of a summary; `event_id` is the id of the event that wrote the summary."""
    point_id = derive_point_id(*owner, "summary", summary_id)
    return SearchableItem(point_id, owner, {"summary_id": summary_id, "event_id": event_id}, text, text)


@asynccontextmanager
async def open_index(deployment: Deployment, settings: Embedding) -> AsyncIterator[VectorIndex]:
    """Open vector store and embedder for the duration of the block.

    Raises:
        mnemon_infra.vectors.port.VectorsNotConfigured: neither a Qdrant server nor a folder is set.
        mnemon_infra.vectors.port.VectorsInUse: another process has the folder open.
        mnemon_infra.vectors.port.VectorsOutdated: another model made the vectors, or their model is not
            recorded.
        mnemon_infra.vectors.port.VectorsUnavailable: the vector store does not answer, its disk is full, or
            the certificates for the server cannot be read.
        mnemon_infra.models.embedding.EmbeddingNotConfigured: a package, a model or a key is missing, or the
            key cannot be sent.
        mnemon_infra.models.embedding.EmbeddingUnavailable: the provider does not answer or refuses, or its
            model cannot be loaded.
    """
    async with open_embedder(settings, deployment) as model:
        name, dimension = _describe_model(model)
        async with open_vectors(deployment, model=name, dimension=dimension) as vectors:
            yield VectorIndex(vectors, model)


@asynccontextmanager
async def open_index_as_of(
    deployment: Deployment, position: int, live: VectorIndex
) -> AsyncIterator[VectorIndex]:
    """Open the vectors as of a former log position, for searches with the embedder of `live`.

    The function raises the same errors as `mnemon_infra.vectors.generations.open_vectors_as_of`.
    """
    name, dimension = _describe_model(live.embedder)
    async with open_vectors_as_of(deployment, position, model=name, dimension=dimension) as vectors:
        yield VectorIndex(vectors, live.embedder)


async def create_absent_collections(deployment: Deployment, live: VectorIndex) -> None:
    """Create absent collections of the deployment on its Qdrant server, for the embedder of `live`.

    The function raises the same errors as `mnemon_infra.vectors.engines.open_vectors`.
    """
    name, dimension = _describe_model(live.embedder)
    async with open_vectors(deployment, model=name, dimension=dimension):
        pass


def _describe_model(model: Embedder | None) -> tuple[str, int | None]:
    return (model.model, model.dimension) if model else ("none", None)


async def build_points(
    vector_index: VectorIndex, items: Sequence[SearchableItem], meanings: Mapping[str, Dense] | None = None
) -> list[Point]:
    """Return the points of searchable items, in their order.

    `meanings` has known dense vectors by text; the embedder makes the others.

    Raises:
        mnemon_infra.models.embedding.EmbeddingUnavailable: the provider does not answer, or refuses.
    """
    if sum(len(each.words) for each in items) <= IN_PLACE:
        sparse = [concepts.weigh_document(each.words) for each in items]
    else:
        sparse = await asyncio.to_thread(lambda: [concepts.weigh_document(each.words) for each in items])
    if vector_index.embedder is None:
        return [
            Point(each.id, each.owner, each.payload, words) for each, words in zip(items, sparse, strict=True)
        ]
    known = meanings or {}
    absent = [text for text in dict.fromkeys(each.meaning for each in items) if text not in known]
    made = dict(zip(absent, await vector_index.embedder.embed(absent), strict=True)) if absent else {}
    vectors = {**known, **made}
    return [
        Point(each.id, each.owner, each.payload, words, vectors[each.meaning])
        for each, words in zip(items, sparse, strict=True)
    ]
