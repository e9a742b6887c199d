"""Recall of the ranking of facts with and without links; `just measure-links` runs it.

    uv run python -m mnemon_bench.quality.link_recall DATA [DATA ...]

Each DATA is a file or a folder of conversations in the LoCoMo format. Their messages are ranked as if they
were facts of equal importance and age. The search runs in this process, without a server.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from mnemon_bench.quality.in_process_search import DEPTHS, InProcessSearch, average_recall, rank_with_links
from mnemon_bench.quality.recall import (
    ADVERSARIAL,
    LabelledConversations,
    LabelledQuestion,
    load_conversations,
    parse_turn_id,
)
from mnemon_consumers.retrieve.search.candidates import choose_breadth, select_relevant
from mnemon_consumers.retrieve.search.fusion import QueryWords
from mnemon_contracts.settings.groups import Retrieval
from mnemon_infra.database.facts.fact_repository import FactRecord
from mnemon_infra.database.messages.lookup import VisibleMessage
from mnemon_infra.models.embedders.wordllama import THRESHOLDS

SETTINGS: Final = Retrieval(decay=False)


class LinkedQuestion(NamedTuple):
    """A question with the ids of the turns that the ranking finds without and with links, best first."""

    question: LabelledQuestion
    without_links: Sequence[str]
    with_links: Sequence[str]


def rank_questions(data: LabelledConversations) -> Iterator[LinkedQuestion]:
    """Yield each question that has an answer, with the turns found without and with links."""
    search, breadth = InProcessSearch(data), choose_breadth(max(DEPTHS))
    facts = {
        user: [_convert_message(each) for each in conversation.messages]
        for user, conversation in search.conversations.items()
    }
    for question in data.questions:
        if question.category != ADVERSARIAL:
            intent = search.build_intent(question.user, question.text)
            candidates = search.find_candidates(question.user, intent, breadth)
            found = {
                str(each.payload["event_id"]): each
                for each in select_relevant(candidates, question.text, THRESHOLDS.for_facts())[
                    : breadth.facts
                ]
            }
            words = QueryWords(question.text, search.statistics.weigh_words(intent.term_weights))
            own = facts[question.user]
            rankings = rank_with_links(question.text, own, found, words, SETTINGS, own[-1].changed_at)
            turns = ([parse_turn_id(each.fact.id) for each in ranked] for ranked in rankings)
            yield LinkedQuestion(question, *turns)


def _convert_message(message: VisibleMessage) -> FactRecord:
    at, event_id = message.sent_at, message.event_id
    return FactRecord(
        event_id, message.content, "user_fact", "archive", 5, None, at, at, message.seq, event_id
    )


def main() -> None:
    """Print recall without and with links, for all questions of each data set and for each category."""
    parser = argparse.ArgumentParser(
        description="Measure the recall of the ranking of facts without and with links."
    )
    parser.add_argument(
        "data",
        type=Path,
        nargs="+",
        help="Conversations in the LoCoMo format: files, or folders of JSON files. Each path is a data set.",
    )
    for path in parser.parse_args().data:
        groups: dict[str, list[LinkedQuestion]] = defaultdict(list)
        for each in rank_questions(load_conversations(path)):
            groups["all"].append(each)
            groups[f"category {each.question.category}"].append(each)
        for name, questions in sorted(groups.items()):
            without = average_recall([(each.question.evidence, each.without_links) for each in questions])
            linked = average_recall([(each.question.evidence, each.with_links) for each in questions])
            figures = "  ".join(
                f"{depth} {figure:.3f} with links {linked[depth]:.3f}" for depth, figure in without.items()
            )
            sys.stdout.write(f"{path.name:10} {name:12} {len(questions):4} questions  {figures}\n")


if __name__ == "__main__":
    main()
