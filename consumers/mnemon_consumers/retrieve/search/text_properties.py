"""Properties of a message's text that the ranking uses. No I/O, no clock."""

from functools import lru_cache
from typing import Final, NamedTuple

from mnemon_consumers.retrieve.search.query.intent import (
    LOOKED_AT,
    speaks_of_others,
    split_words,
    tells_time,
)
from mnemon_consumers.retrieve.search.query.names import list_capitalised_names
from mnemon_infra.models import bm25

REMEMBERED: Final = 4_000
"""Maximum number of texts whose properties are cached; the cache takes some megabytes, at most 60 MB."""

_QUESTION_MARKS: Final = "?\uff1f\u061f"


class TextProperties(NamedTuple):
    """Properties of a text.

    Attributes:
        terms: ids of the stemmed words of the text, without stop words.
        is_question: whether the text has a question mark.
        tells_time: whether the text names a time.
        speaks_of_others: whether the text is about the person addressed, and not about the speaker.
        name_words: words, in lower case, of the names in the text; capitalised words within a sentence
            count as names.
    """

    terms: frozenset[int]
    is_question: bool
    tells_time: bool
    speaks_of_others: bool
    name_words: frozenset[str]


@lru_cache(maxsize=REMEMBERED)
def describe_text(text: str) -> TextProperties:
    """Return the properties of a text, judged by its first `LOOKED_AT` characters.

    The properties are cached, because searches of one user examine the same messages many times.
    """
    begin = text[:LOOKED_AT]
    words = split_words(begin)
    return TextProperties(
        frozenset(bm25.weigh_document(begin).indices),
        any(mark in begin for mark in _QUESTION_MARKS),
        tells_time(begin, words),
        speaks_of_others(words),
        frozenset(word for name in list_capitalised_names(begin) for word in name.lower().split()),
    )
