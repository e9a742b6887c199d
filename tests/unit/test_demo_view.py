"""What the demo shows, and what it counts."""

import io
from datetime import UTC, datetime

import pytest
from rich.cells import cell_len
from rich.console import Console

from contracts.ask import RenderedMessage, StoredMessage
from mnemon.demo.report import DeadLetter, Duplicate, Remembered, Removed, Report
from mnemon.demo.view import Screen, show


def stored(content: str) -> StoredMessage:
    said_at = datetime(2026, 3, 2, tzinfo=UTC)
    return StoredMessage(role="user", content=content, seq=1, id="one", sent_at=said_at)


def report_of(*, kept: int) -> Report:
    return Report(
        published=30,
        log_events=29,
        kept={"anna": kept},
        discarded=[Removed(5, [stored(f"discarded {number}") for number in range(5)])],
        cleared=[Removed(2, [])],
        profile_changes=1,
        duplicates=[Duplicate("anna-1", "[bold]twice[/]")],
        dead_letters=[DeadLetter("chat.demo.anna.-.message.v1", "invalid_body", "role: wrong", "{[/]")],
        seconds={"events": 1.0, "total": 2.0},
        remembered=Remembered(
            context=[RenderedMessage(role="user", content="[red]Привет " * 40)],
            history=[stored("history")],
            profile={"allergies": ["penicillin", "nuts"], "дочь": {"имя": "Соня"}},
            cleared=[stored("afterwards")],
        ),
    )


def shown(report: Report, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    show(report, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100])
def test_it_fits_the_terminal(width: int) -> None:
    assert max(cell_len(line) for line in shown(report_of(kept=18), width).splitlines()) <= width


def test_texts_of_people_are_shown_as_they_are() -> None:
    screen = shown(report_of(kept=18), 100)
    for text in ("[red]Привет", "[bold]twice[/]", "{[/]", "penicillin, nuts", "имя: Соня", "discarded 3"):
        assert text in screen


def test_the_program_to_start_from_is_shown_whole_at_80_columns() -> None:
    screen = shown(report_of(kept=18), 80)
    assert 'memory.publish("u42", "user", "I live in Lisbon.")' in screen
    assert 'print(*context.messages, sep="\\n")' in screen


def test_it_says_whether_every_event_is_accounted_for() -> None:
    balanced, unbalanced = report_of(kept=18), report_of(kept=17)
    assert balanced.is_balanced
    assert "every event is accounted for" in shown(balanced, 80)
    assert not unbalanced.is_balanced
    assert "this is not all of them" in shown(unbalanced, 80)
    assert unbalanced.numbers()["balanced"] is False


def test_a_pipe_gets_lines_and_no_bars() -> None:
    console = Console(file=io.StringIO(), width=80)
    with Screen(console) as screen:
        screen.answers("PostgreSQL 18", 1.25)
        screen.published(1, of=2)
        screen.persisted(1, of=2)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().split() == ["✓", "PostgreSQL", "18", "1.2", "s"]
