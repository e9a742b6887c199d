"""Vectors on a Qdrant server, 1.19 or newer; any number of processes may use it at once."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import grpc
from qdrant_client import AsyncQdrantClient
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
from qdrant_client.models import (
    FieldCondition,
    Filter,
    FilterSelector,
    HasIdCondition,
    IdfCorpusParams,
    MatchValue,
    PayloadSelectorExclude,
    PointStruct,
    QueryRequest,
    SearchParams,
    SparseVector,
)

from mnemon_contracts.subjects import Owner
from mnemon_infra.config import Deployment
from mnemon_infra.models.embedding import Dense, Sparse
from mnemon_infra.vectors.layout import DENSE, NO_TENANT, SPARSE, TENANT, USER, build_payload, restore_point
from mnemon_infra.vectors.port import (
    PAGE,
    Collection,
    IdFilter,
    Point,
    PointHit,
    PointPage,
    StoredPoint,
    VectorsLost,
    VectorsUnavailable,
)

_TIMEOUT = 10  # seconds
_WRITTEN_AT_ONCE = 256
_PAYLOAD = PayloadSelectorExclude(exclude=[TENANT, USER])

_PASSING = {
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.INTERNAL,
    # The collections were dropped or the key was changed: requests work again once this is corrected.
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.UNKNOWN,
}
_INVALID = {HTTPStatus.BAD_REQUEST, HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY}

_NEXT_STEP = "Start the server, or check MNEMON_QDRANT_URL"
_CHECK_SERVER = "Check the log of the server, and MNEMON_QDRANT_URL"
_REFUSED = {grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED}
_NO_ANSWER = {grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE}


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise `VectorsUnavailable` for errors of the server that may be temporary."""
    try:
        yield
    except grpc.RpcError as error:
        if error.code() not in _PASSING:
            raise
        raise VectorsUnavailable(_describe_fault(error.code(), error.details())) from error
    except UnexpectedResponse as error:
        if error.status_code in _INVALID:
            raise
        raise VectorsUnavailable(_describe_status(error)) from error
    except ResourceExhaustedResponse as error:
        raise VectorsUnavailable(_describe_limit(str(error))) from error
    except (ResponseHandlingException, QdrantException, OSError) as error:
        raise VectorsUnavailable(f"Qdrant does not answer: {error}. {_NEXT_STEP}") from error


def _describe_fault(code: grpc.StatusCode, details: str) -> str:
    """Return a message for an error of gRPC, with the next step."""
    if code in _REFUSED:
        return _describe_refused_key(details)
    if code is grpc.StatusCode.NOT_FOUND:
        return (
            f"Qdrant has lost a collection: {details}. A running `index` creates it and indexes the log "
            "again; after a change of the embedding model, stop the consumers and run `mnemon reindex`"
        )
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return _describe_limit(details)
    if code in _NO_ANSWER:
        return f"Qdrant does not answer: {code.name}: {details}. {_NEXT_STEP}"
    return f"Qdrant failed: {code.name}: {details}. {_CHECK_SERVER}"


def _describe_status(error: UnexpectedResponse) -> str:
    """Return a message for an answer with an unexpected HTTP status, with the next step."""
    status = f"HTTP {error.status_code} {error.reason_phrase}".strip()
    if error.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return _describe_refused_key(status)
    if error.status_code == HTTPStatus.TOO_MANY_REQUESTS:
        return _describe_limit(status)
    return f"Qdrant failed: {status}. {_CHECK_SERVER}"


def _describe_refused_key(why: str) -> str:
    return f"Qdrant refuses the API key: {why}. Check MNEMON_QDRANT_API_KEY"


def _describe_limit(why: str) -> str:
    return f"Qdrant has reached a limit: {why}. Repeat the request later, or raise the limits of the server"


def build_alias(schema: str, collection: Collection) -> str:
    """Return the alias by which processes address a collection; a swap gives it to another collection."""
    return f"{schema}.{collection}"


