"""Tables of commands: on a narrow terminal, on a wide one, and in a pipe."""

import pytest
from rich.text import Text

from mnemon.cli.terminal.output import show_table

CONSUMER, TIME = "extract-batches", "2026-11-29T22:48:07Z"
ERROR = "the value of the field `content` must be a string, but is a number with a fraction"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    return monkeypatch


def read_lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line.rstrip() for line in Text.from_ansi(capsys.readouterr().out).plain.splitlines()]


def show_letter() -> None:
    show_table(("at", "consumer", "error"), [(TIME, CONSUMER, ERROR)], texts=("error",))


def test_a_pipe_gets_a_line_for_each_row(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    show_letter()
    head, line = read_lines(capsys)
    assert head.split() == ["at", "consumer", "error"]
    assert line == f"{TIME}  {CONSUMER}  {ERROR}"


@pytest.mark.usefixtures("terminal")
def test_a_terminal_folds_texts_and_keeps_names_whole(capsys: pytest.CaptureFixture[str]) -> None:
    show_letter()
    _, first, *rest = read_lines(capsys)
    assert first.startswith(f"{TIME}  {CONSUMER}  the value of ")
    assert max(map(len, (first, *rest))) <= 80
    begin = first.index("the value")
    assert " ".join(line[begin:].strip() for line in (first, *rest)) == ERROR


@pytest.mark.usefixtures("terminal")
def test_names_too_wide_for_a_terminal_stay_whole(capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"{CONSUMER}-{number}" for number in range(5)]
    show_table(("a", "b", "c", "d", "e"), [names])
    assert read_lines(capsys)[1] == "  ".join(names)


def test_texts_without_room_are_not_folded(
    terminal: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal.setenv("COLUMNS", "50")
    show_letter()
    assert read_lines(capsys)[1] == f"{TIME}  {CONSUMER}  {ERROR}"
