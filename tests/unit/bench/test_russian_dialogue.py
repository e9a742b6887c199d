"""The Russian conversation that `bench recall` uses by default."""

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
    DIALOGUE,
    DIALOGUE_LANGUAGES,
    LabelledConversations,
    load_dialogue,
)
from mnemon_contracts.events.chat import MessageV1

SAMPLE: dict[str, Any] = json.loads(DIALOGUE.read_bytes())
CYRILLIC = re.compile("[а-яё]", re.IGNORECASE)


def list_turns() -> list[dict[str, str]]:
    sessions = [value for value in SAMPLE["conversation"].values() if isinstance(value, list)]
    return [turn for session in sessions for turn in session]


def test_turns_have_unique_ids_and_known_speakers() -> None:
    turns = list_turns()

    assert len(turns) == len({turn["dia_id"] for turn in turns}) >= 80
    speakers = SAMPLE["conversation"]["speaker_a"], SAMPLE["conversation"]["speaker_b"]
    assert {turn["speaker"] for turn in turns} == set(speakers)


def test_turn_ids_name_session_and_place() -> None:
    for number in range(1, 10):
        session = SAMPLE["conversation"][f"session_{number}"]
        assert [turn["dia_id"] for turn in session] == [
            f"D{number}:{place}" for place in range(1, len(session) + 1)
        ]


def test_every_question_has_evidence_that_exists() -> None:
    known = {turn["dia_id"] for turn in list_turns()}

    for question in SAMPLE["qa"]:
        assert question["evidence"], question["question"]
        assert set(question["evidence"]) <= known, question["question"]
        assert (len(question["evidence"]) > 1) or question["category"] != 1, question["question"]


def test_questions_are_80_russian_20_english_and_10_without_answer() -> None:
    data = load_dialogue()
    categories = Counter(question.category for question in data.questions)

    counts = {
        language: sum(categories[each] for each in spoken) for language, spoken in DIALOGUE_LANGUAGES.items()
    }
    assert counts == {"russian": 40, "russian_reworded": 40, "english": 20}
    assert categories[ADVERSARIAL] == 10
    assert len({question.text for question in data.questions}) == 110


def test_categories_tell_the_language_of_a_question() -> None:
    english = DIALOGUE_LANGUAGES["english"]

    for question in load_dialogue().questions:
        assert bool(CYRILLIC.search(question.text)) is (question.category not in english), question.text


def test_turns_are_russian_and_sessions_in_order_of_time() -> None:
    (conversation,) = load_dialogue().conversations
    messages = [each.event for each in conversation.events if isinstance(each.event, MessageV1)]

    assert all(CYRILLIC.search(message.content) for message in messages)
    times = [message.sent_at for message in messages if message.sent_at]
    assert len(times) == len(messages) == conversation.turns
    assert times == sorted(times)


def test_recall_without_data_uses_the_dialogue(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[LabelledConversations | None] = []

    async def run(name: command.BenchName, data: LabelledConversations | None, as_json: bool) -> ExitCode:
        measured.append(data)
        return ExitCode.DONE

    monkeypatch.setattr(command, "_run_bench", run)

    assert CliRunner().invoke(app, ["bench", "recall"]).exit_code == 0
    assert measured == [load_dialogue()]


def test_bench_without_input_rejects_data(tmp_path: Path) -> None:
    outcome = CliRunner().invoke(app, ["bench", "publish", "--data", str(tmp_path)])

    assert outcome.exit_code == ExitCode.USAGE_ERROR
    assert "only the benches recall" in outcome.output
