"""What mnemon asks of a vector engine, and no more. Two engines serve it: `edge` and `server`."""

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
    """What is kept apart."""

    MEMORIES = "memories"
    MESSAGES = "messages"
    DOCUMENTS = "documents"
    SUMMARIES = "summaries"


@dataclass(frozen=True, slots=True)
class Point:
    """Something to be found. `dense` is None where nothing embeds.

    The payload says what it stands for, never what it says: texts are read from the database, which knows
    what has been forgotten since.
    """

    id: UUID
    owner: Owner
    payload: Mapping[str, JsonValue]
    sparse: Sparse
    dense: Dense | None = None


class StoredPoint(NamedTuple):
    """A point, as a scroll gives it."""

    id: UUID
    payload: Mapping[str, JsonValue]


class IdFilter(NamedTuple):
    """Points by their ids: only these, or with `is_excluded` all others."""

    ids: frozenset[UUID]
    is_excluded: bool = False


class PointPage(NamedTuple):
    """Points with their vectors, in the order of their ids; `following` is where the next ones begin."""

    points: Sequence[Point]
    following: UUID | None


class PointHit(NamedTuple):
    """A point, as a search gives it. `score` is a cosine similarity, or a sum of term weights."""

    id: UUID
    score: float
    payload: Mapping[str, JsonValue]


PAGE: Final = 256
"""Points of a page, where nothing else is asked for."""


class VectorsUnavailable(Exception):
    """Not now: the engine does not answer. The same may work later."""


class VectorsLost(VectorsUnavailable):
    """The folder that is open was deleted or replaced; the process that has it open makes it anew."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"the vectors in {folder} were deleted while they were open: they are made anew from the log"
        )


class VectorsNotConfigured(Exception):
    """There is neither a Qdrant server nor a folder; the message says what to set."""


class VectorsNotMade(Exception):
    """There are none of that generation; the message says what makes them."""


class VectorsInUse(Exception):
    """Another process holds the embedded engine's folder; the message says what to do."""


class VectorsOutdated(Exception):
    """The vectors were made by another embedding model; the message says what to do."""


class PointPages(Protocol):
    """Where points can be read in the order of their ids."""

    async def page(self, collection: Collection, begin: UUID | None = None, most: int = PAGE) -> PointPage:
        """Some points from an id on, `most` at most."""


class VectorStore(Protocol):
    """Collections of points.

    Every method raises `VectorsUnavailable` when the engine does not answer. What is written is found by
    whoever asks after the call returned, and survives a kill; a power cut may take the last seconds.
    """

    async def upsert(self, collection: Collection, points: Sequence[Point]) -> None:
        """Write points, each in place of the one with the same id."""

    async def search(
        self,
        collection: Collection,
        owner: Owner,
        queries: Sequence[Dense | Sparse],
        limit: int,
        where: Mapping[str, str | int] | None = None,
        ids: IdFilter | None = None,
    ) -> list[list[PointHit]]:
        """The nearest points for each query, best first, at most `limit` each, where payload fields match.

        With `ids`, only among points with these ids, or with any others.

        A term is rare or common within the owner's tenant. A point that has no term of a sparse query is
        no hit of it.
        """

    async def organised(self) -> None:
        """Return once not too much of what was written waits to be sorted: until then it is in memory.

        For whoever writes without end, and has nobody wait for it.
        """

    async def delete(self, collection: Collection, owner: Owner, ids: Sequence[UUID] | None = None) -> None:
        """Remove points; None removes all of the owner's."""

    async def require_kept(self) -> None:
        """Look whether what was written is kept where it belongs.

        Raises:
            VectorsLost: it was deleted.
        """

    def scroll(
        self, collection: Collection, owner: Owner, where: Mapping[str, str | int] | None = None
    ) -> AsyncIterator[Sequence[StoredPoint]]:
        """All points of the owner, page by page, in no order."""

    async def page(
        self,
        collection: Collection,
        begin: UUID | None = None,
        most: int = PAGE,
        owner: Owner | None = None,
    ) -> PointPage:
        """Points as they are stored, of an owner or of all: `most` at most, from an id on, or the first."""

    async def count(self, collection: Collection, owner: Owner | None = None) -> int:
        """How many points there are, of one owner or of all."""
