"""Erasure of a user from every store, including later copies; other users keep their memory."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from nats.aio.client import Client

from mnemon_consumers.app import run_consumers
from mnemon_consumers.persist.decide import plan_batch
from mnemon_contracts.streams import LOG
from mnemon_infra.broker.dead_letters.writer import store_letter
from mnemon_infra.broker.erasure.purge import read_erasures
from mnemon_infra.broker.erasure.scope import ErasedUser
from mnemon_infra.broker.outcomes import Dead
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.broker.streams.log_reader import read_event_pages
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.erasure.erased_rows import count_covered_rows
from mnemon_infra.database.erasure.users import lock_for_writing
from mnemon_infra.database.migration import migrate_schema
from mnemon_infra.database.projections.writer import write_rows
from mnemon_infra.delivery import Delivery
from tests.integration.consumers.delivery.test_redelivery import give_back, rows, swept, take
from tests.support.log.dead_letters import kept
from tests.support.servers.qdrant import list_vector_files, requires_storage
from tests.support.stock_client import Stock, handled, indexed

NOTHING = {"log": 0, "dead_letters": 0, "work": 0, "database": 0, "model_batches": 0, "vectors": 0}


async def positions(connection: Client, user: str) -> list[int]:
    """Return the log positions of a user's events."""
    return [
        delivery.sequence
        for space in ("chat", "memory")
        async for page in read_event_pages(connection, f"{space}.acme.{user}.>", 0)
        for delivery in page
    ]


async def test_user_erasure_clears_all_stores_and_counts_them(
    stock: Stock, connection: Client, vectors_deployment: Deployment
) -> None:
    async with run_consumers(("persist", "index", "dedupe", "retrieve"), vectors_deployment):
        for user in ("u1", "u2"):
            for number in range(3):
                await stock.say(f"number {number} of {user}", f"acme.{user}.-")
            await stock.ask("save", f"acme.{user}", text=f"Likes the number of {user}")
            await stock.ask("document", f"acme.{user}", action="add", text="A page of theirs.")
            await stock.ask("profile", f"acme.{user}", fields={"city": "Kazan"})
        await stock.publish("chat.acme.u1.-.message.v1", b"{")
        await indexed(stock, await stock.say("last"))
        before = await stock.ask("erase", verify=True)
        assert before["left"] == {
            "log": 9, "database": 7, "vectors": 6, "dead_letters": 1, "work": 0, "model_batches": 0
        }  # fmt: skip

        receipt = await stock.ask("erase")

        assert not receipt.get("pending")
        assert receipt["removed"] == before["left"]
        assert (await stock.ask("erase", verify=True))["left"] == NOTHING
        assert await positions(connection, "u1") == [receipt["seen_seq"]], "a tombstone remains"
        assert await stock.contents() == []
        assert (await stock.ask("read"))["facts"] == []
        assert (await stock.ask("profile"))["profile"] == {}
        found = await stock.ask("search", query="number", scope=["memories", "messages", "documents"])
        assert found["hits"] == []

        # The memory of the other user stays, and the erased user can have new memory.
        assert len(await stock.contents("acme.u2")) == 3
        assert len((await stock.ask("read", "acme.u2"))["facts"]) == 1
        assert (await stock.ask("erase", "acme.u2", verify=True))["left"]["vectors"] == 5
        saved = await stock.ask("save", text="Likes the number of u1")
        assert (saved["decision"], saved["id"]) == ("saved", "pf_001")
        said = await stock.say("good morning")
        assert await stock.contents(min_seq=said) == ["good morning"]
        await indexed(stock, said)
        assert (await stock.ask("erase", verify=True))["left"] == NOTHING


@pytest.mark.parametrize("words", ['"Hi"', "C:\\new", "one\ntwo", 'tab\tand\rbell\a and "\\', "plain words"])
async def test_verification_finds_a_text_that_stores_escape(
    stock: Stock, connection: Client, deployment: Deployment, words: str
) -> None:
    said = f"They said {words.upper()} and left."
    async with run_consumers(("persist", "retrieve"), deployment):
        await stock.say(said)
        await stock.say("nothing", metadata={"about": [{"text": said}]})
        await stock.say("nothing", metadata={said: 1})
        await stock.say("nothing", metadata={"arguments": json.dumps({"text": said})})
        await stock.publish("memory.acme.u1.profile.set.v1", {"fields": {"motto": said}})
        await stock.publish("memory.acme.u1.task.added.v1", {"task_id": "t", "text": said})
        await stock.publish("chat.acme.u1.-.message.v1", {"role": said})
        await stock.say("nothing, and the content of a name")
        await handled(connection, "persist")
        found = (await stock.ask("erase", verify=True, text=words))["found"]
        assert found == {"log": 7, "dead_letters": 1, "database": 6, "statistics": 0}
        found = (await stock.ask("erase", verify=True, text=f"{words}."))["found"]
        assert not any(found.values())


