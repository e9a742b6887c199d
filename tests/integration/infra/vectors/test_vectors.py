"""The port of vector stores, tested with the embedded engine and with the client of a Qdrant server."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import grpc
import httpx
import pytest
import pytest_asyncio
from qdrant_client import AsyncQdrantClient
from qdrant_client.http.exceptions import UnexpectedResponse
from qdrant_client.models import DeleteAlias, DeleteAliasOperation

from mnemon_infra.config import Deployment
from mnemon_infra.vectors.collections import (
    drop_all_generations,
    drop_collections,
    has_collections,
    open_collections,
    rename_collections,
    swap_collections,
)
from mnemon_infra.vectors.embedding_metadata import EmbeddingMetadata
from mnemon_infra.vectors.engines import open_vectors
from mnemon_infra.vectors.port import (
    Collection,
    VectorsNotConfigured,
    VectorsOutdated,
    VectorStore,
    VectorsUnavailable,
)
from mnemon_infra.vectors.server import open_client, translate_errors
from tests.support.servers.qdrant import URL
from tests.support.suites.vector_engine import DIMENSION, MODEL, Suite, WordySuite, point

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant")

MODELS = [pytest.param(EmbeddingMetadata(model=MODEL, dimension=DIMENSION), id="dense and words")]
MODELS += [pytest.param(EmbeddingMetadata(model="none", dimension=None), id="words only")]


@pytest.fixture
def schema() -> str:
    return f"test_{uuid4().hex[:12]}"


@pytest_asyncio.fixture
async def client(schema: str) -> AsyncIterator[AsyncQdrantClient]:
    """Client of the server that `MNEMON_QDRANT_URL` names.

    Without a server, the in-memory mode of the client's package takes its place; its answers can differ
    from those of a server.
    """
    if URL is None:
        client = AsyncQdrantClient(":memory:")
        yield client
        await client.close()
        return
    async with open_client(Deployment(qdrant_url=URL)) as client:
        yield client
        await drop_all_generations(client, schema)


class TestEdge(Suite, WordySuite):
    @pytest_asyncio.fixture
    async def vectors(self, tmp_path: Path) -> AsyncIterator[VectorStore]:
        deployment = Deployment(vectors_folder=tmp_path / "vectors")
        async with open_vectors(deployment, model=MODEL, dimension=DIMENSION) as vectors:
            yield vectors

    @pytest_asyncio.fixture(params=MODELS)
    async def wordy(self, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[VectorStore]:
        deployment = Deployment(vectors_folder=tmp_path / "vectors")
        async with open_vectors(
            deployment, model=request.param.model, dimension=request.param.dimension
        ) as vectors:
            yield vectors


class TestServer(Suite, WordySuite):
    @pytest_asyncio.fixture
    async def vectors(self, client: AsyncQdrantClient, schema: str) -> VectorStore:
        return await open_collections(client, schema, EmbeddingMetadata(model=MODEL, dimension=DIMENSION))

    @pytest_asyncio.fixture(params=MODELS)
    async def wordy(
        self, client: AsyncQdrantClient, schema: str, request: pytest.FixtureRequest
    ) -> VectorStore:
        return await open_collections(client, schema, request.param)


class TestServerKeeps:
    async def test_schemas_have_separate_collections(self, client: AsyncQdrantClient, schema: str) -> None:
        made_by = EmbeddingMetadata(model=MODEL, dimension=DIMENSION)
        one, two = (
            await open_collections(client, f"{schema}_one", made_by),
            await open_collections(client, f"{schema}_two", made_by),
        )
        await one.upsert(Collection.MEMORIES, [point("a")])
        assert await two.count(Collection.MEMORIES) == 0
        await drop_collections(client, f"{schema}_one")
        assert (
            await (await open_collections(client, f"{schema}_one", made_by)).count(Collection.MEMORIES) == 0
        )

    async def test_vectors_of_another_model_are_refused(self, client: AsyncQdrantClient, schema: str) -> None:
        await open_collections(client, schema, EmbeddingMetadata(model="first", dimension=DIMENSION))
        await open_collections(client, schema, EmbeddingMetadata(model="first", dimension=DIMENSION))
        with pytest.raises(VectorsOutdated, match=r"by first .*name second .*`mnemon reindex`"):
            await open_collections(client, schema, EmbeddingMetadata(model="second", dimension=DIMENSION))

    async def test_alias_names_the_live_collections(self, client: AsyncQdrantClient, schema: str) -> None:
        """Open collections follow the alias when collections are swapped and swapped back."""
        made_by = EmbeddingMetadata(model=MODEL, dimension=DIMENSION)
        live, other = (
            await open_collections(client, schema, made_by),
            await open_collections(client, f"{schema}_next", made_by),
        )
        await live.upsert(Collection.MEMORIES, [point("a")])
        await other.upsert(Collection.MEMORIES, [point("a"), point("b")])
        await swap_collections(client, schema, f"{schema}_next", f"{schema}_before")
        assert await live.count(Collection.MEMORIES) == 2
        assert not await has_collections(client, f"{schema}_next")
        further = await open_collections(client, f"{schema}_next", made_by)
        assert await further.count(Collection.MEMORIES) == 0
        await swap_collections(client, schema, f"{schema}_before", f"{schema}_before")
        assert await live.count(Collection.MEMORIES) == 1
        await drop_collections(client, f"{schema}_before")
        assert await live.count(Collection.MEMORIES) == 1

    async def test_missing_collection_is_created(self, client: AsyncQdrantClient, schema: str) -> None:
        made_by = EmbeddingMetadata(model=MODEL, dimension=DIMENSION)
        live, _ = (
            await open_collections(client, schema, made_by),
            await open_collections(client, f"{schema}_next", made_by),
        )
        await live.upsert(Collection.MEMORIES, [point("a")])
        await client.delete_collection(f"{schema}_summaries")
        for alias in (await client.get_aliases()).aliases:
            assert alias.collection_name != f"{schema}_summaries"

        await swap_collections(client, schema, f"{schema}_next", f"{schema}_before")
        assert await live.count(Collection.SUMMARIES) == 0
        await rename_collections(client, f"{schema}_before", f"{schema}_next")
        assert await has_collections(client, f"{schema}_next")
        further = await open_collections(client, f"{schema}_next", made_by)
        assert [await further.count(each) for each in Collection] == [1, 0, 0, 0]

    async def test_collections_without_alias_are_adopted(
        self, client: AsyncQdrantClient, schema: str
    ) -> None:
        made_by = EmbeddingMetadata(model=MODEL, dimension=DIMENSION)
        live = await open_collections(client, schema, made_by)
        await live.upsert(Collection.MEMORIES, [point("a")])
        former = [
            DeleteAliasOperation(delete_alias=DeleteAlias(alias_name=each.alias_name))
            for each in (await client.get_aliases()).aliases
            if each.alias_name.startswith(f"{schema}.")
        ]
        await client.update_collection_aliases(former)
        assert await has_collections(client, schema)
        assert await (await open_collections(client, schema, made_by)).count(Collection.MEMORIES) == 1
        await drop_collections(client, schema)
        assert not await has_collections(client, schema)

    async def test_foreign_collections_stay_untouched(self, client: AsyncQdrantClient, schema: str) -> None:
        await client.create_collection(f"{schema}_memories", vectors_config={})
        with pytest.raises(VectorsOutdated, match="have no readable record of their embedding model"):
            await open_collections(client, schema, EmbeddingMetadata(model=MODEL, dimension=DIMENSION))


async def test_unreachable_vector_server_is_named() -> None:
    deployment = Deployment(qdrant_url="http://127.0.0.1:1", qdrant_grpc_port=1)
    with pytest.raises(VectorsUnavailable, match="Qdrant"):
        async with open_vectors(deployment, model=MODEL, dimension=DIMENSION):
            raise AssertionError("it was opened")


@pytest.mark.parametrize(
    ("code", "named"),
    [
        (grpc.StatusCode.UNAUTHENTICATED, "MNEMON_QDRANT_API_KEY"),
        (grpc.StatusCode.NOT_FOUND, "mnemon reindex"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "raise the limits"),
        (grpc.StatusCode.INTERNAL, "Check the log of the server"),
        (grpc.StatusCode.UNAVAILABLE, "MNEMON_QDRANT_URL"),
    ],
)
def test_faults_of_the_server_name_the_next_step(code: grpc.StatusCode, named: str) -> None:
    fault = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details="told by Qdrant")
    with pytest.raises(VectorsUnavailable, match=rf"told by Qdrant\..*{named}"), translate_errors():
        raise fault


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (401, "Qdrant refuses the API key: HTTP 401.*MNEMON_QDRANT_API_KEY"),
        (403, "Qdrant refuses the API key: HTTP 403.*MNEMON_QDRANT_API_KEY"),
        (429, "Qdrant has reached a limit: HTTP 429"),
        (500, "Qdrant failed: HTTP 500.*log of the server"),
    ],
)
def test_unexpected_status_of_the_server_has_its_own_message(status: int, message: str) -> None:
    fault = UnexpectedResponse(status, "", b"", httpx.Headers())
    with pytest.raises(VectorsUnavailable, match=message), translate_errors():
        raise fault


async def test_missing_vector_configuration_is_refused() -> None:
    with pytest.raises(VectorsNotConfigured, match="MNEMON_QDRANT_URL"):
        async with open_vectors(Deployment(), model=MODEL, dimension=DIMENSION):
            raise AssertionError("it was opened")
