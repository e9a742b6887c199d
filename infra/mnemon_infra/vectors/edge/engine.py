"""Qdrant Edge: the embedded engine, with data in a folder that only this process has open."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from qdrant_edge import (
    CountRequest,
    FieldCondition,
    Filter,
    HasIdCondition,
    IdfParams,
    MatchValue,
    PayloadSelector,
    QuantizationSearchParams,
    Query,
    QueryBatchRequest,
    QueryRequest,
    ScrollRequest,
    SearchParams,
    SparseVector,
)
from qdrant_edge import Point as EdgePoint

from mnemon_contracts.subjects import Owner
from mnemon_infra.models.embedding import Dense, Sparse
from mnemon_infra.process.data_folder import FolderInUse, lock_folder, replace_file
from mnemon_infra.process.request_priority import yield_to_requests
from mnemon_infra.vectors.edge.folder_swap import settle_swap, swap_folders, undo_swap
from mnemon_infra.vectors.edge.shard import WRITTEN_AT_ONCE, Shard, require_room, translate_errors
from mnemon_infra.vectors.embedding_metadata import RECORD, EmbeddingMetadata
from mnemon_infra.vectors.layout import DENSE, NO_TENANT, SPARSE, TENANT, USER, build_payload, restore_point
from mnemon_infra.vectors.port import (
    PAGE,
    Collection,
    IdFilter,
    Point,
    PointHit,
    PointPage,
    StoredPoint,
    VectorsInUse,
    VectorsLost,
)

_PAYLOAD = PayloadSelector.Exclude([TENANT, USER])

_RESCORED = SearchParams(quantization=QuantizationSearchParams(rescore=True, oversampling=1.5))
"""Search by quantized vectors, and score one and a half times as many points as requested by their floats.

