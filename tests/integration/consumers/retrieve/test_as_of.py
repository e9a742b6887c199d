"""Memory as of a former moment: the state of that moment, without content that was erased later."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from psycopg.sql import SQL, Identifier

from mnemon.operations.rebuild.generations import open_generation as made_with_vectors
from mnemon_consumers.app import run_consumers
from mnemon_consumers.retrieve.snapshots import snapshot_pool
from mnemon_contracts.events.erasure import ALL_BEFORE
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Connection, DatabaseUnavailable
from mnemon_infra.database.generations.generation_repository import drop_schema
from mnemon_infra.generation_names import name_generation
from mnemon_infra.rebuild.generations import Site, open_exclusive_site, open_row_generation
from mnemon_infra.settings.store import LiveSettings
from mnemon_infra.vectors.generations import drop_generation, locate_generation
from mnemon_producers.client import MemoryClient
from mnemon_producers.errors import AskFailed
from tests.support.pipelines.rebuild import RebuildReport
from tests.support.servers.qdrant import locate_vectors
from tests.support.stock_client import Stock, indexed, persisted

SPACE = "memory.acme.u1"


class ToldOfBoth(RebuildReport):
    def report_vectors(self, reached: int, up_to: int) -> None: ...


async def kept(site: Site, *positions: int) -> None:
    """Make a snapshot as of each position, as `mnemon rebuild --until` does."""
    for position in positions:
        async with open_row_generation(site, "as of", RebuildReport(), position) as replay:
            await replay.replay_until(position)
            await replay.apply_later_erasures()


async def dropped(site: Site, position: int) -> None:
    await drop_schema(site.database, name_generation(site.live, "as of", position))


async def fact(stock: Stock, event: str, text: str, **fields: Any) -> int:
    fact = {"text": text, "tier": "profile", **fields}
    said = {"decision": {"proposal_id": "p"}} if event == "saved" else {"former": {"text": "what was before"}}
    return await stock.publish(f"{SPACE}.fact.{event}.v1", {"fact_id": "pf_001", "fact": fact, **said})


def shown(reply: dict[str, Any]) -> str:
    assert "error" not in reply, reply
    return "\n".join(message["content"] for message in reply["messages"])


async def problem(stock: Stock, verb: str = "history", **request: Any) -> tuple[str, bool, str]:
    error = (await stock.ask(verb, **request))["error"]
    return error["code"], error["retryable"], error["message"]


async def lived(stock: Stock) -> list[tuple[int, str, datetime]]:
    """Publish three versions of a fact; return position, town and time of each."""
    times = []
    await stock.publish("chat.acme.u1.talk.started.v1")
    for number, town in enumerate(("Riga", "Oslo", "Perm")):
        said = await stock.say(f"I live in {town} now")
        await stock.publish(f"{SPACE}.profile.set.v1", {"fields": {"city": town}})
        summary = {"summary_id": f"s{number}", "conversation": "talk", "text": f"Moved to {town}."}
        await stock.publish(f"{SPACE}.summary.written.v1", {**summary, "from_seq": said, "to_seq": said})
        seq = await fact(stock, "updated" if number else "saved", f"Anna lives in {town}")
        times.append((seq, town, datetime.now(UTC)))
    return times


async def test_read_as_of_shows_the_state_of_that_moment(
    site: Site, stock: Stock, memory_client: MemoryClient
) -> None:
    moments = await lived(stock)
    await kept(site, *(seq for seq, _, _ in moments))
    towns = [town for _, town, _ in moments]
    for number, (seq, town, at) in enumerate(moments):
        for as_of in (seq, at.isoformat()):
            reply = await stock.ask("context", as_of=as_of)
            assert reply["seen_seq"] == seq
            assert reply["profile"] == {"city": town}
            text = shown(reply)
            assert [each for each in towns if f"Anna lives in {each}" in text] == [town]
            assert [each for each in towns if f"Moved to {each}" in text] == towns[: number + 1]
            history = await stock.ask("history", as_of=as_of)
            assert history["seen_seq"] == seq
            assert shown(history).splitlines() == [f"I live in {each} now" for each in towns[: number + 1]]
            newest = history["messages"][-1]["seq"]
            older = await stock.ask("history", as_of=as_of, before=newest)
            assert shown(older).splitlines() == [f"I live in {each} now" for each in towns[:number]]
    seq, _, at = moments[0]
    assert [each.content for each in (await memory_client.history("u1", as_of=at)).messages] == [
        "I live in Riga now"
    ]
    assert (await memory_client.context("u1", as_of=seq, min_seq=seq)).profile == {"city": "Riga"}
    # A request without `as_of` shows the current state.
    assert (await stock.ask("context", min_seq=moments[-1][0]))["profile"] == {"city": "Perm"}


@pytest.mark.long
async def test_search_as_of_finds_the_state_of_that_moment(
    deployment: Deployment, stock: Stock, tmp_path: Path
) -> None:
    with_vectors = locate_vectors(deployment, tmp_path / "vectors")
    told = ToldOfBoth()
    question: dict[str, Any] = {"query": "Where does Anna live?", "scope": ["memories", "messages"]}
    async with (
        run_consumers(("persist", "index", "retrieve"), with_vectors),
        open_exclusive_site(with_vectors) as place,
    ):
        moments = await lived(stock)
        await indexed(stock, moments[-1][0])
        seq, town, _ = moments[0]
        async with made_with_vectors(place, "as of", told, seq) as generation:
            await generation.rows.replay_until(seq)
            for verb, request in (("search", question), ("context", {})):
                code, retryable, _ = await problem(stock, verb, as_of=seq, **request)
                assert (code, retryable) == ("unavailable", True), "not made yet"
            await generation.replay_to(seq, told)
        live = await stock.ask("search", **question, min_seq=moments[-1][0])
        assert "Anna lives in Perm" in [hit["text"] for hit in live["hits"]]
        then = await stock.ask("search", **question, as_of=seq)
        assert (then["seen_seq"], then["degraded"]) == (seq, [])
        assert {hit["text"] for hit in then["hits"]} == {f"Anna lives in {town}", f"I live in {town} now"}
        assert (await stock.ask("context", as_of=seq, query=town))["degraded"] == []
        await drop_generation(locate_generation(with_vectors, "as of", seq))
        await dropped(place, seq)
        assert (await problem(stock, "search", as_of=seq, **question))[0] == "not_found"


async def test_expiry_is_judged_as_of_that_moment(site: Site, stock: Stock) -> None:
    patience = timedelta(seconds=0.5)
    stored = expires = datetime.now(UTC)
    while stored >= expires:  # under load, the log may receive the fact after its expiry
        patience *= 2
        expires = datetime.now(UTC) + patience
        seq = await fact(stock, "saved", "Anna is in Rome", tier="working", expires_at=expires.isoformat())
        stored = (await stock.connection.jetstream().get_msg("LOG", seq)).time or expires
    await kept(site, seq)
    found = await stock.ask("search", query="Rome", as_of=seq)
    assert (found["seen_seq"], found["degraded"]) == (seq, ["memories"]), "there are no vectors"
    async with asyncio.timeout(60):
        while "Rome" in shown(await stock.ask("context", min_seq=seq)):
            await asyncio.sleep(0.05)
    just_before = expires - timedelta(milliseconds=1)
    for as_of, is_shown in ((seq, True), (expires.isoformat(), False), (just_before.isoformat(), True)):
        assert ("Rome" in shown(await stock.ask("context", as_of=as_of))) is is_shown


async def test_as_of_missing_moment_is_refused(site: Site, stock: Stock, memory_client: MemoryClient) -> None:
    assert "the log, which is empty" in (await problem(stock, as_of=1))[2]
    for number in range(3):
        await stock.say(str(number))
    for verb, request in (("history", {}), ("context", {}), ("search", {"query": "tea"})):
        code, retryable, said = await problem(stock, verb, as_of=2, **request)
        assert (code, retryable) == ("not_found", False)
        assert "`mnemon rebuild --until 2`" in said
        code, _, said = await problem(stock, verb, as_of=4, **request)
        assert (code, said) == (
            "bad_request",
            "as_of: position 4 is not in the log, which goes from 1 to 3; give one of these positions",
        )
        code, _, said = await problem(stock, verb, as_of="2200-01-01T00:00:00Z", **request)
        assert (code, said) == (
            "bad_request",
            "as_of: 2200-01-01T00:00:00Z is in the future; give a past time",
        )
        code, _, said = await problem(stock, verb, as_of=2, min_seq=3, **request)
        assert (code, said) == (
            "bad_request",
            "min_seq: 3 is later than `as_of`, which is position 2; omit `min_seq`, or give a later `as_of`",
        )
    code, _, said = await problem(stock, as_of="2020-01-01T00:00:00Z")
    assert code == "bad_request"
    assert re.fullmatch("as_of: the log begins at 20.*Z; give a later time or position", said)
    with pytest.raises(AskFailed) as failed:
        await memory_client.history("u1", as_of=2)
    assert failed.value.error.code == "not_found"
    async with open_row_generation(site, "as of", RebuildReport(), 2) as replay:
        await replay.replay_until(1)
        code, retryable, said = await problem(stock, as_of=2)
        assert (code, retryable) == ("unavailable", True)
        assert "after `mnemon rebuild --until 2`" in said
        await replay.replay_until(2)
    assert await stock.contents(as_of=2) == ["0", "1"]


async def test_dropped_snapshot_is_opened_again(site: Site, stock: Stock) -> None:
    await stock.say("a")
    await kept(site, 1)
    asking = True
    answered: list[str] = []

    async def always() -> None:
        while asking:
            reply = await stock.ask("history", as_of=1)
            answered.append(reply["error"]["code"] if "error" in reply else shown(reply))

    several = [asyncio.create_task(always()) for _ in range(4)]
    assert await stock.contents(as_of=1) == ["a"]
    await dropped(site, 1)
    assert (await problem(stock, as_of=1))[0] == "not_found"
    await kept(site, 1)
    assert await stock.contents(as_of=1) == ["a"]
    asking = False
    await asyncio.gather(*several)
    assert set(answered) - {"unavailable"} == {"a", "not_found"}


async def test_erased_content_is_in_no_snapshot(site: Site, stock: Stock) -> None:
    await stock.say("mine")
    other = await stock.say("not erased", "acme.u2.-")
    await kept(site, other)
    assert await stock.contents(as_of=other) == ["mine"]
    # The consumers may not have handled the erasure yet.
    erased = await stock.publish(f"{SPACE}.user.erased.v1", {"up_to_seq": ALL_BEFORE})
    for verb, request in (("history", {}), ("context", {}), ("search", {"query": "mine"})):
        code, retryable, said = await problem(stock, verb, as_of=other, **request)
        assert (code, retryable) == ("refused", False)
        assert f"erased at position {erased}" in said
    assert await stock.contents("acme.u2", as_of=other) == ["not erased"]
    later = await stock.say("a new life")
    await kept(site, later)
    assert await stock.contents(as_of=later) == ["a new life"]


async def test_verification_finds_an_escaped_text_in_a_snapshot(site: Site, stock: Stock) -> None:
    said = await persisted(stock.connection, await stock.say('They said "Hi".'))
    await kept(site, said)
    for words, count in (('"hi"', 1), ('"ho"', 0)):
        found = (await stock.ask("erase", verify=True, text=words))["found"]
        assert (found["database"], found["generations"]) == (count, count)


@pytest.mark.long
async def test_content_erased_during_the_snapshot_is_absent(site: Site, stock: Stock) -> None:
    said = await persisted(stock.connection, await stock.say("mine"))
    async with open_row_generation(site, "as of", RebuildReport(), said) as replay:
        async with site.database.transaction(keep=False) as connection:
            # This transaction blocks the replay, which has read the message but cannot write it yet.
            await connection.execute(
                SQL("INSERT INTO {} SELECT * FROM messages").format(Identifier(replay.schema, "messages"))
            )
            writing = asyncio.create_task(replay.replay_until(said))
            async with asyncio.timeout(60):
                while not await waits(site):
                    await asyncio.sleep(0.02)
            assert (await stock.ask("erase"))["pending"] == ["vectors"]
        await writing
        await replay.apply_later_erasures()
    assert (await stock.ask("erase", verify=True, text="mine"))["found"]["generations"] == 0


async def waits(site: Site) -> bool:
    """Return whether a transaction waits for another transaction's end."""

    async def query(connection: Connection) -> bool:
        found = await connection.execute(
            "SELECT FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"
        )
        return await found.fetchone() is not None

    return await site.database.run_query(query)


