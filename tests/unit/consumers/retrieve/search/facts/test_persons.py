"""Persons whom facts and questions are about."""

import pytest

from mnemon_consumers.retrieve.search.facts.persons import Person, find_fact_person, find_query_person


@pytest.mark.parametrize(
    ("text", "person"),
    [
        ("My brother Owen lives in Swansea", "others"),
        ("The neighbour's got a new car", "others"),
        ("My younger half sister is a nurse", "others"),
        ("Mum is a retired teacher", "others"),
        ("The user's sister Anna has a dog", "others"),
        ("User's sister’s dog is called Rex", "others"),
        ("Сестра Лена живёт в Питере", "others"),
        ("У лучшей подруги диабет", "others"),
        ("Моя двоюродная сестра работает врачом", "others"),
        ("I live with my brother", "user"),
        ("We moved to Salford", "user"),
        ("The user works at a bank", "user"),
        ("У меня аллергия на орехи", "user"),
        ("Я живу с сестрой", "user"),
        ("My girlfriend and I live in Berlin", "user"),
        ("I have a sister called Anna", None),
        ("The user has two daughters, Mia and Zoe", None),
        ("У меня есть сестра Анна", None),
        ("Partner at a law firm", None),
        ("Mother of two", None),
        ("Мама двоих детей", None),
        ("Only child", None),
        ("Works with a friend", None),
        ("User's job is nursing", None),
        ("Живу в Казани", None),
        ("Biscuit is scared of fireworks", None),
        ("", None),
    ],
)
def test_first_words_of_a_fact_tell_the_person(text: str, person: Person | None) -> None:
    assert find_fact_person(text) == person


@pytest.mark.parametrize(
    ("query", "person"),
    [
        ("Where do I live now?", "user"),
        ("what's my car", "user"),
        ("какая у меня тачка", "user"),
        ("when's my brother's birthday?", "others"),
        ("which town is Hannah in?", "others"),
        ("кем работает мама?", "others"),
        ("what did I tell my sister?", None),
        ("what do you know about my family?", None),
        ("что ты знаешь о моей семье?", None),
        ("when is my trip with Anna?", None),
        ("какая погода?", None),
        ("", None),
    ],
)
def test_words_of_a_question_tell_the_person(query: str, person: Person | None) -> None:
    assert find_query_person(query) == person
