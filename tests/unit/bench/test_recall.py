"""Questions that `bench recall` reads, and its measures of the turns found."""

import json
from pathlib import Path
from typing import Any

import pytest

from mnemon_bench.quality.recall import (
    LabelledConversations,
    LabelledQuestion,
    RankedTurns,
    compute_hit_rates,
    compute_recall,
    compute_reciprocal_rank,
    load_conversations,
    reassign_questions,
    summarise_method,
)
from mnemon_producers.locomo import NotLocomo


def sample(**changes: Any) -> dict[str, Any]:
    turns = [
        {"speaker": "Anna", "dia_id": "D1:1", "text": "Hello"},
        {"speaker": "Boris", "dia_id": "D1:2", "text": "Hi"},
    ]
    conversation = {
        "speaker_a": "Anna",
        "speaker_b": "Boris",
        "session_1": turns,
        "session_1_date_time": "1:56 pm on 8 May, 2023",
    }
    questions = [
        {"question": "Who?", "evidence": ["D1:1; D1:2", "D9:9"], "category": 1},
        {"question": "What?", "evidence": ["D9:9"], "category": 2},
        {"question": "Why?", "evidence": [], "category": 3},
    ]
    return {"sample_id": "talk", "conversation": conversation, "qa": questions} | changes


def test_only_evidence_that_exists_counts(tmp_path: Path) -> None:
    (tmp_path / "talk.json").write_text(json.dumps(sample()))
    (tmp_path / "notes.txt").write_text("nothing")

    data = load_conversations(tmp_path)

    assert [each.turns for each in data.conversations] == [2]
    assert data.questions == [LabelledQuestion("talk", "Who?", frozenset({"D1:1", "D1:2"}), 1)]
    assert load_conversations(tmp_path / "talk.json") == data


def test_a_file_without_questions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "talk.json").write_text(json.dumps(sample(qa=[])))

    with pytest.raises(NotLocomo, match="no question names turns of its conversation"):
        load_conversations(tmp_path)


def test_recall_and_reciprocal_rank_follow_from_found_evidence() -> None:
    evidence = frozenset({"D1:1", "D1:2"})

    assert compute_recall(evidence, ["D1:3", "D1:2"]) == 0.5
    assert compute_reciprocal_rank(evidence, ["D1:3", "D1:2", "D1:1"]) == 0.5
    assert compute_reciprocal_rank(evidence, []) == 0.0


def test_questions_without_an_answer_count_apart() -> None:
    found = RankedTurns(LabelledQuestion("talk", "Who?", frozenset({"D1:1"}), 4), ["D1:1"], 0.002)
    missed = RankedTurns(LabelledQuestion("talk", "Why?", frozenset({"D1:2"}), 1), ["D1:1"], 0.004)
    adversarial = RankedTurns(LabelledQuestion("talk", "Not?", frozenset({"D1:2"}), 5), [], 0.003)

    counted = summarise_method([found, missed, adversarial])

    assert (counted["recall@5"], counted["hit@10"], counted["mrr"], counted["questions"]) == (
        0.5,
        0.5,
        0.5,
        2,
    )
    assert counted["categories"]["5"]["recall@20"] == 0.0
    assert counted["milliseconds"]["p50"] == 3.0


def test_languages_count_separately() -> None:
    russian = RankedTurns(LabelledQuestion("talk", "Кто?", frozenset({"D1:1"}), 4), ["D1:1"], 0.002)
    english = RankedTurns(LabelledQuestion("talk", "Who?", frozenset({"D1:1"}), 3), ["D1:2"], 0.002)

    counted = summarise_method([russian, english], {"russian": frozenset({1, 4}), "english": frozenset({3})})

    found = {
        language: (part["recall@5"], part["questions"]) for language, part in counted["languages"].items()
    }
    assert found == {"russian": (1.0, 1), "english": (0.0, 1)}


def test_questions_are_asked_in_another_conversation_unless_there_is_only_one() -> None:
    questions = [
        LabelledQuestion(user, f"Question {number} of {user}", frozenset({"D1:1"}), category)
        for user in ("u1", "u2", "u3")
        for number, category in enumerate((1, 4, 5))
    ]
    chosen = reassign_questions(LabelledConversations([], questions))
    assert len({each.text for each in chosen}) == len(chosen) == 6, "the adversarial ones are left out"
    assert all(each.user not in each.text for each in chosen)
    assert chosen == reassign_questions(LabelledConversations([], questions)), "each run asks the same"
    assert reassign_questions(LabelledConversations([], questions[:3])) == []


def test_hit_rates_of_unanswerable_questions_have_the_kinds_that_were_asked() -> None:
    def ask(category: int, *turns: str) -> RankedTurns:
        return RankedTurns(LabelledQuestion("talk", "Who?", frozenset({"D1:1"}), category), turns, 0.002)

    answered = [ask(1, "D1:1"), ask(5, "D1:2"), ask(5), ask(5), ask(5)]
    assert compute_hit_rates(answered) == {"adversarial": 0.25}
    assert compute_hit_rates(answered[:1], [ask(1, "D1:3"), ask(2)]) == {"other_conversation": 0.5}
    assert compute_hit_rates(answered[:1]) == {}
