"""Properties of a text that rankings and the comparison of hits use. No I/O, no clock."""

import re
from functools import cached_property, lru_cache
from typing import Final

from mnemon_consumers.retrieve.search.query.intent import (
    FIRST_PERSON,
    LOOKED_AT,
    SECOND_PERSON,
    TIMES,
    split_words,
)
from mnemon_consumers.retrieve.search.query.names import list_capitalised_names
from mnemon_infra.models.words import bm25

REMEMBERED: Final = 4_000
"""Maximum number of texts whose properties are cached; the cache takes some megabytes, at most 60 MB."""

_QUESTION_MARKS: Final = "?\uff1f\u061f"

_NUMBER_OF_TIME: Final = re.compile(
    r"\b(?:(?:19|20)\d\d|[0-3]?\d(?:st|nd|rd|th)|[0-3]?\d-?(?:го|е|му)|[0-2]?\d:[0-5]\d)\b", re.IGNORECASE
)
"""A year, a day of a month as "21st" or "21-го", or a time of day."""


class TextProperties:
    """Properties of a text, each computed when it is first read: many rankings need only some of them."""

    def __init__(self, text: str) -> None:
        """Describe a text, judged by its first `LOOKED_AT` characters."""
        self._text = text[:LOOKED_AT]

    @cached_property
    def terms(self) -> frozenset[int]:
        """Return the ids of the stemmed words of the text, without stop words."""
        return frozenset(bm25.weigh_document(self._text).indices)

    @cached_property
    def is_question(self) -> bool:
        """Return whether the text has a question mark."""
        return any(mark in self._text for mark in _QUESTION_MARKS)

    @cached_property
    def tells_time(self) -> bool:
        """Return whether the text names a time, such as "yesterday" or "2024"."""
        words = split_words(self._text)
        return not TIMES.isdisjoint(words) or (
            any(word[0].isdigit() for word in words) and _NUMBER_OF_TIME.search(self._text) is not None
        )

    @cached_property
    def speaks_of_others(self) -> bool:
        """Return whether the text has a word of the second person and none of the first."""
        words = split_words(self._text)
        return not SECOND_PERSON.isdisjoint(words) and FIRST_PERSON.isdisjoint(words)

    @cached_property
    def name_words(self) -> frozenset[str]:
        """Return the words, in lower case, of names in the text: capitalised words within a sentence."""
        return frozenset(word for name in list_capitalised_names(self._text) for word in name.lower().split())


@lru_cache(maxsize=REMEMBERED)
def describe_text(text: str) -> TextProperties:
    """Return the properties of a text.

    The properties are cached, because searches of one user examine the same messages many times.
    """
    return TextProperties(text)
