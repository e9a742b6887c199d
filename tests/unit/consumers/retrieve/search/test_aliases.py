"""Names by which two people address each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon_consumers.retrieve.search.aliases import find_aliases


def test_name_that_fits_neither_speaker_means_the_one_addressed() -> None:
    messages = [
        ("Emi", "Hey Kate."),
        ("Elise", "Hi Emi! How are you?"),
        ("Emi", "I'm doing well Kate"),
        ("Elise", "Nice, Emi."),
        ("Emi", "Kate, are you coming to Paris?"),
        ("Elise", "Thanks, Emi!"),
    ]

    assert find_aliases(messages) == {"Kate": "Elise"}


def test_russian_greeting_is_recognised() -> None:
    messages = [
        ("Ольга", "Привет, Зайка!"),
        ("Игорь", "Привет, Оля!"),
        ("Ольга", "Спасибо, Зайка."),
        ("Игорь", "Спасибо, Оля."),
        ("Ольга", "Доброе утро Зайка"),
        ("Игорь", "Пока, Оля!"),
    ]

    assert find_aliases(messages) == {"Зайка": "Игорь"}


@pytest.mark.parametrize(
    "messages",
    [
        [("Ann", "Hey Kate."), ("Bob", "Hi."), ("Ann", "Hello Kate!")],  # seldom
        [("Ann", "I went to Paris.")] * 5 + [("Bob", "Nice, London.")] * 5,  # places
        [("Katherine", "Hi."), *[("Bob", "Hey Kate.")] * 5],  # a short form of the speaker's own name
        [("Ann", "Hey Rex!"), ("Bob", "Hey Rex!")] * 5,  # a third one, such as a dog
        [("Ann", "Hi There!"), ("Bob", "Hi.")] * 5,
        [("Ann", "Hey Kate."), ("Bob", "Hi."), ("Carl", "Hi.")] * 5,  # three people
        [("Ann", "Hey Kate.")] * 5,
        [],
    ],
)
def test_other_words_are_no_aliases(messages: list[tuple[str, str]]) -> None:
    assert find_aliases(messages) == {}


@given(st.lists(st.tuples(st.sampled_from(["Ann", "Bob"]), st.text(max_size=50))))
def test_any_messages_are_read(messages: list[tuple[str, str]]) -> None:
    assert set(find_aliases(messages).values()) <= {"Ann", "Bob"}
