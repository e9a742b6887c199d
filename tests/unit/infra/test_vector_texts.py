"""Texts of messages and chunks from which their two vectors are made: of words and of meaning."""

from datetime import UTC, datetime

from mnemon_infra.models.words import bm25
from mnemon_infra.vectors import texts

SAID = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def test_a_message_is_found_by_its_date_its_speaker_and_its_words() -> None:
    words, meaning = texts.build_message_texts("Hey Mel!", "Caroline", SAID)

    assert words == "8 May 2023 Caroline: Hey Mel!"
    assert meaning == "Caroline: Hey Mel!"
    assert texts.build_message_texts("Hey", None, SAID) == ("8 May 2023 Hey", "Hey")


def test_the_month_is_in_the_language_of_the_message() -> None:
    words, _ = texts.build_message_texts("Привет!", "Anna", SAID)

    assert words == "8 мая 2023 Anna: Привет!"
    found_by = set(bm25.weigh_document(words).indices)
    assert all(
        found_by.issuperset(bm25.weigh_query(query).indices) for query in ("8 мая 2023", "в мае", "май")
    )


def test_a_chunk_stands_under_its_title() -> None:
    assert texts.build_chunk_texts("Boil the water.", "Tea") == ("Tea\nBoil the water.",) * 2
    assert texts.build_chunk_texts("Boil the water.", None) == ("Boil the water.",) * 2
