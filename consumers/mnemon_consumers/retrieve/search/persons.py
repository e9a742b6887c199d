"""Persons of facts and of questions: the user, or others. No I/O, no clock.

"Where do I live?" shares its words with "My brother lives in Leeds", which does not answer it.
"""

import re
from functools import lru_cache
from typing import Final, Literal

from mnemon_consumers.domain.alignment.lexicon import is_in_table
from mnemon_consumers.domain.alignment.morphology import is_cyrillic, list_grammemes
from mnemon_consumers.retrieve.search.query.intent import FIRST_PERSON
from mnemon_consumers.retrieve.search.query.names import is_given_name

Person = Literal["user", "others"]

LONGEST_SUBJECT: Final = 4
"""Maximum number of words up to the noun that tells whom a fact is about: "My younger half sister"."""

READ: Final = 300
"""Number of characters of a text to read, from its beginning: looking up a Russian word may take 0.1 ms."""

OTHER_PERSON_SHARE: Final = 0.6
"""Share of its relevance that a fact keeps if it is not about the person of the question."""

REMEMBERED: Final = 4_000
"""Maximum number of texts whose person is cached."""

_WORD: Final = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")

_THE_USER: Final = "i we me us user я мы меня мне нас нам пользователь"
_BEFORE_NOUN: Final = """
a an the my our this that these his her their one two three younger older elder youngest oldest eldest little
big best close old new former late good only half step twin у мой наш их его её
"""
_PARENT_OF: Final = "of двоих троих четверых пятерых двух трёх"

USER_WORDS: Final = frozenset(_THE_USER.split())
"""Words that stand for the user as the subject; «у меня» is one."""

BEFORE_NOUN: Final = frozenset(_BEFORE_NOUN.split())
"""Words of a subject before its noun; in Russian any adjective may be there, too."""

PARENT_OF: Final = frozenset(_PARENT_OF.split())
"""Words after "mother" or "father" with which a fact describes the user: "Mother of two"."""


@lru_cache(maxsize=REMEMBERED)
def find_fact_person(text: str) -> Person | None:
    """Return whom a fact is about, by its first words; None if they do not tell."""
    words = _WORD.findall(_strip_possessives(text[:READ].lower()))
    for place, word in enumerate(words[:LONGEST_SUBJECT]):
        if word in USER_WORDS:
            return "user"
        if is_in_table(word, "people"):
            return "user" if PARENT_OF.intersection(words[place + 1 : place + 2]) else "others"
        if word not in BEFORE_NOUN and not (is_cyrillic(word) and "ADJF" in list_grammemes(word)):
            return None
    return None


@lru_cache(maxsize=REMEMBERED)
def find_query_person(query: str) -> Person | None:
    """Return whom a question is about; None if it names both the user and others, or nobody."""
    written = _WORD.findall(_strip_possessives(query[:READ]))
    words = [word.lower() for word in written]
    named = (low for word, low in zip(written[1:], words[1:], strict=True) if word != low)
    if any(is_in_table(word, "people") for word in words) or any(map(is_given_name, named)):
        return None if USER_WORDS.intersection(words) else "others"
    return None if FIRST_PERSON.isdisjoint(words) else "user"


def _strip_possessives(text: str) -> str:
    """Return a text without the endings of possessives; "the user's" becomes "the my"."""
    return text.replace("’s", "'s").replace("user's", "my").replace("'s", "")
