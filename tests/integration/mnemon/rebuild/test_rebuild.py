"""Rebuild of a generation from the log, and its comparison with the live one."""

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from nats.aio.client import Client
from psycopg.sql import SQL, Identifier

from mnemon_bench.workloads.all_events import fill_log
from mnemon_consumers.app import run_consumers
from mnemon_infra.broker.streams.stream_reader import find_position
from mnemon_infra.config import Deployment
from mnemon_infra.database.facts import fact_repository
from mnemon_infra.rebuild.generations import (
    RebuildBlocked,
    Site,
    catch_up_with_log,
    open_exclusive_site,
    open_row_generation,
)
from mnemon_infra.rebuild.row_verification import RowVerifier
from tests.integration.consumers.delivery.test_poison import REFUSED
from tests.support.pipelines.rebuild import RebuildReport, applied, change, verdict_on
from tests.support.stock_client import Stock

EVENTS, USERS = 3000, 40


async def test_rebuild_of_all_events_gives_equal_rows(
    site: Site, connection: Client, stock: Stock, told: RebuildReport
) -> None:
    await fill_log(connection, EVENTS, users=USERS)
    seq = await stock.say("once", id="x")
    await stock.publish("chat.acme.u1.-.message.v1", REFUSED)
    await stock.publish("chat.acme.u1.-.message.v1", {"role": "user", "content": "x"}, Nats_Msg_Id="a\0b")
    await stock.say("a copy, later", id="x")
    verdict = await verdict_on(site, told)
    assert verdict.is_settled
    assert (verdict.differences, verdict.first) == (0, [])
    assert verdict.position == seq + 3
    assert [table for table, rows in verdict.rows.items() if not rows] == [
        "conversation_erasures",
        "erasures",
    ]
    assert sum(verdict.rows.values()) > EVENTS * 0.9
    assert told.positions == sorted(told.positions)


async def test_rows_that_differ_from_the_log_are_named(
    site: Site, connection: Client, stock: Stock, told: RebuildReport
) -> None:
    await fill_log(connection, 500, users=5)
    changed = await stock.say("true", id="changed")
    await stock.say("lost", id="lost")
    await stock.publish("memory.acme.u1.profile.set.v1", {"fields": {"a": 1}}, Nats_Msg_Id="set")
    await applied(site)
    await change(site, "UPDATE messages SET content = 'false' WHERE event_id = 'changed'")
    await change(site, "DELETE FROM messages WHERE event_id = 'lost'")
    await change(
        site, "INSERT INTO profile_sets SELECT tenant, user_id, 'made up', 1, fields FROM profile_sets"
        " WHERE event_id = 'set'"
    )  # fmt: skip
    verdict = await verdict_on(site, told)
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


async def test_unprojected_events_are_no_difference(
    deployment: Deployment, stock: Stock, told: RebuildReport
) -> None:
    seq = await stock.say("cleared later")
    async with open_exclusive_site(deployment) as place:
        async with run_consumers(("persist",), deployment):
            await applied(place)
        await stock.publish("chat.acme.u1.-.cleared.v1")
        verdict = await verdict_on(place, told, timeout_seconds=0)
    assert (verdict.is_settled, verdict.position, verdict.counts) == (False, seq, {})
    assert verdict.rows["messages"] == 1


@pytest.mark.long
async def test_interrupted_rebuild_resumes(site: Site, connection: Client, told: RebuildReport) -> None:
    await fill_log(connection, EVENTS, users=USERS)
    await applied(site)

    class Interruption(Exception):
        pass

    class Interrupting(RebuildReport):
        def report_rows(self, reached: int, up_to: int) -> None:
            raise Interruption

    with suppress(Interruption):
        async with open_row_generation(site, "next", told) as replay:
            await catch_up_with_log(site, replay, Interrupting())
    assert 0 < replay.reached < EVENTS
    again = RebuildReport()
    async with open_row_generation(site, "next", again) as other:
        assert other.reached == replay.reached
        assert again.lines == [f"continuing the rebuild of {other.schema} from position {other.reached:,}"]
        verdict = await RowVerifier(site, other, again).verify()
    assert again.positions[0] > replay.reached
    assert (verdict.differences, verdict.position) == (0, EVENTS)


async def test_rebuild_as_of_shows_the_state_of_its_position(
    site: Site, stock: Stock, told: RebuildReport
) -> None:
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
    assert await find_position(site.connection, between) == saved
    assert await find_position(site.connection, datetime.now(UTC)) == forgotten
    for position, texts in ((saved, ["lives in Riga"]), (updated, ["lives in Oslo"]), (forgotten, [])):
        async with open_row_generation(site, "as of", told, position) as replay:
            await replay.replay_until(position)
            (found,) = await replay.database.run_query(fact_repository.load_facts([("acme", "u1")]))
            assert [fact.text for fact in found] == texts
    assert {each.schema: each.up_to for each in await site.list_generations() if each.kind == "as of"} == {
        f"{site.live}_until_{position}": position for position in (saved, updated, forgotten)
    }


async def test_foreign_schemas_stay_untouched(site: Site, told: RebuildReport) -> None:
    async with site.database.transaction() as held:
        await held.execute(SQL("CREATE SCHEMA {}").format(Identifier(f"{site.live}_next")))
    with pytest.raises(RebuildBlocked, match="was not created by a rebuild"):
        async with open_row_generation(site, "next", told):
            pass


async def test_second_rebuild_is_refused(site: Site) -> None:
    with pytest.raises(RebuildBlocked, match="another rebuild"):
        async with open_exclusive_site(site.deployment):
            pass
