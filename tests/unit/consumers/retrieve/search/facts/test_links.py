"""Facts that share a name with the facts that a query finds."""

from collections.abc import Sequence

import pytest

from mnemon_consumers.retrieve.search.facts.links import MOST_FACTS_PER_NAME, find_leading_facts, score_links
from mnemon_consumers.retrieve.search.facts.ranking import rank_facts
from mnemon_consumers.retrieve.search.fusion import QueryWords
from mnemon_contracts.settings.groups import Retrieval
from mnemon_infra.database.facts.fact_repository import FactRecord
from tests.unit.consumers.retrieve.search.facts.test_ranking import NOW, fact, found

ENGLISH = (
    "The user's sister Anna has a dog named Rex",
    "Rex is a Labrador",
    "Anna's flat is in Leeds",
    "The user's boss is Grace Miller",
    "Likes the band Grace Potter",
    "Is allergic to nuts",
)
RUSSIAN = (
    "Сестру пользователя зовут Аня, её собаку — Рекс",
    "У Рекса аллергия на курицу",
    "Весной виделся с Аней",
    "Начальника зовут Григорий",
    "Любит зелёный чай",
)

NO_WORDS = QueryWords("")


def link(query: str, texts: Sequence[str], best: int = 0, names: Sequence[str] = ()) -> set[str]:
    """Return the texts of the facts that links add to a search that finds only the fact `texts[best]`."""
    facts = [fact(number, text=text) for number, text in enumerate(texts, 1)]
    facts[best] = facts[best]._replace(names=tuple(names))
    ranked = rank_facts([facts[best]], {facts[best].id: found(0.8)}, NO_WORDS, Retrieval(), NOW)
    links = score_links(find_leading_facts(query, ranked), facts)
    return {each.text for each in facts if each.id in links}


@pytest.mark.parametrize(
    ("query", "texts", "best", "linked"),
    [
        ("What breed is my sister's dog?", ENGLISH, 0, {ENGLISH[1], ENGLISH[2]}),
        ("Is there a Labrador in the family?", ENGLISH, 1, {ENGLISH[0]}),
        ("What does Anna's dog look like?", ENGLISH, 0, {ENGLISH[1]}),
        ("What is Rex, the dog of Ann?", ENGLISH, 0, set()),
        ("Who is my boss?", ENGLISH, 3, {ENGLISH[4]}),
        ("What am I allergic to?", ENGLISH, 5, set()),
        ("Какой породы собака моей сестры?", RUSSIAN, 0, {RUSSIAN[1], RUSSIAN[2]}),
        ("Что ест собака Анны?", RUSSIAN, 0, {RUSSIAN[1]}),
        ("У кого аллергия?", RUSSIAN, 1, {RUSSIAN[0]}),
        ("Кто мой начальник?", RUSSIAN, 3, set()),
    ],
)
def test_facts_are_linked_by_names_that_the_query_lacks(
    query: str, texts: Sequence[str], best: int, linked: set[str]
) -> None:
    assert link(query, texts, best) == linked


def test_names_that_a_model_extracted_replace_those_of_the_rules() -> None:
    texts = "my sister has a dog, it's rex", "rex is a labrador", "Rex Harrison is the favourite actor"
    assert link("What breed is my sister's dog?", texts) == set()
    assert link("What breed is my sister's dog?", texts, names=["rex"]) == set(texts[1:])


def test_name_that_a_model_extracted_from_lower_case_is_found() -> None:
    facts = [
        fact(1, text="Her dog answers to rex", names=("rex",)),
        fact(2, text="At the lake rex swam", names=("rex",)),
    ]
    ranked = rank_facts(facts[:1], {facts[0].id: found(0.8)}, NO_WORDS, Retrieval(), NOW)
    assert set(score_links(find_leading_facts("her dog", ranked), facts)) == {facts[1].id}


def test_all_words_of_a_place_have_to_match() -> None:
    texts = "Lives in New York", "Has a new bicycle", "New York is too loud", "York is lovely"
    assert link("Where do I live?", texts) == {"New York is too loud"}


@pytest.mark.parametrize(
    "texts",
    [
        ("Works on Wall Street", "Wall Street is noisy", "Wall paint has to be bought"),
        ("Runs over the Golden Gate", "The Golden Gate is red", "Golden is the colour of the car"),
        ("Uses the App Store", "The App Store refused the game", "App development is the hobby"),
        ("Часто ходит в Дом Книги", "В Дом Книги привезли атлас", "Дом у озера продан"),
    ],
)
def test_ordinary_word_that_sounds_like_a_name_does_not_stand_for_a_place(texts: Sequence[str]) -> None:
    assert link("Where do I go?", texts) == {texts[1]}


@pytest.mark.parametrize(
    "texts",
    [
        ("The boss is Bobby Miller", "Bobby likes tea"),
        ("The boss is Ruby Miller", "Ruby likes tea"),
        ("The boss is Dmitry Petrov", "Dmitry likes tea"),
        ("Начальника зовут Саша Петров", "Саша любит чай"),
        ("Работает с Анной Петровой", "Анна любит чай"),
        ("Начальника зовут Джон Смит", "Джон любит чай"),
    ],
)
def test_given_name_stands_for_a_full_name(texts: Sequence[str]) -> None:
    assert link("What about work?", texts) == {texts[1]}


def test_months_and_weekdays_link_nothing() -> None:
    texts = "Moved house on Monday, the second of March", "In March the roof leaked", "Plays chess on Monday"
    assert link("When did I move?", texts) == set()


def test_frequent_name_links_nothing() -> None:
    texts = [f"Oleg likes dish {number}" for number in range(MOST_FACTS_PER_NAME)]
    assert link("What do I like?", texts) == set(texts[1:])
    assert link("What do I like?", [*texts, "Oleg lives in Perm"]) == set()


def test_linked_fact_ranks_below_the_fact_that_names_it_and_above_unrelated_ones() -> None:
    facts: list[FactRecord] = [fact(number, text=text) for number, text in enumerate(ENGLISH, 1)]
    candidates = {facts[0].id: found(0.7), facts[4].id: found(0.3), facts[5].id: found(0.3)}

    ranked = rank_facts(facts[:1] + facts[4:], candidates, NO_WORDS, Retrieval(), NOW)
    links = score_links(find_leading_facts("What breed is my sister's dog?", ranked), facts)
    ranked = rank_facts([*facts[:2], *facts[4:]], candidates, NO_WORDS, Retrieval(), NOW, links)

    assert [each.fact.text for each in ranked[:2]] == [ENGLISH[0], ENGLISH[1]]
    assert ranked[1].parts["link"] == pytest.approx(0.3 * 0.7)
    assert all("link" not in each.parts for each in ranked[2:])
