"""Background work waits for answers, in turn, and not for ever."""

import asyncio

from mnemon_infra.process.request_priority import PATIENCE, REST, answering, give_way


async def elapsed() -> float:
    """Seconds that a piece of work gave way."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await give_way()
    return loop.time() - begun


async def test_while_nobody_asks_nobody_waits() -> None:
    order: list[str] = []

    async def piece() -> None:
        await give_way()
        order.append("piece")

    task = asyncio.create_task(piece())
    asyncio.get_running_loop().call_later(REST / 3, order.append, "later")
    await task
    assert order == ["piece"]


async def test_what_is_being_answered_goes_first() -> None:
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


async def test_one_answer_of_two_is_not_the_end() -> None:
    with answering():
        with answering():
            pass
        waiting = asyncio.create_task(give_way())
        for _ in range(10):
            await asyncio.sleep(0)
        assert not waiting.done()
    await waiting


async def test_who_was_answered_may_ask_again_at_once() -> None:
    with answering():
        pass
    assert await elapsed() >= REST / 2


async def test_it_goes_on_however_much_is_asked() -> None:
    with answering():
        assert await elapsed() >= PATIENCE * 0.9


async def test_one_piece_at_a_time() -> None:
    ends: list[float] = []

    async def piece() -> None:
        await give_way()
        ends.append(asyncio.get_running_loop().time())

    with answering():
        await asyncio.gather(piece(), piece(), piece())
    assert min(ends[1] - ends[0], ends[2] - ends[1]) >= PATIENCE * 0.9
