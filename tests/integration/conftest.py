"""Fixtures of the integration tests: deployments, consumers in this process, and local provider servers."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio
from nats.aio.client import Client

from mnemon_bench.provider_server.server import ProviderServer
from mnemon_consumers.app import run_consumers
from mnemon_consumers.retrieve.search import candidates
from mnemon_consumers.retrieve.search.query import query_embedder
from mnemon_consumers.retrieve.search.scopes import facts
from mnemon_consumers.retrieve.verbs import context
from mnemon_consumers.retrieve.verbs.facts import points, save
from mnemon_infra.config import Deployment
from mnemon_infra.database import engine, query_batcher
from mnemon_infra.database.engine import Database
from mnemon_infra.database.migration import migrate_schema
from mnemon_infra.durables import CONSUMERS
from mnemon_infra.rebuild.generations import Site, open_exclusive_site
from mnemon_producers.client import MemoryClient
from tests.support.patience import PATIENT
from tests.support.pipelines.compaction import CompactionHarness
from tests.support.pipelines.extraction import MODEL, ExtractionHarness
from tests.support.pipelines.rebuild import RebuildReport
from tests.support.servers.embedding_server import Endpoint, serve_embeddings, serve_endpoint
from tests.support.servers.qdrant import locate_vectors
from tests.support.servers.reranker_server import RerankerServer
from tests.support.servers.schemas import create_schema
from tests.support.stock_client import Stock

AUTHORITY = Path(__file__).parents[1] / "support" / "servers" / "authority.pem"
"""Certificate of an authority without a private key; no certificate is signed by it."""

REQUEST_WAITS = (
    (engine, "ANSWER_WAIT"),
    (query_batcher, "ANSWER_WAIT"),
    (query_embedder, "EMBEDDING_WAIT"),
    (candidates, "VECTORS_WAIT"),
    (facts, "LINKS_WAIT"),
    (context, "SEARCH_TIMEOUT"),
    (context, "READ_SECONDS"),
    (context, "ANSWER_SECONDS"),
    (points, "EMBEDDING_TIMEOUT"),
    (save, "DECISION_TIMEOUT"),
)
"""Modules and names of the constants, in seconds, that limit how long a request waits for servers."""


@pytest.fixture(autouse=True)
def _one_certificate_authority(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clients of providers trust one authority; loading the system's authorities takes 20 ms for each."""
    monkeypatch.setenv("SSL_CERT_FILE", str(AUTHORITY))


@pytest.fixture(autouse=True)
def _patient_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let requests wait 30 seconds for servers, because a busy machine exceeds the limits of production."""
    for module, name in REQUEST_WAITS:
        monkeypatch.setattr(module, name, 30.0)


@pytest_asyncio.fixture
async def mnemon_with_vectors(vectors_deployment: Deployment) -> AsyncIterator[Deployment]:
    """Deployment with vectors, whose consumers all run in this process."""
    async with run_consumers(CONSUMERS, vectors_deployment):
        yield vectors_deployment


@pytest_asyncio.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """Database with empty tables in a new schema."""
    deployment = Deployment(database_dsn=database_url, database_schema=f"test_{uuid4().hex[:12]}")
    create_schema(deployment.database_url, deployment.database_schema)
    database = Database(deployment)
    await database.open()
    yield database
    await database.close()


@pytest_asyncio.fixture
async def other_database(database_url: str) -> AsyncIterator[Database]:
    """Database in a second schema, as of another generation."""
    deployment = Deployment(database_dsn=database_url, database_schema=f"beside_{os.getpid()}")
    assert deployment.database_url is not None
    migrate_schema(deployment.database_url, deployment.database_schema)
    async with Database(deployment) as database:
        yield database


@pytest.fixture
def vectors_deployment(deployment: Deployment, tmp_path: Path) -> Deployment:
    """Deployment with vectors: in a folder, or on the Qdrant server of the tests if there is one."""
    return locate_vectors(deployment, tmp_path / "vectors")


@pytest.fixture
def memory_client(connection: Client) -> MemoryClient:
    """Client of a bot of tenant `acme`."""
    return MemoryClient(connection, tenant="acme", timeouts=PATIENT)


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    """A local server that speaks the wire formats of providers of language models."""
    with ProviderServer() as server:
        yield server


@pytest.fixture
def embedding_endpoint() -> Iterator[Endpoint]:
    """Local endpoint of an embedding model."""
    with serve_embeddings() as endpoint:
        yield endpoint


@pytest.fixture
def reranker_endpoint() -> Iterator[RerankerServer]:
    """Local endpoint of a reranker."""
    with serve_endpoint(RerankerServer()) as endpoint:
        yield endpoint


@pytest_asyncio.fixture
async def batch_extraction(
    stock: Stock, deployment: Deployment, provider: ProviderServer
) -> ExtractionHarness:
    """Extraction in batches; a conversation counts as idle after one second."""
    extraction = ExtractionHarness.on(stock, deployment, provider)
    await extraction.set(provider="openai", model=MODEL, idle_seconds=1.0, pool_seconds=0)
    return extraction


@pytest_asyncio.fixture
async def online_extraction(batch_extraction: ExtractionHarness) -> ExtractionHarness:
    """Extraction with one online request for each window."""
    await batch_extraction.set(mode="online")
    return batch_extraction


@pytest_asyncio.fixture
async def vector_extraction(
    stock: Stock, vectors_deployment: Deployment, provider: ProviderServer
) -> ExtractionHarness:
    """Extraction with one online request for each window, in a deployment with vectors."""
    extraction = ExtractionHarness.on(stock, vectors_deployment, provider)
    await extraction.set(provider="openai", model=MODEL, mode="online", idle_seconds=1.0, pool_seconds=0)
    return extraction


@pytest_asyncio.fixture
async def compaction(stock: Stock, deployment: Deployment, provider: ProviderServer) -> CompactionHarness:
    return await CompactionHarness.on(stock, deployment, provider)


@pytest.fixture
def told() -> RebuildReport:
    return RebuildReport()


@pytest_asyncio.fixture
async def site(mnemon: Deployment) -> AsyncIterator[Site]:
    """Site of a rebuild of a running mnemon; excludes other rebuilds."""
    async with open_exclusive_site(mnemon) as site:
        yield site
