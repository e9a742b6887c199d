"""Swap of the rebuilt generation for the live one: no event is lost, and no request fails."""

import asyncio
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pytest
from nats.aio.client import Client

from mnemon_bench.workloads.all_events import fill_log, generate_events
from mnemon_contracts.streams import WORK
from mnemon_infra.broker.streams.log_writer import append_events
from mnemon_infra.database.erasure.users import load_erasure
from mnemon_infra.database.generations.generation_repository import drop_schema
from mnemon_infra.database.windows.window_repository import StoredWindow, insert_windows
from mnemon_infra.generation_names import name_generation
from mnemon_infra.rebuild.generations import RebuildBlocked, Site, open_former_rows, swap_row_generations
from tests.support.log.audited_log import wait_until_swept
from tests.support.pipelines.rebuild import RebuildReport, applied, change, rebuilt, verdict_on
from tests.support.stock_client import Stock

USERS = 40


async def test_a_rebuild_repairs_changed_rows(
    site: Site, connection: Client, stock: Stock, told: RebuildReport
) -> None:
    await stock.say("true")
    await applied(site)
    await change(site, "UPDATE messages SET content = 'false'")
    async with rebuilt(site, told) as replay:
        await swap_row_generations(site, replay, told)
    assert await stock.contents(min_seq=await stock.say("and on")) == ["true", "and on"]
    assert (await verdict_on(site, told)).differences == 0


async def spoiled(site: Site, stock: Stock) -> None:
    """Write a message, falsify its row, and read the row once, so that `retrieve` caches it."""
    await stock.say("true")
    await applied(site)
    await change(site, "UPDATE messages SET content = 'false'")
    assert await stock.contents() == ["false"]
    assert "false" in (await stock.ask("context", format="blocks"))["text"]


async def end_listeners(site: Site) -> None:
    """Terminate the database connections that listen for a swap."""
    async with asyncio.timeout(60), site.database.transaction() as held:
        while not (
            await held.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN %'"
            )
        ).rowcount:
            await asyncio.sleep(0.01)


async def mended(stock: Stock) -> None:
    async with asyncio.timeout(60):
        while await stock.contents() != ["true"]:
            await asyncio.sleep(0.01)
    assert "false" not in (await stock.ask("context", format="blocks"))["text"]


async def test_bots_get_the_repaired_rows_though_the_former_are_cached(
    site: Site, stock: Stock, told: RebuildReport
) -> None:
    await spoiled(site, stock)
    async with rebuilt(site, told) as replay:
        await swap_row_generations(site, replay, told)
    await mended(stock)


async def test_bots_get_the_repaired_rows_though_the_notice_was_missed(
    site: Site, stock: Stock, told: RebuildReport
) -> None:
    await spoiled(site, stock)
    await end_listeners(site)
    async with rebuilt(site, told) as replay:
        await swap_row_generations(site, replay, told)
    await mended(stock)


@pytest.mark.long
async def test_switch_loses_no_event_and_fails_no_reader(
    site: Site, connection: Client, stock: Stock, told: RebuildReport
) -> None:
    await fill_log(connection, 2000, users=USERS)
    await stock.say("first")
    await applied(site)
    over = asyncio.Event()
    said = ["first"]
    answers: list[dict[str, Any]] = []

    async def write() -> None:
        while not over.is_set():
            said.append(f"{len(said)}")
            await stock.say(said[-1])

    async def flood() -> None:
        others = generate_events(seed=7, users=USERS)
        while not over.is_set():
            appended = await append_events(connection, list(islice(others, 20)))
            await applied(site, appended[-1].seq)

    async def read() -> None:
        while not over.is_set():
            answers.extend([await stock.ask("history"), await stock.ask("context")])

    async with asyncio.TaskGroup() as group:
        for work in write, flood, read, read, read:
            group.create_task(work())
        for _ in range(2):
            async with rebuilt(site, told) as replay:
                await swap_row_generations(site, replay, told)
            await drop_schema(site.database, name_generation(site.live, "former"))
        over.set()
    # This deployment has no vectors, so that searches are degraded.
    degraded = {part for answer in answers for part in answer.get("degraded", [])}
    assert degraded <= {"relevant", "conversation"}
    assert len(answers) > 20
    assert all(answer.get("messages") for answer in answers)
    await applied(site)
    async with site.database.transaction() as held:
        found = await held.execute("SELECT content FROM messages WHERE tenant = 'acme' ORDER BY seq")
        assert [content for (content,) in await found.fetchall()] == said
    assert (await verdict_on(site, told)).differences == 0


