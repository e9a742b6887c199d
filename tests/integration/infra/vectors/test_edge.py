"""The embedded vector engine: its folder, exclusive access to the folder, and background optimisation."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from mnemon_infra.config import Deployment
from mnemon_infra.models.embedding import Dense, Sparse
from mnemon_infra.vectors.edge import collection_config, shard
from mnemon_infra.vectors.engines import open_vectors, reset_vectors
from mnemon_infra.vectors.port import Collection, VectorsInUse, VectorsOutdated
from tests.support.processes.vector_writer import written
from tests.support.suites.vector_engine import (
    ANNA,
    CAKE,
    DIMENSION,
    MODEL,
    OTHER_ANNA,
    TEA,
    direction,
    names,
    point,
    scrolled,
    words,
)

ROOT = Path(__file__).parents[4]
JUST_ENOUGH_TO_ORGANISE = 4_000
ENOUGH_TO_ORGANISE = 6_000


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return Deployment(vectors_folder=tmp_path / "vectors")


@asynccontextmanager
async def another_process(deployment: Deployment) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start a process that opens the folder and writes to it; kill the process at the end of the block."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.processes.vector_writer", str(deployment.vectors_folder)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout
        assert await process.stdout.readline() == b"open\n"
        yield process
    finally:
        process.kill()
        await process.wait()


async def optimised() -> None:
    """Wait until the running optimisations have ended."""
    running = [task for task in asyncio.all_tasks() if task.get_name() == "vectors-optimising"]
    assert running
    await asyncio.gather(*running)


async def optimisation_started() -> None:
    """Wait until an optimisation runs."""
    async with asyncio.timeout(10):
        while not any(task.get_name() == "vectors-optimising" for task in asyncio.all_tasks()):
            await asyncio.sleep(0)


def current(deployment: Deployment) -> str:
    """Return the name of the subfolder that the engine has open for facts."""
    assert deployment.vectors_folder
    return (deployment.vectors_folder / Collection.MEMORIES / "current").read_text()


async def test_vectors_survive_a_restart(deployment: Deployment) -> None:
    async with open_vectors(deployment, model=MODEL, dimension=DIMENSION) as vectors:
        await vectors.upsert(Collection.MEMORIES, [point("a", dense=direction(1)), point("b")])
        await vectors.delete(Collection.MEMORIES, ANNA, [point("b").id])
    async with open_vectors(deployment, model=MODEL, dimension=DIMENSION) as vectors:
        found = await vectors.search(Collection.MEMORIES, ANNA, [direction(1), words(TEA)], 10)
        assert [names(hits) for hits in found] == [["a"], ["a"]]


@pytest.mark.parametrize(
    "batches", [3, pytest.param(25, marks=pytest.mark.long)], ids=["at once", "while points are optimised"]
)
async def test_acknowledged_points_survive_a_kill(deployment: Deployment, batches: int) -> None:
    async with another_process(deployment) as process:
        assert process.stdout
        for batch in range(batches):
            assert await process.stdout.readline() == f"{batch}\n".encode()
    async with open_vectors(deployment, model=MODEL, dimension=DIMENSION) as vectors:
        there = set(names(await scrolled(vectors, ANNA)))
        assert there >= {name for batch in range(batches) for name in written(batch)}


async def test_second_process_is_refused_with_advice(deployment: Deployment) -> None:
    async with another_process(deployment) as process:
        said = rf"process {process.pid}.*index, dedupe and retrieve.*MNEMON_QDRANT_URL"
        with pytest.raises(VectorsInUse, match=said):
            async with open_vectors(deployment, model=MODEL, dimension=DIMENSION):
                raise AssertionError("it was opened")
        with pytest.raises(VectorsInUse, match=said):
            await reset_vectors(deployment)


async def test_one_process_opens_a_folder_many_times(deployment: Deployment) -> None:
    async with open_vectors(deployment, model=MODEL, dimension=DIMENSION) as one:
        async with open_vectors(deployment, model=MODEL, dimension=DIMENSION) as two:
            await two.upsert(Collection.MEMORIES, [point("a")])
        # `two` is closed, and `one` still has the folder open.
        assert names(await scrolled(one, ANNA)) == ["a"]


@pytest.mark.parametrize("other", [("other", DIMENSION), (MODEL, 4), ("none", None)])
async def test_vectors_of_another_model_are_not_mixed(
    deployment: Deployment, other: tuple[str, int | None]
) -> None:
    model, dimension = other
    provider, name = MODEL.split("/")
    back = f"embedding.provider={provider} embedding.model={name}"
    said = rf"{MODEL} \({DIMENSION} dimensions\).*{model}.*`mnemon reindex`.* keep these vectors.*{back}"
    async with open_vectors(deployment, model=MODEL, dimension=DIMENSION) as vectors:
        await vectors.upsert(Collection.MEMORIES, [point("a")])
        with pytest.raises(VectorsOutdated, match=said):
            async with open_vectors(deployment, model=model, dimension=dimension):
                raise AssertionError("it was opened")
    with pytest.raises(VectorsOutdated, match=said):
        async with open_vectors(deployment, model=model, dimension=dimension):
            raise AssertionError("it was opened")
    # The refused process has unlocked the folder.
    await reset_vectors(deployment)
    async with open_vectors(deployment, model=model, dimension=dimension) as vectors:
        assert await vectors.count(Collection.MEMORIES) == 0


@pytest.mark.long
async def test_optimising_changes_no_result_and_loses_no_write(deployment: Deployment) -> None:
    points = [point(f"{n}", dense=direction(n + 1, 1, n % 7)) for n in range(ENOUGH_TO_ORGANISE)]
    points += [point("elsewhere", OTHER_ANNA, dense=direction(1))]
    queries: list[Dense | Sparse] = [direction(10, 1, 3), words(CAKE)]
    async with open_vectors(deployment, model=MODEL, dimension=DIMENSION) as vectors:
        await vectors.upsert(Collection.MEMORIES, points)
        # During the optimisation: replace one point, delete one, delete and add one, add a new one.
        await vectors.upsert(Collection.MEMORIES, [point("1", terms=(CAKE,), dense=direction(0, 0, 0, 1))])
        await vectors.delete(Collection.MEMORIES, ANNA, [point("2").id, point("3").id])
        await vectors.upsert(Collection.MEMORIES, [point("3", terms=(CAKE,), dense=direction(0, 0, 0, 1))])
        await vectors.upsert(Collection.MEMORIES, [point("new", terms=(CAKE,))])
        before = await vectors.search(Collection.MEMORIES, ANNA, queries, 10)
        await optimised()
        after = await vectors.search(Collection.MEMORIES, ANNA, queries, 10)
        assert names(after[0]) == names(before[0])
        assert sorted(map(str, names(after[1]))) == ["1", "3", "new"]
        assert await vectors.count(Collection.MEMORIES, ANNA) == ENOUGH_TO_ORGANISE
        assert await vectors.count(Collection.MEMORIES, OTHER_ANNA) == 1
    async with open_vectors(deployment, model=MODEL, dimension=DIMENSION) as vectors:
        assert set(names(await scrolled(vectors, ANNA))) == (
            {f"{n}" for n in range(ENOUGH_TO_ORGANISE) if n != 2} | {"new"}
        )
    assert deployment.vectors_folder
    kept = [path for path in (deployment.vectors_folder / Collection.MEMORIES).iterdir() if path.is_dir()]
    assert len(kept) == 1


async def test_folder_without_quantized_vectors_gets_them_and_keeps_its_results(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of 0.2.0 has vectors of floats only. Scores are computed from the floats, before and after."""
    chance = np.random.default_rng(1)
    vectors = chance.standard_normal((JUST_ENOUGH_TO_ORGANISE - 1, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    query = direction(*chance.standard_normal(DIMENSION))
    similarities = vectors @ query
    nearest = [f"{n}" for n in np.argsort(-similarities)[:5]]
    with monkeypatch.context() as former:
        former.setattr(collection_config, "ScalarQuantizationConfig", lambda *_: None)
        async with open_vectors(deployment, model=MODEL, dimension=DIMENSION) as store:
            points = [point(f"{n}", dense=each) for n, each in enumerate(vectors)]
            await store.upsert(Collection.MEMORIES, points)
        engine = collection_config.load_shard(open_folder(deployment), DIMENSION)
        assert engine.optimize()
        engine.close()
    assert not has_quantized(deployment)
    async with open_vectors(deployment, model=MODEL, dimension=DIMENSION) as store:
        for is_quantized in (False, True):
            assert has_quantized(deployment) == is_quantized
            (hits,) = await store.search(Collection.MEMORIES, ANNA, [query], 5)
            assert names(hits) == nearest
            assert [hit.score for hit in hits] == pytest.approx(np.sort(similarities)[:-6:-1], abs=1e-6)
            if not is_quantized:
                monkeypatch.setattr(shard, "OPTIMISE_AFTER", 300)
                await store.upsert(Collection.MEMORIES, [point(f"new {n}") for n in range(2_000)])
                await optimised()


def open_folder(deployment: Deployment) -> Path:
    """Return the folder that the engine opens for facts."""
    assert deployment.vectors_folder
    return deployment.vectors_folder / Collection.MEMORIES / current(deployment)


def has_quantized(deployment: Deployment) -> bool:
    """Return whether the engine has quantized vectors of facts."""
    return any(open_folder(deployment).rglob("quantized.*"))


async def test_closing_while_points_are_optimised_loses_nothing(deployment: Deployment) -> None:
    async with open_vectors(deployment, model=MODEL, dimension=DIMENSION) as vectors:
        # The last of these points starts the optimisation, which cannot have ended when the write returns.
        await vectors.upsert(Collection.MEMORIES, [point(f"{n}") for n in range(JUST_ENOUGH_TO_ORGANISE)])
        assert any(task.get_name() == "vectors-optimising" for task in asyncio.all_tasks())
    async with open_vectors(deployment, model=MODEL, dimension=DIMENSION) as vectors:
        assert await vectors.count(Collection.MEMORIES, ANNA) == JUST_ENOUGH_TO_ORGANISE


async def test_points_that_a_former_process_left_are_optimised_without_a_write(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_vectors(deployment, model=MODEL, dimension=DIMENSION) as vectors:
        await vectors.upsert(Collection.MEMORIES, [point(f"{n}") for n in range(JUST_ENOUGH_TO_ORGANISE)])
        former = current(deployment)
        (cancelled,) = (task for task in asyncio.all_tasks() if task.get_name() == "vectors-optimising")
    await asyncio.wait([cancelled])
    monkeypatch.setattr(shard, "IDLE_AFTER", 0.01)
    async with open_vectors(deployment, model=MODEL, dimension=DIMENSION) as vectors:
        await optimisation_started()
        await optimised()
        assert current(deployment) != former
        assert await vectors.count(Collection.MEMORIES, ANNA) == JUST_ENOUGH_TO_ORGANISE


async def test_few_new_points_are_optimised_when_writes_pause(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard, "OPTIMISE_AFTER", 30)
    monkeypatch.setattr(shard, "IDLE_AFTER", 3600.0)
    async with open_vectors(deployment, model=MODEL, dimension=DIMENSION) as vectors:
        await vectors.upsert(Collection.MEMORIES, [point(f"{n}") for n in range(300)])
        await optimised()
        former = current(deployment)
        await vectors.upsert(Collection.MEMORIES, [point(f"new {n}") for n in range(30)])
        assert not any(task.get_name() == "vectors-optimising" for task in asyncio.all_tasks())
        monkeypatch.setattr(shard, "IDLE_AFTER", 0.01)
        await vectors.upsert(Collection.MEMORIES, [point("last")])
        await optimisation_started()
        await optimised()
        assert current(deployment) != former
        assert await vectors.count(Collection.MEMORIES, ANNA) == 331


async def test_reads_proceed_during_a_long_write(deployment: Deployment) -> None:
    async with open_vectors(deployment, model=MODEL, dimension=DIMENSION) as vectors:
        points = [point(f"{n}", dense=direction(1)) for n in range(4_000)]
        writing = asyncio.create_task(vectors.upsert(Collection.MEMORIES, points))
        counts = set()
        while not writing.done():
            counts.add(await vectors.count(Collection.MEMORIES, ANNA))
            await asyncio.sleep(0)
        await writing
        assert len(counts) > 10


@pytest.mark.skipif(sys.platform != "linux", reason="reads the names of threads from /proc")
async def test_a_folder_takes_one_search_thread_for_each_collection(deployment: Deployment) -> None:
    async with open_vectors(deployment, model=MODEL, dimension=DIMENSION) as vectors:
        await vectors.upsert(Collection.MEMORIES, [point("a")])
    before = count_search_threads()
    async with open_vectors(deployment, model=MODEL, dimension=DIMENSION) as vectors:
        (hits,) = await vectors.search(Collection.MEMORIES, ANNA, [words(TEA)], 10)
        assert names(hits) == ["a"]
        assert count_search_threads() - before <= len(Collection)


def count_search_threads() -> int:
    count = 0
    for path in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):  # the thread has ended meanwhile
            count += path.read_text().startswith("edge-search")
    return count
