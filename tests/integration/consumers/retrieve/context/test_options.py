"""Parts of a context that depend on settings: its language, the current time, passages of documents."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client

from mnemon_consumers.app import run_consumers
from mnemon_contracts.verbs.ask import Format
from mnemon_infra.config import Deployment
from mnemon_infra.settings.store import change_settings
from tests.support.servers.qdrant import locate_vectors
from tests.support.settings_edit import setting
from tests.support.stock_client import Stock, indexed

FORMATS: tuple[Format, ...] = ("messages", "xml", "blocks", "markdown")
SPACE = "memory.acme.u1"
HEADINGS: dict[Format, str] = {
    "messages": "Ключевые факты:\n",
    "xml": "<key_facts>\n",
    "blocks": "[PROFILE MEMORY]\n",
    "markdown": "## Ключевые факты\n",
}


def shown(reply: dict[str, Any]) -> str:
    """Return the text of all messages that a model gets."""
    assert not reply.get("error"), reply
    return "\n".join(message["content"] for message in reply["messages"])


@pytest.mark.usefixtures("mnemon")
async def test_fixed_words_follow_the_language(stock: Stock, connection: Client) -> None:
    fact = {"text": "Anna is in Rome", "tier": "working", "expires_at": "2200-01-01T00:00:00Z"}
    body = {"fact_id": "wk_001", "fact": fact, "decision": {"proposal_id": "p1"}}
    seq = await stock.publish(f"{SPACE}.fact.saved.v1", body)
    for language, line in (
        ("ru", "Рабочая память:\n- [user_fact] Anna is in Rome (до 2200-01-01)"),
        ("en", "Working memory:\n- [user_fact] Anna is in Rome (until 2200-01-01)"),
    ):
        await change_settings(connection, setting(context__language=language), "acme")
        async with asyncio.timeout(60):
            while shown(await stock.ask("context", min_seq=seq)) != line:
                await asyncio.sleep(0.02)


async def test_every_format_names_the_kind_of_a_fact_and_says_when_there_is_none(
    stock: Stock, connection: Client, deployment: Deployment, tmp_path: Path
) -> None:
    fact = {"text": "Анна любит чай", "tier": "profile", "kind": "preference"}
    body = {"fact_id": "pf_001", "fact": fact, "decision": {"proposal_id": "p1"}}
    await change_settings(connection, setting(context__language="ru"), "acme")
    with_vectors = locate_vectors(deployment, tmp_path / "vectors")
    async with run_consumers(("persist", "index", "retrieve"), with_vectors):
        seq = await indexed(stock, await stock.publish(f"{SPACE}.fact.saved.v1", body))
        for form in FORMATS:
            known = shown(await stock.ask("context", format=form, min_seq=seq))
            nothing = shown(await stock.ask("context", "acme.nobody", format=form))
            assert "- [preference] Анна любит чай" in known
            assert nothing.startswith(HEADINGS[form])
            assert "Нет сохранённой информации." in nothing
            assert "Нет сохранённой информации." not in known
        await change_settings(connection, setting(context__language="ru", context__fact_types=False), "acme")
        async with asyncio.timeout(60):
            while shown(await stock.ask("context", min_seq=seq)) != "Ключевые факты: Анна любит чай":
                await asyncio.sleep(0.02)
        assert shown(await stock.ask("context", "acme.nobody")) == ""


@pytest.mark.usefixtures("mnemon")
async def test_context_language_defaults_to_the_language_of_the_user(stock: Stock) -> None:
    for owner, words, heading in (
        ("acme.ivan", "Завтра я лечу в Рим, billing встречает меня", "## Последние сообщения"),
        ("acme.ben", "Tomorrow I fly to Rome, привет", "## Recent messages"),
    ):
        seq = await stock.say(words, f"{owner}.-")
        reply = await stock.ask("context", owner, format="markdown", min_seq=seq)
        assert heading in reply["text"]


@pytest.mark.usefixtures("mnemon")
async def test_current_time_ends_the_context_and_is_fresh(stock: Stock, connection: Client) -> None:
    """Without vectors, because the reply is then cached until memory changes."""
    stamps = {"time_format": "%Y-%m-%d %H:%M:%S.%f", "template": "[Now: {time}] {text}", "enabled": False}
    values = {"context.current_time": True} | {f"time_stamps.{name}": each for name, each in stamps.items()}
    await change_settings(connection, setting(**values), "acme")
    seq = await stock.say("hello")
    last = ""
    async with asyncio.timeout(60):
        while not last.startswith("Current date and time: [Now: "):
            last = (await stock.ask("context", min_seq=seq))["messages"][-1]["content"]
    for form in FORMATS:
        earlier, later = [(await stock.ask("context", format=form))["messages"][-1] for _ in range(2)]
        moments = [each["content"].rpartition("[Now: ")[2] for each in (earlier, later)]
        assert moments[0] < moments[1]
        assert moments[1][:4].isdecimal()


async def test_passages_of_documents_are_a_section(
    stock: Stock, connection: Client, deployment: Deployment, tmp_path: Path
) -> None:
    text = "Поезд в Пермь отправляется в 9:40 с Ярославского вокзала."
    document = {"document_id": "d1", "title": "Расписание", "source": "trains.md", "text": text}
    asked = {"query": "Во сколько поезд в Пермь?"}
    with_vectors = locate_vectors(deployment, tmp_path / "vectors")
    async with run_consumers(("persist", "index", "retrieve"), with_vectors):
        seq = await indexed(stock, await stock.publish(f"{SPACE}.document.added.v1", document))
        without = await stock.ask("context", min_seq=seq, **asked)
        assert (shown(without), without["sections"]) == ("Key facts:\nNo saved information.", {})
        await change_settings(connection, setting(context__sections__documents=200), "acme")
        async with asyncio.timeout(60):
            while "documents" not in (await stock.ask("context", min_seq=seq, **asked))["sections"]:
                await asyncio.sleep(0.02)
        for form in FORMATS:
            reply = await stock.ask("context", format=form, min_seq=seq, **asked)
            assert f"Расписание (trains.md): {text}" in shown(reply)
            assert reply["sections"]["documents"]["shown"] == 1
            assert reply["sections"]["documents"]["tokens"] <= 200
            assert reply["degraded"] == []
