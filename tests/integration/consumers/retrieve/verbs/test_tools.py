"""The tools of a bot's model, requested without the client of mnemon: facts, tasks and documents."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from mnemon_consumers.app import run_consumers
from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_consumers.retrieve.verbs.facts import save
from mnemon_contracts.settings.groups import DocumentLimits, SettingsV1
from mnemon_infra.broker.streams.applied_position import read_log_end
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseUnavailable
from mnemon_infra.database.facts.fact_repository import load_fact_events
from mnemon_infra.durables import CONSUMERS
from mnemon_infra.settings.store import write_settings
from mnemon_producers.client import MemoryClient
from mnemon_producers.errors import AskFailed
from tests.support.log.unconfirmed_events import store_without_confirmation
from tests.support.patience import PATIENT
from tests.support.servers.qdrant import locate_vectors
from tests.support.stock_client import Stock, indexed

SPACE = "memory.acme.u1"


async def saved(stock: Stock, fact_id: str, text: str, **fact: Any) -> int:
    """Publish a fact as `dedupe` does; return its log position."""
    body = {
        "fact_id": fact_id,
        "fact": {"text": text, **fact},
        "decision": {"proposal_id": f"p-{fact_id}"},
    }
    return await stock.publish(f"{SPACE}.fact.saved.v1", body)


@pytest_asyncio.fixture
async def kept(stock: Stock, mnemon: Deployment) -> AsyncIterator[int]:
    """Publish facts of each tier, one of them expired; yield the last log position."""
    await saved(stock, "ar_001", "Anna once lived in Perm", importance=2)
    await saved(stock, "pf_001", "Anna is allergic to nuts", tier="profile", importance=9)
    await saved(stock, "pf_002", "Анна любит чай", tier="profile", kind="preference")
    await saved(stock, "wk_001", "Anna is in Rome", tier="working", expires_at="2020-01-01T00:00:00Z")
    yield await saved(stock, "wk_002", "Anna flies home", tier="working", expires_at="2200-01-01T00:00:00Z")


async def ids(stock: Stock, **request: Any) -> list[str]:
    return [fact["id"] for fact in (await stock.ask("read", **request))["facts"]]


def code(reply: dict[str, Any]) -> str | None:
    error = reply.get("error")
    return error["code"] if error else None


@pytest.mark.usefixtures("mnemon")
@pytest.mark.parametrize(("verb", "kind"), [("tasks", "task"), ("document", "document")])
async def test_item_that_is_added_is_named_if_the_reply_cannot_be_read(
    stock: Stock, monkeypatch: pytest.MonkeyPatch, verb: str, kind: str
) -> None:
    async def fail(*_: Any) -> None:
        raise DatabaseUnavailable("the connection was lost")

    with monkeypatch.context() as patch:
        patch.setattr(Memory, f"load_{kind}s", fail)
        failed = (await stock.ask(verb, action="add", text="Buy milk"))["error"]

    end = await read_log_end(stock.connection.jetstream())
    listed = await stock.ask(verb, action="list", min_seq=end)
    (added,) = listed[f"{kind}s"]
    assert (failed["code"], failed["retryable"]) == ("unavailable", False), "a repetition would add another"
    assert f"the addition of the {kind} '{added[f'{kind}_id']}' was not confirmed" in failed["message"]


@pytest.mark.usefixtures("mnemon")
@pytest.mark.parametrize(("verb", "kind"), [("tasks", "task"), ("document", "document")])
async def test_unconfirmed_item_is_named_so_that_its_repetition_adds_no_second_one(
    stock: Stock, verb: str, kind: str
) -> None:
    milk = {"action": "add", "text": "Buy milk"}
    async with store_without_confirmation(stock.connection):
        failed = (await stock.ask(verb, **milk))["error"]
        named = (await stock.ask(verb, **milk, **{f"{kind}_id": "milk"}))["error"]

    assert (failed["code"], failed["retryable"]) == ("unavailable", False), "a repetition would add another"
    found = re.search(rf"the {kind} '(.+?)' was not confirmed.*repeat the request", failed["message"])
    assert found
    assert named["retryable"], "the id of the caller prevents a second item"
    for item_id in (found[1], "milk"):
        repeated = await stock.ask(verb, **milk, **{f"{kind}_id": item_id})
    assert {item[f"{kind}_id"] for item in repeated[f"{kind}s"]} == {found[1], "milk"}


@pytest.mark.long
async def test_client_receives_the_error_about_an_unconfirmed_item(stock: Stock, mnemon: Deployment) -> None:
    async with store_without_confirmation(stock.connection):
        with pytest.raises(AskFailed, match="was not confirmed") as failed:
            await MemoryClient(stock.connection, tenant="acme", timeouts=PATIENT).add_task("u1", "Buy milk")
    assert not failed.value.retryable


async def test_read_by_tier_excludes_expired_facts(stock: Stock, kept: int) -> None:
    reply = await stock.ask("read", min_seq=kept)
    assert [fact["id"] for fact in reply["facts"]] == ["pf_001", "pf_002", "wk_002", "ar_001"]
    assert reply["seen_seq"] >= kept
    assert {**reply["facts"][1], "saved_at": None} == {
        "id": "pf_002",
        "text": "Анна любит чай",
        "kind": "preference",
        "tier": "profile",
        "importance": 5,
        "saved_at": None,
    }
    assert await ids(stock, tier="working", min_seq=kept) == ["wk_002"]
    assert await ids(stock, limit=1, min_seq=kept) == ["pf_001"]
    assert (await stock.ask("read", owner="acme.nobody"))["facts"] == []
    assert (await stock.ask("read", owner="other.u1"))["facts"] == []


async def test_facts_are_read_page_by_page_with_a_total(stock: Stock, mnemon: Deployment) -> None:
    for number in range(1, 121):
        seq = await saved(stock, f"ar_{number:03}", f"Anna has read book {number}")
    first = await stock.ask("read", min_seq=seq)
    assert (len(first["facts"]), first["total"]) == (100, 120)
    last = await stock.ask("read", after=first["next"], min_seq=seq)
    assert (len(last["facts"]), last["total"], last.get("next")) == (20, 120, None)
    assert {fact["id"] for page in (first, last) for fact in page["facts"]} == {
        f"ar_{number:03}" for number in range(1, 121)
    }
    wrong = await stock.ask("read", after="ar_001")
    assert (code(wrong), "after" in wrong["error"]["message"]) == ("bad_request", True)

    memory = MemoryClient(stock.connection, tenant="acme", timeouts=PATIENT)
    everything = await memory.read_all("u1", min_seq=seq)
    assert (len(everything.facts), everything.total, everything.next) == (120, 120, None)


async def test_get_returns_former_versions(stock: Stock, kept: int) -> None:
    for text in ("Анна любит кофе", "Анна любит какао"):
        updated = await stock.ask("update", id="pf_002", text=text)
    reply = await stock.ask("get", id="pf_002", min_seq=updated["seen_seq"])
    assert reply["fact"]["text"] == "Анна любит какао"
    assert [version["text"] for version in reply["versions"]] == ["Анна любит кофе", "Анна любит чай"]
    for missing in ("pf_099", "wk_001"):
        assert code(await stock.ask("get", id=missing, min_seq=kept)) == "not_found", "expired is not there"


async def test_get_accepts_every_id_of_search_hits(stock: Stock, mnemon_with_vectors: Deployment) -> None:
    await saved(stock, "pf_001", "Anna plays the violin", tier="profile")
    await stock.say("Yesterday I heard a violin", "acme.u1.talk", id="telegram:u1:7")
    added = await stock.ask(
        "document", action="add", document_id="violin.md", text="A violin has four strings."
    )
    await indexed(stock, added["seen_seq"])
    found = await stock.ask("search", query="violin", scope=["memories", "messages", "documents"])
    got = {}
    for hit in found["hits"]:
        for scope in ({}, {"scope": hit["scope"]}):
            got[hit["id"]] = await stock.ask("get", id=hit["id"], **scope)
            assert "error" not in got[hit["id"]], hit
    assert got.keys() == {"pf_001", "telegram:u1:7", "violin.md"}
    assert got["pf_001"]["fact"]["text"] == "Anna plays the violin"
    message = got["telegram:u1:7"]["message"]
    assert (message["id"], message["content"], message["conversation"]) == (
        "telegram:u1:7",
        "Yesterday I heard a violin",
        "talk",
    )
    document = got["violin.md"]["document"]
    assert (document["text"], document["length"], document.get("next_offset")) == (
        "A violin has four strings.",
        26,
        None,
    )
    for other in ("messages", "documents"):
        assert code(await stock.ask("get", id="pf_001", scope=other)) == "not_found"
    await stock.publish("chat.acme.u1.talk.cleared.v1")
    gone = await stock.publish(f"{SPACE}.document.removed.v1", {"document_id": "violin.md"})
    for name in ("telegram:u1:7", "violin.md"):
        assert code(await stock.ask("get", id=name, min_seq=gone)) == "not_found"
        assert code(await stock.ask("get", "acme.u2", id=name)) == "not_found"


@pytest.mark.usefixtures("mnemon")
async def test_a_long_document_is_given_in_parts(stock: Stock) -> None:
    text = "".join(f"{number:09}\n" for number in range(25_000))
    added = await stock.ask("document", action="add", document_id="long", text=text)
    parts, offset = [], 0
    while offset is not None:
        document = (await stock.ask("get", id="long", offset=offset, min_seq=added["seen_seq"]))["document"]
        parts.append(document["text"])
        offset = document.get("next_offset")
    assert ("".join(parts), len(parts), document["length"]) == (text, 3, 250_000)


async def test_names_and_numbers_without_a_source_are_told_until_the_fact_is_changed(
    stock: Stock, mnemon: Deployment
) -> None:
    body = {
        "fact_id": "pf_001",
        "fact": {"text": "Живёт в Твери", "tier": "profile"},
        "decision": {"proposal_id": "p1"},
        "lineage": {"extractor": "extract", "unsupported": ["Твери"]},
    }
    seq = await stock.publish(f"{SPACE}.fact.saved.v1", body)
    assert (await stock.ask("get", id="pf_001", min_seq=seq))["fact"]["unsupported"] == ["Твери"]
    (read,) = (await stock.ask("read", min_seq=seq))["facts"]
    assert read["unsupported"] == ["Твери"]
    changed = await stock.ask("update", id="pf_001", text="Живёт в Казани")
    assert "unsupported" not in changed["fact"], "whoever changed it knows"


async def test_update_changes_only_named_fields(stock: Stock, kept: int) -> None:
    reply = await stock.ask("update", id="ar_001", tier="profile", importance="high")
    assert reply["seen_seq"] > kept
    fact = reply["fact"]
    assert (fact["text"], fact["tier"], fact["importance"]) == ("Anna once lived in Perm", "profile", 9)
    assert [version["tier"] for version in reply["versions"]] == ["archive"]
    same = await stock.ask("update", id="ar_001", tier="profile")
    assert len(same["versions"]) == 1, "nothing changed: no version"
    assert code(await stock.ask("update", id="zz_001", tier="profile")) == "not_found"
    late = await stock.ask("update", id="ar_001", expires_at="2001-01-01T00:00:00Z")
    assert code(late) == "bad_request"
    assert late["error"]["message"].startswith("expires_at")
    assert code(await stock.ask("update", id="ar_001", importance=11)) == "bad_request"
    secret = await stock.ask("update", id="ar_001", text="Anna's key is sk-proj-4f8a9b2c7d1e6f3a5b8c")
    assert code(secret) == "refused"
    assert "secret" in secret["error"]["message"]
    assert "4f8a9b" not in secret["error"]["message"], "a secret is never repeated"


@pytest.mark.usefixtures("kept")
async def test_updates_at_the_same_time_do_not_undo_each_other(stock: Stock) -> None:
    updates = await asyncio.gather(
        *(
            stock.ask("update", id="pf_001", **change)
            for change in ({"text": "Anna eats nuts"}, {"tier": "archive"}, {"importance": 3})
        )
    )
    reply = await stock.ask("get", id="pf_001", min_seq=max(each["seen_seq"] for each in updates))
    fact = reply["fact"]
    assert (fact["text"], fact["tier"], fact["importance"]) == ("Anna eats nuts", "archive", 3)
    assert len(reply["versions"]) == 3


async def test_a_forgotten_fact_is_in_no_answer(stock: Stock, kept: int, mnemon: Deployment) -> None:
    assert "pf_001" in await ids(stock, min_seq=kept)
    reply = await stock.ask("forget", id="pf_001")
    assert (reply["id"], reply.get("error")) == ("pf_001", None)
    assert reply["seen_seq"] > kept
    assert "pf_001" not in await ids(stock, min_seq=reply["seen_seq"])
    for verb in ("get", "update", "forget"):
        assert code(await stock.ask(verb, id="pf_001")) == "not_found"
    assert code(await stock.ask("forget")) == "bad_request"
    assert code(await stock.ask("forget", id="pf_002", query="tea")) == "bad_request"


@pytest.mark.long
async def test_read_your_writes_without_projections(deployment: Deployment, stock: Stock) -> None:
    """Without `persist`, every reply is read from the log."""
    async with run_consumers(("retrieve",), deployment):
        seq = await saved(stock, "pf_001", "Anna is allergic to nuts")
        assert await ids(stock, min_seq=seq) == ["pf_001"]
        updated = await stock.ask("update", id="pf_001", importance="low")
        assert updated["fact"]["importance"] == 2
        assert updated["seen_seq"] > seq
        forgotten = await stock.ask("forget", id="pf_001")
        assert await ids(stock, min_seq=forgotten["seen_seq"]) == []
        added = await stock.ask("tasks", action="add", text="Buy tickets")
        assert [task["text"] for task in added["tasks"]] == ["Buy tickets"]


@pytest.mark.usefixtures("mnemon")
async def test_tasks_are_added_listed_and_done(stock: Stock) -> None:
    assert (await stock.ask("tasks"))["tasks"] == []
    first = await stock.ask("tasks", action="add", text="Купить билеты", due_at="2030-01-01T12:00:00+03:00")
    second = await stock.ask("tasks", action="add", text="Call Vera", task_id="vera")
    assert second["task_id"] == "vera"
    assert [(task["text"], task["done"]) for task in second["tasks"]] == [
        ("Купить билеты", False),
        ("Call Vera", False),
    ]
    assert second["tasks"][0]["due_at"] == "2030-01-01T09:00:00Z"
    done = await stock.ask("tasks", action="done", task_id="vera")
    again = await stock.ask("tasks", action="done", task_id="vera")
    assert [task["done"] for task in again["tasks"]] == [False, True]
    assert again["seen_seq"] >= done["seen_seq"]
    removed = await stock.ask("tasks", action="remove", task_id=first["task_id"])
    assert [task["task_id"] for task in removed["tasks"]] == ["vera"]
    assert code(await stock.ask("tasks", action="done", task_id=first["task_id"])) == "not_found"
    assert code(await stock.ask("tasks", action="remove")) == "bad_request"
    assert code(await stock.ask("tasks", action="add")) == "bad_request"
    blank = await stock.ask("tasks", action="add", text=" \n\t")
    assert (code(blank), blank["error"]["message"]) == (
        "bad_request",
        "text: the field is missing or blank; give the text of the task",
    )
    assert code(await stock.ask("tasks", action="burn")) == "bad_request"
    context = await stock.ask("context", min_seq=removed["seen_seq"])
    assert "Vera" not in str(context), "tasks are in no context by themselves"


@pytest.mark.usefixtures("mnemon")
async def test_documents_are_added_read_and_removed(stock: Stock) -> None:
    named = await stock.ask(
        "document", action="add", document_id="b/1.md", title="One", text="Text of one", collection="b"
    )
    assert named["documents"] == [
        {
            "document_id": "b/1.md",
            "title": "One",
            "collection": "b",
            "digest": sha256(b"Text of one").hexdigest(),
        }
    ]
    unnamed = await stock.ask("document", action="add", text="Text of another")
    everything = await stock.ask("document", min_seq=unnamed["seen_seq"])
    assert {each["document_id"] for each in everything["documents"]} == {"b/1.md", unnamed["document_id"]}
    only = await stock.ask("document", collection="b", min_seq=unnamed["seen_seq"])
    assert [each["document_id"] for each in only["documents"]] == ["b/1.md"]
    again = await stock.ask("document", action="add", document_id="b/1.md", title="Uno", text="New text")
    assert ("b/1.md", "Uno") in {(each["document_id"], each.get("title")) for each in again["documents"]}
    removed = await stock.ask("document", action="remove", document_id="b/1.md")
    assert [each["document_id"] for each in removed["documents"]] == [unnamed["document_id"]]
    assert code(await stock.ask("document", action="remove", document_id="b/1.md")) == "not_found"
    assert code(await stock.ask("document", action="add", title="No text")) == "bad_request"
    blank = await stock.ask("document", action="add", document_id="blank", text=" \n\t")
    assert code(blank) == "bad_request"
    assert blank["error"]["message"].startswith("text")


@pytest.mark.usefixtures("mnemon")
async def test_a_document_longer_than_the_setting_is_refused(stock: Stock) -> None:
    document = {"action": "add", "document_id": "long", "text": "word " * 400}
    assert "error" not in await stock.ask("document", **document)

    await write_settings(stock.connection, SettingsV1(documents=DocumentLimits(characters=1_000)))

    async with asyncio.timeout(60):
        while "error" not in (refused := await stock.ask("document", **document)):
            await asyncio.sleep(0.02)
    assert refused["error"]["code"] == "bad_request"
    assert refused["error"]["message"].startswith(
        "text: the document has 2,000 characters, and the limit is 1,000 (setting"
    )
    assert "error" not in await stock.ask("document", action="add", text="w" * 1_000)


@pytest.mark.usefixtures("mnemon")
async def test_documents_are_listed_page_by_page(stock: Stock) -> None:
    for number in range(5):
        added = await stock.ask(
            "document", action="add", document_id=f"d{number}", text=f"Text {number}", limit=0
        )
        assert (added["documents"], added["document_id"]) == ([], f"d{number}")
    memory = MemoryClient(stock.connection, tenant="acme", timeouts=PATIENT)
    listed = await memory.documents("u1", min_seq=added["seen_seq"])
    assert [each.document_id for each in listed.documents] == [f"d{number}" for number in range(5)]
    assert listed.documents[0].digest == sha256(b"Text 0").hexdigest()
    seq = added["seen_seq"]
    first = await stock.ask("document", limit=3, min_seq=seq)
    rest = await stock.ask("document", limit=3, after=first["next"], min_seq=seq)
    assert [each["document_id"] for each in first["documents"]] == ["d0", "d1", "d2"]
    assert [each["document_id"] for each in rest["documents"]] == ["d3", "d4"]
    assert "next" not in rest


@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_save_answers_with_the_decision(stock: Stock) -> None:
    saved = await stock.ask("save", text="Anna is allergic to nuts", tier="profile", importance="high")
    assert (saved["decision"], saved.get("error")) == ("saved", None)
    fact = (await stock.ask("get", id=saved["id"], min_seq=saved["seen_seq"]))["fact"]
    assert (fact["text"], fact["tier"], fact["importance"]) == ("Anna is allergic to nuts", "profile", 9)

    again = await stock.ask("save", text="anna is allergic to nuts.")
    assert again["decision"] in ("confirmed", "updated")
    assert again["id"] == saved["id"]

    refused = await stock.ask("save", text="Is Anna allergic to nuts?")
    assert (refused["decision"], refused["rule"]) == ("rejected", "question")
    assert refused["reason"]
    assert code(await stock.ask("save")) == "bad_request"
    assert code(await stock.ask("save", text="Anna likes tea a lot", importance=11)) == "bad_request"
    assert await ids(stock, min_seq=again["seen_seq"]) == [saved["id"]]


@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_concurrent_saves_are_all_decided(stock: Stock) -> None:
    texts = [f"Anna has been to city number {chr(1040 + number) * 7}" for number in range(12)]
    replies = await asyncio.gather(*(stock.ask("save", text=text) for text in texts))
    assert all(reply["decision"] in ("saved", "updated", "confirmed") for reply in replies)
    known = await ids(stock, min_seq=max(reply["seen_seq"] for reply in replies))
    assert {reply["id"] for reply in replies} == set(known)


@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_forget_by_query(stock: Stock) -> None:
    tea = await stock.ask("save", text="Anna drinks green tea every morning")
    dog = await stock.ask("save", text="У Анны есть собака по кличке Рекс")
    assert code(await stock.ask("forget", query="quantum chromodynamics")) == "not_found"
    forgotten = await stock.ask("forget", query="собака Рекс")
    assert forgotten["id"] == dog["id"]
    assert await ids(stock, min_seq=forgotten["seen_seq"]) == [tea["id"]]
    assert code(await stock.ask("forget", query="собака Рекс")) == "not_found"


async def test_fact_id_is_never_reused(stock: Stock, deployment: Deployment, tmp_path: Path) -> None:
    """An id is not reused even when no process caches the fact and the database has lost its text."""
    with_vectors = locate_vectors(deployment, tmp_path / "vectors")
    async with run_consumers(CONSUMERS, with_vectors):
        first = await stock.ask("save", text="Anna drinks green tea every morning", tier="profile")
        await stock.ask("forget", id=first["id"])
        # After this decision, the former facts are read from the database.
        await stock.ask("save", text="What does Anna drink every morning?")
        database = Database(deployment)
        await database.open()
        async with asyncio.timeout(60):
            while (await database.run_query(load_fact_events([("acme", "u1")])))[0][0].body is not None:
                await asyncio.sleep(0.05)
        await database.close()
    async with run_consumers(CONSUMERS, with_vectors):
        second = await stock.ask("save", text="Anna plays the violin at home", tier="profile")
    assert (first["id"], second["id"]) == ("pf_001", "pf_002")


async def test_undecided_save_reports_pending(
    deployment: Deployment, stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(save, "DECISION_TIMEOUT", 0.3)
    async with run_consumers(("persist", "retrieve"), deployment):
        reply = await stock.ask("save", text="Anna is allergic to nuts")
        assert (code(reply), reply["error"]["retryable"]) == ("unavailable", True)
        assert "but decides later" in reply["error"]["message"]
        assert code(await stock.ask("forget", query="nuts")) == "unavailable"


@pytest.mark.long
async def test_request_in_progress_is_answered_before_shutdown(
    deployment: Deployment, stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(save, "DECISION_TIMEOUT", 2)
    proposed = await stock.connection.subscribe("memory.acme.u1.fact.proposed.v1")
    with suppress(InterruptedError):
        async with run_consumers(("retrieve",), deployment):
            asking = asyncio.create_task(stock.ask("save", text="Likes tea"))
            await proposed.next_msg(60)
            raise InterruptedError
    assert "did not decide within 2 s" in (await asking)["error"]["message"]
