"""A hit contains a word of the query, is similar to it, or is near a message that matches."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from mnemon_consumers.app import run_consumers
from mnemon_infra.config import Deployment
from tests.support.servers.qdrant import locate_vectors
from tests.support.stock_client import Stock, indexed

RELEVANT = 0.25
"""The least similarity at which `wordllama` counts a text as relevant."""

CONVERSATIONS = {
    "en": (
        "plumber",
        "The plumber comes on Tuesday",
        (
            "When the kitchen sink leaked again last winter, the neighbours upstairs recommended an old "
            "plumber who repaired all of the pipes below the window within a single afternoon"
        ),
        "Bought tulips at the market",
    ),
    "ru": (
        "сантехник",
        "Сантехник придёт во вторник",
        (
            "Когда прошлой зимой на кухне снова потекла раковина, соседи сверху посоветовали старого "
            "сантехника, который за один день починил все трубы под окном"
        ),
        "Купили тюльпаны на рынке",
    ),
}


@pytest_asyncio.fixture
async def searching(deployment: Deployment, tmp_path: Path) -> AsyncIterator[None]:
    located = locate_vectors(deployment, tmp_path / "vectors")
    async with run_consumers(("persist", "index", "dedupe", "retrieve"), located):
        yield


async def hits(stock: Stock, query: str) -> list[dict[str, Any]]:
    reply = await stock.ask("search", query=query, scope=["messages"], limit=20, explain=True)
    assert not reply["degraded"], reply
    found: list[dict[str, Any]] = reply["hits"]
    return found


@pytest.mark.usefixtures("searching")
@pytest.mark.parametrize("language", CONVERSATIONS)
async def test_of_two_messages_that_have_the_word_both_match(stock: Stock, language: str) -> None:
    query, short, long, other = CONVERSATIONS[language]
    said = {"short": (short, "2026-03-02"), "long": (long, "2026-03-09"), "other": (other, "2026-03-16")}
    for name, (text, day) in said.items():
        seq = await stock.say(text, id=name, sent_at=f"{day}T10:00:00Z")
    await indexed(stock, seq)

    found = {hit["id"]: hit["parts"] for hit in await hits(stock, query)}
    assert list(found)[:2] == ["short", "long"]
    assert found["short"]["words"] == 1.0
    assert 0.3 < found["long"]["words"] < 1.0
    assert found["short"]["terms"] > found["long"]["terms"] > 0
    # A message without a word of the query is a hit only if its similarity is at least RELEVANT.
    assert all(parts["similarity"] >= RELEVANT for parts in found.values() if not parts["words"])


@pytest.mark.usefixtures("searching")
async def test_messages_that_match_nothing_and_are_near_no_match_are_no_hits(stock: Stock) -> None:
    things = ("tulips", "trains", "chess", "opera", "plumber", "soup", "violins", "glaciers", "bicycles")
    for place, thing in enumerate(things):
        # The last two messages are of the next day.
        day = 2 + (place >= 7)
        seq = await stock.say(f"I saw {thing} there", id=thing, sent_at=f"2026-03-{day:02}T10:{place:02}:00Z")
    await indexed(stock, seq)

    found = {hit["id"]: hit for hit in await hits(stock, "plumber")}
    assert next(iter(found)) == "plumber"
    assert found.keys() == {"plumber", "chess", "opera", "soup", "violins"}
    assert all(hit["score"] > 0 for hit in found.values())
    assert await hits(stock, "quantum chromodynamics") == []
