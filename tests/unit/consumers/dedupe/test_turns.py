"""Turns of users: deliveries that run a turn, and deliveries that are decided already."""

import asyncio

from mnemon_consumers.dedupe.state.user import TURN
from mnemon_consumers.dedupe.turns import FAILED, PUT_OFF_SECONDS, Turns
from mnemon_contracts.subjects import Owner
from mnemon_infra.broker.outcomes import ACK, Retry

ANNA = ("acme", "anna")


class DecidedLog:
    """A user's log, of which each turn decides all events up to the position `ends`, or fails."""

    def __init__(self, *, ends: int = 10, fails: bool = False) -> None:
        self.turns = 0
        self.ends = ends
        self.fails = fails
        self.decided = 0

    async def turn(self, owner: Owner) -> int | None:
        await asyncio.sleep(0)
        self.turns += 1
        if self.fails:
            return FAILED
        self.decided = self.ends
        return None

    def is_decided(self, owner: Owner, seq: int) -> bool:
        return seq <= self.decided


async def test_decided_delivery_needs_no_turn() -> None:
    log = DecidedLog(ends=10)
    turns = Turns(log.turn, log.is_decided)
    async with turns.open():
        assert await turns.run_turn(ANNA, [3, 4]) is None
        assert await turns.run_turn(ANNA, [9, 10]) is None
    assert log.turns == 1
    assert turns.choose_outcome(ANNA, None, 10) == ACK


async def test_last_delivery_of_an_event_counts() -> None:
    log = DecidedLog(ends=10)
    turns = Turns(log.turn, log.is_decided)
    async with turns.open():
        await turns.run_turn(ANNA, [10])
        log.ends = 11
        await turns.run_turn(ANNA, [9, 11])
    assert log.turns == 2


async def test_a_batch_that_waited_for_a_turn_needs_none_of_its_own() -> None:
    log = DecidedLog(ends=10)
    turns = Turns(log.turn, log.is_decided)
    async with turns.open():
        taken = await asyncio.gather(turns.run_turn(ANNA, [1]), turns.run_turn(ANNA, [2]))
    assert list(taken) == [None, None]
    assert log.turns == 1


async def test_failed_turn_is_retried_completely() -> None:
    log = DecidedLog(fails=True)
    turns = Turns(log.turn, log.is_decided)
    async with turns.open():
        assert await turns.run_turn(ANNA, [1]) == FAILED
        assert await turns.run_turn(ANNA, [1]) == FAILED
    assert log.turns == 2
    assert turns.choose_outcome(ANNA, FAILED, 1) == Retry()


async def test_many_decided_deliveries_are_not_put_off() -> None:
    log = DecidedLog(ends=10 * TURN)
    turns = Turns(log.turn, log.is_decided)
    async with turns.open():
        await turns.run_turn(ANNA, [1])
        assert await turns.run_turn(ANNA, range(1, 2 * TURN)) is None
    assert log.turns == 1


async def test_shutdown_waits_for_running_turns() -> None:
    begun, let_go = asyncio.Event(), asyncio.Event()
    finished = []

    async def turn(owner: Owner) -> int | None:
        begun.set()
        await let_go.wait()
        finished.append(owner)
        return None

    turns = Turns(turn, lambda owner, seq: False)

    async def work() -> None:
        async with turns.open():
            await turns.run_turn(ANNA, range(2 * TURN))
            await begun.wait()

    working = asyncio.create_task(work())
    await begun.wait()
    await asyncio.wait([working], timeout=0.05)
    assert not working.done()
    let_go.set()
    await working
    assert finished == [ANNA]


def test_waiting_delivery_is_not_acknowledged() -> None:
    log = DecidedLog()
    turns = Turns(log.turn, log.is_decided)
    assert turns.choose_outcome(ANNA, 7, 6) == ACK
    assert turns.choose_outcome(ANNA, 7, 7) == Retry(PUT_OFF_SECONDS)
