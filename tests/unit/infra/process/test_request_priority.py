"""Background work waits for answers, in turn, and not for ever."""

import asyncio

from mnemon_infra.process.request_priority import PATIENCE, REST, answering, give_way


async def elapsed() -> float:
    """Seconds that a piece of work gave way."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await give_way()
    return loop.time() - begun


async def test_background_work_without_requests_starts_at_once() -> None:
    work = asyncio.create_task(give_way())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert work.done()


async def test_background_work_waits_for_requests() -> None:
    order: list[str] = []

    async def piece() -> None:
        await give_way()
        order.append("piece")

    with answering():
        task = asyncio.create_task(piece())
        for _ in range(10):
            await asyncio.sleep(0)
        order.append("answer")
    await task
    assert order == ["answer", "piece"]


async def test_background_work_waits_for_every_request() -> None:
    with answering():
        with answering():
            pass
        waiting = asyncio.create_task(give_way())
        for _ in range(10):
            await asyncio.sleep(0)
        assert not waiting.done()
    await waiting


async def test_background_work_rests_after_an_answer() -> None:
    with answering():
        pass
    assert await elapsed() >= REST / 2


async def test_background_work_continues_after_its_patience() -> None:
    with answering():
        assert await elapsed() >= PATIENCE * 0.9


async def test_background_work_runs_one_piece_at_a_time() -> None:
    ends: list[float] = []

    async def piece() -> None:
        await give_way()
        ends.append(asyncio.get_running_loop().time())

    with answering():
        await asyncio.gather(piece(), piece(), piece())
    assert min(ends[1] - ends[0], ends[2] - ends[1]) >= PATIENCE * 0.9
