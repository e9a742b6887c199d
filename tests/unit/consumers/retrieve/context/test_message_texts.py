"""Texts of messages as a model is shown them, in every format."""

from datetime import UTC, datetime

from mnemon_consumers.retrieve.context.contents import ContextMessage, build_messages
from mnemon_consumers.retrieve.context.wording import RUSSIAN
from mnemon_contracts.settings.groups import TimeStamps
from mnemon_infra.database.memory.user_memory import StoredRow


def row(seq: int, role: str, content: str, tools: list[dict[str, str]] | None = None) -> StoredRow:
    at = datetime(2026, 5, 1, 21, 30, tzinfo=UTC)
    return StoredRow._make((seq, f"e{seq}", role, content, None, None, tools, at))


def test_message_is_stamped_and_followed_by_the_tools_used() -> None:
    rows = [
        row(1, "user", "привет"),
        row(2, "assistant", "done", [{"name": "a"}, {"name": "b"}, {"name": "a"}]),
    ]
    moscow = TimeStamps(template="[Текущее время: {time}] {text}", zone="Europe/Moscow")
    assert build_messages(rows, moscow) == [
        ContextMessage("e1", "user", "[Текущее время: 2026-05-02 00:30] привет"),
        ContextMessage("e2", "assistant", "done"),
        ContextMessage("e2", "system", "Tools used: a, b"),
    ]
    assert build_messages(rows, TimeStamps(enabled=False))[0].text == "привет"


def test_of_an_answer_without_words_the_tools_are_named() -> None:
    rows = [row(1, "user", " "), row(2, "assistant", "", [{"name": "a"}]), row(3, "user", "hi")]
    assert [(each.id, each.text) for each in build_messages(rows, TimeStamps(enabled=False))] == [
        ("e2", "Tools used: a"),
        ("e3", "hi"),
    ]


def test_the_tools_used_are_named_in_the_language() -> None:
    rows = [row(1, "assistant", "готово", [{"name": "a"}, {"name": "b"}])]
    assert build_messages(rows, TimeStamps(), RUSSIAN)[1] == ContextMessage(
        "e1", "system", "Использованы инструменты: a, b"
    )
