"""Recall of follow-up questions with and without the messages before them, computed in this process.

    uv run python -m mnemon_bench.quality.follow_ups [DATA ...]

The follow-ups of `follow_ups.json` ask about the Russian conversation that mnemon contains. Each DATA is a
folder of conversations in the form of LoCoMo. Its questions stand by themselves: each is asked alone, and
after an unrelated message of the same conversation, which should change nothing.
"""

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from mnemon_bench.quality.ranking_fit import Conversation, read_messages
from mnemon_bench.quality.recall import ADVERSARIAL, Data, load_data, load_dialogue, turn_id
from mnemon_consumers.retrieve.search.candidates import choose_breadth
from mnemon_consumers.retrieve.search.fusion import fuse_rankings
from mnemon_consumers.retrieve.search.query.follow_up import mix_vectors
from mnemon_consumers.retrieve.search.query.intent import QueryIntent
from mnemon_consumers.retrieve.search.rerank import rerank_messages
from mnemon_consumers.retrieve.search.service import EMBEDDED_ANTECEDENTS
from mnemon_consumers.retrieve.search.term_statistics import TermStatistics
from mnemon_infra.models import concepts
from mnemon_infra.models.embedding import Dense
from mnemon_infra.models.wordllama import load_wordllama

FOLLOW_UPS: Final = Path(__file__).with_name("follow_ups.json")
DEPTHS: Final = (5, 10)


class FollowUp(NamedTuple):
    """A question with the messages before it, oldest first, and the ids of the turns that answer it."""

    user: str
    question: str
    preceding: tuple[str, ...]
    evidence: frozenset[str]


class InProcessSearch:
    """A search of the messages of some conversations, without a server."""

    def __init__(self, data: Data) -> None:
        """Index the conversations."""
        said = {each.events[0].user: list(read_messages(each.events)) for each in data.conversations}
        self.conversations = {user: Conversation(messages) for user, messages in said.items()}
        texts = [
            ": ".join(filter(None, (each.name, each.content)))
            for each_said in said.values()
            for each in each_said
        ]
        self._tokens = asyncio.run(load_wordllama().statistics(texts))
        self._indexed = TermStatistics.of_terms(
            [sparse.indices for each in self.conversations.values() for sparse in each.sparse]
        )
        self._statistics = TermStatistics.of_texts(texts)

    def find(self, user: str, question: str, preceding: Sequence[str]) -> list[str]:
        """Return the ids of the best turns for a question, best first."""
        conversation, breadth = self.conversations[user], choose_breadth(max(DEPTHS))
        intent = QueryIntent(question, conversation.messages[-1].sent_at, tuple(preceding))
        weights = intent.term_weights
        words, meaning = concepts.add_to_query(weights), asyncio.run(self._embed(intent))
        by_words, by_meaning = conversation.find(words, meaning, self._indexed, breadth.candidates)
        fused = fuse_rankings(by_words, by_meaning, breadth.candidates)[: breadth.reranked]
        found = {str(each.payload["event_id"]): each for each in fused}
        around = conversation.surround(tuple(found), breadth.anchors)
        statistics = self._statistics._replace(weights=weights)
        matches = conversation.match(intent.resolved_text, around.messages, self._tokens)
        ranked = rerank_messages(found, around, intent, statistics, matches, max(DEPTHS))
        return [turn_id(each.message.event_id) for each in ranked]

    async def _embed(self, intent: QueryIntent) -> Dense:
        model, antecedents = load_wordllama(), intent.antecedents[:EMBEDDED_ANTECEDENTS]
        vectors = [
            (await model.embed_query(antecedent.text, self._tokens), antecedent.weight)
            for antecedent in antecedents
        ]
        return mix_vectors(await model.embed_query(intent.text, self._tokens), vectors)


def load_follow_ups() -> list[FollowUp]:
    """Load the follow-up questions about the Russian conversation."""
    (conversation,) = load_dialogue().conversations
    user = conversation.events[0].user
    return [
        FollowUp(user, each["question"], tuple(each["preceding"]), frozenset(each["evidence"]))
        for each in json.loads(FOLLOW_UPS.read_bytes())
    ]


def list_unrelated(data: Data, seed: int = 0) -> Iterator[FollowUp]:
    """Yield the questions of some conversations, each after an unrelated question of the same user."""
    chance = random.Random(seed)
    questions = [each for each in data.questions if each.category != ADVERSARIAL]
    for each in questions:
        others = [
            other.text
            for other in questions
            if other.user == each.user and other.evidence.isdisjoint(each.evidence)
        ]
        yield FollowUp(each.user, each.text, (chance.choice(others),), each.evidence)


def measure_recall(search: InProcessSearch, asked: Iterable[FollowUp]) -> dict[str, float]:
    """Return the mean recall at each depth."""
    recalls: dict[str, list[float]] = {f"recall@{depth}": [] for depth in DEPTHS}
    for each in asked:
        turns = search.find(each.user, each.question, each.preceding)
        for depth in DEPTHS:
            found = each.evidence.intersection(turns[:depth])
            recalls[f"recall@{depth}"].append(len(found) / len(each.evidence))
    return {name: float(np.mean(values)) for name, values in recalls.items()}


def main() -> None:
    """Print recall with and without preceding messages."""
    parser = argparse.ArgumentParser(description="Measure follow-up questions.")
    parser.add_argument("data", type=Path, nargs="*", help="Folders of conversations in the form of LoCoMo.")
    sets = [("follow-ups", load_dialogue(), load_follow_ups())]
    for path in parser.parse_args().data:
        data = load_data(path)
        sets.append((f"unrelated, {path.name}", data, list(list_unrelated(data))))
    for name, data, asked in sets:
        search = InProcessSearch(data)
        alone = [each._replace(preceding=()) for each in asked]
        for title, questions in (("without", alone), ("with", asked)):
            values = measure_recall(search, questions)
            shown = "  ".join(f"{depth} {value:.3f}" for depth, value in values.items())
            sys.stdout.write(f"{name:24} {len(asked):5} {title:8} {shown}\n")


if __name__ == "__main__":
    main()
