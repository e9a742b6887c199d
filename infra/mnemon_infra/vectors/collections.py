"""Collections of a Qdrant server: creation, swap and removal.

All readers and writers use aliases, `<schema>.<collection>`. A new collection has the name
`<schema>_<collection>`, or, if that name belongs to another generation after a swap, the name
`<schema>_<8 hex digits>_<collection>`. The list of collections is `Collection` in `port.py`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from uuid import uuid4

import grpc
from qdrant_client import AsyncQdrantClient
from qdrant_client.http.exceptions import UnexpectedResponse
from qdrant_client.models import (
    CreateAlias,
    CreateAliasOperation,
    DeleteAlias,
    DeleteAliasOperation,
    Distance,
    HnswConfigDiff,
    KeywordIndexParams,
    KeywordIndexType,
    Modifier,
    SparseVectorParams,
    VectorParams,
)

from mnemon_infra.vectors.embedding_metadata import EmbeddingMetadata
from mnemon_infra.vectors.layout import DENSE, FULL_SCAN_POINTS, SPARSE, TENANT, USER
from mnemon_infra.vectors.port import Collection
from mnemon_infra.vectors.server import QdrantServer, build_alias, translate_errors

_INDEXES = {
    TENANT: KeywordIndexParams(type=KeywordIndexType.KEYWORD, enable_hnsw=False),
    # Users are kept apart because every search is within one user.
    USER: KeywordIndexParams(type=KeywordIndexType.KEYWORD, is_tenant=True),
}


async def open_collections(
    client: AsyncQdrantClient, schema: str, embedding_metadata: EmbeddingMetadata
) -> QdrantServer:
    """Open the vectors of a schema, and create absent collections.

    Raises:
        VectorsOutdated: another model made the vectors in the collections, or their model is not recorded.
        VectorsUnavailable: the server does not answer.
    """
    with translate_errors():
        named = await _read_aliases(client)
        for collection in Collection:
            shown = build_alias(schema, collection)
            name = named.get(shown, f"{schema}_{collection}")
            if shown not in named and name in named.values():
                name = f"{schema}_{uuid4().hex[:8]}_{collection}"
            if shown not in named and not await client.collection_exists(name):
                await _create_collection(client, name, embedding_metadata)
            said = ((await client.get_collection(name)).config.metadata or {}).get("made_by", "")
            embedding_metadata.require_same_model(EmbeddingMetadata.parse(said), f"the vectors in {name}")
            for field, index in _INDEXES.items():
                await client.create_payload_index(name, field, index)
            if shown not in named:
                await client.update_collection_aliases([_create_alias(name, shown)])
    return QdrantServer(client, schema)


async def has_collections(client: AsyncQdrantClient, schema: str) -> bool:
    """Return whether a schema has collections."""
    with translate_errors():
        return bool(await _read_names(client, schema))


async def swap_collections(client: AsyncQdrantClient, live: str, to: str, former: str) -> None:
    """Give the collections of the schema `to` to `live`, and those of `live` to `former`, in one step."""
    with translate_errors():
        named = await _read_aliases(client)
        at_live, at_other = await _read_names(client, live), await _read_names(client, to)
        changes: list[CreateAliasOperation | DeleteAliasOperation] = []
        for collection in Collection:
            changes += [
                DeleteAliasOperation(delete_alias=DeleteAlias(alias_name=name))
                for name in named.keys() & {build_alias(live, collection), build_alias(to, collection)}
            ]
            changes.append(_create_alias(at_other[collection], build_alias(live, collection)))
            # An earlier version of mnemon may not have had this collection.
            if collection in at_live:
                changes.append(_create_alias(at_live[collection], build_alias(former, collection)))
        await client.update_collection_aliases(changes)


async def rename_collections(client: AsyncQdrantClient, schema: str, to: str) -> None:
    """Give the collections of `schema` to the schema `to`, which has no collections."""
    with translate_errors():
        changes: list[CreateAliasOperation | DeleteAliasOperation] = []
        for collection, name in (await _read_names(client, schema)).items():
            gone = DeleteAlias(alias_name=build_alias(schema, collection))
            changes += [
                DeleteAliasOperation(delete_alias=gone),
                _create_alias(name, build_alias(to, collection)),
            ]
        await client.update_collection_aliases(changes)


async def read_model(client: AsyncQdrantClient, schema: str) -> EmbeddingMetadata | None:
    """Return the model that made the vectors of a schema; None if there are none, or no readable record."""
    with translate_errors():
        for name in (await _read_names(client, schema)).values():
            metadata = (await client.get_collection(name)).config.metadata
            return EmbeddingMetadata.parse((metadata or {}).get("made_by", ""))
    return None


async def drop_collections(client: AsyncQdrantClient, schema: str) -> None:
    """Remove the collections of a schema."""
    with translate_errors():
        for name in (await _read_names(client, schema)).values():
            await client.delete_collection(name)


async def drop_all_generations(client: AsyncQdrantClient, schema: str) -> None:
    """Remove all collections whose names begin with the name of a temporary schema and `_`."""
    with translate_errors():
        for each in (await client.get_collections()).collections:
            if each.name.startswith(f"{schema}_"):
                await client.delete_collection(each.name)


async def _read_aliases(client: AsyncQdrantClient) -> dict[str, str]:
    """Return the name of the collection behind each alias."""
    return {each.alias_name: each.collection_name for each in (await client.get_aliases()).aliases}


async def _read_names(client: AsyncQdrantClient, schema: str) -> dict[Collection, str]:
    """Return the names of a schema's collections; absent collections are left out.

    A collection of an earlier version has no alias, and the name `<schema>_<collection>`.
    """
    existing = {each.name for each in (await client.get_collections()).collections}
    named = await _read_aliases(client)
    taken = set(named.values())
    plain = {each: f"{schema}_{each}" for each in Collection}
    return {
        each: named.get(build_alias(schema, each), plain[each])
        for each in Collection
        if build_alias(schema, each) in named or plain[each] in existing - taken
    }


def _create_alias(collection: str, name: str) -> CreateAliasOperation:
    return CreateAliasOperation(create_alias=CreateAlias(collection_name=collection, alias_name=name))


async def _create_collection(
    client: AsyncQdrantClient, name: str, embedding_metadata: EmbeddingMetadata
) -> None:
    size = embedding_metadata.dimension
    dense = {} if size is None else {DENSE: VectorParams(size=size, distance=Distance.COSINE)}
    compared = FULL_SCAN_POINTS * (size or 0) * 4 // 1024
    with _ignore_existing():
        await client.create_collection(
            name,
            vectors_config=dense,
            sparse_vectors_config={SPARSE: SparseVectorParams(modifier=Modifier.IDF)},
            # Build an index graph for each large user, and none over all users.
            hnsw_config=HnswConfigDiff(m=0, payload_m=16, full_scan_threshold=max(10, compared)),
            metadata={"made_by": embedding_metadata.model_dump_json()},
        )


@contextmanager
def _ignore_existing() -> Iterator[None]:
    """Ignore the error if another process has created the collection at the same moment."""
    try:
        yield
    except grpc.RpcError as error:
        if error.code() != grpc.StatusCode.ALREADY_EXISTS:
            raise
    except UnexpectedResponse as error:
        if error.status_code != HTTPStatus.CONFLICT:
            raise
