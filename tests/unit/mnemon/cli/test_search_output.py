"""Parts of a search that failed, as `mnemon search` names them, and its exit code."""

import pytest

from mnemon.cli.memory import facts
from mnemon.cli.terminal.exit_code import ExitCode
from mnemon_contracts.verbs.tools import SearchHitV2, SearchReplyV2

BY_WORDS = "searched by words only: the query could not be embedded"
NOT_RERANKED = "hits not reranked: the reranker gave no usable answer"
HIT = SearchHitV2(id="pf_001", scope="memories", text="Likes tea", score=0.5)


@pytest.mark.parametrize(
    ("degraded", "lines"),
    [
        ((), []),
        (("memories", "documents"), ["could not be searched: memories, documents"]),
        (("embedding",), [BY_WORDS]),
        (("reranker",), [NOT_RERANKED]),
        (("embedding", "messages", "reranker"), ["could not be searched: messages", BY_WORDS, NOT_RERANKED]),
    ],
)
def test_each_degraded_part_is_explained(
    degraded: tuple[str, ...], lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    facts._conclude_search(SearchReplyV2(degraded=degraded))
    assert capsys.readouterr().err.splitlines() == lines


@pytest.mark.parametrize(
    ("hits", "degraded", "ending"),
    [
        ((HIT,), (), ExitCode.DONE),
        ((HIT,), ("messages",), ExitCode.DONE),
        ((), (), ExitCode.NEGATIVE_RESULT),
        ((), ("embedding", "reranker"), ExitCode.NEGATIVE_RESULT),
        ((), ("messages",), ExitCode.UNAVAILABLE),
    ],
)
def test_search_ends_by_its_hits(
    hits: tuple[SearchHitV2, ...], degraded: tuple[str, ...], ending: ExitCode
) -> None:
    assert facts._conclude_search(SearchReplyV2(hits=hits, degraded=degraded)) == ending
