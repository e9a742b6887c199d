"""Recall of follow-up questions about a Russian conversation that mnemon contains."""

import re

import pytest

from mnemon_bench.quality.follow_ups import (
    FRIENDS,
    list_unrelated_questions,
    load_follow_ups,
    measure_recall,
)
from mnemon_bench.quality.in_process_search import InProcessSearch
from mnemon_bench.quality.recall import load_conversations

CYRILLIC = re.compile("[а-яё]", re.IGNORECASE)
REPLIES = {
    True: "Да, я помню этот разговор. Судя по сообщениям, друзья потом ещё несколько раз возвращались к этой "
    "теме. Могу поискать подробности: скажите, какие сведения нужны, имена людей, названия мест или суммы.",
    False: "Yes, I remember that conversation. From the messages it seems that the friends came back to the "
    "topic several times later. I can look up details: tell me which ones you need: names, places, amounts.",
}


@pytest.fixture(scope="module")
def search() -> InProcessSearch:
    return InProcessSearch(load_conversations(FRIENDS))


@pytest.mark.parametrize("is_russian", [True, False])
def test_preceding_messages_find_what_follow_ups_are_about(search: InProcessSearch, is_russian: bool) -> None:
    asked = [each for each in load_follow_ups() if bool(CYRILLIC.search(each.question)) is is_russian]
    assert len(asked) >= 10

    alone = measure_recall(search, [each._replace(preceding=()) for each in asked])
    together = measure_recall(search, asked)

    assert together["recall@5"] >= alone["recall@5"] + 0.25


def test_a_long_reply_in_between_does_not_hide_the_topic(search: InProcessSearch) -> None:
    asked = load_follow_ups()
    answered = [
        each._replace(preceding=(*each.preceding, REPLIES[bool(CYRILLIC.search(each.question))]))
        for each in asked
    ]

    assert measure_recall(search, answered)["recall@10"] >= 0.8


@pytest.mark.long
def test_unrelated_messages_change_no_question_that_stands_by_itself(search: InProcessSearch) -> None:
    asked = list_unrelated_questions(load_conversations(FRIENDS))

    alone = measure_recall(search, [each._replace(preceding=()) for each in asked])
    together = measure_recall(search, asked)

    assert together["recall@10"] >= alone["recall@10"] - 0.01
