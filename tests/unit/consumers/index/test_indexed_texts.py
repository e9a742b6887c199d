"""By what a thing is found."""

from datetime import UTC, datetime

from mnemon_consumers.index import texts
from mnemon_infra.models import bm25

SAID = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def test_a_message_is_found_by_its_date_its_speaker_and_its_words() -> None:
    words, meaning = texts.message("Hey Mel!", "Caroline", SAID)

    assert words == "8 May 2023 Caroline: Hey Mel!"
    assert meaning == "Caroline: Hey Mel!"
    assert texts.message("Hey", None, SAID) == ("8 May 2023 Hey", "Hey")


def test_the_month_is_in_the_language_of_the_message() -> None:
    words, _ = texts.message("Привет!", "Anna", SAID)

    assert words == "8 мая 2023 Anna: Привет!"
    found_by = set(bm25.document(words).indices)
    assert all(found_by.issuperset(bm25.query(query).indices) for query in ("8 мая 2023", "в мае", "май"))


def test_a_chunk_stands_under_its_title() -> None:
    assert texts.chunk("Boil the water.", "Tea") == ("Tea\nBoil the water.",) * 2
    assert texts.chunk("Boil the water.", None) == ("Boil the water.",) * 2