@pytest.mark.long
async def test_redelivery_after_user_erasure_stores_nothing(
    stock: Stock, connection: Client, deployment: Deployment
) -> None:
    for place in ("-", "trip"):
        await stock.say("old", f"acme.u1.{place}")
    await stock.publish("memory.acme.u1.profile.set.v1", {"fields": {"city": "Kazan"}})
    taken = await take(connection, 3)
    erased = await stock.publish("memory.acme.u1.user.erased.v1", {"up_to_seq": 2**53 - 1})
    last = await stock.say("new")
    changes = await connection.subscribe("changed.acme.u1")

    async with run_consumers(("persist", "retrieve"), deployment):
        await changes.next_msg(60)
        assert await stock.contents(min_seq=last) == ["new"]
        assert len(await positions(connection, "u1")) == 5, "nobody has read all of it yet"
        await give_back(taken)
        await handled(connection, "persist")
        await swept(connection)
        assert await stock.contents(min_seq=last) == ["new"]
        assert (await stock.ask("profile"))["profile"] == {}

    assert rows(deployment, "seq, content") == [(last, "new")]
    assert sorted(await positions(connection, "u1")) == [erased, last]
    # A replay of the remaining log gives the same state.
    await connection.jetstream().delete_consumer(LOG, "persist")
    await provision(connection)
    rebuilt = deployment.model_copy(update={"database_schema": f"test_{uuid4().hex[:12]}"})
    assert rebuilt.database_url is not None
    migrate_schema(rebuilt.database_url, rebuilt.database_schema)
    async with run_consumers(("persist", "retrieve"), rebuilt):
        await handled(connection, "persist")
        await swept(connection)
        assert await stock.contents(min_seq=last) == ["new"]


async def test_new_event_with_an_erased_id_is_stored(
    stock: Stock, connection: Client, deployment: Deployment
) -> None:
    await stock.say("old", id="m1")
    await stock.publish("memory.acme.u1.user.erased.v1", {"up_to_seq": 2**53 - 1})
    await stock.say("new", id="m1")
    old, erased, new = await take(connection, 3)
    changes = await connection.subscribe("changed.acme.u1")
    async with run_consumers(("persist", "retrieve"), deployment):
        await give_back([old, new])
        while await stock.contents() != ["old"]:
            await changes.next_msg(60)
        await give_back([erased])
        await handled(connection, "persist")
        await swept(connection)
        assert await stock.contents() == ["new"]


async def test_erasure_stops_at_its_own_position(
    stock: Stock, connection: Client, deployment: Deployment
) -> None:
    old = await stock.say("old")
    await stock.say("kept")
    await stock.publish("memory.acme.u1.user.erased.v1", {"up_to_seq": old + 1})
    await stock.publish("memory.acme.u1.user.erased.v1", {"up_to_seq": 9, "conversation": "trip"})
    await stock.publish("memory.acme.u1.user.Erased.v1", {"up_to_seq": 9})
    async with run_consumers(("persist", "retrieve"), deployment):
        await handled(connection, "persist")
        await swept(connection)
        assert await stock.contents() == ["kept"]
    assert (await read_erasures(connection, ("acme", "u1"))).below == old + 1
    assert old not in await positions(connection, "u1")


async def test_erasure_purges_dead_letters_up_to_its_position(
    stock: Stock, connection: Client, deployment: Deployment
) -> None:
    subject = "memory.acme.u1.window.answered.v1"
    for from_seq in (1, 4):
        letter = {"from_seq": from_seq, "answer": "I cannot"}
        await store_letter(
            connection, "extract", subject, Dead("unreadable", "no JSON"), letter, f"w{from_seq}"
        )
    await stock.publish("chat.acme.u1.-.message.v1", b"old")
    await stock.publish("memory.acme.u1.user.erased.v1", {"up_to_seq": 2**53 - 1})
    new = await stock.publish("chat.acme.u1.-.message.v1", b"new")
    async with run_consumers(("persist",), deployment):
        await handled(connection, "persist")
        await swept(connection)
    letters = await kept(connection)
    assert [json.loads(each.body)["from_seq"] for each in letters if each.kind == "answer"] == [4]
    assert [each.sequence for each in letters if each.kind == "event"] == [new]


@pytest.mark.long
async def test_erasure_under_load_removes_nothing_of_other_users(
    stock: Stock, connection: Client, vectors_deployment: Deployment
) -> None:
    said: dict[str, list[int]] = {"u1": [], "u2": []}
    erased = asyncio.Event()

    async def load(user: str) -> None:
        for number in range(400):
            if number == 300:
                await erased.wait()
            said[user].append(await stock.say(f"{number} of {user}", f"acme.{user}.-"))

    async with run_consumers(("persist", "index", "dedupe", "retrieve"), vectors_deployment):
        loads = [asyncio.create_task(load(user)) for user in said]
        while len(said["u1"]) < 100:
            await asyncio.sleep(0)
        receipt = await stock.ask("erase")
        erased.set()
        await asyncio.gather(*loads)
        position = receipt["seen_seq"]
        end = said["u2"][-1]
        await indexed(stock, max(end, said["u1"][-1]))
        await swept(connection)
        after = [seq for seq in said["u1"] if seq > position]
        assert 100 <= len(after) <= 300, "it was in the middle"
        assert (await stock.ask("erase", verify=True))["left"] == NOTHING
        assert len(await stock.contents(limit=1000)) == len(after)
        assert len(await stock.contents("acme.u2", limit=1000)) == 400
        others = (await stock.ask("erase", "acme.u2", verify=True))["left"]
        assert (others["log"], others["database"], others["vectors"]) == (400, 400, 400)
    assert sorted(await positions(connection, "u1")) == [position, *after]


