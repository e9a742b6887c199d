"""`context` over NATS: every section in every format, within the budget, and without sections that fail."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from nats.aio.client import Client

from mnemon_consumers.app import run_consumers
from mnemon_consumers.retrieve.context.contents import SECTIONS
from mnemon_contracts.settings.groups import Embedding, SettingsV1
from mnemon_contracts.verbs.ask import Format
from mnemon_infra.config import Deployment
from mnemon_infra.durables import CONSUMERS
from mnemon_infra.models import tokens
from mnemon_infra.models.embedders.wordllama import WordLlama
from mnemon_infra.settings.store import change_settings, write_settings
from mnemon_producers.client import MemoryClient
from tests.support.patience import PATIENT
from tests.support.settings_edit import setting
from tests.support.stock_client import Stock, indexed, persisted

FORMATS: tuple[Format, ...] = ("messages", "xml", "blocks", "markdown")
SPACE = "memory.acme.u1"
USUAL = set(SECTIONS) - {"documents"}
"""Sections that are shown by default."""

QUERY = "Во сколько поезд в Пермь?"


async def saved(stock: Stock, fact_id: str, text: str, **fact: Any) -> int:
    body = {"fact_id": fact_id, "fact": {"text": text, **fact}, "decision": {"proposal_id": f"p-{fact_id}"}}
    return await stock.publish(f"{SPACE}.fact.saved.v1", body)


async def lived(stock: Stock) -> int:
    """Publish events for every section of a context; return the last log position."""
    await stock.publish("chat.acme.u1.talk.started.v1")
    train = await stock.say("The train to Perm leaves at 9:40. Поезд в Пермь в 9:40", id="train")
    for number in range(12):
        await stock.say(f"Let us speak of the weather, day {number}", id=f"m{number}")
    await stock.publish("chat.acme.u1.-.message.v1", {"role": "assistant", "content": "Да, дождь."})
    await saved(stock, "pf_001", "Anna is allergic to nuts", tier="profile", importance=9)
    await saved(stock, "pf_002", "Анна любит чай", tier="profile", kind="preference")
    await saved(stock, "wk_001", "Anna is in Rome", tier="working", expires_at="2020-01-01T00:00:00Z")
    await saved(stock, "wk_002", "Анна летит в Пермь", tier="working", expires_at="2200-01-01T00:00:00Z")
    await saved(stock, "ar_001", "Анна ездит в Пермь на поезде к бабушке")
    await saved(stock, "ar_002", "Anna plays the cello")
    summary = {
        "summary_id": "s1",
        "conversation": "talk",
        "from_seq": train,
        "to_seq": train,
        "text": "Говорили о поездке.",
    }
    await stock.publish(f"{SPACE}.summary.written.v1", summary)
    seq = await stock.publish(f"{SPACE}.profile.set.v1", {"fields": {"name": "Anna", "city": "Казань"}})
    await indexed(stock, seq)
    return seq


def shown(reply: dict[str, Any]) -> str:
    """Return the text of all messages that a model gets."""
    assert not reply.get("error"), reply
    return "\n".join(message["content"] for message in reply["messages"])


def counted(reply: dict[str, Any]) -> dict[str, int]:
    return {name: section["shown"] for name, section in reply["sections"].items()}


@pytest.mark.long
@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_query_whose_embedding_raises_is_embedded_once(
    stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    seq = await lived(stock)
    asked: list[str] = []

    async def fail(self: WordLlama, text: str, statistics: object) -> None:
        asked.append(text)
        raise RuntimeError("no vectors today")

    monkeypatch.setattr(WordLlama, "embed_query", fail)
    reply = await stock.ask("context", query=QUERY, min_seq=seq)
    assert reply["degraded"] == ["relevant", "conversation"]
    assert "Anna is allergic to nuts" in shown(reply)
    assert asked == [QUERY]


@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_follow_up_finds_the_topic_of_the_messages_before_it(stock: Stock) -> None:
    seq = await lived(stock)
    memory = MemoryClient(stock.connection, tenant="acme", timeouts=PATIENT)
    before = ["Как Анна добирается к бабушке?"]

    async def has_fact(preceding: list[str]) -> bool:
        reply = await memory.context("u1", query="а почему?", preceding=preceding, min_seq=seq)
        assert (reply.error, reply.degraded) == (None, ())
        return any("на поезде к бабушке" in message.content for message in reply.messages)

    await change_settings(stock.connection, setting(retrieval__threshold=0.6), "acme")
    async with asyncio.timeout(30):
        while await has_fact([]):
            await asyncio.sleep(0.02)
    assert await has_fact(before)


@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_context_has_every_section_in_every_format(stock: Stock) -> None:
    seq = await lived(stock)
    for form in FORMATS:
        reply = await stock.ask("context", query=QUERY, format=form, min_seq=seq)
        text = shown(reply)
        assert reply["degraded"] == []
        assert reply["seen_seq"] >= seq
        assert reply["conversation"] == "talk"
        assert reply["profile"] == {"name": "Anna", "city": "Казань"}
        assert reply["metadata"] == {"from_memory": True}, "so that nothing is learned from it again"
        assert set(reply["sections"]) == USUAL, form
        assert counted(reply) | {"conversation": 0, "relevant": 0} == {
            "facts": 2,
            "working": 1,
            "user_data": 2,
            "summaries": 1,
            "recent": 13,
            "relevant": 0,
            "conversation": 0,
        }
        for part in ("nuts", "Анна любит чай", "Анна летит в Пермь", "Казань", "Говорили о поездке", "дождь"):
            assert part in text, f"{form}: {part}"
        assert "на поезде к бабушке" in text, "found among the facts"
        assert "Поезд в Пермь в 9:40" in text, "found among earlier messages"
        assert "Rome" not in text, "it has expired"
        assert reply["coverage"]["left_out"] == 0
        assert text.count("nuts") == text.count("day 11") == 1, "what is shown is not shown again"
        if form == "messages":
            assert "text" not in reply
        else:
            assert reply["text"] == text
            assert reply["tokens"] == tokens.count_tokens(text)


@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_context_stays_within_budget_in_every_format(stock: Stock) -> None:
    seq = await lived(stock)
    for form in FORMATS:
        whole = await stock.ask("context", query=QUERY, format=form, min_seq=seq)
        for budget in (1, 60, 200, whole["tokens"] - 1):
            reply = await stock.ask("context", query=QUERY, format=form, budget=budget, min_seq=seq)
            assert reply["tokens"] <= budget
            assert any(section.get("left_out") for section in reply["sections"].values())
            if form != "messages":
                assert tokens.count_tokens(reply["text"]) == reply["tokens"]


@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_context_without_query_searches_the_last_user_message(stock: Stock) -> None:
    seq = await lived(stock)
    assert "cello" not in shown(await stock.ask("context", min_seq=seq))
    seq = await stock.say("Who plays the cello here?")
    reply = await stock.ask("context", min_seq=seq)
    assert "Anna plays the cello" in shown(reply)
    nobody = await stock.ask("context", "acme.nobody")
    assert (shown(nobody), nobody["sections"], nobody["degraded"]) == (
        "Key facts:\nNo saved information.",
        {},
        [],
    )


@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_task_results_extend_the_query(stock: Stock) -> None:
    await lived(stock)
    result = {"role": "tool", "content": "calendar: rehearsal with the cello", "task_id": "t1"}
    await stock.publish("chat.acme.u1.other.message.v1", result)
    await stock.publish("chat.acme.u1.talk.message.v1", {"role": "assistant", "content": "I am looking"})
    for number in range(60):
        seq = await stock.say(f"And so on, {number}", "acme.u1.talk")
    await indexed(stock, seq)
    asked: dict[str, Any] = {"query": "And what then?", "conversation": "talk", "min_seq": seq}
    assert "plays the cello" not in shown(await stock.ask("context", **asked))
    assert "plays the cello" not in shown(await stock.ask("context", task_id="t2", **asked))
    assert "plays the cello" in shown(await stock.ask("context", task_id="t1", **asked))
    asked["min_seq"] = await stock.publish("chat.acme.u1.other.cleared.v1")
    assert "plays the cello" not in shown(await stock.ask("context", task_id="t1", **asked)), "it is cleared"


async def test_context_without_embeddings_searches_words(
    stock: Stock, connection: Client, vectors_deployment: Deployment
) -> None:
    await write_settings(connection, SettingsV1(embedding=Embedding(provider="none")))
    async with run_consumers(CONSUMERS, vectors_deployment):
        seq = await lived(stock)
        context = await stock.ask("context", query=QUERY, min_seq=seq)
        assert (set(context["sections"]), context["degraded"]) == (USUAL, [])
        assert "на поезде к бабушке" in shown(context)
        assert "cello" not in shown(context), "it has no word of the query"
        assert (await stock.contents(min_seq=seq))[-1] == "Да, дождь."
        hits = (await stock.ask("search", query="cello"))["hits"]
        assert [hit["id"] for hit in hits] == ["ar_002"]
        kept = await stock.ask("save", text="Anna has a brother in Omsk")
        seq = kept["seen_seq"]
        fact = (await stock.ask("get", id=kept["id"], min_seq=seq))["fact"]
        assert fact["text"] == "Anna has a brother in Omsk"
        assert "Omsk" in shown(await stock.ask("context", query="Omsk?", min_seq=seq))


async def run_sql(deployment: Deployment, statement: str) -> None:
    assert deployment.database_url is not None
    url = deployment.database_url.set(drivername="postgresql").render_as_string(hide_password=False)
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(f'SET search_path TO "{deployment.database_schema}"')
        await connection.execute(statement)


@pytest.mark.parametrize(
    ("table", "missing", "sections", "there"),
    [
        ("profile_sets", ["user_data"], USUAL - {"user_data"}, "nuts"),
        # Without summaries, `recent` shows all messages, also the hits of a search.
        (
            "memory_events",
            ["facts", "summaries", "working", "relevant"],
            {"recent", "user_data"},
            "дождь",
        ),
    ],
)
async def test_failed_section_is_named_and_left_out(
    stock: Stock,
    mnemon_with_vectors: Deployment,
    table: str,
    missing: list[str],
    sections: set[str],
    there: str,
) -> None:
    seq = await lived(stock)
    await run_sql(mnemon_with_vectors, f"ALTER TABLE {table} RENAME TO gone")
    reply = await stock.ask("context", query=QUERY, min_seq=seq)
    assert reply["degraded"] == missing
    assert set(reply["sections"]) == sections
    assert there in shown(reply)
    await run_sql(mnemon_with_vectors, f"ALTER TABLE gone RENAME TO {table}")
    assert (await stock.ask("context", query=QUERY, min_seq=seq))["degraded"] == []


async def test_unreadable_memory_gives_an_empty_context(
    stock: Stock, mnemon_with_vectors: Deployment
) -> None:
    await lived(stock)
    for table in ("starts", "profile_sets", "memory_events"):
        await run_sql(mnemon_with_vectors, f"ALTER TABLE {table} RENAME TO {table}_gone")
    stock_reply = await stock.ask("context", query=QUERY)
    assert (stock_reply["error"]["code"], stock_reply["error"]["retryable"]) == ("unavailable", True)
    context = await MemoryClient(stock.connection, tenant="acme").context("u1", query=QUERY)
    assert (context.messages, context.degraded) == ((), ("memory",))


async def test_cached_context_is_not_read_again(stock: Stock, mnemon: Deployment) -> None:
    """Without vectors, because a search reads its hits from the database."""
    await stock.say("hello")
    seq = await saved(stock, "pf_001", "Anna is allergic to nuts", tier="profile")
    await persisted(stock.connection, seq)
    first = await stock.ask("context", min_seq=seq)
    assert first["degraded"] == ["relevant", "conversation"]
    for table in ("messages", "starts", "profile_sets", "memory_events"):
        await run_sql(mnemon, f"ALTER TABLE {table} RENAME TO {table}_gone")
    for form in FORMATS:
        again = await stock.ask("context", format=form)
        assert "nuts" in shown(again)
        assert again["degraded"] == first["degraded"]
    assert await stock.ask("context") == first


@pytest.mark.long
@pytest.mark.usefixtures("mnemon")
async def test_expired_fact_leaves_the_cached_context(stock: Stock) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=3)
    await saved(stock, "wk_001", "Anna is in Rome", tier="working", expires_at=soon.isoformat())
    seq = await saved(
        stock, "wk_002", "Anna is in a hotel", tier="working", expires_at="2200-01-01T00:00:00Z"
    )
    for _ in range(3):
        reply = await stock.ask("context", min_seq=seq)
        assert "Rome" in shown(reply) or datetime.now(UTC) >= soon
    async with asyncio.timeout(60):
        while "Rome" in shown(reply):
            asked_at = datetime.now(UTC)
            reply = await stock.ask("context", min_seq=seq)
            assert asked_at < soon or "Rome" not in shown(reply)
            await asyncio.sleep(0.05)
    assert "hotel" in shown(reply)


@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_settings_of_a_tenant_shape_its_contexts(stock: Stock, connection: Client) -> None:
    seq = await lived(stock)
    narrow = {"budget": 320, "conversation_hits": 0, "summaries": 0, "sections.relevant": 0}
    names = {f"context.{name}": value for name, value in narrow.items()} | {"context.sections.facts": 0}
    await change_settings(connection, setting(recent_messages=2, **names), "acme")
    async with asyncio.timeout(60):
        while True:
            reply = await stock.ask("context", query=QUERY, min_seq=seq)
            if reply["tokens"] <= 320 and not reply["sections"]["summaries"]["shown"]:
                break
    assert reply["degraded"] == []
    recent = reply["coverage"]["shown"]
    assert 2 <= recent < 13
    assert counted(reply) == {"facts": 0, "working": 1, "user_data": 2, "summaries": 0, "recent": recent}
    assert reply["sections"]["summaries"]["messages_left_out"] == 1, "a summary that is not shown covers it"


@pytest.mark.long
@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_long_conversation_does_not_enlarge_the_context(stock: Stock) -> None:
    await lived(stock)
    for number in range(100):
        seq = await stock.say(f"Ещё о погоде, день {number}: дождь, and the train is late again")
    await indexed(stock, seq)
    reply = await stock.ask("context", query=QUERY, min_seq=seq)
    assert reply["tokens"] <= SettingsV1().context.budget
    assert counted(reply)["recent"] >= SettingsV1().recent_messages
    assert sum(reply["coverage"].values()) == 114
    assert counted(reply)["conversation"] <= SettingsV1().context.conversation_hits
    assert "Поезд в Пермь в 9:40" in shown(reply), "it is among a hundred"
    assert "nuts" in shown(reply)


@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_client_requests_every_context_option(stock: Stock) -> None:
    seq = await lived(stock)
    memory = MemoryClient(stock.connection, tenant="acme", timeouts=PATIENT)
    context = await memory.context("u1", query=QUERY, format="xml", budget=400, task_id="t1", min_seq=seq)
    assert context.error is None
    assert context.tokens is not None
    assert 0 < context.tokens <= 400
    assert context.text == context.messages[0].content
    assert "<key_facts>" in context.text
    assert context.sections["facts"].shown == 2
    other = await memory.context("u1", conversation="elsewhere", min_seq=seq)
    assert (other.conversation, "recent" in other.sections) == ("elsewhere", False)
