"""Parts of a search that failed, as `mnemon search` names them."""

import pytest

from mnemon.cli.memory import facts
from mnemon.cli.terminal.exit_code import ExitCode
from mnemon_contracts.verbs.tools import SearchReplyV2

BY_WORDS = "searched by words only: the query could not be embedded"
NOT_RERANKED = "hits not reranked: the reranker gave no usable answer"


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
    assert facts._conclude_search(SearchReplyV2(degraded=degraded)) == ExitCode.DONE
    assert capsys.readouterr().err.splitlines() == lines
