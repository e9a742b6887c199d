"""Deletion of the embedded engine's open folder is detected and named, and its points are written again."""

import asyncio
import shutil
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from mnemon_consumers.app import run_consumers
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.locks import hold_lock
from mnemon_infra.vectors import recovery
from mnemon_infra.vectors.edge.engine import open_edge
from mnemon_infra.vectors.edge.owner import EdgeOwner
from mnemon_infra.vectors.embedding_metadata import EmbeddingMetadata
from mnemon_infra.vectors.port import Collection, VectorsLost
from tests.support.servers.qdrant import requires_folder
from tests.support.stock_client import Stock, indexed

CONSUMERS = "persist", "index", "dedupe", "retrieve"
TIMEOUT = 60.0
COUNTS = {"messages": 1, "memories": 1, "documents": 1, "summaries": 0}
OPEN_MESSAGES = f"messages/{'[0-9a-f]' * 32}"
"""Pattern of the subfolder that the engine has open for messages."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "vectors"


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "CHECK_INTERVAL", 0.05)


async def filled(stock: Stock) -> None:
    await stock.ask("document", action="add", document_id="boiler", text="The manual of the boiler")
    await stock.say("the walrus sings")
    saved = await stock.ask("save", text="Drinks green tea")
    await indexed(stock, saved["seen_seq"])
    await whole(stock)


async def whole(stock: Stock, facts: int = 1) -> None:
    """Wait until the numbers of points are `COUNTS`, with the given number of facts."""
    async with asyncio.timeout(TIMEOUT):
        while await EdgeOwner(stock.connection).count_points() != COUNTS | {"memories": facts}:
            await asyncio.sleep(0.05)


@requires_folder
@pytest.mark.usefixtures("often")
@pytest.mark.parametrize(
    "lost",
    [
        "",
        *(
            pytest.param(lost, marks=pytest.mark.long)
            for lost in ("messages/current", OPEN_MESSAGES, "messages", "memories", "documents")
        ),
    ],
)
async def test_deleted_vectors_are_rebuilt_with_new_points(
    stock: Stock, vectors_deployment: Deployment, folder: Path, lost: str
) -> None:
    async with run_consumers(CONSUMERS, vectors_deployment):
        await filled(stock)
        with capture_logs() as lines:
            path = next(folder.glob(lost)) if lost else folder
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            saved = await stock.ask("save", text="Repairs old bicycles")
            assert saved.get("decision") == "saved", saved
            await whole(stock, facts=2)
        again = await stock.ask("save", text="Repairs old bicycles")
        assert again["id"] == saved["id"]
    said = [line["event"] for line in lines if line["log_level"] in ("error", "critical")]
    assert said == ["vectors lost, opening the folder again"]
    # The points are on the disk: new processes find them.
    async with run_consumers(CONSUMERS, vectors_deployment):
        await whole(stock, facts=2)


@requires_folder
@pytest.mark.parametrize("lost", ["messages", OPEN_MESSAGES])
async def test_a_collection_lost_while_nothing_runs_is_created_again(
    stock: Stock, vectors_deployment: Deployment, folder: Path, lost: str
) -> None:
    async with run_consumers(CONSUMERS, vectors_deployment):
        await filled(stock)
    shutil.rmtree(next(folder.glob(lost)))
    async with run_consumers(CONSUMERS, vectors_deployment):
        await whole(stock)


async def test_search_names_lost_vectors_until_rebuilt(folder: Path, database: Database) -> None:
    async with open_edge(folder, EmbeddingMetadata(model="none", dimension=None)) as vectors:
        await vectors.require_present()
        shutil.rmtree(folder)
        with pytest.raises(VectorsLost, match="were deleted or replaced while they were open"):
            await vectors.require_present()
        with pytest.raises(VectorsLost):
            async with hold_lock(database, "acme", "u1"):
                await vectors.delete(Collection.MESSAGES, ("acme", "u1"))


async def test_other_error_is_not_reported_as_lost_vectors(database: Database) -> None:
    with pytest.raises(FileNotFoundError):
        async with database.transaction():
            raise FileNotFoundError
