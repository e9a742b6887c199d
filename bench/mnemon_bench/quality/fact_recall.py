"""Recall of a search of facts; `just measure-facts` runs it.

    uv run python -m mnemon_bench.quality.fact_recall

`fact_questions.json` has the facts of 26 invented users, about themselves and about other people, with
questions in other words than the facts. The search runs in this process, without a server.
"""

import asyncio
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Final, NamedTuple

from mnemon_bench.quality.in_process_search import IndexedItems, rank_with_links
from mnemon_consumers.retrieve.search.candidates import choose_breadth, select_relevant
from mnemon_consumers.retrieve.search.facts.persons import find_query_person
from mnemon_consumers.retrieve.search.fusion import QueryWords, fuse_rankings
from mnemon_consumers.retrieve.search.query.intent import QueryIntent
from mnemon_consumers.retrieve.search.term_statistics import TermStatistics
from mnemon_contracts.settings.groups import Retrieval
from mnemon_infra.database.facts.fact_repository import FactRecord
from mnemon_infra.models.embedders.wordllama import THRESHOLDS, load_wordllama
from mnemon_infra.vectors.texts import Texts

QUESTIONS: Final = Path(__file__).with_name("datasets") / "fact_questions.json"

NOW: Final = datetime(2026, 11, 29, tzinfo=UTC)
"""Time of the questions, and of all facts."""

DEPTHS: Final = (1, 3, 5)
"""Numbers of best facts over which recall is measured."""


class AnsweredQuestion(NamedTuple):
    """A question with the facts that answer it, and the facts that the search finds, best first.

    Attributes:
        split: `fitted` if the ranking was fitted on facts of this user, else `held-out`.
        language: language of the user, `en` or `ru`.
        text: the question.
        answers: the facts that answer the question; empty if there are none.
        found: the facts found, best first.
    """

    split: str
    language: str
    text: str
    answers: frozenset[str]
    found: Sequence[str]


class _InProcessFactSearch:
    """A search of the facts of one user."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._facts = [
            FactRecord(str(place), text, "user_fact", "profile", 5, None, NOW, NOW, place, str(place))
            for place, text in enumerate(texts)
        ]
        self._items = IndexedItems(
            [Texts(text, text) for text in texts], [{"fact_id": each.id} for each in self._facts]
        )

    def find_facts(self, query: str, statistics: TermStatistics) -> list[str]:
        """Return the texts of the facts found for a query, best first."""
        intent, breadth = QueryIntent(query, NOW), choose_breadth(max(DEPTHS))
        meaning = asyncio.run(load_wordllama().embed_query(query, None))
        hits = self._items.find_hits(intent.words, meaning, statistics, breadth.candidates)
        fused = fuse_rankings(*hits, breadth.candidates)
        found = {
            str(each.payload["fact_id"]): each
            for each in select_relevant(fused, query, THRESHOLDS.for_facts())[: breadth.facts]
        }
        words = QueryWords(query, statistics.weigh_words(intent.term_weights))
        person = find_query_person(query)
        _, ranked = rank_with_links(query, self._facts, found, words, Retrieval(), NOW, person)
        return [each.fact.text for each in ranked]


def answer_questions(data: Path = QUESTIONS) -> Iterator[AnsweredQuestion]:
    """Ask the questions about each user's facts, and yield them with the facts found."""
    users = json.loads(data.read_text(encoding="utf-8"))
    statistics = TermStatistics.from_texts([text for user in users for text in user["facts"]])
    for user in users:
        search = _InProcessFactSearch(user["facts"])
        for question in user["questions"]:
            query = question["text"]
            yield AnsweredQuestion(
                user["split"],
                user["language"],
                query,
                frozenset(question["answers"]),
                search.find_facts(query, statistics),
            )


def measure_recall(questions: Sequence[AnsweredQuestion]) -> dict[str, float]:
    """Return the mean share of the answers among the best facts at each depth, such as `recall@5`.

    Each question must have an answer.
    """
    return {
        f"recall@{depth}": fmean(
            len(each.answers.intersection(each.found[:depth])) / len(each.answers) for each in questions
        )
        for depth in DEPTHS
    }


def main() -> None:
    """Print the recall for each language and split, over the questions that have an answer."""
    groups: dict[tuple[str, str], list[AnsweredQuestion]] = defaultdict(list)
    for each in answer_questions():
        if each.answers:
            groups[each.language, each.split].append(each)
    for (language, split), questions in sorted(groups.items()):
        figures = "  ".join(f"{name} {figure:.3f}" for name, figure in measure_recall(questions).items())
        sys.stdout.write(f"{language}  {split:8}  {len(questions)} questions  {figures}\n")


if __name__ == "__main__":
    main()
