"""Near-duplicates among the hits of a search."""

import pytest

from mnemon_consumers.retrieve.search.duplicates import list_distinct_items


def distinct(*texts: str, limit: int = 100) -> list[str]:
    return list_distinct_items(texts, lambda text: (None, text), limit)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("I like green tea.", "i like  GREEN tea!"),
        ("The user likes dogs", "User likes the dog"),
        ("I'm not fond of tea", "I am not fond of tea"),
        ("Yesterday I walked to the lake.", "I walked to the lake yesterday"),
        ("Я люблю зелёный чай.", "я люблю зеленый чай"),
        ("Пользователь любит собак", "Пользователь очень любит собаку"),
        ("We need a bed and a hundred seeds", "We need beds and a hundred seeds"),
        ("She planned a trip and baked a cake", "She baked a cake, and planned a trip!"),
        ("Вчера я купил хлеб", "Вчера я купила хлеб"),
        ("👍", "👍"),
    ],
)
def test_texts_that_say_the_same_are_listed_once(text: str, other: str) -> None:
    assert distinct(text, other) == [text]


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("I like tea", "I don't like tea"),
        ("Я люблю чай", "Я не люблю чай"),
        ("He is a teacher", "He was a teacher"),
        ("I love coffee", "I loved coffee"),
        ("We plan a trip to Rome", "We planned a trip to Rome"),
        ("She tries to need less", "She tried to need less"),
        ("I need a car", "I needed a car"),
        ("I work in a bank", "I will work in a bank"),
        ("I plan a trip", "I'll plan a trip"),
        ("Я люблю кофе", "Я любил кофе"),
        ("Мы планируем поездку в Рим", "Мы планировали поездку в Рим"),
        ("Я работаю в банке", "Я работал в банке"),
        ("Пользователь говорит по-немецки", "Пользователь говорил по-немецки"),
        ("Я играю в шахматы", "Я буду играть в шахматы"),
        ("You like tea", "Do you like tea?"),
        ("My mother lives in Rome", "Her mother lives in Rome"),
        ("Anna loves Boris", "Boris loves Anna"),
        ("Likes tea, not coffee", "Likes coffee, not tea"),
        ("I prefer trains to planes", "I prefer planes to trains"),
        ("We moved from London to Paris", "We moved from Paris to London"),
        ("My brother owes my sister money", "My sister owes my brother money"),
        ("I sold my car and bought a bike", "I bought my car and sold a bike"),
        ("Не сдал экзамен, сдал зачёт", "Сдал экзамен, не сдал зачёт"),
        ("Мама позвонила папе", "Папа позвонил маме"),
        ("Run 3 times in 5 days", "Run 5 times in 3 days"),
        ("It weighs 1.5 kg", "It weighs 5.1 kg"),
        ("He writes C", "He writes C++"),
        ("Great 👍", "Great 👎"),
        ("Дом у озера", "Дом за озером"),
    ],
)
def test_texts_that_say_something_else_are_kept(text: str, other: str) -> None:
    assert distinct(text, other) == [text, other]


def test_limit_is_filled_with_the_next_texts() -> None:
    assert distinct("tea", "Tea!", "milk", "juice", limit=2) == ["tea", "milk"]
