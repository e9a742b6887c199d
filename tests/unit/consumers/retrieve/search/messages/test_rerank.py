"""Messages ranked by a weighted sum of their features."""

from datetime import timedelta

import pytest

from mnemon_consumers.retrieve.search.messages.message_features import MessageFeatures
from mnemon_consumers.retrieve.search.messages.rerank import (
    ScoredMessage,
    explain_score,
    list_best_messages,
    load_weights,
    score_messages,
)
from mnemon_consumers.retrieve.search.query.intent import QueryIntent
from mnemon_consumers.retrieve.search.term_statistics import NO_STATISTICS
from mnemon_infra.database.messages.lookup import Surroundings
from tests.unit.consumers.retrieve.search.messages.test_message_features import around, found, said


def rank(
    scores: dict[str, float], surroundings: Surroundings, query: str = "?", limit: int = 100
) -> list[ScoredMessage]:
    candidates = {name: found(score) for name, score in scores.items()}
    return list_best_messages(
        score_messages(candidates, surroundings, QueryIntent(query), NO_STATISTICS, {}), limit
    )


def places(ranked: list[ScoredMessage]) -> list[int]:
    return [each.message.seq for each in ranked]


def test_parts_add_up_to_the_score() -> None:
    messages = said(1, "Is Anna's dog here?"), said(2, "Yes, since last week.", name="Anna")
    ranked = rank({"e1": 0.6, "e2": 0.5}, around(*messages), "When did Anna's dog come?")

    assert len(ranked) == 2
    for each in ranked:
        parts = explain_score(each.features)
        assert each.score == pytest.approx(sum(parts.values()))
        assert all(parts.values()), "a feature that does not apply has no part"
        assert set(parts) <= set(MessageFeatures._fields)


def test_message_of_the_named_speaker_ranks_first() -> None:
    messages = [said(1, name="Anna"), said(2, name="Boris"), said(3, "You did well!", name="Anna")]
    ranked = rank({"e1": 0.5, "e2": 0.7, "e3": 0.5}, around(*messages, together=False), "What does Anna do?")
    assert places(ranked)[0] == 1


def test_question_of_the_user_prefers_the_users_own_words() -> None:
    messages = around(said(1, role="assistant"), said(2), together=False)
    scores = {"e1": 0.6, "e2": 0.5}

    assert places(rank(scores, messages, "What did I say?"))[0] == 2
    assert places(rank(scores, messages, "Что я говорил?"))[0] == 2
    assert places(rank(scores, messages, "What was said?"))[0] == 1


def test_answer_ranks_above_other_neighbours_of_the_question() -> None:
    messages = said(1), said(2, "And the dog, what is it called?"), said(3, "Rex."), said(4, "fine")
    assert places(rank({"e2": 1.0}, around(*messages))) == [2, 3, 1, 4]


def test_newer_message_comes_first_of_equals_and_limit_cuts() -> None:
    messages = around(said(1, "one"), said(2, "two"), said(3, "three"), together=False)
    scores = dict.fromkeys(("e1", "e2", "e3"), 0.5)

    assert places(rank(scores, messages)) == [3, 2, 1]
    assert places(rank(scores, messages, limit=2)) == [3, 2]


def test_repeated_message_is_ranked_once_and_the_next_one_fills_the_limit() -> None:
    texts = "I like tea", "I like tea!", "I don't like tea", "Tea is served"
    messages = [said(seq, text) for seq, text in enumerate(texts, 1)]
    other = said(5, "I like tea", role="assistant")
    scores = {"e1": 0.9, "e2": 0.8, "e3": 0.7, "e4": 0.6, "e5": 0.5}

    ranked = rank(scores, around(*messages, other, together=False), "tea", limit=4)
    assert len(ranked) == 4
    assert len({1, 2}.intersection(places(ranked))) == 1
    assert {3, 4, 5} < set(places(ranked)), "the assistant does not speak for the user"


def test_restated_message_is_shown_with_its_newest_time() -> None:
    texts = "I live in Paris", "I live in Berlin", "I live in Paris"
    messages = [said(seq, text) for seq, text in enumerate(texts, 1)]
    scores = dict.fromkeys(("e1", "e2", "e3"), 0.5)
    assert places(rank(scores, around(*messages, together=False), "Where do I live?")) == [3, 2]


def test_correction_is_not_below_many_messages_with_the_same_words() -> None:
    messages = [said(seq, f"I live in Paris, {place}") for seq, place in enumerate("abcdefghij", 1)]
    messages += [said(11, "I live in Berlin now, k"), said(12, "Where do I live?")]
    scores = {each.event_id: 0.5 for each in messages[:-1]} | {"e12": 0.1}
    ranked = places(rank(scores, around(*messages, together=False), "Where do I live?"))
    assert next(each for each in ranked if each != 12) == 11


def test_equal_messages_that_name_a_time_are_both_ranked_on_different_days() -> None:
    first, second = said(1, "I ran yesterday"), said(2, "I ran yesterday")
    second = second._replace(sent_at=first.sent_at + timedelta(days=30))
    ranked = rank({"e1": 0.9, "e2": 0.8}, around(first, second, together=False), "ran")
    assert set(places(ranked)) == {1, 2}


def test_empty_result_is_not_ranked() -> None:
    assert rank({}, Surroundings({}, {})) == []


def test_weights_have_the_signs_of_their_reasons() -> None:
    weights = load_weights()._asdict()
    assert weights.pop("speaker_on_others") < 0
    assert all(weight > 0 for weight in weights.values())
