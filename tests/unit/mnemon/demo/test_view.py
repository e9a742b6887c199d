"""Texts and counts of the demo."""

import io
from datetime import UTC, datetime

import pytest
from rich.cells import cell_len
from rich.console import Console

from mnemon.demo.report import (
    BotReplies,
    DemoFacts,
    DemoReport,
    DemoSearch,
    DuplicateMessage,
    ForgottenFact,
    ProposedText,
    RemovedMessages,
)
from mnemon.demo.view import DemoScreen, show_report
from mnemon_contracts.events.memory import (
    Decision,
    Fact,
    FactConfirmedV1,
    FactRejectedV1,
    FactSavedV1,
    FactUpdatedV1,
)
from mnemon_contracts.verbs.ask import ContextReplyV1, RenderedMessage, StoredMessage
from mnemon_contracts.verbs.tools import SearchHit, StoredFact
from mnemon_infra.broker.dead_letters.listing import Letter

LETTER = Letter(
    id=1,
    at=datetime(2026, 3, 2, tzinfo=UTC),
    consumer="persist",
    reason="invalid_body",
    error="role: wrong",
    subject="chat.demo.anna.-.message.v1",
    stream="LOG",
    sequence=7,
    left_out=None,
    headers={},
    body=b"{[/]",
)


def stored(content: str) -> StoredMessage:
    said_at = datetime(2026, 3, 2, tzinfo=UTC)
    return StoredMessage(role="user", content=content, seq=1, id="one", sent_at=said_at)


def facts() -> DemoFacts:
    likes, is_fond = Fact(text="Likes [b]tea[/b]", tier="profile"), Fact(text="Is fond of tea")
    by_words = Decision(proposal_id="p")
    by_meaning = Decision(
        proposal_id="p",
        nearest="pf_001",
        relation="update",
        evidence="the newer fact says that the older one has ended",
    )
    return DemoFacts(
        proposed=[
            ProposedText("anna", likes.text, FactSavedV1(fact_id="pf_001", fact=likes, decision=by_words)),
            ProposedText(
                "anna", "[what]?", FactRejectedV1(proposal_id="p", reason="question", detail="It asks.")
            ),
            ProposedText("anna", "Likes tea.", FactConfirmedV1(fact_id="pf_001", decision=by_words)),
            ProposedText(
                "anna",
                is_fond.text,
                FactUpdatedV1(fact_id="pf_001", fact=is_fond, former=likes, decision=by_meaning),
            ),
            ProposedText("anna", "Is not", FactUpdatedV1(fact_id="pf_001", fact=likes, former=is_fond)),
        ],
        forgotten=ForgottenFact("anna", "boats", StoredFact(id="ar_001", text="Has a [boat]"), seen_seq=9),
        kept={"anna": [StoredFact(id="pf_001", text="Is left")]},
        searches=[
            DemoSearch("anna", "tea", "memories", []),
            DemoSearch(
                "anna", "ferries", "messages", [SearchHit(id="m", scope="messages", text="[9]", score=0.5)]
            ),
        ],
        context=ContextReplyV1(text="<key_facts>\n- [x] Is fond of tea\n</key_facts>", tokens=12),
    )


def report_of(*, kept: int) -> DemoReport:
    return DemoReport(
        published=30,
        log_events=29,
        kept={"anna": kept},
        discarded=[RemovedMessages(5, [stored(f"discarded {number}") for number in range(5)])],
        cleared=[RemovedMessages(2, [])],
        profile_changes=1,
        duplicates=[DuplicateMessage("anna-1", "[bold]twice[/]")],
        dead_letters=[LETTER],
        seconds={"events": 1.0, "facts": 0.5, "total": 2.0},
        facts=facts(),
        replies=BotReplies(
            context=[RenderedMessage(role="user", content="[red]Привет " * 40)],
            history=[stored("history")],
            profile={"allergies": ["penicillin", "nuts"], "дочь": {"имя": "Соня"}},
            cleared=[stored("afterwards")],
        ),
    )


def shown(report: DemoReport, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    show_report(report, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100])
def test_demo_output_fits_the_terminal(width: int) -> None:
    assert max(cell_len(line) for line in shown(report_of(kept=18), width).splitlines()) <= width


def test_texts_of_people_are_shown_as_they_are() -> None:
    screen = shown(report_of(kept=18), 100)
    for text in ("[red]Привет", "[bold]twice[/]", "{[/]", "penicillin, nuts", "имя: Соня", "discarded 3"):
        assert text in screen
    for text in ("Likes [b]tea[/b]", "[what]?", "Has a [boat]", "[9]", "- [x] Is fond of tea"):
        assert text in screen


def test_decision_is_shown_with_its_evidence() -> None:
    screen = shown(report_of(kept=18), 100)
    for text in (
        "5 facts proposed, 1 kept",
        "rejected   question   [what]?",
        "was “Likes [b]tea[/b]”; the newer fact says that the older one has ended",
        "was “Is fond of tea”; changed by `update`",
        'await memory.search("anna", "ferries", scope=["messages"])',
        "12 tokens",
    ):
        assert text in screen


def test_long_call_is_shown_whole() -> None:
    words = " ".join(shown(report_of(kept=18), 60).split())
    assert 'await memory.search("anna", "ferries", scope=["messages"])' in words
    assert "…" not in words


def test_seconds_of_all_steps_are_aligned() -> None:
    console = Console(file=io.StringIO(), width=80)
    screen = DemoScreen(console)
    screen.report_start("nats-server 2.15.1, PostgreSQL 18, vectors: qdrant 1.19.0", 3.0)
    screen.report_start("consumers", 6.3)
    assert isinstance(console.file, io.StringIO)
    first, second = console.file.getvalue().splitlines()
    assert first.index("3.0 s") == second.index("6.3 s")


def test_the_program_to_start_from_is_shown_whole_at_80_columns() -> None:
    screen = shown(report_of(kept=18), 80)
    assert 'memory.publish("u42", "user", "I live in Lisbon.")' in screen
    assert 'print(f"{message.role}: {message.content}")' in screen


def test_demo_report_names_missing_events() -> None:
    balanced, unbalanced = report_of(kept=18), report_of(kept=17)
    assert balanced.is_balanced
    assert "every event is accounted for" in shown(balanced, 80)
    assert not unbalanced.is_balanced
    assert "some events are not accounted for" in shown(unbalanced, 80)
    assert unbalanced.to_json()["balanced"] is False


def test_a_pipe_gets_lines_and_no_bars() -> None:
    console = Console(file=io.StringIO(), width=80)
    with DemoScreen(console) as screen:
        screen.report_start("PostgreSQL 18", 1.25)
        screen.report_published(1, of=2)
        screen.report_persisted(1, of=2)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().split() == ["✓", "PostgreSQL", "18", "1.2", "s"]