Of the 32 nearest among 700 messages, 99.9 % are found; of the 16 nearest in a graph of 8,500 messages 98.9 %,
as many as by floats only (ADR 0027).
"""


class Edge:
    """The vectors of one folder of the embedded engine; see `VectorStore`."""

    def __init__(self, shards: Mapping[Collection, Shard]) -> None:
        self._shards = shards

    def use_shards(self, shards: Mapping[Collection, Shard]) -> None:
        """Replace the shards that later reads and writes use."""
        self._shards = shards

    async def upsert(self, collection: Collection, points: Sequence[Point]) -> None:
        shard = self._shards[collection]
        shard.tenants.update(point.owner[0] for point in points)
        for start in range(0, len(points), WRITTEN_AT_ONCE):
            await shard.write([_encode_point(point) for point in points[start : start + WRITTEN_AT_ONCE]])

    async def search(
        self,
        collection: Collection,
        owner: Owner,
        queries: Sequence[Dense | Sparse],
        limit: int,
        where: Mapping[str, str | int] | None = None,
        ids: IdFilter | None = None,
    ) -> list[list[PointHit]]:
        shard = self._shards[collection]
        within = _build_filter(owner, where, ids)
        # Without points of other tenants, the rarity within the shard is that within the tenant.
        is_alone = shard.tenants <= {owner[0]}
        requests = [
            QueryRequest(
                limit=limit,
                query=_encode_query(query),
                filter=within,
                with_payload=_PAYLOAD,
                params=_choose_params(query, owner[0], is_alone=is_alone),
            )
            for query in queries
        ]
        with translate_errors():
            found = cast("list[list[Any]]", shard.engine.query_batch(QueryBatchRequest(requests)))
        return [[PointHit(hit.id, hit.score, hit.payload or {}) for hit in hits] for hits in found]

    async def wait_until_optimised(self) -> None:
        for shard in self._shards.values():
            await shard.wait_until_optimised()

    async def require_present(self) -> None:
        for shard in self._shards.values():
            if shard.is_lost:
                raise VectorsLost(shard.folder)

    async def delete(self, collection: Collection, owner: Owner, ids: Sequence[UUID] | None = None) -> None:
        which = [] if ids is None else [HasIdCondition(set(ids))]
        within = Filter(must=[_match_field(TENANT, owner[0]), _match_field(USER, owner[1]), *which])
        await self._shards[collection].remove(within)

    async def scroll(self, collection: Collection, owner: Owner) -> AsyncIterator[Sequence[StoredPoint]]:
        within, offset = _build_filter(owner), None
        while True:
            request = ScrollRequest(offset=offset, limit=PAGE, filter=within, with_payload=_PAYLOAD)
            with translate_errors():
                page, offset = self._shards[collection].engine.scroll(request)
            if page:
                yield [StoredPoint(cast("UUID", record.id), record.payload or {}) for record in page]
            if offset is None:
                return
            await yield_to_requests()

    async def read_page(
        self,
        collection: Collection,
        begin: UUID | None = None,
        most: int = PAGE,
        owner: Owner | None = None,
    ) -> PointPage:
        await yield_to_requests()
        within = _build_filter(owner) if owner else None
        request = ScrollRequest(begin, most, within, with_payload=True, with_vector=True)
        with translate_errors():
            records, following = self._shards[collection].engine.scroll(request)
        points = [
            restore_point(cast("UUID", each.id), each.payload or {}, cast("dict[str, Any]", each.vector))
            for each in records
        ]
        return PointPage(points, cast("UUID | None", following))

    async def count(self, collection: Collection, owner: Owner | None = None) -> int:
        request = CountRequest(exact=True, filter=_build_filter(owner) if owner else None)
        with translate_errors():
            return self._shards[collection].engine.count(request)


class _OpenFolder:
    """A folder that this process has open; `users` counts the callers of `open_edge` that use it."""

    def __init__(self, folder: Path, embedding_metadata: EmbeddingMetadata) -> None:
        self.users = 0
        self._folder = folder
        self._embedding_metadata = embedding_metadata
        settle_swap(folder)
        with ExitStack() as failing:
            failing.enter_context(lock_vectors(folder))
            require_room(folder)
            _check_or_write_record(folder, embedding_metadata)
            shards = self._load_shards(failing)
            self._ends = failing.pop_all()
        self._shards = shards
        self.vectors = Edge(shards)

    async def swap_with(self, to: Path) -> None:
        """Put the folder `to` in the place of this folder, and answer requests from its content.

        The former content moves to the path of `build_former_path`.
        """
        for shard in self._shards.values():
            await shard.stop_background_work()
        # No await from here on: readers see either the old shards or the new ones.
        with ExitStack() as failing:
            failing.enter_context(lock_vectors(to))
            _check_or_write_record(to, self._embedding_metadata)
            swap_folders(self._folder, to)
            with ExitStack() as undoing:
                undoing.callback(undo_swap, self._folder, to)
                shards = self._load_shards(failing)
                undoing.pop_all()
            former, self._ends = self._ends, failing.pop_all()
        self._shards = shards
        self.vectors.use_shards(shards)
        former.close()

    def reopen(self) -> None:
        """Close the folder, and open it again with the content that is left."""
        former = self._ends
        former.close()
        with ExitStack() as failing:
            failing.enter_context(lock_vectors(self._folder))
            _check_or_write_record(self._folder, self._embedding_metadata)
            shards = self._load_shards(failing)
            self._ends = failing.pop_all()
        self._shards = shards
        self.vectors.use_shards(shards)

    def close(self) -> None:
        """Close the shards and unlock the folder."""
        self._ends.close()

    def _load_shards(self, ends: ExitStack) -> dict[Collection, Shard]:
        shards = {}
        with translate_errors():
            for collection in Collection:
                shards[collection] = Shard(self._folder / collection, self._embedding_metadata.dimension)
                ends.callback(shards[collection].close)
                shards[collection].optimise_when_idle()
        return shards


_opened: dict[Path, _OpenFolder] = {}


@asynccontextmanager
async def open_edge(folder: Path, embedding_metadata: EmbeddingMetadata) -> AsyncIterator[Edge]:
    """Open the vectors of a folder, which is created if absent. All callers in a process share the vectors.

    Raises:
        VectorsInUse: another process has the folder open.
        VectorsOutdated: another model made the vectors in the folder, or the record of the model is invalid.
        VectorsUnavailable: the engine cannot open the folder, or its disk is full.
    """
    folder = folder.resolve()  # noqa: ASYNC240 (once, at the start)
    if folder in _opened:
        _check_or_write_record(folder, embedding_metadata)
    else:
        _opened[folder] = _OpenFolder(folder, embedding_metadata)
    opened = _opened[folder]
    opened.users += 1
    try:
        yield opened.vectors
    finally:
        opened.users -= 1
        if not opened.users:
            del _opened[folder]
            opened.close()


async def swap_open_folder(folder: Path, to: Path) -> None:
    """Replace a folder that this process has open by the folder `to`, while searches continue.

    Writers must pause during the swap, which moves the former folder to the path that
    `folder_swap.build_former_path` returns.

    Raises:
        VectorsUnavailable: the swap failed; nothing has changed.
        VectorsInUse: another process has the other folder open.
        VectorsOutdated: another model made the vectors of the other folder.
    """
    await _opened[folder.resolve()].swap_with(to.resolve())  # noqa: ASYNC240 (once in a while)


def reopen_folder(folder: Path) -> None:
    """Reopen a folder that was deleted while this process had it open. Missing collections are empty.

    Raises:
        VectorsUnavailable, VectorsOutdated, VectorsInUse, OSError: the folder cannot be opened now.
    """
    _opened[folder.resolve()].reopen()


@contextmanager
def lock_vectors(folder: Path) -> Iterator[None]:
    """Lock the folder against other processes for the duration of the block.

    Raises:
        VectorsInUse: another process, or this one, holds the lock already.
    """
    try:
        with lock_folder(folder):
            yield
    except FolderInUse as error:
        raise VectorsInUse(
            f"{error}. The embedded vector store serves one process only: wait for the end of that "
            "process, run index, dedupe and retrieve in one process, or set MNEMON_QDRANT_URL to a Qdrant "
            "server, which serves many processes"
        ) from None


def _check_or_write_record(folder: Path, embedding_metadata: EmbeddingMetadata) -> None:
    """Check that this embedding model made the vectors of a folder; record the model in a new folder.

    Raises:
        VectorsOutdated: another model made the vectors, or the record of the model is invalid.
    """
    record = folder / RECORD
    if record.exists():
        embedding_metadata.require_same_model(
            EmbeddingMetadata.parse(record.read_text(encoding="utf-8")), f"the vectors in {folder}"
        )
    else:
        replace_file(record, embedding_metadata.model_dump_json() + "\n")


def _match_field(field: str, value: str | int) -> FieldCondition:
    return FieldCondition(field, match=MatchValue(value))


def _build_filter(
    owner: Owner, where: Mapping[str, str | int] | None = None, ids: IdFilter | None = None
) -> Filter:
    tenant, user = owner
    fields = [
        _match_field(TENANT, tenant),
        _match_field(USER, user),
        *(_match_field(*field) for field in (where or {}).items()),
    ]
    if ids is None:
        return Filter(must=[*fields])
    named = HasIdCondition(set(ids.ids))
    return Filter(must=[*fields], must_not=[named]) if ids.is_excluded else Filter(must=[*fields, named])


def _choose_params(query: Dense | Sparse, tenant: str, *, is_alone: bool) -> SearchParams | None:
    """Return the parameters that name the points within which the engine computes the rarity of terms.

    `is_alone` tells whether the shard has points of this tenant only. Return `_RESCORED` for a dense query,
    and None if the engine may compute the rarity within the whole shard.
    """
    if not isinstance(query, Sparse):
        return _RESCORED
    if is_alone and not query.has_rarity:
        return None
    corpus = NO_TENANT if query.has_rarity else tenant
    return SearchParams(idf=IdfParams(Filter(must=[_match_field(TENANT, corpus)])))


def _encode_point(point: Point) -> EdgePoint:
    vectors: dict[str, Any] = {SPARSE: _encode_sparse(point.sparse)}
    if point.dense is not None:
        vectors[DENSE] = point.dense.tolist()
    return EdgePoint(point.id, vectors, build_payload(point))


def _encode_query(query: Dense | Sparse) -> Query:
    if isinstance(query, Sparse):
        return Query.Nearest(_encode_sparse(query), using=SPARSE)
    return Query.Nearest(query.tolist(), using=DENSE)


def _encode_sparse(vector: Sparse) -> SparseVector:
    return SparseVector(list(vector.indices), list(vector.values))
