"""What the log says can be made anew beside what is in use, compared with it, and put in its place."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pytest
import pytest_asyncio
from nats.aio.client import Client
from psycopg.sql import SQL, Identifier

from bench.all_events import events, fill
from infra.broker.appending import append
from infra.broker.whole_log import position_at, whole_log
from infra.config import Deployment
from infra.database import facts
from infra.database.erasing import erasure
from infra.database.generations import drop, name_of
from infra.database.windows import StoredWindow, put
from infra.rebuilding.making import InTheWay, Site, catch_up, former, made, site_alone, take_over
from infra.rebuilding.replay import Replay
from infra.rebuilding.verifying import Verdict, Verifying
from tests.integration.conftest import Stock
from tests.integration.test_poison import REFUSED

EVENTS, USERS = 6000, 40


class Told:
    """Remembers what was said."""

    def __init__(self) -> None:
        self.positions: list[int] = []
        self.lines: list[str] = []

    def at(self, reached: int, up_to: int) -> None:
        self.positions.append(reached)

    def say(self, line: str) -> None:
        self.lines.append(line)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest_asyncio.fixture
async def place(mnemon: Deployment) -> AsyncIterator[Site]:
    async with site_alone(mnemon) as place:
        yield place


@asynccontextmanager
async def rebuilt(place: Site, told: Told) -> AsyncIterator[Replay]:
    """What the whole log gives, beside what is in use."""
    async with made(place, "next", told) as replay:
        await catch_up(place, replay, told)
        yield replay


async def verdict_on(place: Site, told: Told) -> Verdict:
    """What a comparison finds; it leaves nothing behind."""
    async with rebuilt(place, told) as replay:
        verdict = await Verifying(place, replay, told).verdict()
    await drop(place.database, replay.schema)
    return verdict


async def applied(place: Site, seq: int = 0) -> None:
    """Wait until the log up to there, or else all of it, is in what is in use."""
    async with asyncio.timeout(60):
        while await place.applied() < (seq or await place.log_end()):
            await asyncio.sleep(0.02)


async def change(place: Site, statement: str) -> None:
    async with place.database.transaction() as connection:
        assert (await connection.execute(SQL(statement))).rowcount == 1


async def test_all_kinds_of_events_give_the_same_rows(
    place: Site, connection: Client, stock: Stock, told: Told
) -> None:
    await fill(connection, EVENTS, users=USERS)
    seq = await stock.say("once", id="x")
    for body, headers in REFUSED.values():
        await stock.publish("chat.acme.u1.-.message.v1", body, **headers)
    await stock.say("a copy, later", id="x")
    verdict = await verdict_on(place, told)
    assert verdict.is_settled
    assert (verdict.differences, verdict.first) == (0, [])
    assert verdict.position == seq + 3
    assert [table for table, rows in verdict.rows.items() if not rows] == ["erasures"]
    assert sum(verdict.rows.values()) > EVENTS * 0.9
    assert told.positions == sorted(told.positions)


async def test_a_row_changed_by_hand_is_found_and_named(
    place: Site, connection: Client, stock: Stock, told: Told
) -> None:
    await fill(connection, 500, users=5)
    changed = await stock.say("true", id="changed")
    await stock.say("lost", id="lost")
    await stock.publish("memory.acme.u1.profile.set.v1", {"fields": {"a": 1}}, Nats_Msg_Id="set")
    await applied(place)
    await change(place, "UPDATE messages SET content = 'false' WHERE event_id = 'changed'")
    await change(place, "DELETE FROM messages WHERE event_id = 'lost'")
    await change(
        place, "INSERT INTO profile_sets SELECT tenant, user_id, 'made up', 1, fields FROM profile_sets"
        " WHERE event_id = 'set'"
    )  # fmt: skip
    verdict = await verdict_on(place, told)
    assert verdict.counts == {"messages": 2, "profile_sets": 1}
    key = {"tenant": "acme", "user_id": "u1"}
    one, other, third = verdict.first
    assert one.table == "messages"
    assert one.key == {**key, "event_id": "changed"}
    assert (one.live, one.rebuilt) == ({"content": "false"}, {"content": "true"})
    assert other.key == {**key, "event_id": "lost"}
    assert other.live is None
    assert other.rebuilt
    assert other.rebuilt["seq"] == changed + 1
    assert third.key == {**key, "event_id": "made up"}
    assert third.live
    assert third.rebuilt is None


async def test_a_rebuild_mends_what_was_changed(
    place: Site, connection: Client, stock: Stock, told: Told
) -> None:
    await stock.say("true")
    await applied(place)
    await change(place, "UPDATE messages SET content = 'false'")
    async with rebuilt(place, told) as replay:
        await take_over(place, replay, told)
    assert await stock.contents(min_seq=await stock.say("and on")) == ["true", "and on"]
    assert (await verdict_on(place, told)).differences == 0


async def test_what_was_left_in_the_middle_goes_on_from_there(
    place: Site, connection: Client, told: Told
) -> None:
    await fill(connection, EVENTS, users=USERS)
    await applied(place)
    with suppress(asyncio.CancelledError):
        async with made(place, "next", told) as replay:
            task = asyncio.create_task(catch_up(place, replay, told))

            class Cut(Told):
                def at(self, reached: int, up_to: int) -> None:
                    task.cancel()

            told.at = Cut().at  # type: ignore[method-assign]
            await task
    assert 0 < replay.reached < EVENTS
    again = Told()
    async with made(place, "next", again) as other:
        assert other.reached == replay.reached
        assert again.lines == [f"{other.schema} was begun before: going on from position {other.reached:,}"]
        verdict = await Verifying(place, other, again).verdict()
    assert again.positions[0] > replay.reached
    assert (verdict.differences, verdict.position) == (0, EVENTS)


async def test_nothing_is_lost_and_nobody_fails_while_it_switches(
    place: Site, connection: Client, stock: Stock, told: Told
) -> None:
    await fill(connection, 2000, users=USERS)
    await stock.say("first")
    await applied(place)
    over = asyncio.Event()
    said = ["first"]
    answers: list[dict[str, Any]] = []

    async def write() -> None:
        while not over.is_set():
            said.append(f"{len(said)}")
            await stock.say(said[-1])

    async def flood() -> None:
        others = events(seed=7, users=USERS)
        while not over.is_set():
            appended = await append(connection, list(islice(others, 20)))
            await applied(place, appended[-1].seq)

    async def read() -> None:
        while not over.is_set():
            answers.extend([await stock.ask("history"), await stock.ask("context")])

    async with asyncio.TaskGroup() as group:
        for work in write, flood, read, read, read:
            group.create_task(work())
        for _ in range(2):
            async with rebuilt(place, told) as replay:
                await take_over(place, replay, told)
            await drop(place.database, name_of(place.live, "former"))
        over.set()
    # There is nothing to search in here.
    degraded = {part for answer in answers for part in answer.get("degraded", [])}
    assert degraded <= {"relevant", "conversation"}
    assert len(answers) > 20
    assert all(answer.get("messages") for answer in answers)
    await applied(place)
    async with place.database.transaction() as held:
        found = await held.execute("SELECT content FROM messages WHERE tenant = 'acme' ORDER BY seq")
        assert [content for (content,) in await found.fetchall()] == said
    assert (await verdict_on(place, told)).differences == 0


async def test_work_in_hand_goes_along(place: Site, stock: Stock, told: Told) -> None:
    await stock.say("x")
    await applied(place)
    async with place.database.transaction() as held:
        await put(held, [StoredWindow("acme", "u1", "c1", 1, 2)], datetime.now(UTC))
    async with rebuilt(place, told) as replay:
        await take_over(place, replay, told)
    async with place.database.transaction() as held:
        assert (await (await held.execute("SELECT to_seq FROM windows")).fetchall()) == [(2,)]


async def test_there_and_back_with_what_came_since(place: Site, stock: Stock, told: Told) -> None:
    await stock.say("before")
    await applied(place)
    await change(place, "UPDATE messages SET content = 'as it was' WHERE content = 'before'")
    async with rebuilt(place, told) as replay:
        await take_over(place, replay, told)
    assert await stock.contents(min_seq=await stock.say("since")) == ["before", "since"]
    await applied(place)
    async with former(place) as old:
        await take_over(place, old, told)
    assert await stock.contents(min_seq=await stock.say("after")) == ["as it was", "since", "after"]
    await applied(place)
    async with former(place) as new:
        await take_over(place, new, told)
    assert await stock.contents(min_seq=await stock.say("end")) == ["before", "since", "after", "end"]
    await drop(place.database, name_of(place.live, "former"))
    with pytest.raises(InTheWay, match="no former generation"):
        async with former(place):
            pass


async def test_each_position_has_its_own_truth(place: Site, stock: Stock, told: Told) -> None:
    decision = {"decision": {"proposal_id": "p"}}
    saved = await stock.publish(
        "memory.acme.u1.fact.saved.v1", {"fact_id": "f", "fact": {"text": "lives in Riga"}, **decision}
    )
    between = datetime.now(UTC)
    updated = await stock.publish(
        "memory.acme.u1.fact.updated.v1",
        {"fact_id": "f", "fact": {"text": "lives in Oslo"}, "former": {"text": "lives in Riga"}},
    )
    forgotten = await stock.publish("memory.acme.u1.fact.forgotten.v1", {"fact_id": "f"})
    assert await position_at(place.connection, between) == saved
    assert await position_at(place.connection, datetime.now(UTC)) == forgotten
    for position, texts in ((saved, ["lives in Riga"]), (updated, ["lives in Oslo"]), (forgotten, [])):
        async with made(place, "as of", told, position) as replay:
            await replay.reach(position)
            (found,) = await replay.database.read(facts.live_facts([("acme", "u1")]))
            assert [fact.text for fact in found] == texts
    assert {each.schema: each.up_to for each in await place.generations() if each.kind == "as of"} == {
        f"{place.live}_until_{position}": position for position in (saved, updated, forgotten)
    }


async def test_who_was_erased_stays_erased(place: Site, stock: Stock, told: Told) -> None:
    await stock.say("forgotten")
    assert "removed" in await stock.ask("erase")
    await stock.say("by somebody new")
    await applied(place)
    async with asyncio.timeout(60):
        while not await settled(place):
            await asyncio.sleep(0.02)
    assert (await verdict_on(place, told)).differences == 0
    async with rebuilt(place, told) as replay:
        await take_over(place, replay, told)
    assert await settled(place)
    assert await stock.contents() == ["by somebody new"]


async def settled(place: Site) -> bool:
    """Whether all that is to be purged is."""
    found = await place.database.read(erasure("acme", "u1"))
    return found is not None and found.is_settled


async def test_what_is_not_of_a_rebuild_is_left_alone(place: Site, told: Told) -> None:
    async with place.database.transaction() as held:
        await held.execute(SQL("CREATE SCHEMA {}").format(Identifier(f"{place.live}_next")))
    with pytest.raises(InTheWay, match="is not of a rebuild"):
        async with made(place, "next", told):
            pass


async def test_it_waits_for_what_is_held(place: Site, stock: Stock, told: Told) -> None:
    """Such as a stretch that a model is asked about."""
    await stock.say("x")
    await applied(place)
    free = asyncio.Event()
    told.say = lambda line: free.set()  # type: ignore[method-assign]
    async with (
        rebuilt(place, told) as replay,
        asyncio.TaskGroup() as group,
        place.database.transaction() as held,
    ):
        await held.execute("LOCK TABLE windows IN ROW SHARE MODE")
        switching = group.create_task(take_over(place, replay, told))
        await free.wait()
        assert not switching.done()
    assert [each.kind for each in await place.generations()] == ["live", "former"]


async def test_one_at_a_time(place: Site) -> None:
    with pytest.raises(InTheWay, match="another rebuild"):
        async with site_alone(place.deployment):
            pass


async def test_pages_of_the_log(connection: Client) -> None:
    await fill(connection, 2500, users=USERS)
    await connection.jetstream().delete_msg("LOG", 1000)
    pages = [page async for page in whole_log(connection, 10, 2400, 1000)]
    read = [delivery.sequence for page in pages for delivery in page]
    assert read == [seq for seq in range(11, 2401) if seq != 1000]
    assert max(map(len, pages)) == 1000
    assert [page async for page in whole_log(connection, 2500, 2500, 10)] == []
    assert sum([len(page) async for page in whole_log(connection, 2490, 9999, 3)]) == 10