async def test_switch_keeps_open_work(site: Site, stock: Stock, told: RebuildReport) -> None:
    await stock.say("x")
    await applied(site)
    async with site.database.transaction() as held:
        await insert_windows(held, [StoredWindow("acme", "u1", "c1", 1, 2)], datetime.now(UTC))
    async with rebuilt(site, told) as replay:
        await swap_row_generations(site, replay, told)
    async with site.database.transaction() as held:
        assert (await (await held.execute("SELECT to_seq FROM windows")).fetchall()) == [(2,)]


async def test_switch_back_keeps_new_events(site: Site, stock: Stock, told: RebuildReport) -> None:
    await stock.say("before")
    await applied(site)
    await change(site, "UPDATE messages SET content = 'as it was' WHERE content = 'before'")
    async with rebuilt(site, told) as replay:
        await swap_row_generations(site, replay, told)
    assert await stock.contents(min_seq=await stock.say("since")) == ["before", "since"]
    await applied(site)
    async with open_former_rows(site) as old:
        await swap_row_generations(site, old, told)
    assert await stock.contents(min_seq=await stock.say("after")) == ["as it was", "since", "after"]
    await applied(site)
    async with open_former_rows(site) as new:
        await swap_row_generations(site, new, told)
    assert await stock.contents(min_seq=await stock.say("end")) == ["before", "since", "after", "end"]
    await drop_schema(site.database, name_generation(site.live, "former"))
    with pytest.raises(RebuildBlocked, match="no former generation"):
        async with open_former_rows(site):
            pass


async def test_switch_back_sweeps_what_was_cleared_before_the_switch(
    site: Site, connection: Client, stock: Stock, told: RebuildReport
) -> None:
    await stock.say("cleared")
    await connection.jetstream().pause_consumer(WORK, "persist-sweep", pause_until="2099-01-01T00:00:00Z")
    await stock.publish("chat.acme.u1.-.cleared.v1")
    await applied(site)
    async with rebuilt(site, told) as replay:
        await swap_row_generations(site, replay, told)
    await connection.jetstream().resume_consumer(WORK, "persist-sweep")
    await wait_until_swept(connection)
    async with open_former_rows(site) as former:
        await swap_row_generations(site, former, told)
    async with site.database.transaction() as held:
        found = await held.execute("SELECT content FROM messages")
        assert await found.fetchall() == [(None,)]


@pytest.mark.long
async def test_switch_keeps_users_erased(site: Site, stock: Stock, told: RebuildReport) -> None:
    await stock.say("forgotten")
    assert "removed" in await stock.ask("erase")
    await stock.say("by somebody new")
    await applied(site)
    async with asyncio.timeout(60):
        while not await settled(site):
            await asyncio.sleep(0.02)
    assert (await verdict_on(site, told)).differences == 0
    async with rebuilt(site, told) as replay:
        await swap_row_generations(site, replay, told)
    assert await settled(site)
    assert await stock.contents() == ["by somebody new"]


async def settled(site: Site) -> bool:
    """Return whether the erasure of `u1` is settled."""
    found = await site.database.run_query(load_erasure("acme", "u1"))
    return found is not None and found.is_settled


@pytest.mark.long
async def test_switch_waits_for_locks(site: Site, stock: Stock, told: RebuildReport) -> None:
    """The swap waits for a lock such as `extract` holds on a window while it asks a model."""
    await stock.say("x")
    await applied(site)
    free = asyncio.Event()
    told.show_line = lambda line: free.set()  # type: ignore[method-assign]
    async with (
        rebuilt(site, told) as replay,
        asyncio.TaskGroup() as group,
        site.database.transaction() as held,
    ):
        await held.execute("LOCK TABLE windows IN ROW SHARE MODE")
        switching = group.create_task(swap_row_generations(site, replay, told))
        await free.wait()
        assert not switching.done()
    assert [each.kind for each in await site.list_generations()] == ["live", "former"]
