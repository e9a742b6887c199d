"""Recall of facts with and without links."""

import json
from pathlib import Path

from mnemon_bench.quality.link_recall import rank_questions
from mnemon_bench.quality.recall import load_conversations

SAID = (
    "Rex is a Labrador",
    "My sister got a dog named Rex",
    "The kitchen needs new paint",
    "Runs five kilometres every day",
)


def test_turn_that_only_a_name_leads_to_is_found_with_links(tmp_path: Path) -> None:
    turns = [
        {"speaker": "Boris", "dia_id": f"D1:{number}", "text": text} for number, text in enumerate(SAID, 1)
    ]
    sample = {
        "sample_id": "s1",
        "conversation": {
            "speaker_a": "Boris",
            "speaker_b": "Nora",
            "session_1": turns,
            "session_1_date_time": "1:56 pm on 8 May, 2023",
        },
        "qa": [
            {"question": "Which one did my sister choose?", "evidence": ["D1:1"], "category": 1},
            {"question": "Which car did my sister choose?", "evidence": ["D1:1"], "category": 5},
        ],
    }
    file = tmp_path / "conversation.json"
    file.write_text(json.dumps(sample), encoding="utf-8")

    (ranked,) = rank_questions(load_conversations(file))

    assert ranked.without_links[0] == "D1:2"
    assert "D1:1" not in ranked.without_links
    assert set(ranked.with_links[:2]) == {"D1:1", "D1:2"}
