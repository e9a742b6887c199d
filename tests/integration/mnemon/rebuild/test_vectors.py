"""Rebuild of vectors with the rows, their comparison, and their swap while searches run."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack
from uuid import UUID

import pytest
import pytest_asyncio
from nats.aio.client import Client
from pydantic import SecretStr

from mnemon.operations.rebuild.embedding import choose_embedding, is_embedder_running
from mnemon.operations.rebuild.generation_verification import GenerationVerification
from mnemon.operations.rebuild.generations import open_generation
from mnemon.operations.rebuild.listing import remove_generation
from mnemon.operations.rebuild.live_vectors import count_points, open_live_pages
from mnemon.operations.rebuild.reembed import ReembedPreview, preview_verdicts
from mnemon.operations.rebuild.run import rebuild_generation
from mnemon.operations.rebuild.swap import open_former_generation, swap_rows, swap_vectors
from mnemon_bench.workloads.all_events import TENANT, fill_log
from mnemon_consumers.app import run_consumers
from mnemon_contracts.settings.groups import Embedding
from mnemon_contracts.streams import LOG
from mnemon_infra.config import Deployment
from mnemon_infra.database.generations.generation_repository import describe_snapshot, drop_schema
from mnemon_infra.models.words import bm25
from mnemon_infra.rebuild.generations import RebuildBlocked, Site, open_exclusive_site
from mnemon_infra.rebuild.generations import swap_row_generations as rows_take_over
from mnemon_infra.rebuild.row_verification import RowVerification
from mnemon_infra.settings.store import read_settings
from mnemon_infra.vectors.edge.engine import lock_vectors
from mnemon_infra.vectors.generations import (
    has_vectors,
    is_folder_open,
    locate_generation,
    open_vectors_as_of,
    read_model_record,
)
from mnemon_infra.vectors.port import Collection, Point, VectorsNotMade, VectorsOutdated
from mnemon_infra.vectors.vector_index import VectorIndex, open_index
from tests.support.pipelines.rebuild import RebuildReport, change, rebuilt
from tests.support.servers.embedding_server import KEY, Endpoint
from tests.support.servers.qdrant import lose_collection
from tests.support.stock_client import Stock, indexed

EVENTS, USERS = 500, 6


@pytest_asyncio.fixture
async def live_vectors(vectors_deployment: Deployment, connection: Client) -> AsyncIterator[VectorIndex]:
    """Vector index of the live generation, which consumers in this process have open too."""
    async with run_consumers(("persist", "index", "dedupe", "retrieve"), vectors_deployment):
        embedding = (await read_settings(connection)).embedding
        async with open_index(vectors_deployment, embedding) as vector_index:
            yield vector_index


@pytest_asyncio.fixture
async def site_with_vectors(live_vectors: VectorIndex, vectors_deployment: Deployment) -> AsyncIterator[Site]:
    async with open_exclusive_site(vectors_deployment) as place:
        yield place


async def verdict_on(site_with_vectors: Site, told: RebuildReport) -> RowVerification:
    async with (
        open_live_pages(site_with_vectors) as live,
        open_generation(site_with_vectors, "next", told) as generation,
    ):
        verification = GenerationVerification(site_with_vectors, generation, live, told, timeout_seconds=60)
        return await verification.compare_all()


async def switched(site_with_vectors: Site, told: RebuildReport) -> None:
    async with open_generation(site_with_vectors, "next", told) as generation:
        await swap_rows(site_with_vectors, generation, told)
    assert await swap_vectors(site_with_vectors, told)


async def all_points(live_vectors: VectorIndex) -> dict[UUID, Point]:
    found: dict[UUID, Point] = {}
    for collection in Collection:
        begin = None
        while True:
            page = await live_vectors.vectors.read_page(collection, begin)
            found |= {point.id: point for point in page.points}
            begin = page.following
            if begin is None:
                break
    return found


@pytest.mark.long
async def test_rebuild_names_points_contrary_to_the_log(
    site_with_vectors: Site, live_vectors: VectorIndex, connection: Client, stock: Stock, told: RebuildReport
) -> None:
    await fill_log(connection, EVENTS, users=USERS)
    await indexed(stock, EVENTS)
    verdict = await verdict_on(site_with_vectors, told)
    assert (verdict.first, verdict.is_settled) == ([], True)
    assert all(verdict.rows[f"vectors of {each}"] for each in Collection)
    assert sum(verdict.rows[f"vectors of {each}"] for each in Collection) == len(
        await all_points(live_vectors)
    )

    (changed, gone), _ = await live_vectors.vectors.read_page(Collection.MESSAGES, most=2)
    assert changed.dense is not None
    other = Point(changed.id, changed.owner, {**changed.payload, "seq": 0}, changed.sparse, -changed.dense)
    await live_vectors.vectors.upsert(Collection.MESSAGES, [other])
    await live_vectors.vectors.delete(Collection.MESSAGES, gone.owner, [gone.id])
    await live_vectors.vectors.upsert(Collection.MEMORIES, [changed])
    verdict = await verdict_on(site_with_vectors, told)
    assert verdict.counts == {"vectors of messages": 2, "vectors of memories": 1}
    assert {each.key["id"] for each in verdict.first} == {str(changed.id), str(gone.id)}
    by_place = {(each.table, each.key["id"]): each for each in verdict.first}
    differing = by_place["vectors of messages", str(changed.id)]
    assert differing.live
    assert differing.live.keys() == {"payload", "meaning"}
    assert by_place["vectors of messages", str(gone.id)].live is None
    assert by_place["vectors of memories", str(changed.id)].rebuilt is None


@pytest.mark.long
async def test_vectors_switch_and_return_during_searches(
    site_with_vectors: Site, live_vectors: VectorIndex, connection: Client, stock: Stock, told: RebuildReport
) -> None:
    await fill_log(connection, EVENTS, users=USERS)
    seq = await stock.say("the walrus sings", id="first")
    await indexed(stock, seq)
    before = await all_points(live_vectors)
    (lost,) = [each for each in before.values() if each.payload.get("event_id") == "first"]
    await live_vectors.vectors.delete(Collection.MESSAGES, lost.owner, [lost.id])
    over = asyncio.Event()
    asked = 0

    async def search() -> None:
        nonlocal asked
        while not over.is_set():
            answer = await stock.ask("search", f"{TENANT}.u1", query="the weather", scopes=["messages"])
            assert answer["hits"], answer
            assert not answer.get("degraded")
            asked += 1

    async def write() -> None:
        number = 0
        while not over.is_set():
            number += 1
            await stock.say(f"meanwhile {number}", "acme.u2.-")
            await asyncio.sleep(0.01)

    async with asyncio.TaskGroup() as group:
        for work in search, write:
            group.create_task(work())
        await switched(site_with_vectors, told)
        over.set()
    assert asked
    deployment = site_with_vectors.deployment
    assert deployment.qdrant_url or is_folder_open(deployment)
    await indexed(stock, await site_with_vectors.load_log_end())
    assert lost.id in await all_points(live_vectors)
    assert (await verdict_on(site_with_vectors, told)).first == []

    async with open_former_generation(site_with_vectors, told) as generation:
        await swap_rows(site_with_vectors, generation, told)
    assert await swap_vectors(site_with_vectors, told)
    await indexed(stock, await stock.say("after"))
    # The former vectors, with the points of newer events.
    assert (await verdict_on(site_with_vectors, told)).counts == {"vectors of messages": 1}
    assert lost.id not in await all_points(live_vectors)


@pytest.mark.long
async def test_dedupe_decides_by_the_rebuilt_rows(
    vectors_deployment: Deployment, stock: Stock, told: RebuildReport
) -> None:
    consumers = "persist", "index", "dedupe", "retrieve"
    async with run_consumers(consumers, vectors_deployment):
        tea = await stock.ask("save", text="Drinks green tea")
        # A later proposal, because `dedupe` reads events after its last proposal from the log, not from rows.
        later = await stock.ask("save", text="Owns a red boat")
        await indexed(stock, later["seen_seq"])
    async with run_consumers(consumers, vectors_deployment), open_exclusive_site(vectors_deployment) as place:
        await change(place, f"DELETE FROM memory_events WHERE item = '{tea['id']}'")
        assert (await stock.ask("save", text="Repairs old bicycles"))["decision"] == "saved"
        async with rebuilt(place, told) as replay:
            await rows_take_over(place, replay, told)
        again = await stock.ask("save", text="Drinks green tea")
    assert (again["id"], again["decision"] == "saved") == (tea["id"], False)


@pytest.mark.long
async def test_switch_killed_between_rows_and_vectors_is_completed(
    site_with_vectors: Site,
    live_vectors: VectorIndex,
    stock: Stock,
    told: RebuildReport,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seq = await stock.say("the walrus sings", id="first")
    await indexed(stock, seq)
    (point,) = (await all_points(live_vectors)).values()
    await live_vectors.vectors.delete(Collection.MESSAGES, point.owner, [point.id])
    async with open_generation(site_with_vectors, "next", told) as generation:
        await swap_rows(site_with_vectors, generation, told)
    # The process is killed here. The next event has a point in neither generation.
    await indexed(stock, await stock.say("since", id="since"))
    assert point.id not in await all_points(live_vectors)
    # Another process still has the folder open.
    folder = locate_generation(site_with_vectors.deployment, "next").vectors_folder
    with ExitStack() as asked:
        if folder:
            asked.enter_context(lock_vectors(folder))
        monkeypatch.setattr(told, "show_line", lambda line: asked.close())
        assert await swap_vectors(site_with_vectors, told)
    events = {each.payload["event_id"] for each in (await all_points(live_vectors)).values()}
    assert events == {"first", "since"}
    assert not await swap_vectors(site_with_vectors, told)
    assert not await has_vectors(locate_generation(site_with_vectors.deployment, "next"))


@pytest.mark.long
async def test_stopped_deployment_switches_vectors(
    vectors_deployment: Deployment, stock: Stock, told: RebuildReport
) -> None:
    """No process has the vectors open, so that their folders are renamed."""
    async with run_consumers(("persist", "index"), vectors_deployment):
        await indexed(stock, await stock.say("the walrus sings", id="first"))
    seq = await stock.say("nobody has heard it yet", id="second")
    async with open_exclusive_site(vectors_deployment) as place:
        assert not is_folder_open(vectors_deployment)
        async with open_generation(place, "next", told) as generation, open_live_pages(place) as live:
            verdict = await GenerationVerification(
                place, generation, live, told, timeout_seconds=0
            ).compare_all()
            assert (verdict.counts, verdict.is_settled) == ({}, False)
            await swap_rows(place, generation, told)
        assert await swap_vectors(place, told)
        assert await count_points(place, vectors_deployment) == 2
        assert await count_points(place, locate_generation(vectors_deployment, "former")) == 1
        assert place.live in {each.schema for each in await place.list_generations()}
        # As killed before the swap of the rows, when the former vectors are renamed already.
        async with open_former_generation(place, told):
            pass
        await remove_generation(place, "before")
        assert not await has_vectors(locate_generation(vectors_deployment, "next"))
    # Indexing both messages again adds no points.
    async with run_consumers(("persist", "index"), vectors_deployment):
        await indexed(stock, seq)
        async with open_exclusive_site(vectors_deployment) as place:
            assert await count_points(place, vectors_deployment) == 2


async def test_a_former_generation_whose_version_knew_no_summaries(
    vectors_deployment: Deployment, stock: Stock, told: RebuildReport
) -> None:
    covered = {"conversation": "c", "from_seq": 1, "to_seq": 1, "text": "It is about a walrus"}
    async with run_consumers(("persist", "index"), vectors_deployment):
        await stock.say("the walrus sings", "acme.u1.c")
        summary = {"summary_id": "s1", **covered}
        await indexed(stock, await stock.publish("memory.acme.u1.summary.written.v1", summary))
    async with open_exclusive_site(vectors_deployment) as place:
        async with open_generation(place, "next", told) as generation:
            await swap_rows(place, generation, told)
        assert await swap_vectors(place, told)
        await lose_collection(locate_generation(vectors_deployment, "former"), Collection.SUMMARIES)
        async with open_former_generation(place, told) as generation:
            await swap_rows(place, generation, told)
        assert await swap_vectors(place, told)
        assert await count_points(place, vectors_deployment) == 2


@pytest.mark.long
async def test_rebuild_after_an_upgrade_replaces_term_weights_of_the_same_model(
    vectors_deployment: Deployment, stock: Stock, told: RebuildReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumers = "persist", "index", "dedupe", "retrieve"
    with monkeypatch.context() as former_version:
        former_version.setattr(bm25, "VERSION", 1)
        async with run_consumers(consumers, vectors_deployment):
            await indexed(stock, await stock.say("the walrus sings"))
        async with (
            open_exclusive_site(vectors_deployment) as place,
            open_generation(place, "next", told) as generation,
        ):
            await generation.replay_to_end(place, told)
        # The rebuild is killed here.
    async with run_consumers(consumers, vectors_deployment), open_exclusive_site(vectors_deployment) as place:
        before = await read_settings(place.connection)
        await switched(place, told)
        made_by = await read_model_record(vectors_deployment)
        assert made_by
        assert made_by.terms == bm25.VERSION
        assert await read_settings(place.connection) == before

        async with open_former_generation(place, told) as generation:
            await swap_rows(place, generation, told)
        assert await swap_vectors(place, told)
        assert await read_settings(place.connection) == before


async def test_vectors_as_of_a_position(
    site_with_vectors: Site, live_vectors: VectorIndex, stock: Stock, told: RebuildReport
) -> None:
    first = await stock.say("the walrus sings", id="first")
    await indexed(stock, await stock.say("the walrus sleeps", id="second"))
    assert live_vectors.embedder
    model, dimension = live_vectors.embedder.model, live_vectors.embedder.dimension
    with pytest.raises(VectorsNotMade, match="--until 1"):
        async with open_vectors_as_of(site_with_vectors.deployment, first, model=model, dimension=dimension):
            raise AssertionError("it was opened")
    async with open_generation(site_with_vectors, "as of", told, first) as generation:
        await generation.rows.replay_until(first)
        assert not (
            await site_with_vectors.database.run_query(describe_snapshot(site_with_vectors.live, first))
        ).is_complete
        await generation.replay_to(first, told)
    assert (
        await site_with_vectors.database.run_query(describe_snapshot(site_with_vectors.live, first))
    ).is_complete
    async with open_vectors_as_of(
        site_with_vectors.deployment, first, model=model, dimension=dimension
    ) as vectors:
        query = await live_vectors.embedder.embed_query("walrus")
        (hits,) = await vectors.search(Collection.MESSAGES, ("acme", "u1"), [query], 10)
    assert [hit.payload["event_id"] for hit in hits] == ["first"]
    with pytest.raises(VectorsOutdated, match="`mnemon rebuild --until 1`"):
        async with open_vectors_as_of(
            site_with_vectors.deployment, first, model="openai/other", dimension=dimension
        ):
            raise AssertionError("it was opened")
    await drop_schema(
        site_with_vectors.database,
        locate_generation(site_with_vectors.deployment, "as of", first).database_schema,
    )


async def test_embedder_counts_as_running_while_all_its_batches_are_in_work(
    vectors_deployment: Deployment,
    stock: Stock,
    connection: Client,
    told: RebuildReport,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await stock.say("in work")
    index = await connection.jetstream().pull_subscribe_bind("index", LOG)
    (message,) = await index.fetch(1, 60)
    async with open_exclusive_site(vectors_deployment) as place, asyncio.timeout(60):
        is_waiting = asyncio.Event()
        monkeypatch.setattr(told, "show_line", lambda line: is_waiting.set())
        running = asyncio.create_task(is_embedder_running(place, told))
        await is_waiting.wait()
        following = asyncio.create_task(index.fetch(1, 60))
        assert await running
        await stock.say("further")
        await asyncio.gather(message.ack_sync(), *(each.ack_sync() for each in await following))


@pytest.mark.long
async def test_rebuild_with_another_model_keeps_facts_apart(
    vectors_deployment: Deployment, stock: Stock, told: RebuildReport, embedding_endpoint: Endpoint
) -> None:
    """Two facts are similar to the former model, and not similar to the new one."""
    vectors_deployment = vectors_deployment.model_copy(
        update={"embedding_url": embedding_endpoint.url, "embedding_api_key": SecretStr(KEY)}
    )
    texts = ["Anna likes tea with milk", "Anna likes tea with milk.", "The train to Riga leaves at seven"]
    decision = {"decision": {"proposal_id": "p"}}
    seq = 0
    async with run_consumers(("persist", "index"), vectors_deployment):
        for number, text in enumerate(texts):
            body = {"fact_id": f"f{number}", "fact": {"text": text}, **decision}
            seq = await stock.publish("memory.acme.u1.fact.saved.v1", body)
        await indexed(stock, seq)
        async with open_exclusive_site(vectors_deployment) as place:
            assert await is_embedder_running(place, told)
    other = Embedding(provider="openai", model="eight")
    async with open_exclusive_site(vectors_deployment) as place:
        assert not await is_embedder_running(place, told)
        former_model = await choose_embedding(place, vectors_deployment)
        async with open_generation(place, "next", told, embedding=other) as generation:
            await generation.replay_to_end(place, told)
            assert generation.vectors
            async with open_index(vectors_deployment, former_model) as live:
                shown = ReembedPreview("", "", 0)
                await preview_verdicts(place, live, generation.vectors.index, shown)
            await swap_rows(place, generation, told)
        assert await swap_vectors(place, told)
        assert (await read_settings(place.connection)).embedding == other
    assert (shown.facts, shown.pairs) == (3, 3)
    assert shown.changes == {("the same", "apart"): 1}
    ((*owner, one, two, near, far, _, _),) = shown.first
    assert (owner, {one, two}) == (["acme", "u1"], set(texts[:2]))
    assert near > 0.97 > far
    async with (
        run_consumers(("persist", "index"), vectors_deployment),
        open_exclusive_site(vectors_deployment) as place,
    ):
        await indexed(stock, await stock.say("it goes on"))
        assert await count_points(place, vectors_deployment) == 4


async def test_former_vectors_without_former_rows_block_a_rebuild(
    site_with_vectors: Site, stock: Stock, told: RebuildReport
) -> None:
    former = locate_generation(site_with_vectors.deployment, "former").vectors_folder
    assert former
    former.mkdir()
    (former / "made_by.json").write_text("{}")
    await indexed(stock, await stock.say("hello"))
    with pytest.raises(RebuildBlocked, match="vectors_before"):
        await rebuild_generation(site_with_vectors, told)
    await indexed(stock, await stock.say("hello again"))
