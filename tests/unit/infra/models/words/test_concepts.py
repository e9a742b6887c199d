"""Concepts group words of one meaning, within and between English and Russian."""

from importlib.resources import files

import pytest

from mnemon_infra.models.embedding import Sparse
from mnemon_infra.models.words import bm25, concepts

LINES = (files("mnemon_infra.models.words") / concepts.CONCEPTS_FILE).read_text(encoding="utf-8").splitlines()


def find_shared(query: str, text: str) -> set[int]:
    shared = set(concepts.weigh_query(query).indices) & set(concepts.weigh_document(text).indices)
    return {each for each in shared if each >= concepts.FIRST_ID}


def map_weights(vector: Sparse) -> dict[int, float]:
    return dict(zip(vector.indices, vector.values, strict=True))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("Где работает Даша?", "В понедельник вышла в новую контору"),
        ("Какая машина у Олега?", "Взяли подержанную тачку"),
        ("What pet has Dasha?", "Взяли кота из приюта"),
        ("Как зовут её мужа?", "Her husband is called Oleg"),
        ("When did the doctor call?", "The physician rang at noon"),
    ],
)
def test_words_of_one_meaning_share_a_concept(query: str, text: str) -> None:
    assert find_shared(query, text)


def test_other_words_share_no_concept() -> None:
    assert not find_shared("Где работает Даша?", "Пельмень уронил ёлку")
    assert not find_shared("What pet has Dasha?", "It rained in Paris")


def test_words_keep_their_weights_and_concepts_weigh_less_in_a_query() -> None:
    words, both = bm25.weigh_query("Где кот?"), concepts.weigh_query("Где кот?")
    assert map_weights(words).items() <= map_weights(both).items()
    added = map_weights(both).keys() - set(words.indices)
    assert added
    assert {map_weights(both)[each] for each in added} == {concepts.QUERY_WEIGHT}


def test_concepts_of_a_long_text_weigh_less() -> None:
    short, long = (map_weights(concepts.weigh_document(text)) for text in ("стул", "стул " + "слово " * 500))
    shared = find_shared("стул", "стул")
    assert shared
    assert all(long[concept] < short[concept] for concept in shared)


def test_text_without_words_has_no_concepts() -> None:
    assert concepts.weigh_document("👍").indices == []


def test_ids_of_words_and_concepts_do_not_meet() -> None:
    assert all(term < concepts.FIRST_ID for term in concepts.load_concepts().text_concepts)
    assert concepts.FIRST_ID + len(LINES) < 2**32


def test_each_line_has_words_of_both_languages() -> None:
    for line in LINES:
        for part in line.split(">", maxsplit=1):
            english, russian = ([word.strip() for word in side.split(",")] for side in part.split("|"))
            assert all(word.isascii() and word for word in english), line
            assert all(word and not word.isascii() for word in russian), line
            assert not any(" " in word for word in (*english, *russian)), line


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("What is my car?", "I drive a Skoda"),
        ("Какая у меня тачка?", "Взяли Октавию"),
        ("Which pills do I take?", "Ibuprofen after meals"),
        ("Кличка собаки?", "Живёт у нас такса"),
        ("Where does Owen live?", "Owen is in Leeds now"),
        ("Куда переехал брат?", "Он в Казани"),
        ("Кем она работает?", "Она стоматолог"),
        ("What does Hannah do?", "Hannah is a paralegal"),
        ("What do you know about my family?", "Has a sister in Leeds"),
    ],
)
def test_member_of_concept_is_found_by_its_words(query: str, text: str) -> None:
    assert find_shared(query, text)


def test_number_is_no_member_of_a_concept() -> None:
    assert not any(letter.isdigit() for line in LINES for letter in line.partition(">")[2])


@pytest.mark.parametrize("query", ["С кем я дружу?", "What did she tell me to do?"])
def test_phrase_about_another_thing_implies_no_profession(query: str) -> None:
    assert not find_shared(query, "Paralegal")


@pytest.mark.parametrize(
    ("query", "text"), [("Skoda", "A Toyota"), ("такса", "Овчарка"), ("Leeds", "London")]
)
def test_member_of_concept_does_not_find_other_members(query: str, text: str) -> None:
    assert not find_shared(query, text)
