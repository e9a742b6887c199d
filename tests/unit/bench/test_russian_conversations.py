"""The Russian conversations that `bench recall` uses by default."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mnemon.cli.app import app
from mnemon.cli.measurement import bench as command
from mnemon.cli.terminal.exit_code import ExitCode
from mnemon_bench.quality.recall import (
    ADVERSARIAL,
    CONVERSATION_LANGUAGES,
    RUSSIAN_CONVERSATIONS,
    LabelledConversations,
    load_conversations,
    load_russian_conversations,
)
from mnemon_contracts.events.chat import MessageV1

FILES = sorted(RUSSIAN_CONVERSATIONS.glob("*.json"))
CYRILLIC = re.compile("[а-яё]", re.IGNORECASE)

of_each_conversation = pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])


def load_sample(file: Path) -> dict[str, Any]:
    sample: dict[str, Any] = json.loads(file.read_bytes())
    return sample


def list_sessions(sample: dict[str, Any]) -> list[list[dict[str, str]]]:
    return [value for value in sample["conversation"].values() if isinstance(value, list)]


@of_each_conversation
def test_turns_have_known_speakers_and_ids_of_session_and_place(file: Path) -> None:
    sample = load_sample(file)
    sessions = list_sessions(sample)
    turns = [turn for session in sessions for turn in session]

    assert len(turns) >= 80
    speakers = sample["conversation"]["speaker_a"], sample["conversation"]["speaker_b"]
    assert {turn["speaker"] for turn in turns} == set(speakers)
    for number, session in enumerate(sessions, 1):
        assert sample["conversation"][f"session_{number}"] == session
        assert [turn["dia_id"] for turn in session] == [
            f"D{number}:{place}" for place in range(1, len(session) + 1)
        ]


@of_each_conversation
def test_every_question_has_evidence_that_exists(file: Path) -> None:
    sample = load_sample(file)
    known = {turn["dia_id"] for session in list_sessions(sample) for turn in session}

    for question in sample["qa"]:
        assert question["evidence"], question["question"]
        assert set(question["evidence"]) <= known, question["question"]
        assert (len(question["evidence"]) > 1) or question["category"] != 1, question["question"]


@pytest.mark.parametrize(
    ("name", "russian", "reworded", "english", "adversarial"),
    [("friends", 40, 40, 20, 10), ("relatives", 63, 41, 12, 14), ("assistant", 83, 49, 18, 20)],
)
def test_questions_are_of_all_kinds(
    name: str, russian: int, reworded: int, english: int, adversarial: int
) -> None:
    questions = load_conversations(RUSSIAN_CONVERSATIONS / f"{name}.json").questions
    categories = Counter(question.category for question in questions)

    counts = {
        language: sum(categories[each] for each in spoken)
        for language, spoken in CONVERSATION_LANGUAGES.items()
    }
    assert counts == {"russian": russian, "russian_reworded": reworded, "english": english}
    assert categories[ADVERSARIAL] == adversarial
    assert len({question.text for question in questions}) == len(questions)


def test_categories_tell_the_language_of_a_question() -> None:
    english = CONVERSATION_LANGUAGES["english"]

    for question in load_russian_conversations().questions:
        assert bool(CYRILLIC.search(question.text)) is (question.category not in english), question.text


@of_each_conversation
def test_turns_are_russian_and_sessions_in_order_of_time(file: Path) -> None:
    (conversation,) = load_conversations(file).conversations
    messages = [each.event for each in conversation.events if isinstance(each.event, MessageV1)]

    assert sum(bool(CYRILLIC.search(message.content)) for message in messages) > 0.9 * len(messages)
    times = [message.sent_at for message in messages if message.sent_at]
    assert len(times) == len(messages) == conversation.turns
    assert times == sorted(times)


def test_recall_without_data_uses_the_russian_conversations(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[LabelledConversations | None] = []

    async def run(name: command.BenchName, data: LabelledConversations | None, as_json: bool) -> ExitCode:
        measured.append(data)
        return ExitCode.DONE

    monkeypatch.setattr(command, "_run_bench", run)

    assert CliRunner().invoke(app, ["bench", "recall"]).exit_code == 0
    assert measured == [load_russian_conversations()]
    assert len(load_russian_conversations().conversations) == len(FILES) == 3


def test_bench_without_input_rejects_data(tmp_path: Path) -> None:
    outcome = CliRunner().invoke(app, ["bench", "publish", "--data", str(tmp_path)])

    assert outcome.exit_code == ExitCode.USAGE_ERROR
    assert "only the benches recall" in outcome.output
