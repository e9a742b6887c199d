"""Questions that no message answers, from publication to search."""

import asyncio
from typing import Any

import pytest

from mnemon_consumers.retrieve.search.messages import answerability
from mnemon_infra.config import Deployment
from mnemon_producers.client import MemoryClient
from tests.support.patience import PATIENT
from tests.support.stock_client import Stock, indexed


@pytest.fixture(autouse=True)
def _few_messages_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answerability, "LEAST_FOUND", 1)


ANNA = (
    "I took my dog Rex to the vet yesterday",
    "We painted the kitchen yellow",
    "My sister moved to Lisbon in spring",
    "The car broke down near the bridge",
    "I started a pottery class on Mondays",
    "Our neighbours have a new baby",
    "I forgot my umbrella at the office",
    "The train to Perm was two hours late",
    "Grandmother gave me her recipe for plum cake",
    "I joined a choir and we sing in a church",
)
BORIS = (
    "I run ten kilometres every Sunday",
    "My laptop needs a new battery",
    "We planted tomatoes on the balcony",
    "The dentist found two cavities",
    "I am reading a novel about sailors",
    "My brother opened a bakery downtown",
    "They cancelled the concert last night",
    "I lost my wallet in the tram",
    "We watched the eclipse from the hill",
    "My boss wants the report by Friday",
)
ANSWERED = "Where did Anna take her dog Rex yesterday?"
UNANSWERED = "Which university did Zoltan choose before he moved to Berlin?"


async def tell(stock: Stock) -> int:
    seq = 0
    for number in range(40):
        speaker, texts = (("Anna", ANNA), ("Boris", BORIS))[number % 2]
        text = texts[number // 2 % 10] if number < 20 else f"Nothing new on day {number}, just rain"
        seq = await stock.say(text, name=speaker, id=f"m{number}", sent_at=f"2024-05-08T10:{number:02}:00Z")
    return await indexed(stock, seq)


async def search(stock: Stock, query: str, **request: Any) -> list[dict[str, Any]]:
    reply = await stock.ask("search", query=query, scope=["messages"], **request)
    assert not reply.get("error"), reply
    assert not reply["degraded"], reply
    hits: list[dict[str, Any]] = reply["hits"]
    return hits


async def count_words(stock: Stock) -> None:
    """Wait until the words of the tenant are counted: only then, answerability is computed."""
    async with asyncio.timeout(30):
        while "answerability" not in (await search(stock, ANSWERED, explain=True))[0]["parts"]:
            await asyncio.sleep(0.02)


async def test_question_without_an_answer_gets_nothing_unless_a_threshold_is_given(
    stock: Stock, mnemon_with_vectors: Deployment
) -> None:
    await tell(stock)
    await count_words(stock)

    (best, *_) = await search(stock, ANSWERED, explain=True)
    assert best["id"] == "m0"
    assert best["parts"]["answerability"] > 0.35
    assert await search(stock, UNANSWERED) == []
    everything = await search(stock, UNANSWERED, threshold=0, explain=True)
    assert everything
    assert everything[0]["parts"]["answerability"] < 0.35
    assert everything[0]["score"] < best["score"]
    rainy = "Did rain delay the university exam of Zoltan?"
    assert await search(stock, rainy) == []
    newest = await MemoryClient(stock.connection, tenant="acme", timeouts=PATIENT).search(
        "u1", rainy, scope=["short"]
    )
    assert newest.hits, "the newest messages alone are not judged"
    assert await search(stock, "university chemistry degree laptop"), "key words are no question"
    assert await search(stock, "Какую степень по химии получил Boris?"), "wordllama does not know Russian"


async def test_context_shows_no_messages_for_a_question_without_an_answer(
    stock: Stock, mnemon_with_vectors: Deployment
) -> None:
    seq = await tell(stock)
    await count_words(stock)

    async def count_hits(query: str | None) -> int:
        reply = await stock.ask("context", query=query, min_seq=seq)
        assert not reply.get("error"), reply
        assert reply["degraded"] == []
        shown: int = reply["sections"].get("conversation", {"shown": 0})["shown"]
        return shown

    assert await count_hits(ANSWERED) > 0
    assert await count_hits(UNANSWERED) == 0
    seq = await indexed(stock, await stock.say(UNANSWERED, name="Anna", id="asked"))
    assert await count_hits(None) == 0, "the question that the user has just asked is no answer"
