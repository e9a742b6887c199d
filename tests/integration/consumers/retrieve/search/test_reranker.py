"""Reranking by an endpoint, as the last step of `search` and of the search for a context."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from mnemon_consumers.app import run_consumers
from mnemon_consumers.retrieve.search import hit_reranker
from mnemon_consumers.retrieve.verbs import context as context_verb
from mnemon_infra.config import Deployment
from mnemon_infra.durables import CONSUMERS
from mnemon_infra.settings.store import change_settings
from mnemon_producers.client import MemoryClient
from tests.support.patience import PATIENT
from tests.support.servers.embedding_server import EndpointAnswer, refusal
from tests.support.servers.reranker_server import RerankerServer
from tests.support.settings_edit import setting
from tests.support.stock_client import Stock, indexed

MODEL = "a-reranker"
QUERY = "violin concert"
FACTS = {
    "plain": "A violin concert is on Friday",
    "best": "zzzz Anna plays the violin",
    "second": "zz The violin is old",
}
"""Texts of facts by id: by words `plain` ranks first, by the endpoint the text with the most letters z."""


@pytest_asyncio.fixture
async def reranking(
    reranker_endpoint: RerankerServer,
    vectors_deployment: Deployment,
    stock: Stock,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[RerankerServer]:
    """Run all consumers with three facts and a reranker for `acme` that is not paused after failures."""
    monkeypatch.setattr(hit_reranker, "RERANKER_PAUSE", 0.0)
    ours = reranker_endpoint.deployment
    deployed = vectors_deployment.model_copy(
        update={"reranker_url": ours.reranker_url, "reranker_api_key": ours.reranker_api_key}
    )
    chosen = setting(retrieval__reranker=MODEL, retrieval__reranker_timeout_ms=2000)
    await change_settings(stock.connection, chosen, "acme")
    async with run_consumers(CONSUMERS, deployed):
        for owner in ("acme.u1", "other.u1"):
            for fact_id, text in FACTS.items():
                body = {
                    "fact_id": fact_id,
                    "fact": {"text": text, "tier": "archive"},
                    "decision": {"proposal_id": f"p-{owner}-{fact_id}"},
                }
                seq = await stock.publish(f"memory.{owner}.fact.saved.v1", body)
        await indexed(stock, seq)
        yield reranker_endpoint


async def search(stock: Stock, owner: str = "acme.u1", **request: Any) -> tuple[list[str], list[str]]:
    """Return the ids of the hits, and the degraded parts."""
    reply = await stock.ask("search", owner, query=QUERY, **request)
    assert not reply.get("error"), reply
    return [hit["id"] for hit in reply["hits"]], reply["degraded"]


async def test_endpoint_reads_a_follow_up_after_the_messages_before_it(
    reranking: RerankerServer, stock: Stock
) -> None:
    memory = MemoryClient(stock.connection, tenant="acme", timeouts=PATIENT)

    found = await memory.search("u1", "And when is that?", preceding=["Is there a violin concert?"])

    (request,) = reranking.requests
    assert request["query"] == "Is there a violin concert?\nAnd when is that?"
    assert [hit.id for hit in found.hits] == ["best", "second", "plain"]


async def test_order_and_scores_of_hits_are_those_of_the_endpoint(
    reranking: RerankerServer, stock: Stock
) -> None:
    reply = await stock.ask("search", query=QUERY, explain=True)
    assert reply["degraded"] == []
    scores = [(hit["id"], hit["score"], hit["parts"]["reranker"]) for hit in reply["hits"]]
    assert scores == [("best", 0.4, 0.4), ("second", 0.2, 0.2), ("plain", 0.0, 0.0)]
    assert "similarity" in reply["hits"][0]["parts"]
    (request,) = reranking.requests
    assert (request["model"], request["query"]) == (MODEL, QUERY)
    assert sorted(request["documents"]) == sorted(FACTS.values())


async def test_threshold_and_limit_apply_after_the_reranker(reranking: RerankerServer, stock: Stock) -> None:
    assert await search(stock, limit=1) == (["best"], [])
    assert len(reranking.requests[0]["documents"]) == len(FACTS), "more hits are sent than requested"
    assert await search(stock, threshold=0.2) == (["best", "second"], [])


async def test_hits_beyond_the_candidates_follow(reranking: RerankerServer, stock: Stock) -> None:
    await change_settings(stock.connection, setting(retrieval__reranker_candidates=1), "acme")
    async with asyncio.timeout(60):
        while True:
            reply = await stock.ask("search", query=QUERY, explain=True)
            if len(reranking.requests[-1]["documents"]) == 1:
                break
    assert reply["hits"][0]["id"] == "plain"
    assert sorted(hit["id"] for hit in reply["hits"][1:]) == ["best", "second"]
    assert {hit["score"] for hit in reply["hits"]} == {0.0}, "no hit scores above a hit before it"
    assert ["reranker" in hit["parts"] for hit in reply["hits"]] == [True, False, False]


async def test_tenant_without_the_setting_sends_nothing(reranking: RerankerServer, stock: Stock) -> None:
    ids, degraded = await search(stock, "other.u1")
    assert (ids[0], degraded) == ("plain", [])
    assert reranking.requests == []


async def test_failure_keeps_the_order_and_is_named(reranking: RerankerServer, stock: Stock) -> None:
    expected, _ = await search(stock, "other.u1")
    faults = {
        "key": lambda _: refusal(401),
        "server": lambda _: refusal(500),
        "answer": lambda _: EndpointAnswer(200, {"results": [{"index": 0, "relevance_score": 1.0}]}),
    }
    for name, fault in faults.items():
        reranking.faults = [fault]
        assert await search(stock) == (expected, ["reranker"]), name
    assert (await search(stock))[1] == []


@pytest.mark.long
async def test_timeout_keeps_the_order_and_is_named(reranking: RerankerServer, stock: Stock) -> None:
    expected, _ = await search(stock, "other.u1")
    reranking.released.clear()
    assert await search(stock) == (expected, ["reranker"])


async def test_context_uses_the_reranker(reranking: RerankerServer, stock: Stock) -> None:
    context = await stock.ask("context", conversation="new", query=QUERY)
    assert context["degraded"] == []
    shown = "\n".join(message["content"] for message in context["messages"])
    assert shown.index(FACTS["best"]) < shown.index(FACTS["second"]) < shown.index(FACTS["plain"])

    reranking.faults = [lambda _: refusal(500)]
    context = await stock.ask("context", conversation="new", query=QUERY)
    assert context["degraded"] == ["reranker"]
    shown = "\n".join(message["content"] for message in context["messages"])
    assert shown.index(FACTS["plain"]) < shown.index(FACTS["best"])


async def test_slow_reranker_takes_no_hits_from_a_context(
    reranking: RerankerServer, stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context_verb, "ANSWER_SECONDS", 1.0)
    reranking.released.clear()
    context = await stock.ask("context", conversation="new", query=QUERY)
    assert context["degraded"] == ["reranker"]
    assert all(text in str(context["messages"]) for text in FACTS.values())


async def test_query_for_a_fact_does_not_ask_the_reranker(reranking: RerankerServer, stock: Stock) -> None:
    reply = await stock.ask("forget", query="the violin")
    assert reply.get("candidates"), reply
    assert reranking.requests == []
