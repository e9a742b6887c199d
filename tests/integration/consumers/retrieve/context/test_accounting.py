"""Every message of a conversation of any length is in a summary, shown as recent, or counted as left out."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from mnemon_bench.provider_server.server import ProviderServer
from mnemon_contracts.subjects import encode_token
from mnemon_contracts.verbs.ask import Format
from mnemon_infra.config import Deployment
from tests.integration.consumers.retrieve.context.test_context import run_sql
from tests.support.pipelines.compaction import CompactionHarness, live
from tests.support.stock_client import Stock

LONGEST = 60
UNCOVERED = 400
FORMATS: tuple[Format, ...] = ("messages", "xml", "blocks", "markdown")
TEXTS = {
    "ben": "Message ({number}): on day {number} I bought a ticket to Rome for {number} euros.",
    "анна": "Сообщение ({number}): в день {number} я купила билет в Рим за {number} евро.",
}


@pytest_asyncio.fixture
async def offline_compaction(
    stock: Stock, deployment: Deployment, provider: ProviderServer
) -> AsyncIterator[CompactionHarness]:
    """Yield a harness whose summaries are written by the rules, as without a model."""
    compacting = await CompactionHarness.on(stock, deployment, provider)
    await compacting.set(provider="offline", model=None)
    yield compacting


async def context(offline_compaction: CompactionHarness, user: str, **request: Any) -> dict[str, Any]:
    reply = await offline_compaction.stock.ask(
        "context", f"acme.{encode_token(user)}", conversation="talk", **request
    )
    assert not reply.get("error"), reply
    assert not set(reply["degraded"]) - {"relevant", "conversation"}
    return reply


@pytest.mark.long
async def test_each_of_sixty_messages_is_accounted_for(offline_compaction: CompactionHarness) -> None:
    async with offline_compaction.running("persist", "compact", "retrieve"):
        for number in range(1, LONGEST + 1):
            for user, text in TEXTS.items():
                await offline_compaction.talk(1, [user], text=text, first=number)
            await offline_compaction.settled()
            for user in TEXTS:
                said = await offline_compaction.said(user)
                assert len(said) == number
                summaries = live(await offline_compaction.summaries(user))
                form = FORMATS[number % 4]
                reply = await context(offline_compaction, user, min_seq=said[-1], format=form)
                coverage = reply["coverage"]
                assert sum(coverage.values()) == number
                newest, others = summaries[-3:], summaries[:-3]
                assert reply["sections"].get("summaries", {}).get("shown", 0) == len(newest)
                covered = sum(each["from_seq"] <= seq <= each["to_seq"] for each in newest for seq in said)
                hidden = sum(each["from_seq"] <= seq <= each["to_seq"] for each in others for seq in said)
                assert coverage["left_out"] == hidden
                if hidden:
                    section = reply["sections"]["summaries"]
                    assert section["left_out"] == len(others)
                    assert section["messages_left_out"] == hidden
                assert reply["sections"]["recent"]["left_out"] == 0
                assert coverage["shown"] == max(number - covered - hidden, min(10, number))
                assert coverage["shown"] <= 16
                if form == "messages":
                    spoken = [message for message in reply["messages"] if message["role"] != "system"]
                    assert len(spoken) == coverage["shown"]


async def test_uncovered_messages_without_room_are_counted(offline_compaction: CompactionHarness) -> None:
    async with offline_compaction.running("persist", "compact", "retrieve"):
        end = await offline_compaction.talk(16, ["ben"], text=TEXTS["ben"])
        for budget in (30, 100, 200, 300):
            reply = await context(offline_compaction, "ben", min_seq=end, budget=budget)
            recent = reply["sections"]["recent"]
            assert recent["left_out"] == recent["messages_left_out"] == reply["coverage"]["left_out"]
            assert reply["coverage"]["shown"] + recent["left_out"] == 16
            assert reply["tokens"] <= budget
        assert 0 < recent["left_out"] < 16


async def test_disabled_summaries_leave_all_messages_counted(offline_compaction: CompactionHarness) -> None:
    await offline_compaction.set(enabled=False)
    async with offline_compaction.running("persist", "retrieve"):
        end = await offline_compaction.talk(UNCOVERED, ["ben"], text=TEXTS["ben"])
        reply = await context(offline_compaction, "ben", min_seq=end)
        shown, recent = reply["coverage"]["shown"], reply["sections"]["recent"]
        assert reply["coverage"] == {"shown": shown, "summarised": 0, "left_out": UNCOVERED - shown}
        assert recent["left_out"] == recent["messages_left_out"] == UNCOVERED - shown
        assert 20 < shown == recent["shown"] < 100
        wide = await context(offline_compaction, "ben", min_seq=end, budget=2500)
        assert wide["coverage"]["shown"] > shown
        again = await asyncio.gather(*(context(offline_compaction, "ben") for _ in range(3)))
        assert all(each["coverage"] == reply["coverage"] for each in again)


async def test_clear_resets_counted_messages(offline_compaction: CompactionHarness) -> None:
    async with offline_compaction.running("persist", "compact", "retrieve"):
        end = await offline_compaction.talk(70, ["ben"], text=TEXTS["ben"])
        await offline_compaction.settled()
        assert sum((await context(offline_compaction, "ben", min_seq=end))["coverage"].values()) == 70
        await offline_compaction.stock.publish("chat.acme.ben.talk.cleared.v1")
        end = await offline_compaction.talk(3, ["ben"], text=TEXTS["ben"])
        reply = await context(offline_compaction, "ben", min_seq=end)
        assert reply["coverage"] == {"shown": 3, "summarised": 0, "left_out": 0}


@pytest.mark.long
async def test_counts_are_reused(offline_compaction: CompactionHarness) -> None:
    async with offline_compaction.running("persist", "compact", "retrieve"):
        end = await offline_compaction.talk(90, ["ben"], text=TEXTS["ben"])
        await offline_compaction.settled()
        first = await context(offline_compaction, "ben", min_seq=end)
        assert sum(first["coverage"].values()) == 90
        for table in ("messages", "starts", "profile_sets", "memory_events"):
            await run_sql(offline_compaction.deployment, f"ALTER TABLE {table} RENAME TO {table}_gone")
        assert (await context(offline_compaction, "ben"))["coverage"] == first["coverage"]
        xml = await context(offline_compaction, "ben", format="xml")
        assert (xml["degraded"], sum(xml["coverage"].values())) == (first["degraded"], 90)