async def test_a_gap_in_the_log_changes_nothing(site: Site, stock: Stock) -> None:
    first = await stock.say("first")
    gone = await stock.say("gone", "acme.u2.-")
    at = datetime.now(UTC)
    last = await stock.say("last")
    await kept(site, first)
    assert (await problem(stock, as_of=gone))[0] == "not_found"
    await stock.connection.jetstream().delete_msg("LOG", gone)
    for as_of in (gone, at.isoformat()):
        reply = await stock.ask("history", as_of=as_of)
        assert (shown(reply), reply["seen_seq"]) == ("first", first)
    assert (await problem(stock, as_of=last))[0] == "not_found"


async def test_open_snapshots_are_limited(site: Site, stock: Stock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_pool, "MOST_OPEN", 1)
    await kept(site, await stock.say("a"), await stock.say("b"))
    wanted = ("acme", "u1"), None, 10, None
    async with snapshot_pool.SnapshotPool(site.deployment, LiveSettings(), None).open() as several:
        async with several.open_snapshot(1) as (first, _):
            async with several.open_snapshot(2) as (last, _):
                assert len((await last.load_messages(*wanted)).value.messages) == 2
            seen = await first.load_messages(*wanted)
            assert (len(seen.value.messages), seen.seq) == (1, 1), "who asks it asks to the end"
        with pytest.raises(DatabaseUnavailable):
            await first.load_messages(("acme", "u1"), "another", 10, None)
        others = await last.load_messages(("acme", "u1"), "another", 10, None)
        assert len(others.value.messages) == 0, "open yet"
    with pytest.raises(DatabaseUnavailable):
        await last.load_messages(("acme", "u1"), "a third", 10, None)
