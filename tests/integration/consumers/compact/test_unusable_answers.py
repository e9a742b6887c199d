"""Unusable answers of the model: requested once more, then the rules write the summary."""

import pytest

from mnemon_bench.provider_server.answers import ReceivedRequest
from mnemon_bench.provider_server.faults import HttpFault
from tests.support.pipelines.compaction import MODEL, CompactionHarness


@pytest.mark.parametrize(
    "answer",
    [
        "Here is a summary: They talked.",
        *(
            pytest.param(each, marks=pytest.mark.long)
            for each in ("", "Вот краткое содержание: Говорили.", '{"summary": "They talked."}')
        ),
    ],
)
async def test_unusable_answer_is_retried_once_then_rules_write_the_summary(
    compaction: CompactionHarness, answer: str
) -> None:
    usual = compaction.server.state.answering
    asked: list[str] = []

    def answering(question: ReceivedRequest) -> str:
        if "u1 says" not in question.text:
            return usual(question)
        asked.append(question.text)
        return answer

    compaction.server.state.answering = answering
    async with compaction.running():
        await compaction.talk(17, ["u1", "u2"])
        await compaction.settled()
    (summary,) = await compaction.summaries()
    assert summary["lineage"]["model"] == "offline/rules"
    assert "u1 says number 0" in summary["text"]
    assert len(await compaction.log_of("model.called", "u1")) == 2, "both answers are paid for"
    first, second = asked
    assert second.startswith(first)
    assert "was refused" in second
    (other,) = await compaction.summaries("u2")
    assert other["lineage"]["model"] == f"openai/{MODEL}"
    assert not await compaction.letters()


async def test_usable_second_answer_becomes_the_summary(
    compaction: CompactionHarness,
) -> None:
    compaction.server.state.answering = lambda question: (
        "They talked of numbers." if "was refused" in question.text else "```\nThey talked.\n```"
    )
    async with compaction.running():
        await compaction.talk(17)
        await compaction.settled()
    (summary,) = await compaction.summaries()
    assert summary["text"] == "They talked of numbers."
    assert summary["lineage"]["model"] == f"openai/{MODEL}"
    assert len(await compaction.log_of("model.called")) == 2


async def test_rejected_answer_is_counted_when_the_retry_fails(
    compaction: CompactionHarness,
) -> None:
    faults = compaction.server.state.faults.requests

    def answering(question: ReceivedRequest) -> str:
        faults.extend([HttpFault(status=500)] * 3)
        compaction.server.state.answering = usual
        return ""

    usual = compaction.server.state.answering
    compaction.server.state.answering = answering
    async with compaction.running():
        await compaction.talk(17)
        await compaction.has(1, "summary.written")
        await compaction.settled()
    assert len(await compaction.log_of("model.called")) == 2
