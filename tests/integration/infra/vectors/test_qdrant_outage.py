"""A Qdrant server that is killed, hangs, loses a collection, requires an API key, or requires TLS."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from nats.aio.client import Client
from pydantic import SecretStr
from structlog.testing import capture_logs

from mnemon.operations.audit.ledger import Audit
from mnemon.operations.audit.run import run_audit
from mnemon.operations.rebuild.generations import open_generation
from mnemon.operations.rebuild.listing import remove_generation
from mnemon.operations.rebuild.live_vectors import open_live_pages
from mnemon.operations.rebuild.swap import swap_rows, swap_vectors
from mnemon_consumers.app import run_consumers
from mnemon_consumers.retrieve.search import candidates
from mnemon_infra.config import Deployment
from mnemon_infra.database.audit.events import UserSample
from mnemon_infra.rebuild.generations import open_exclusive_site, open_site
from mnemon_infra.vectors import recovery
from mnemon_infra.vectors.engines import open_vectors, reset_vectors
from mnemon_infra.vectors.port import Collection, VectorsUnavailable
from mnemon_producers.client import MemoryClient
from tests.support.pipelines.rebuild import RebuildReport
from tests.support.servers.qdrant import count_live_points, lose_collection
from tests.support.servers.qdrant_process import QdrantProcess, requires_binary
from tests.support.stock_client import Stock, indexed
from tests.support.suites.vector_engine import DIMENSION, MODEL, point

pytestmark = [requires_binary, pytest.mark.long]

ALL = "persist", "index", "dedupe", "retrieve"
AWAY = float(os.environ.get("QDRANT_AWAY_SECONDS", "5"))
"""Seconds for which the server does not answer."""

MESSAGES, ROUNDS = 400, 4


@pytest_asyncio.fixture
async def qdrant(tmp_path: Path) -> AsyncIterator[QdrantProcess]:
    process = QdrantProcess(tmp_path / "qdrant")
    await process.start()
    yield process
    await process.kill()


@pytest.fixture
def served(qdrant: QdrantProcess, deployment: Deployment) -> Deployment:
    return qdrant.locate(deployment)


async def audited(connection: Client, deployment: Deployment) -> Audit:
    async with open_site(deployment) as place, open_live_pages(place) as pages:
        return await run_audit(connection, place.database, UserSample(), lambda *_: None, pages)


async def found(stock: Stock, query: str, owner: str = "acme.u1") -> dict[str, Any]:
    return await stock.ask("search", owner, query=query, scope=["messages", "memories"])


async def test_nothing_is_lost_when_the_server_is_killed_under_load(
    qdrant: QdrantProcess,
    served: Deployment,
    stock: Stock,
    connection: Client,
    memory_client: MemoryClient,
) -> None:
    """Run two `index` and two `dedupe` consumers, and kill the Qdrant server in each round."""
    last = 0
    async with run_consumers((*ALL, "index", "dedupe"), served):
        for round_ in range(ROUNDS):
            saving = asyncio.create_task(
                memory_client.save("u1", f"The user keeps a thing-{round_} in the garden")
            )
            said = [
                stock.say(f"walrus{number} sings", f"acme.u{number % 7}.-", id=f"m{number}")
                for number in range(round_ * MESSAGES // ROUNDS, (round_ + 1) * MESSAGES // ROUNDS)
            ]
            last = max(await asyncio.gather(*said))
            await qdrant.restart()
            await asyncio.wait([saving])
        await indexed(stock, last)
        points = await count_live_points(connection, served)
        assert points["messages"] == MESSAGES
        for number in (0, MESSAGES // 2, MESSAGES - 1):
            reply = await found(stock, f"walrus{number}", f"acme.u{number % 7}")
            assert f"m{number}" in [hit["id"] for hit in reply["hits"]], reply
        assert (await audited(connection, served)).faults.named == []


async def test_a_server_that_hangs_delays_no_other_answers_and_loses_nothing(
    qdrant: QdrantProcess,
    served: Deployment,
    stock: Stock,
    connection: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(candidates, "VECTORS_WAIT", 1.0)
    async with run_consumers(ALL, served):
        await indexed(stock, await stock.say("a violin", id="before"))
        qdrant.stop_answering()
        begun = time.monotonic()
        try:
            meanwhile = await stock.say("a walrus", id="meanwhile")
            while time.monotonic() - begun < AWAY:
                shown = await stock.ask("history", min_seq=meanwhile)
                assert [each["content"] for each in shown["messages"]] == ["a violin", "a walrus"]
                reply = await found(stock, "violin")
                assert set(reply["degraded"]) == {"messages", "memories"}
        finally:
            qdrant.answer_again()
        begun = time.monotonic()
        await indexed(stock, meanwhile)
        print(f"all is indexed {time.monotonic() - begun:.1f} s after {AWAY:g} s without the server")
        async with asyncio.timeout(60):
            while (reply := await found(stock, "walrus"))["degraded"]:
                await asyncio.sleep(0.05)
        assert "meanwhile" in [hit["id"] for hit in reply["hits"]]
        assert (await audited(connection, served)).faults.named == []


async def test_nothing_of_an_erased_user_is_in_the_storage_after_a_rebuild(
    qdrant: QdrantProcess, served: Deployment, stock: Stock, told: RebuildReport
) -> None:
    """The server's files contain ids of deleted points until they are dropped; they never contain texts."""

    def bytes_of(words: bytes) -> int:
        return sum(path.read_bytes().count(words) for path in qdrant.storage.rglob("*") if path.is_file())

    async with run_consumers(ALL, served), open_exclusive_site(served) as place:
        for number in range(300):
            await stock.say(f"{number}: timbuktu", "acme.boris.-")
        for number in range(30):
            await stock.say(f"{number}: zanzibar", "acme.anna-of-the-islands.-")
        await indexed(stock, await stock.say("last: zanzibar", "acme.anna-of-the-islands.-"))
        assert bytes_of(b"anna-of-the-islands") > 30
        erased = await stock.ask("erase", "acme.anna-of-the-islands")
        assert erased["removed"]["vectors"] == 31
        assert bytes_of(b"zanzibar") == bytes_of(b"timbuktu") == 0, "there never was a text"
        async with open_generation(place, "next", told) as generation:
            await swap_rows(place, generation, told)
        assert await swap_vectors(place, told)
        await remove_generation(place, "before")
        async with asyncio.timeout(60):
            while bytes_of(b"anna-of-the-islands"):
                await asyncio.sleep(0.05)
        assert bytes_of(b"boris") > 300
        assert len((await found(stock, "timbuktu", "acme.boris"))["hits"]) > 0


