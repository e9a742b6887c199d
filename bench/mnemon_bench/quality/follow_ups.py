"""Recall of follow-up questions with and without the messages before them; `just measure-follow-ups` runs it.

    uv run python -m mnemon_bench.quality.follow_ups [DATA ...]

The follow-ups of `follow_ups.json` ask about a Russian conversation that mnemon ships. Each DATA is a
file or a folder of conversations in the LoCoMo format. Its questions depend on no other message: each is
asked alone, and after an unrelated question about the same conversation, which should not change the recall.
"""

import argparse
import json
import random
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from mnemon_bench.quality.in_process_search import InProcessSearch, average_recall
from mnemon_bench.quality.recall import (
    ADVERSARIAL,
    RUSSIAN_CONVERSATIONS,
    LabelledConversations,
    load_conversations,
)

FOLLOW_UPS: Final = Path(__file__).with_name("datasets") / "follow_ups.json"
FRIENDS: Final = RUSSIAN_CONVERSATIONS / "friends.json"
"""The conversation that the questions of `FOLLOW_UPS` are about."""


class FollowUp(NamedTuple):
    """A question with the messages before it, oldest first, and the ids of the messages that answer it."""

    user: str
    question: str
    preceding: tuple[str, ...]
    evidence: frozenset[str]


def load_follow_ups() -> list[FollowUp]:
    """Load the follow-up questions about the conversation `FRIENDS`."""
    (conversation,) = load_conversations(FRIENDS).conversations
    user = conversation.events[0].user
    return [
        FollowUp(user, each["question"], tuple(each["preceding"]), frozenset(each["evidence"]))
        for each in json.loads(FOLLOW_UPS.read_bytes())
    ]


def list_unrelated_questions(data: LabelledConversations) -> list[FollowUp]:
    """Return the answerable questions, each after an unrelated question about the same conversation."""
    chance = random.Random(0)
    questions = [each for each in data.questions if each.category != ADVERSARIAL]
    unrelated = []
    for each in questions:
        others = [
            other.text
            for other in questions
            if other.user == each.user and other.evidence.isdisjoint(each.evidence)
        ]
        unrelated.append(FollowUp(each.user, each.text, (chance.choice(others),), each.evidence))
    return unrelated


def measure_recall(search: InProcessSearch, asked: Iterable[FollowUp]) -> dict[str, float]:
    """Return the mean recall of the questions at each depth, such as `recall@5`."""
    return average_recall(
        [(each.evidence, search.find_turns(each.user, each.question, each.preceding)) for each in asked]
    )


def main() -> None:
    """Print recall with and without preceding messages."""
    parser = argparse.ArgumentParser(
        description="Measure the recall of a search for follow-up questions: for each question alone, and "
        "for the question with the messages before it."
    )
    parser.add_argument(
        "data",
        type=Path,
        nargs="*",
        help="Conversations in the LoCoMo format: files, or folders of JSON files. Each answerable "
        "question is asked alone, and after an unrelated question. Default: none; only the follow-ups about "
        "a Russian conversation that mnemon ships are asked.",
    )
    sets = [("follow-ups", load_conversations(FRIENDS), load_follow_ups())]
    for path in parser.parse_args().data:
        data = load_conversations(path)
        sets.append((f"unrelated, {path.name}", data, list_unrelated_questions(data)))
    for name, data, asked in sets:
        search = InProcessSearch(data)
        alone = [each._replace(preceding=()) for each in asked]
        for title, questions in (("without", alone), ("with", asked)):
            values = measure_recall(search, questions)
            shown = "  ".join(f"{depth} {value:.3f}" for depth, value in values.items())
            sys.stdout.write(f"{name:24} {len(asked):5} {title:8} {shown}\n")


if __name__ == "__main__":
    main()
