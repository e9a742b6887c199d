"""Follow-up questions: the degree to which a query depends on the messages before it."""

import numpy as np
import pytest

from mnemon_consumers.retrieve.search.query.follow_up import (
    FADING,
    LONGEST_ANTECEDENT,
    USUAL_TERMS,
    measure_dependence,
    mix_vectors,
    weigh_antecedents,
    weigh_query_terms,
)
from mnemon_infra.models.words import bm25


@pytest.mark.parametrize(
    "query",
    [
        "and when was that?",
        "When was that?",
        "And where?",
        "What about Igor?",
        "Why did they cancel it?",
        "How much did it cost?",
        "Did she pass?",
        "Who was there?",
        "Who else was there?",
        "Which one?",
        "Tell me more about that",
        "а когда это было?",
        "и где?",
        "А Игорь?",
        "А почему они всё отменили?",
        "Сколько это стоило?",
        "Она сдала?",
        "Кто там был?",
        "Кто ещё там был?",
        "А который из них?",
        "Расскажи об этом подробнее",
    ],
)
def test_query_without_a_topic_depends_on_the_messages_before_it(query: str) -> None:
    assert measure_dependence(query) == 1


@pytest.mark.parametrize(
    "query",
    [
        "Where does Anna live?",
        "What does Anna like about her job?",
        "What did I say about the train to Porto?",
        "How many people were there at the party in Rome on Friday?",
        "What is the day that Anna remembers best?",
        "Which concerts are planned this summer?",
        "And where did Igor see the northern lights?",
        "birthday",
        "train or plane?",
        "Где живёт Анна?",
        "Что Анна говорила о своей работе?",
        "Чем занимается сестра Даши?",
        "Какие концерты будут этим летом?",
        "А где Игорь видел северное сияние?",
        "Как зовут того, кто чинил машину?",
        "день рождения",
        "поезд или самолёт?",
        "🙂",
        "",
        "and when was that? " * 40,
    ],
)
def test_query_with_a_topic_stands_by_itself(query: str) -> None:
    assert measure_dependence(query) == 0


@pytest.mark.parametrize(
    ("shorter", "longer"),
    [
        ("Did she paint it?", "Did she paint it with her sister Olga last summer?"),
        ("Where did they buy it?", "Where did they buy it for the birthday party?"),
        ("Что она купила?", "Что она купила Ольге на день рождения?"),
        ("А какого цвета?", "А какого цвета новая машина?"),
    ],
)
def test_content_lowers_the_dependence(shorter: str, longer: str) -> None:
    assert measure_dependence(longer) < measure_dependence(shorter)


def test_words_of_earlier_messages_fade() -> None:
    before = ["Katya paints", "Boris cooks"]
    antecedents = weigh_antecedents(1.0, before)

    weights = weigh_query_terms("and when was that?", antecedents)

    (paint,), (cook,) = bm25.weigh_query("paints").indices, bm25.weigh_query("cooks").indices
    assert [antecedent.text for antecedent in antecedents] == ["Boris cooks", "Katya paints"]
    assert (weights[cook], weights[paint]) == (FADING, FADING**2)


def test_own_words_count_fully_and_a_repeated_word_once() -> None:
    antecedents = weigh_antecedents(1.0, ["Anna cooks", "Boris cooks"])

    weights = weigh_query_terms("And what did she cook?", antecedents)

    (cook,) = bm25.weigh_query("cook").indices
    assert weights[cook] == 1.0
    assert sorted(weights.values()) == [FADING**2, FADING, 1.0]


def test_a_long_message_weighs_less_and_counts_from_its_beginning() -> None:
    words = [f"word{number}" for number in range(2 * USUAL_TERMS)]

    (antecedent,) = weigh_antecedents(1.0, [" ".join(words)])
    (huge,) = weigh_antecedents(1.0, ["x" * (LONGEST_ANTECEDENT + 1)])

    assert antecedent.weight == FADING / 2
    assert len(huge.text) == LONGEST_ANTECEDENT


def test_blank_messages_and_self_contained_queries_add_nothing() -> None:
    assert weigh_antecedents(1.0, ["", " "]) == ()
    assert weigh_antecedents(0.0, ["Boris cooks"]) == ()
    assert weigh_antecedents(1.0, []) == ()


def test_vectors_are_mixed_by_weight() -> None:
    query, antecedent = np.array([1, 0], dtype=np.float32), np.array([0, 1], dtype=np.float32)

    assert mix_vectors(query, []) is query
    assert mix_vectors(query, [(antecedent, 0.5)]) == pytest.approx(np.array([2, 1]) / 5**0.5)
