"""Lines of `mnemon history` and `mnemon context`: messages, and entries that are not shown."""

from datetime import UTC, datetime

import pytest

from mnemon.cli.memory.context import _show_context
from mnemon.cli.memory.history import _show_messages
from mnemon_contracts.verbs.ask import ContextReplyV1, HistoryReplyV1, RenderedMessage, StoredMessage

MESSAGE = StoredMessage(role="user", content="hi", seq=5, id="e5", sent_at=datetime(2026, 1, 1, tzinfo=UTC))


def test_entries_left_out_are_not_called_messages(capsys: pytest.CaptureFixture[str]) -> None:
    _show_messages(HistoryReplyV1(conversation="c1", messages=(MESSAGE,), left_out=10), 30, None)
    shown = capsys.readouterr()
    assert "10 older entries left out: a reply has no room for more." in shown.out
    assert shown.err == "older messages, if there are any: --conversation c1 --before 5\n"


def test_options_of_older_messages_repeat_the_moment(capsys: pytest.CaptureFixture[str]) -> None:
    _show_messages(HistoryReplyV1(conversation="c1", messages=(MESSAGE,)), 1, "2026-01-02 10:00:00")
    assert capsys.readouterr().err.endswith("--conversation c1 --before 5 --as-of '2026-01-02 10:00:00'\n")


def test_older_messages_may_exist_if_an_entry_with_tools_has_no_room() -> None:
    reply = HistoryReplyV1(messages=(MESSAGE,))
    assert [reply.may_have_older_messages(limit) for limit in (1, 2, 3)] == [True, True, False]
    assert reply.model_copy(update={"left_out": 1}).may_have_older_messages(3)


def test_further_lines_of_a_message_are_indented(capsys: pytest.CaptureFixture[str]) -> None:
    long = MESSAGE.model_copy(update={"content": "Two things:\n- one\n- two"})
    _show_messages(HistoryReplyV1(messages=(long,)), 30, None)
    _show_context(ContextReplyV1(messages=(RenderedMessage(role="system", content="Key facts:\n- one"),)))
    assert capsys.readouterr().out.splitlines()[1:] == [
        "2026-01-01 00:00        user  Two things:",
        "                              - one",
        "                              - two",
        "    system  Key facts:",
        "            - one",
    ]
