"""Tests of the Qdrant engine, on the server that `MNEMON_QDRANT_URL` names or in a container."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import pytest
import pytest_asyncio
from nats.aio.client import Client
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import HttpWaitStrategy

from mnemon.operations.rebuild.generation_verification import GenerationVerification
from mnemon.operations.rebuild.generations import open_generation
from mnemon.operations.rebuild.live_vectors import count_points, open_live_pages
from mnemon.operations.rebuild.swap import open_former_generation, swap_rows, swap_vectors
from mnemon_bench.throughput.rebuild_verified import apply_log
from mnemon_bench.workloads.all_events import fill_log
from mnemon_infra.config import Deployment
from mnemon_infra.database.migration import migrate_schema
from mnemon_infra.rebuild.generations import open_exclusive_site
from mnemon_infra.vectors.embedding_metadata import EmbeddingMetadata
from mnemon_infra.vectors.engines import open_vectors, reset_vectors
from mnemon_infra.vectors.generations import drop_generation, locate_generation
from mnemon_infra.vectors.port import Collection, VectorsOutdated, VectorStore, VectorsUnavailable
from tests.containers.conftest import image, require_engine
from tests.e2e.chaos.test_dedupe_kills import decide_over_three_deaths
from tests.integration.infra.vectors.test_vectors import MODELS
from tests.support.pipelines.rebuild import RebuildReport
from tests.support.processes.dedupe_workers import WORKERS
from tests.support.servers.qdrant import URL
from tests.support.suites.vector_engine import DIMENSION, MODEL, Suite, WordySuite, point

REST_PORT, GRPC_PORT = 6333, 6334

if URL is None:
    require_engine()


@pytest.fixture(scope="module")
def server_url() -> Iterator[str]:
    if URL is not None:
        yield URL
        return
    container = (
        DockerContainer(image("qdrant/qdrant"))
        .with_exposed_ports(REST_PORT)
        # The client takes the port of REST from the address, and always the default port of gRPC.
        .with_bind_ports(GRPC_PORT, GRPC_PORT)
        .waiting_for(HttpWaitStrategy(REST_PORT, "/readyz"))
    )
    with container:
        yield f"http://{container.get_container_host_ip()}:{container.get_exposed_port(REST_PORT)}"


@pytest_asyncio.fixture
async def deployment(server_url: str) -> AsyncIterator[Deployment]:
    deployment = Deployment(qdrant_url=server_url, database_schema=f"test_{uuid4().hex[:12]}")
    yield deployment
    await reset_vectors(deployment)


class TestQdrantServer(Suite, WordySuite):
    @pytest_asyncio.fixture
    async def vectors(self, deployment: Deployment) -> AsyncIterator[VectorStore]:
        async with open_vectors(deployment, model=MODEL, dimension=DIMENSION) as vectors:
            yield vectors

    @pytest_asyncio.fixture(params=MODELS)
    async def wordy(
        self, deployment: Deployment, request: pytest.FixtureRequest
    ) -> AsyncIterator[VectorStore]:
        made_by: EmbeddingMetadata = request.param
        opened = open_vectors(deployment, model=made_by.model, dimension=made_by.dimension)
        async with opened as vectors:
            yield vectors


async def test_points_and_their_model_are_stored(deployment: Deployment) -> None:
    async with open_vectors(deployment, model=MODEL, dimension=DIMENSION) as vectors:
        await vectors.upsert(Collection.MEMORIES, [point("a")])
    async with open_vectors(deployment, model=MODEL, dimension=DIMENSION) as vectors:
        assert await vectors.count(Collection.MEMORIES) == 1
    with pytest.raises(VectorsOutdated):
        async with open_vectors(deployment, model="other", dimension=DIMENSION):
            raise AssertionError("it was opened")


@pytest.mark.long
async def test_four_dedupe_processes_over_qdrant_keep_each_fact_once(
    connection: Client, nats_url: str, database_url: str, deployment: Deployment
) -> None:
    """Kill and restart the processes three times while they decide; all share one Qdrant server."""
    whole = deployment.model_copy(update={"nats_url": nats_url, "database_dsn": database_url})
    assert whole.database_url is not None
    migrate_schema(whole.database_url, whole.database_schema)
    await decide_over_three_deaths(connection, whole, *[1] * WORKERS)


async def test_swap_of_generations_exchanges_collections(
    connection: Client, nats_url: str, database_url: str, deployment: Deployment
) -> None:
    """After a swap and after the swap back, a process that opens the vectors finds the live collections."""
    whole = deployment.model_copy(update={"nats_url": nats_url, "database_dsn": database_url})
    assert whole.database_url is not None
    migrate_schema(whole.database_url, whole.database_schema)
    await fill_log(connection, 300, users=5)
    await apply_log(whole)
    told = RebuildReport()
    async with open_exclusive_site(whole) as place:
        points = await count_points(place, whole)
        async with open_generation(place, "next", told) as generation, open_live_pages(place) as live:
            verdict = await GenerationVerification(place, generation, live, told).compare_all()
            assert (verdict.first, verdict.is_settled) == ([], True)
            await swap_rows(place, generation, told)
        assert await swap_vectors(place, told)
        assert await count_points(place, whole) == points
        async with open_former_generation(place, told) as generation:
            await swap_rows(place, generation, told)
        assert await swap_vectors(place, told)
        await drop_generation(locate_generation(whole, "former"))
        assert await count_points(place, whole) == points


async def test_dropped_collections_are_an_outage_until_they_are_opened_again(deployment: Deployment) -> None:
    async with open_vectors(deployment, model=MODEL, dimension=DIMENSION) as vectors:
        await vectors.upsert(Collection.MEMORIES, [point("a")])
        await reset_vectors(deployment)
        with pytest.raises(VectorsUnavailable, match="lost a collection"):
            await vectors.upsert(Collection.MEMORIES, [point("a")])
        async with open_vectors(deployment, model=MODEL, dimension=DIMENSION):
            await vectors.upsert(Collection.MEMORIES, [point("a")])
        assert await vectors.count(Collection.MEMORIES) == 1


async def test_processes_that_start_together_create_each_collection_once(deployment: Deployment) -> None:
    async def open_and_count() -> int:
        async with open_vectors(deployment, model=MODEL, dimension=DIMENSION) as vectors:
            return await vectors.count(Collection.MESSAGES)

    assert await asyncio.gather(*(open_and_count() for _ in range(4))) == [0] * 4
