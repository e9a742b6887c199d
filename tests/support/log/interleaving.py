"""Interleavings of deliveries, crashes and sweeps of several workers, in an order that hypothesis draws.

The log is a model: its events, acknowledgements and waiting triggers. The database and its writers are real.
In the end, the rows must agree with the reference fold of the log.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar, get_args

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from mnemon_consumers.persist.decide import plan_batch
from mnemon_infra.broker.erasure.scope import ErasedUser
from mnemon_infra.database.engine import Database
from mnemon_infra.database.erasure.erased_rows import mark_settled
from mnemon_infra.database.erasure.users import load_erasure
from mnemon_infra.database.generations.comparison import compare_page
from mnemon_infra.database.generations.generation_repository import PROJECTIONS
from mnemon_infra.database.projections.rows import Rows
from mnemon_infra.database.projections.sweep import load_last_watermark, sweep_owner, sweep_owners
from mnemon_infra.database.projections.writer import simulate_rows, write_rows
from tests.support.log.log_model import (
    DRAFTS,
    PICKS,
    USERS,
    WORKERS,
    Draft,
    Hand,
    Logged,
    LogModel,
    Reached,
    events_of,
)
from tests.support.log.projected_state import contents_of, delivery_of, forget_all, shown, texts_of
from tests.support.log.reference_fold import TENANT, ReferenceEvent, ReferenceState, fold

Value = TypeVar("Value")


class Interleaving(RuleBasedStateMachine):
    """State machine of a log and its workers; the last step handles all events and compares the rows.

    Args:
        loop: event loop of the databases; the steps run in another thread.
        database: schema that the workers write.
        rebuilt: further schema, for rows that are rebuilt from the log.
        schemas: names of the two schemas.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        database: Database,
        rebuilt: Database,
        schemas: tuple[str, str],
    ) -> None:
        super().__init__()
        self._loop, self._database, self._rebuilt, self._schemas = loop, database, rebuilt, schemas
        self._log = LogModel()
        self._hands: dict[int, Hand] = {}
        self._written: list[Logged] = []
        self._has_failed = False
        self._run(forget_all(database))

    @rule(drafts=st.lists(DRAFTS, min_size=1, max_size=6))
    def publish(self, drafts: Sequence[Draft]) -> None:
        for draft in drafts:
            self._log.publish(draft)

    @precondition(lambda self: self._log.held)
    @rule(worker=WORKERS, picks=PICKS, up_to=st.sampled_from(get_args(Reached)), looked_after=USERS)
    def deliver(self, worker: int, picks: Sequence[int], up_to: Reached, looked_after: str) -> None:
        """Deliver any stored events, also repeatedly and in any order; the worker handles them up to `up_to`.

        Then a worker sweeps the user `looked_after`.
        """
        held = [*self._log.held.values()]
        self._hands[worker] = Hand([held[-1 - each % len(held)] for each in picks])
        self._run(self._go_on(worker, up_to))
        self._run(self._look_after(looked_after))

    @precondition(lambda self: self._log.open)
    @rule(worker=WORKERS, size=st.integers(1, 10), up_to=st.sampled_from(get_args(Reached)))
    def deliver_next(self, worker: int, size: int, up_to: Reached) -> None:
        self._hands[worker] = Hand(self._log.open[:size])
        self._run(self._go_on(worker, up_to))

    @precondition(lambda self: self._hands)
    @rule(up_to=st.sampled_from(get_args(Reached)))
    def all_go_on(self, up_to: Reached) -> None:
        """Let all workers continue with their batches at the same time, up to `up_to`."""

        async def together() -> None:
            await asyncio.gather(*(self._go_on(worker, up_to) for worker in [*self._hands]))

        self._run(together())

    @rule(worker=WORKERS)
    def crash(self, worker: int) -> None:
        """End a worker, between two batches or during one; its batch is not acknowledged."""
        self._hands.pop(worker, None)

    @rule(user=USERS, dies_after=st.sampled_from(["purging", "looking", "sweeping", None]))
    def look_after(self, user: str, dies_after: str | None) -> None:
        """Settle the erasure of a user, and sweep the user, as a worker does on a trigger.

        `dies_after` is the step after which the worker crashes; None: it does not crash.
        """
        self._run(self._look_after(user, dies_after))

    @precondition(lambda self: self._written)
    @rule(user=USERS)
    def read(self, user: str) -> None:
        """Compare the reads of a user with the fold: of the written events, and with the log tail added."""
        self._run(self._compare_shown(user))

    @rule()
    def come_to_rest(self) -> None:
        self._run(self._come_to_rest())

    def teardown(self) -> None:
        if not self._has_failed:
            self._run(self._come_to_rest())

    def _run(self, coroutine: Coroutine[Any, Any, Value]) -> Value:
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
        except BaseException:
            self._has_failed = True
            raise

    async def _go_on(self, worker: int, up_to: Reached) -> None:
        """Handle the batch of a worker up to the stage `up_to`; drop the batch when it is acknowledged."""
        stages = get_args(Reached)
        hand = self._hands[worker]
        while stages.index(hand.reached) < stages.index(up_to):
            hand.reached = stages[stages.index(hand.reached) + 1]
            rows = plan_batch([delivery_of(event, user) for user, event in hand.batch]).rows
            match hand.reached:
                case "written":
                    await write_rows(self._database, rows)
                    self._written += hand.batch
                case "told":
                    self._log.triggers |= {user for _, user in rows.find_watermarked_owners()}
                case "acknowledged":
                    self._log.acknowledged |= {event.seq for _, event in hand.batch}
                    self._hands.pop(worker, None)

    async def _look_after(self, user: str, dies_after: str | None = None) -> None:
        position = self._log.floor
        is_settled = await self._is_settled(user, position, dies_after)
        if dies_after in ("purging", "looking"):
            return
        await sweep_owner(self._database, TENANT, user, up_to=position)
        if dies_after == "sweeping" or not is_settled:
            return
        if await load_last_watermark(self._database, TENANT, user) <= position:
            self._log.triggers.discard(user)

    async def _is_settled(self, user: str, position: int, dies_after: str | None) -> bool:
        """Settle the erasure of a user as `mnemon_consumers.persist.erasure` does, in the model of the log.

        Return whether the user has no unsettled erasure left.
        """
        erased = await self._database.run_query(load_erasure(TENANT, user))
        if erased is None or erased.is_settled:
            return True
        if position < erased.seq:
            return False
        self._purge(event.seq for event in self._held(user) if event.seq < erased.seq)
        if dies_after == "purging":
            return False
        held = self._held(user)
        for event in held:
            if event.kind.startswith("summary.") and event.from_seq < erased.seq:
                self._purge([event.seq])
        await write_rows(self._database, plan_batch([delivery_of(event, user) for event in held]).rows)
        self._written += [(user, event) for event in held]
        if dies_after == "looking":
            return False
        await mark_settled(self._database, ErasedUser((TENANT, user), erased.seq, erased.at))
        return True

    def _held(self, user: str) -> list[ReferenceEvent]:
        return events_of(user, self._log.held.values())

    def _purge(self, positions: Iterable[int]) -> None:
        for seq in positions:
            del self._log.held[seq]

    async def _come_to_rest(self) -> None:
        """Handle all events and all triggers, then compare the rows of each user with the fold of the log."""
        while self._log.open:
            self._hands[0] = Hand(self._log.open[:20])
            await self._go_on(0, "acknowledged")
        for user in sorted(self._log.triggers):
            await self._look_after(user)
        assert not self._log.triggers, "somebody waits for ever"
        for user in sorted({user for user, _ in self._log.ever}):
            expected = fold(self._log.of(user), user)
            assert fold(self._held(user), user) == expected, "the log still says it all"
            state = await self._database.run_query(shown(expected.messages, user))
            _same(user, replace(state, texts=await texts_of(self._database, user)), expected)
            kept = {event for said in expected.messages.values() for event in said}
            assert await contents_of(self._database, user) == kept
        await self._compare_rebuilt()

    async def _compare_shown(self, user: str) -> None:
        expected = fold(events_of(user, self._written), user)
        erased = await self._database.run_query(load_erasure(TENANT, user))
        if erased is not None and not erased.is_settled:
            return  # until the erasure is settled, a copy may have been dropped as one of an erased event
        state = await self._database.run_query(shown(expected.messages, user))
        _same(user, replace(state, texts=expected.texts), expected)
        known = {event.seq for event in events_of(user, self._written)}
        tail = [event for event in self._held(user) if event.seq not in known]
        if any(event.kind == "user.erased" for event in tail):
            return
        expected = fold([*events_of(user, self._written), *tail], user)
        rows = plan_batch([delivery_of(event, user) for event in tail]).rows
        state = await simulate_rows(self._database, rows, shown(expected.messages, user))
        _same(user, replace(state, texts=expected.texts), expected)

    async def _compare_rebuilt(self) -> None:
        """Check that rows which are rebuilt from the stored events equal the rows of the workers."""
        await forget_all(self._rebuilt)
        rows = Rows.from_deliveries([delivery_of(event, user) for user, event in self._log.held.values()])
        await write_rows(self._rebuilt, rows)
        await sweep_owners(self._rebuilt, rows.find_watermarked_owners(), up_to=self._log.end)
        for table in PROJECTIONS:
            found = await self._database.run_query(compare_page(table, *self._schemas, None, self._log.end))
            assert found.differences == []


def _same(user: str, found: ReferenceState, expected: ReferenceState) -> None:
    assert found == expected, f"{user} has {found}, and the log says {expected}"
