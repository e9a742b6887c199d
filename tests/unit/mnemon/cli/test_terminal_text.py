"""Text on a terminal: control characters of messages do not reach it."""

from io import StringIO

import pytest
from rich.console import Console

from mnemon.chat.screen import ChatScreen
from mnemon.display_text import make_printable
from mnemon_contracts.verbs.tools import FactCandidate


def test_control_characters_are_replaced() -> None:
    assert make_printable("\x1b]52;c;aGk=\x07 \x9b31m a\rb") == "�]52;c;aGk=� �31m a�b"
    plain = "سلام می‌خواهم\tx\n\N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN}"
    assert make_printable(plain) == plain
    assert make_printable("a\r\nb") == "a\nb"


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
