"""Text on a terminal: control characters of messages do not reach it."""

from datetime import UTC, datetime
from io import StringIO

import pytest
from rich.console import Console

from mnemon.chat.screen import ChatScreen
from mnemon.cli.documents.document_command import _show_documents
from mnemon.cli.memory.context import _show_context
from mnemon.cli.memory.facts import _show_item
from mnemon.cli.memory.history import _show_messages
from mnemon.cli.memory.profile import _show_profile
from mnemon.cli.memory.tasks import _show_tasks
from mnemon.cli.terminal.output import show_table
from mnemon.display_text import make_printable
from mnemon_contracts.verbs.ask import ContextReplyV1, HistoryReplyV1, ProfileReplyV1, StoredMessage
from mnemon_contracts.verbs.tools import (
    ConversationMessage,
    DocumentInfo,
    DocumentReplyV1,
    FactCandidate,
    GetReplyV1,
    Task,
    TasksReplyV1,
)


def test_control_characters_are_replaced() -> None:
    assert make_printable("\x1b]52;c;aGk=\x07 \x9b31m a\rb") == "�]52;c;aGk=� �31m a�b"
    plain = "سلام می‌خواهم\tx\n\N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN}"
    assert make_printable(plain) == plain
    assert make_printable("a\r\nb") == "a\nb"


def test_control_characters_of_names_and_texts_do_not_reach_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    outside, at = "x\x1b]0;y\x07", datetime(2026, 11, 22, tzinfo=UTC)
    said = StoredMessage(id="m", seq=1, role="user", content="hi", name=outside, sent_at=at)
    found = ConversationMessage.model_validate(said.model_dump() | {"conversation": "c"})
    _show_tasks(TasksReplyV1(seen_seq=1, tasks=(Task(task_id="t", text=outside),)))
    _show_profile(ProfileReplyV1(seen_seq=1, profile={outside: outside}))
    _show_documents(DocumentReplyV1(seen_seq=1, documents=(DocumentInfo(document_id="d", title=outside),)))
    _show_messages(HistoryReplyV1(seen_seq=1, conversation=outside, messages=(said,)), 1, None)
    _show_context(ContextReplyV1(seen_seq=1, tokens=1, messages=(said,)))
    _show_item(GetReplyV1(seen_seq=1, message=found))
    show_table(["model"], [[outside]])
    shown = capsys.readouterr().out
    assert shown.count("x\N{REPLACEMENT CHARACTER}]0;y\N{REPLACEMENT CHARACTER}") == 9
    assert make_printable(shown) == shown


def test_partial_character_does_not_end_the_chat() -> None:
    shown = StringIO()
    ChatScreen(Console(file=shown)).show_piece("half \ud83d \x1b[31m")
    assert shown.getvalue() == "half � �[31m"


@pytest.mark.parametrize(
    ("count", "hint"),
    [(1, "/forget 1 removes pf_000."), (2, "/forget 1 removes pf_000; other numbers remove the others.")],
)
def test_hint_below_candidates_names_other_numbers_only_if_there_are_others(count: int, hint: str) -> None:
    shown = StringIO()
    candidates = [FactCandidate(id=f"pf_{number:03}", text="x", score=0.5) for number in range(count)]
    ChatScreen(Console(file=shown)).show_candidates(candidates)
    assert shown.getvalue().splitlines()[-1] == hint
