"""Port for vector stores: Qdrant Edge (`edge`) and a Qdrant server (`server`) implement it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from pydantic import JsonValue

from mnemon_contracts.subjects import Owner
from mnemon_infra.models.embedding import Dense, Sparse


class Collection(StrEnum):
    """Collections of points, which are searched separately."""

    MEMORIES = "memories"
    MESSAGES = "messages"
    DOCUMENTS = "documents"
    SUMMARIES = "summaries"


@dataclass(frozen=True, slots=True)
class Point:
    """A searchable point. `dense` is None if there is no embedder.

    The payload identifies the item and never contains its text: texts are read from the database, where an
    erasure removes them.
    """

    id: UUID
    owner: Owner
    payload: Mapping[str, JsonValue]
    sparse: Sparse
    dense: Dense | None = None


class StoredPoint(NamedTuple):
    """A stored point without its vectors, in the result of `VectorStore.scroll`."""

    id: UUID
    payload: Mapping[str, JsonValue]


class IdFilter(NamedTuple):
    """Filter of points by their ids: only these ids, or with `is_excluded` all others."""

    ids: frozenset[UUID]
    is_excluded: bool = False


class PointPage(NamedTuple):
    """Points with their vectors, sorted by id.

    `following` is the first id of the next page; None on the last page.
    """

    points: Sequence[Point]
    following: UUID | None


class PointHit(NamedTuple):
    """A point in the result of a search; `score` is a cosine similarity, or a sum of term weights."""

    id: UUID
    score: float
    payload: Mapping[str, JsonValue]


PAGE: Final = 256
"""Default number of points of a page."""


class VectorsUnavailable(Exception):
    """The engine does not answer or refuses requests now; a later attempt may succeed."""


class VectorsLost(VectorsUnavailable):
    """The vectors were deleted or replaced while they were open; a process with `index` refills them."""

    def __init__(self, place: Path | str) -> None:
        super().__init__(
            f"the vectors in {place} were deleted or replaced while they were open: a running `index` fills "
            "them again from the log"
        )


class VectorsNotConfigured(Exception):
    """Neither a Qdrant server nor a folder is set; the message names the variables."""


class VectorsNotMade(Exception):
    """A generation has no vectors; the message names the command that makes them."""


class VectorsInUse(Exception):
    """A process has the embedded engine's folder open already; the message names the next step."""


class VectorsOutdated(Exception):
    """Another or an unknown embedding model made the vectors; the message names the next step."""


class PointPages(Protocol):
    """A source of points in the order of their ids."""

    async def read_page(
        self, collection: Collection, begin: UUID | None = None, most: int = PAGE
    ) -> PointPage:
        """Return at most `most` points, sorted by id, from the id `begin` on; None takes the lowest id."""


class VectorStore(Protocol):
    """A store of points, in collections.

    Every method raises `VectorsUnavailable` when the engine does not answer. Writes are visible to every
    request after the call has returned, and survive a kill of the process; a power cut may lose the writes of
    the last seconds.
    """

    async def upsert(self, collection: Collection, points: Sequence[Point]) -> None:
        """Write points; each replaces the point with the same id."""

    async def search(
        self,
        collection: Collection,
        owner: Owner,
        queries: Sequence[Dense | Sparse],
        limit: int,
        where: Mapping[str, str | int] | None = None,
        ids: IdFilter | None = None,
    ) -> list[list[PointHit]]:
        """Return the nearest points for each query, best first, at most `limit` each.

        A point without any term of a sparse query is not a hit of this query.

        Args:
            collection: the collection to search.
            owner: only points of this user.
            queries: dense or sparse vectors.
            limit: maximum number of hits of each query.
            where: values that fields of the payload must have.
            ids: filter of the points by id; None takes all points.
        """

    async def wait_until_optimised(self) -> None:
        """Wait while many writes are not optimised yet, because they take up memory until then.

        Call this between writes that follow each other without pause, if no request waits for them.
        """

    async def delete(self, collection: Collection, owner: Owner, ids: Sequence[UUID] | None = None) -> None:
        """Remove points by id; None removes all points of the owner."""

    async def require_present(self) -> None:
        """Check that the vector store still has its collections.

        Raises:
            VectorsLost: a collection was deleted.
        """

    def scroll(self, collection: Collection, owner: Owner) -> AsyncIterator[Sequence[StoredPoint]]:
        """Yield the owner's points, page by page, in no particular order."""

    async def read_page(
        self,
        collection: Collection,
        begin: UUID | None = None,
        most: int = PAGE,
        owner: Owner | None = None,
    ) -> PointPage:
        """Return at most `most` points, sorted by id, from the id `begin` on; None takes the lowest id.

        The points are those of `owner`; None takes those of all users.
        """

    async def count(self, collection: Collection, owner: Owner | None = None) -> int:
        """Return the number of points of `owner`; None counts those of all users."""
