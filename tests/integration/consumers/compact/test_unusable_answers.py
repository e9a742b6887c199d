"""Summaries where a model answers with something else: asked once more, then written by the rules."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from mnemon_bench.provider_server.answers import ReceivedRequest
from mnemon_bench.provider_server.faults import HttpFault
from mnemon_bench.provider_server.server import ProviderServer
from mnemon_infra.config import Deployment
from tests.integration.conftest import Stock
from tests.support.pipelines.compaction import MODEL, Compacting


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


@pytest_asyncio.fixture
async def compacting(
    stock: Stock, deployment: Deployment, server: ProviderServer
) -> AsyncIterator[Compacting]:
    yield await Compacting.on(stock, deployment, server)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "Here is a summary: They talked.",
        "Вот краткое содержание: Говорили.",
        '{"summary": "They talked."}',
    ],
)
async def test_what_is_no_summary_is_asked_for_once_more_and_then_the_rules_write_it(
    compacting: Compacting, answer: str
) -> None:
    usual = compacting.server.state.answering
    asked: list[str] = []

    def answering(question: ReceivedRequest) -> str:
        if "u1 says" not in question.text:
            return usual(question)
        asked.append(question.text)
        return answer

    compacting.server.state.answering = answering
    async with compacting.running():
        await compacting.talk(17, ["u1", "u2"])
        await compacting.settled()
    (summary,) = await compacting.summaries()
    assert summary["lineage"]["model"] == "offline/rules"
    assert "u1 says number 0" in summary["text"]
    assert len(await compacting.log_of("model.called", "u1")) == 2, "both answers are paid for"
    first, second = asked
    assert second.startswith(first)
    assert "was refused" in second
    (other,) = await compacting.summaries("u2")
    assert other["lineage"]["model"] == f"openai/{MODEL}"
    assert not await compacting.letters()


async def test_the_second_answer_of_a_model_is_taken_where_it_is_a_summary(compacting: Compacting) -> None:
    compacting.server.state.answering = lambda question: (
        "They talked of numbers." if "was refused" in question.text else "```\nThey talked.\n```"
    )
    async with compacting.running():
        await compacting.talk(17)
        await compacting.settled()
    (summary,) = await compacting.summaries()
    assert summary["text"] == "They talked of numbers."
    assert summary["lineage"]["model"] == f"openai/{MODEL}"
    assert len(await compacting.log_of("model.called")) == 2


async def test_a_refused_answer_is_counted_though_the_model_is_away_when_asked_again(
    compacting: Compacting,
) -> None:
    faults = compacting.server.state.faults.requests

    def answering(question: ReceivedRequest) -> str:
        faults.extend([HttpFault(status=500)] * 3)
        compacting.server.state.answering = usual
        return ""

    usual = compacting.server.state.answering
    compacting.server.state.answering = answering
    async with compacting.running():
        await compacting.talk(17)
        await compacting.has(1, "summary.written")
        await compacting.settled()
    assert len(await compacting.log_of("model.called")) == 2
