"""A Qdrant server, 1.19 or newer: any number of processes may use it at once."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from uuid import UUID

import grpc
from pydantic import SecretStr
from qdrant_client import AsyncQdrantClient
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
from qdrant_client.models import (
    Distance,
    FieldCondition,
    Filter,
    FilterSelector,
    HasIdCondition,
    HnswConfigDiff,
    IdfCorpusParams,
    KeywordIndexParams,
    KeywordIndexType,
    MatchValue,
    Modifier,
    PayloadSelectorExclude,
    PointStruct,
    QueryRequest,
    SearchParams,
    SparseVector,
    SparseVectorParams,
    VectorParams,
)

from infra.vectors.layout import COMPARED, DENSE, SPARSE, TENANT, USER, kept
from infra.vectors.made_by import MadeBy
from infra.vectors.port import Collection, Dense, Hit, Owner, Point, Sparse, Stored, VectorsUnavailable

_TIMEOUT = 10  # seconds
_WRITTEN_AT_ONCE = 256
_PAGE = 256
_PAYLOAD = PayloadSelectorExclude(exclude=[TENANT, USER])

_INDEXES = {
    TENANT: KeywordIndexParams(type=KeywordIndexType.KEYWORD, enable_hnsw=False),
    # It is users that are kept apart: every search is within one.
    USER: KeywordIndexParams(type=KeywordIndexType.KEYWORD, is_tenant=True),
}

_PASSING = {
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.INTERNAL,
    # Somebody dropped the collections, or the key was changed: the same may work once that is mended.
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.UNKNOWN,
}
_BAD_REQUEST, _CONFLICT, _UNPROCESSABLE = 400, 409, 422


@contextmanager
def _answering() -> Iterator[None]:
    """Raise `VectorsUnavailable` for what the server cannot do now."""
    try:
        yield
    except grpc.RpcError as error:
        if error.code() not in _PASSING:
            raise
        raise VectorsUnavailable(f"Qdrant: {error.code().name}: {error.details()}") from error
    except UnexpectedResponse as error:
        if error.status_code in (_BAD_REQUEST, _CONFLICT, _UNPROCESSABLE):
            raise
        raise VectorsUnavailable(f"Qdrant: {error}") from error
    except (ResponseHandlingException, QdrantException, OSError) as error:
        raise VectorsUnavailable(f"Qdrant: {error}") from error


class Server:
    """The vectors of one schema: its name begins the names of the collections."""

    def __init__(self, client: AsyncQdrantClient, schema: str) -> None:
        self._client = client
        self._schema = schema

    async def upsert(self, collection: Collection, points: Sequence[Point]) -> None:
        for start in range(0, len(points), _WRITTEN_AT_ONCE):
            with _answering():
                await self._client.upsert(
                    self._name(collection),
                    [_point(point) for point in points[start : start + _WRITTEN_AT_ONCE]],
                    wait=True,
                )

    async def search(
        self,
        collection: Collection,
        owner: Owner,
        queries: Sequence[Dense | Sparse],
        limit: int,
        where: Mapping[str, str | int] | None = None,
    ) -> list[list[Hit]]:
        # A server before 1.19 passes over `idf`, and counts the terms of all tenants.
        corpus = SearchParams(idf=IdfCorpusParams(corpus=Filter(must=[_is(TENANT, owner[0])])))
        within = _within(owner, where)
        requests = [
            QueryRequest(
                query=_sparse(query) if isinstance(query, Sparse) else query.tolist(),
                using=SPARSE if isinstance(query, Sparse) else DENSE,
                params=corpus if isinstance(query, Sparse) else None,
                filter=within,
                limit=limit,
                with_payload=_PAYLOAD,
            )
            for query in queries
        ]
        with _answering():
            found = await self._client.query_batch_points(self._name(collection), requests)
        return [
            [Hit(UUID(str(hit.id)), hit.score, hit.payload or {}) for hit in response.points]
            for response in found
        ]

    async def delete(self, collection: Collection, owner: Owner, ids: Sequence[UUID] | None = None) -> None:
        which = [] if ids is None else [HasIdCondition(has_id=list(ids))]
        within = Filter(must=[_is(TENANT, owner[0]), _is(USER, owner[1]), *which])
        with _answering():
            await self._client.delete(self._name(collection), FilterSelector(filter=within), wait=True)

    async def scroll(
        self, collection: Collection, owner: Owner, where: Mapping[str, str | int] | None = None
    ) -> AsyncIterator[Sequence[Stored]]:
        within, offset = _within(owner, where), None
        while True:
            with _answering():
                page, offset = await self._client.scroll(
                    self._name(collection), within, limit=_PAGE, offset=offset, with_payload=_PAYLOAD
                )
            if page:
                yield [Stored(UUID(str(record.id)), record.payload or {}) for record in page]
            if offset is None:
                return

    async def count(self, collection: Collection, owner: Owner | None = None) -> int:
        within = _within(owner, None) if owner else None
        with _answering():
            return (await self._client.count(self._name(collection), within, exact=True)).count

    def _name(self, collection: Collection) -> str:
        return f"{self._schema}_{collection}"


@asynccontextmanager
async def connected(url: str, api_key: SecretStr | None) -> AsyncIterator[AsyncQdrantClient]:
    """A client of the server; it need not answer yet."""
    client = AsyncQdrantClient(
        url=url,
        api_key=api_key.get_secret_value() if api_key else None,
        prefer_grpc=True,
        timeout=_TIMEOUT,
        check_compatibility=False,
    )
    try:
        yield client
    finally:
        await client.close()


async def serve(client: AsyncQdrantClient, schema: str, made_by: MadeBy) -> Server:
    """The vectors of a schema, their collections created if absent.

    Raises:
        VectorsOutdated: another model made what is in them.
        VectorsUnavailable: the server does not answer.
    """
    with _answering():
        for collection in Collection:
            name = f"{schema}_{collection}"
            if not await client.collection_exists(name):
                await _create(client, name, made_by)
            said = ((await client.get_collection(name)).config.metadata or {}).get("made_by", "")
            made_by.require(MadeBy.read(said), f"the vectors in {name}")
            for field, index in _INDEXES.items():
                await client.create_payload_index(name, field, index)
    return Server(client, schema)


async def drop(client: AsyncQdrantClient, schema: str) -> None:
    """Remove the collections of a schema.

    Raises:
        VectorsUnavailable: the server does not answer.
    """
    with _answering():
        for collection in Collection:
            await client.delete_collection(f"{schema}_{collection}")


async def _create(client: AsyncQdrantClient, name: str, made_by: MadeBy) -> None:
    size = made_by.dimension
    dense = {} if size is None else {DENSE: VectorParams(size=size, distance=Distance.COSINE)}
    compared = COMPARED * (size or 0) * 4 // 1024
    with _unless_there_is_one():
        await client.create_collection(
            name,
            vectors_config=dense,
            sparse_vectors_config={SPARSE: SparseVectorParams(modifier=Modifier.IDF)},
            # A graph of each large user, and none of all.
            hnsw_config=HnswConfigDiff(m=0, payload_m=16, full_scan_threshold=max(10, compared)),
            metadata={"made_by": made_by.model_dump_json()},
        )


@contextmanager
def _unless_there_is_one() -> Iterator[None]:
    """Pass over what another process has created at the same moment."""
    try:
        yield
    except grpc.RpcError as error:
        if error.code() != grpc.StatusCode.ALREADY_EXISTS:
            raise
    except UnexpectedResponse as error:
        if error.status_code != _CONFLICT:
            raise


def _is(field: str, value: str | int) -> FieldCondition:
    return FieldCondition(key=field, match=MatchValue(value=value))


def _within(owner: Owner, where: Mapping[str, str | int] | None) -> Filter:
    tenant, user = owner
    conditions = [_is(TENANT, tenant), _is(USER, user)]
    return Filter(must=[*conditions, *(_is(*field) for field in (where or {}).items())])


def _point(point: Point) -> PointStruct:
    vectors: dict[str, Any] = {SPARSE: _sparse(point.sparse)}
    if point.dense is not None:
        vectors[DENSE] = point.dense.tolist()
    return PointStruct(id=str(point.id), vector=vectors, payload=kept(point))


def _sparse(vector: Sparse) -> SparseVector:
    return SparseVector(indices=list(vector.indices), values=list(vector.values))