async def test_a_collection_that_is_deleted_behind_running_consumers_is_filled_again(
    served: Deployment, stock: Stock, connection: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two `index` consumers detect the deletion, and one of them creates the collection."""
    monkeypatch.setattr(recovery, "SERVER_CHECK_INTERVAL", 0.05)
    async with run_consumers(ALL, served), run_consumers(("index",), served):
        for number in range(20):
            await stock.say(f"walrus{number}", f"acme.u{number % 3}.-", id=f"m{number}")
        saved = await stock.ask("save", text="Drinks green tea")
        await indexed(stock, saved["seen_seq"])
        for collection in (Collection.MESSAGES, Collection.MEMORIES):
            with capture_logs() as lines:
                await lose_collection(served, collection)
                last = await stock.say("meanwhile", id=f"meanwhile {collection}")
                async with asyncio.timeout(60):
                    while not [each for each in lines if each["event"].startswith("collections created")]:
                        await asyncio.sleep(0.05)
                await indexed(stock, last)
            created = [each for each in lines if each["event"].startswith("collections created")]
            assert len(created) == 1, lines
        assert await count_live_points(connection, served) == {
            "messages": 22,
            "memories": 1,
            "documents": 0,
            "summaries": 0,
        }
        assert (await audited(connection, served)).faults.named == []


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
async def test_a_key_that_the_server_refuses_is_named(tmp_path: Path, deployment: Deployment) -> None:
    qdrant = QdrantProcess(tmp_path / "guarded", api_key="correct-key-of-the-server")
    await qdrant.start()
    try:
        served = qdrant.locate(deployment)
        async with open_vectors(served, model=MODEL, dimension=DIMENSION) as vectors:
            await vectors.upsert(Collection.MEMORIES, [point("a")])
            assert await vectors.count(Collection.MEMORIES) == 1
        for key in (None, SecretStr("another")):
            wrong = served.model_copy(update={"qdrant_api_key": key})
            with pytest.raises(VectorsUnavailable, match="MNEMON_QDRANT_API_KEY") as refused:
                async with open_vectors(wrong, model=MODEL, dimension=DIMENSION):
                    raise AssertionError("it was opened")
            assert "another" not in str(refused.value)
        await reset_vectors(served)
    finally:
        await qdrant.kill()


async def test_a_server_is_reached_by_tls_with_an_authority_of_its_own(
    tmp_path: Path, deployment: Deployment, stock: Stock, connection: Client
) -> None:
    from mnemon_infra.vectors.server import read_version

    qdrant = QdrantProcess(tmp_path / "encrypted", api_key="correct-key-of-the-server", is_encrypted=True)
    await qdrant.start()
    try:
        served = qdrant.locate(deployment)
        async with run_consumers(ALL, served):
            await indexed(stock, await stock.say("a violin", id="heard"))
            assert [hit["id"] for hit in (await found(stock, "violin"))["hits"]] == ["heard"]
        unknown = served.model_copy(update={"qdrant_ca": None})
        with pytest.raises(VectorsUnavailable, match="Qdrant does not answer"):
            await read_version(unknown)
        absent = served.model_copy(update={"qdrant_ca": tmp_path / "absent.pem"})
        with pytest.raises(VectorsUnavailable, match="MNEMON_QDRANT_CA"):
            await read_version(absent)
    finally:
        await qdrant.kill()
