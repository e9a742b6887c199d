"""Presets in force: a tenant's context is as the documentation of the preset shows it."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from nats.aio.client import Client

from mnemon_consumers.app import run_consumers
from mnemon_contracts.settings.presets import PRESETS
from mnemon_infra.config import Deployment
from mnemon_infra.settings.store import change_settings
from tests.support.settings_edit import setting
from tests.support.stock_client import Stock

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SPACE = "memory.acme.u1"

Preset = Callable[[str], AbstractAsyncContextManager[None]]


@pytest.fixture
def preset(connection: Client, deployment: Deployment) -> Preset:
    """Return a function that runs consumers under the named preset."""

    @asynccontextmanager
    async def start(name: str) -> AsyncIterator[None]:
        await change_settings(connection, setting(**PRESETS[name].values), "acme")
        async with run_consumers(("persist", "retrieve"), deployment):
            yield

    return start


async def save(stock: Stock, fact_id: str, text: str, **fact: object) -> int:
    body = {"fact_id": fact_id, "fact": {"text": text, **fact}, "decision": {"proposal_id": f"p-{fact_id}"}}
    return await stock.publish(f"{SPACE}.fact.saved.v1", body)


async def test_preset_000_shows_the_last_30_messages_only(stock: Stock, preset: Preset) -> None:
    async with preset("000"):
        for number in range(40):
            role = "assistant" if number % 2 else "user"
            sent_at = (NOON + timedelta(minutes=number)).isoformat()
            tools = [{"name": "weather"}, {"name": "web"}] if number == 39 else None
            seq = await stock.say(f"сообщение {number}", role=role, sent_at=sent_at, tool_calls=tools)
        reply = await stock.ask("context", query="погода", min_seq=seq)
    shown = [(message["role"], message["content"]) for message in reply["messages"]]
    assert len(shown) == 31
    assert shown[0] == ("user", "[Текущее время: 2026-03-01 15:10] сообщение 10")
    assert shown[-2:] == [("assistant", "сообщение 39"), ("system", "Tools used: weather, web")]
    assert reply["coverage"] == {"shown": 30, "summarised": 0, "left_out": 10}


async def test_preset_002_shows_messages_as_they_were_said(stock: Stock, preset: Preset) -> None:
    async with preset("002"):
        await save(stock, "pf_001", "User prefers Russian", tier="profile", kind="preference")
        told = [await stock.say(f"вопрос {number}", "acme.u1.talk") for number in range(2)]
        for seq, text in zip(
            told, ("Обсуждали волатильность 2024, avg 1.2%", "Сравнивали понедельники и пятницы"), strict=True
        ):
            summary = {"conversation": "talk", "from_seq": seq, "to_seq": seq, "text": text}
            await stock.publish(f"{SPACE}.summary.written.v1", {"summary_id": f"s{seq}", **summary})
        lines = [(("User", "Assistant")[number % 2], f"фраза {number}") for number in range(8)]
        lines += [("User", "А что было вчера?"), ("Assistant", "Вчера NQ вырос на 0.8%...")]
        for who, text in lines:
            seq = await stock.say(text, "acme.u1.talk", role=who.lower())
        reply = await stock.ask("context", format="xml", min_seq=seq)
    assert reply["text"] == "\n".join(
        (
            "<key_facts>\n- User prefers Russian\n</key_facts>\n",
            "<history_summary>",
            "Обсуждали волатильность 2024, avg 1.2%",
            "Сравнивали понедельники и пятницы",
            "</history_summary>\n",
            "<recent_messages>",
            *(f"{who}: {text}" for who, text in lines),
            "</recent_messages>",
        )
    )


async def test_preset_004_shows_important_valid_profile_facts(stock: Stock, preset: Preset) -> None:
    async with preset("004"):
        await save(stock, "pf_001", "Пользователь предпочитает русский.", tier="profile", importance=9)
        await save(stock, "pf_002", "Носит синий шарф зимой.", tier="profile", importance=5)
        await save(stock, "wk_013", "Ставили старый бот", tier="working", expires_at="2026-03-01T00:00:00Z")
        await save(stock, "wk_014", "Сейчас ставим simple-bot", tier="working")
        seq = await save(stock, "ar_120", "Обсуждали структуру памяти.", tier="archive", importance=2)
        reply = await stock.ask("context", format="blocks", min_seq=seq)
    assert reply["text"] == (
        "[PROFILE MEMORY]\n- Пользователь предпочитает русский.\n\n"
        "[WORKING MEMORY]\n- Сейчас ставим simple-bot"
    )
    assert reply["sections"]["facts"]["left_out"] == 1
