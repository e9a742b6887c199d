"""Background work waits for requests, for a limited time, and runs one piece at a time."""

import asyncio

import pytest

from mnemon_infra.process import request_priority
from mnemon_infra.process.request_priority import LONGEST_WAIT, prioritise_request, yield_to_requests


async def elapsed() -> float:
    """Return the seconds for which a piece of background work waits."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await yield_to_requests()
    return loop.time() - begun


async def test_background_work_without_requests_starts_at_once() -> None:
    work = asyncio.create_task(yield_to_requests())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert work.done()


async def test_background_work_waits_for_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_priority, "LONGEST_WAIT", 600)
    order: list[str] = []

    async def piece() -> None:
        await yield_to_requests()
        order.append("piece")

    with prioritise_request():
        task = asyncio.create_task(piece())
        for _ in range(10):
            await asyncio.sleep(0)
        order.append("answer")
    await task
    assert order == ["answer", "piece"]


async def test_background_work_waits_for_every_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_priority, "LONGEST_WAIT", 600)
    with prioritise_request():
        with prioritise_request():
            pass
        waiting = asyncio.create_task(yield_to_requests())
        for _ in range(10):
            await asyncio.sleep(0)
        assert not waiting.done()
    await waiting


async def test_background_work_rests_after_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The waits take minutes, so that none can end within the test, even on a slow machine."""
    monkeypatch.setattr(request_priority, "LONGEST_WAIT", 600)
    with prioritise_request():
        pass
    monkeypatch.setattr(request_priority, "REST", 300)
    waiting = asyncio.create_task(yield_to_requests())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()


async def test_background_work_begins_after_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_priority, "LONGEST_WAIT", 600)
    with prioritise_request():
        pass
    await yield_to_requests()


async def test_background_work_continues_after_the_longest_wait() -> None:
    with prioritise_request():
        assert await elapsed() >= LONGEST_WAIT * 0.9


async def test_background_work_runs_one_piece_at_a_time() -> None:
    ends: list[float] = []

    async def piece() -> None:
        await yield_to_requests()
        ends.append(asyncio.get_running_loop().time())

    with prioritise_request():
        await asyncio.gather(piece(), piece(), piece())
    assert min(ends[1] - ends[0], ends[2] - ends[1]) >= LONGEST_WAIT / 2