async def test_erasure_waits_for_writers_below_it(database: Database) -> None:
    erased = plan_batch(
        [Delivery("memory.acme.u1.user.erased.v1", b'{"up_to_seq":9}', "e", "LOG", 9, 1, 1.8e9)]
    ).rows
    async with database.transaction() as other:
        await lock_for_writing(other, [])
        await other.execute(
            "INSERT INTO messages (tenant, user_id, event_id, seq, role, content, sent_at)"
            " VALUES ('acme', 'u1', 'm', 3, 'user', 'old', now())"
        )
        erasing = asyncio.create_task(write_rows(database, erased))
        done, _ = await asyncio.wait([erasing], timeout=0.5)
        assert not done
    await erasing
    assert (
        await database.run_query(count_covered_rows(ErasedUser(("acme", "u1"), 100, datetime.now(UTC)))) == {}
    )


async def test_erasure_withdraws_windows_sent_to_a_model(
    stock: Stock, connection: Client, vectors_deployment: Deployment
) -> None:
    said = await stock.say("I like tea")
    async with run_consumers(("persist", "index", "dedupe", "retrieve"), vectors_deployment):
        receipt = await stock.ask("erase")
        lineage = {"sources": [said], "extractor": "a-model"}
        proposed = {"text": "Likes tea", "lineage": lineage}
        late = await stock.publish("memory.acme.u1.fact.proposed.v1", proposed)
        summary = {
            "summary_id": "s", "conversation": "c", "text": "Tea.", "from_seq": said, "to_seq": said
        }  # fmt: skip
        late_summary = await stock.publish("memory.acme.u1.summary.written.v1", summary)
        saved = await stock.ask("save", text="Likes coffee")
        assert saved["decision"] == "saved"
        facts = (await stock.ask("read", min_seq=saved["seen_seq"]))["facts"]
        assert [fact["text"] for fact in facts] == ["Likes coffee"]
        await handled(connection, "persist")
        assert {late, late_summary}.isdisjoint(await positions(connection, "u1"))
    assert receipt["seen_seq"] < late


@pytest.mark.long
@requires_storage
async def test_erased_text_is_absent_from_disk(
    stock: Stock, vectors_deployment: Deployment, tmp_path: Path
) -> None:
    def bytes_of(words: bytes, *, is_in_vectors: bool = False) -> int:
        log = (path for path in (tmp_path / "nats").rglob("*") if path.is_file())
        files = list_vector_files(vectors_deployment) if is_in_vectors else log
        return sum(path.read_bytes().count(words) for path in files)

    for number in range(60):
        await stock.say(f"{number}: zanzibar")
        await stock.say(f"{number}: timbuktu", "acme.u2.-")
    await stock.publish("chat.acme.u1.-.message.v1", {"role": "zanzibar"})
    async with run_consumers(("persist", "index", "retrieve"), vectors_deployment):
        await indexed(stock, await stock.say("last: zanzibar"))
        assert bytes_of(b"zanzibar") > 61, "a dead letter, too"
        assert (await stock.ask("erase"))["removed"]["vectors"] == 61
        assert bytes_of(b"zanzibar") == 0
        assert bytes_of(b"m", is_in_vectors=True) > 0
        assert bytes_of(b"zanzibar", is_in_vectors=True) == 0, "there never was a text"
        assert bytes_of(b"timbuktu") == 60


@pytest.mark.long
async def test_proposal_that_is_published_again_after_the_erasure_is_decided(
    stock: Stock, connection: Client, vectors_deployment: Deployment
) -> None:
    """The log refuses the id of the erased decision for its duplicate window; the proposal waits so long."""
    stream_context = connection.jetstream()
    config = (await stream_context.stream_info(LOG)).config
    await stream_context.update_stream(config.evolve(duplicate_window=20))
    proposal = {"text": "Plays the piano", "id": "same"}
    async with run_consumers(("persist", "dedupe", "retrieve"), vectors_deployment):
        await stock.publish("memory.acme.u1.fact.proposed.v1", proposal)
        await handled(connection, "dedupe")
        await handled(connection, "persist")
        assert len((await stock.ask("read"))["facts"]) == 1
        await stock.ask("erase")
        await stock.publish("memory.acme.u1.fact.proposed.v1", proposal)
        await handled(connection, "dedupe")
        await handled(connection, "persist")
        assert [each["text"] for each in (await stock.ask("read"))["facts"]] == ["Plays the piano"]