class QdrantServer:
    """The vectors of one schema, whose name is the prefix of its collections' aliases; see `VectorStore`."""

    def __init__(self, client: AsyncQdrantClient, schema: str) -> None:
        self._client = client
        self._schema = schema

    async def upsert(self, collection: Collection, points: Sequence[Point]) -> None:
        for start in range(0, len(points), _WRITTEN_AT_ONCE):
            with translate_errors():
                await self._client.upsert(
                    build_alias(self._schema, collection),
                    [_encode_point(point) for point in points[start : start + _WRITTEN_AT_ONCE]],
                    wait=True,
                )

    async def search(
        self,
        collection: Collection,
        owner: Owner,
        queries: Sequence[Dense | Sparse],
        limit: int,
        where: Mapping[str, str | int] | None = None,
        ids: IdFilter | None = None,
    ) -> list[list[PointHit]]:
        within = _build_filter(owner, where, ids)
        requests = [
            QueryRequest(
                query=_encode_sparse(query) if isinstance(query, Sparse) else query.tolist(),
                using=SPARSE if isinstance(query, Sparse) else DENSE,
                params=_choose_params(query, owner[0]),
                filter=within,
                limit=limit,
                with_payload=_PAYLOAD,
            )
            for query in queries
        ]
        with translate_errors():
            found = await self._client.query_batch_points(build_alias(self._schema, collection), requests)
        return [
            [PointHit(UUID(str(hit.id)), hit.score, hit.payload or {}) for hit in response.points]
            for response in found
        ]

    async def wait_until_optimised(self) -> None:
        """Return at once: the server optimises its collections without help."""

    async def delete(self, collection: Collection, owner: Owner, ids: Sequence[UUID] | None = None) -> None:
        which = [] if ids is None else [HasIdCondition(has_id=list(ids))]
        within = Filter(must=[_match_field(TENANT, owner[0]), _match_field(USER, owner[1]), *which])
        with translate_errors():
            await self._client.delete(
                build_alias(self._schema, collection), FilterSelector(filter=within), wait=True
            )

    async def require_present(self) -> None:
        with translate_errors():
            named = {each.alias_name for each in (await self._client.get_aliases()).aliases}
        lost = sorted({build_alias(self._schema, each) for each in Collection} - named)
        if lost:
            raise VectorsLost(", ".join(lost))

    async def scroll(self, collection: Collection, owner: Owner) -> AsyncIterator[Sequence[StoredPoint]]:
        within, offset = _build_filter(owner), None
        while True:
            with translate_errors():
                page, offset = await self._client.scroll(
                    build_alias(self._schema, collection),
                    within,
                    limit=PAGE,
                    offset=offset,
                    with_payload=_PAYLOAD,
                )
            if page:
                yield [StoredPoint(UUID(str(record.id)), record.payload or {}) for record in page]
            if offset is None:
                return

    async def read_page(
        self,
        collection: Collection,
        begin: UUID | None = None,
        most: int = PAGE,
        owner: Owner | None = None,
    ) -> PointPage:
        with translate_errors():
            records, following = await self._client.scroll(
                build_alias(self._schema, collection),
                _build_filter(owner) if owner else None,
                limit=most,
                offset=str(begin) if begin else None,
                with_payload=True,
                with_vectors=True,
            )
        points = [
            restore_point(UUID(str(each.id)), each.payload or {}, cast("dict[str, Any]", each.vector))
            for each in records
        ]
        return PointPage(points, UUID(str(following)) if following is not None else None)

    async def count(self, collection: Collection, owner: Owner | None = None) -> int:
        within = _build_filter(owner) if owner else None
        with translate_errors():
            return (await self._client.count(build_alias(self._schema, collection), within, exact=True)).count


@asynccontextmanager
async def open_client(deployment: Deployment) -> AsyncIterator[AsyncQdrantClient]:
    """Open a client of the deployment's server, without a request to the server.

    Raises:
        VectorsUnavailable: the file with the server's certificate authority cannot be read.
    """
    key, authority = deployment.qdrant_api_key, _read_authority(deployment.qdrant_ca)
    client = AsyncQdrantClient(
        url=deployment.qdrant_url,
        grpc_port=deployment.qdrant_grpc_port,
        api_key=key.get_secret_value() if key else None,
        prefer_grpc=True,
        timeout=_TIMEOUT,
        check_compatibility=False,
        grpc_options={"root_certificates": authority} if authority else None,
    )
    try:
        yield client
    finally:
        await client.close()


async def read_version(deployment: Deployment) -> str:
    """Return the version of the deployment's server."""
    async with open_client(deployment) as client:
        with translate_errors():
            return (await client.info()).version


def _read_authority(path: Path | None) -> bytes | None:
    try:
        return path.read_bytes() if path else None
    except OSError as error:
        raise VectorsUnavailable(
            f"the certificates in {path} cannot be read: {error.strerror}. Check MNEMON_QDRANT_CA"
        ) from error


def _match_field(field: str, value: str | int) -> FieldCondition:
    return FieldCondition(key=field, match=MatchValue(value=value))


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
    named = HasIdCondition(has_id=list(ids.ids))
    return Filter(must=[*fields], must_not=[named]) if ids.is_excluded else Filter(must=[*fields, named])


def _choose_params(query: Dense | Sparse, tenant: str) -> SearchParams | None:
    """Return the parameters that name the points within which the server computes the rarity of terms.

    Return None for a dense query.
    A server before 1.19 ignores the parameters: it computes the rarity within the collection, even for a
    query with `has_rarity`.
    """
    if not isinstance(query, Sparse):
        return None
    corpus = NO_TENANT if query.has_rarity else tenant
    return SearchParams(idf=IdfCorpusParams(corpus=Filter(must=[_match_field(TENANT, corpus)])))


def _encode_point(point: Point) -> PointStruct:
    vectors: dict[str, Any] = {SPARSE: _encode_sparse(point.sparse)}
    if point.dense is not None:
        vectors[DENSE] = point.dense.tolist()
    return PointStruct(id=str(point.id), vector=vectors, payload=build_payload(point))


def _encode_sparse(vector: Sparse) -> SparseVector:
    return SparseVector(indices=list(vector.indices), values=list(vector.values))
