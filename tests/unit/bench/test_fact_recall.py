"""Recall of the search for facts."""

import json
from pathlib import Path

from mnemon_bench.quality.fact_recall import answer_questions, measure_recall


def test_facts_that_answer_a_question_count_as_found(tmp_path: Path) -> None:
    file = tmp_path / "questions.json"
    facts = ["I drive a Skoda", "My brother has a Toyota", "Likes tea"]
    questions = [
        {"text": "What's my car?", "answers": ["I drive a Skoda"]},
        {"text": "What do I drink?", "answers": ["Likes tea"]},
        {"text": "Where is the station?", "answers": []},
    ]
    user = {"user": "u", "split": "fitted", "language": "en", "facts": facts, "questions": questions}
    file.write_text(json.dumps([user]), encoding="utf-8")

    car, drink, station = answer_questions(file)

    assert car.found[:2] == ["I drive a Skoda", "My brother has a Toyota"]
    assert measure_recall([car, drink]) == {"recall@1": 1.0, "recall@3": 1.0, "recall@5": 1.0}
    assert station.answers == frozenset()


def test_each_answer_of_the_questions_of_mnemon_is_a_fact_of_the_user() -> None:
    data = Path(__file__).parents[3] / "bench/mnemon_bench/quality/datasets/fact_questions.json"
    for user in json.loads(data.read_text(encoding="utf-8")):
        assert {answer for each in user["questions"] for answer in each["answers"]} <= set(user["facts"])
