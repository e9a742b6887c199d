"""A cancelled task ends, even if its result arrives at the same moment."""

import asyncio
import gc
from collections.abc import Awaitable
from contextlib import suppress

import pytest

from mnemon.cli.terminal.signals import StopSignals
from mnemon_infra.database import engine
from mnemon_infra.database.engine import DatabaseUnavailable
from mnemon_infra.process.cancellation import patch_wait_for, run_task, wait_for


@pytest.fixture
def _heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncio, "wait_for", asyncio.wait_for)
    patch_wait_for()


async def waits(answer: Awaitable[None]) -> None:
    await asyncio.wait_for(answer, 60)


@pytest.mark.usefixtures("_heeded")
async def test_simultaneous_result_does_not_hide_cancellation() -> None:
    answer = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(waits(answer))
    await asyncio.sleep(0)
    answer.set_result(None)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("timeout", [0.001, 0, -1])
async def test_missing_result_times_out(timeout: float) -> None:
    never = asyncio.get_running_loop().create_future()
    with pytest.raises(TimeoutError):
        await wait_for(never, timeout)
    assert never.cancelled()


@pytest.mark.parametrize("timeout", [60, 0, None])
async def test_available_result_is_returned(timeout: float | None) -> None:
    there = asyncio.get_running_loop().create_future()
    there.set_result("an answer")
    assert await wait_for(there, timeout) == "an answer"


async def test_swallowed_cancellation_is_raised() -> None:
    async def start() -> None:
        with StopSignals() as stop:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
            await stop.wait()

    task = asyncio.create_task(start())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 60)


async def test_task_ends_with_its_block() -> None:
    ended = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("work")

    async with run_task(work()):
        await asyncio.sleep(0)
        assert ended == []
    assert ended == ["work"]


async def test_failed_task_fails_its_block() -> None:
    async def work() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        async with run_task(work()):
            await asyncio.sleep(0)


async def test_late_failure_is_not_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    monkeypatch.setattr(engine, "ANSWER_WAIT", 0.001)
    goes = asyncio.Event()

    async def answer() -> None:
        await goes.wait()
        raise DatabaseUnavailable("away")

    with pytest.raises(DatabaseUnavailable, match="no answer within"):
        await engine.await_answer(answer())
    goes.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    gc.collect()
    assert reported == []
