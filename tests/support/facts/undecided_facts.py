"""Undecided pairs of facts, and a model that compares them."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from mnemon_bench.provider_server.answers import ReceivedRequest, find_pairs, write_answer
from mnemon_consumers.app import run_consumers
from tests.support.pipelines.extraction import ExtractionHarness
from tests.support.stock_client import handled, indexed


def relating(relation: str) -> Callable[[ReceivedRequest], str]:
    return partial(write_answer, relate=lambda _: relation)


def answering(pairs: Any) -> Callable[[ReceivedRequest], str]:
    """Return a model that finds no facts, and answers `pairs` to a request with pairs of facts."""

    def say(question: ReceivedRequest) -> str:
        return json.dumps({"facts": [], "pairs": pairs if find_pairs(question.text) else []})

    return say


@asynccontextmanager
async def remembering(extracting: ExtractionHarness, *consumers: str) -> AsyncIterator[None]:
    """Run `consumers` for the duration of the block. Default: all that read or write facts."""
    names = consumers or ("persist", "index", "dedupe", "extract", "retrieve")
    async with run_consumers(names, extracting.deployment):
        yield


async def save(extracting: ExtractionHarness, number: int, text: str, *undecided: int, **fact: Any) -> int:
    """Publish `fact.saved` for the fact `ar_00<number>`, and return the log position.

    `undecided` has the numbers of the facts that may say the same.
    """
    decision = {"proposal_id": f"p{number}", "undecided": [f"ar_00{each}" for each in undecided]}
    saved = {"id": f"s{number}", "fact_id": f"ar_00{number}", "fact": {"text": text, **fact}}
    lineage = {"sources": [], "extractor": "import"}
    return await extracting.stock.publish(
        "memory.acme.u1.fact.saved.v1", {**saved, "decision": decision, "lineage": lineage}
    )


async def facts(extracting: ExtractionHarness) -> dict[str, str]:
    end = (await extracting.connection.jetstream().stream_info("LOG")).state.last_seq
    reply = await extracting.stock.ask("read", min_seq=end)
    return {each["id"]: each["text"] for each in reply["facts"]}


async def read_window(extracting: ExtractionHarness, number: int) -> None:
    """Publish a message in the conversation `talk<number>`, and wait for the `number`-th answered window."""
    await extracting.stock.say(f"hello again, number {number}", f"acme.u1.talk{number}")
    await extracting.has(number, "window.answered")


async def settled(extracting: ExtractionHarness) -> None:
    """Wait until `dedupe` has decided on all comparisons, and all facts are projected and indexed."""
    await handled(extracting.connection, "dedupe")
    end = (await extracting.connection.jetstream().stream_info("LOG")).state.last_seq
    await indexed(extracting.stock, end)
