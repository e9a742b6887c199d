"""Persons of facts and of questions: the user, or others. No I/O, no clock.

"Where do I live?" shares its words with "My brother lives in Leeds", which does not answer it.
"""

import re
from functools import lru_cache
from typing import Final, Literal

from mnemon_consumers.domain.alignment.lexicon import names_people
from mnemon_consumers.domain.alignment.morphology import is_cyrillic, list_grammemes
from mnemon_consumers.retrieve.search.query.intent import FIRST_PERSON
from mnemon_consumers.retrieve.search.query.names import is_given_name

Person = Literal["user", "others"]

LONGEST_SUBJECT: Final = 4
"""Maximum number of words up to the noun that tells whom a fact is about: "My younger half sister"."""

LONGEST_PREDICATE: Final = 7
"""Maximum number of words in which a fact introduces a person after the user: "I have two sisters"."""

READ: Final = 300
"""Number of characters of a text to read, from its beginning: looking up a Russian word may take 0.1 ms."""

OTHER_PERSON_SHARE: Final = 0.6
"""Share of its relevance that a fact about others keeps if the question is about the user, or the reverse."""

REMEMBERED: Final = 4_000
"""Maximum number of texts whose person is cached."""

_WORD: Final = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")

_THE_USER: Final = "i we me us user я мы меня мне нас нам пользователь"
_BEFORE_NOUN: Final = """
a an the my our this that these his her their one two three younger older elder youngest oldest eldest little
big best close old new former late good half step twin у мой наш их его её
"""
_DESCRIPTION: Final = "of at двоих троих четверых пятерых двух трёх"
_HAVING: Final = "have has got had ve у есть"
_WITH_USER: Final = (["and", "i"], ["и", "я"])
_RELATIVES: Final = """
family relatives folks kin household семья семьи семье семью семьёй родня родню родне родные родных родным
родственники родственников родственникам близкие близких близким
"""

USER_WORDS: Final = frozenset(_THE_USER.split())
"""Words that stand for the user as the subject, also in «у меня есть» ("I have")."""

BEFORE_NOUN: Final = frozenset(_BEFORE_NOUN.split())
"""Words of a subject before its noun; in Russian any adjective may be there, too."""

DESCRIPTION: Final = frozenset(_DESCRIPTION.split())
"""Words with which a word for people describes the user: "Mother of two", "Partner at a law firm"."""

HAVING: Final = frozenset(_HAVING.split())
"""Words of facts that introduce a person: "I have a sister", «У меня есть брат» ("I have a brother")."""

RELATIVES: Final = frozenset(_RELATIVES.split())
"""Words such as "family", which stand for several people whom facts name one by one."""


@lru_cache(maxsize=REMEMBERED)
def find_fact_person(text: str) -> Person | None:
    """Return whom a fact is about, by its first words; None if they do not tell, or introduce a person.

    The first `LONGEST_SUBJECT` words within the first `READ` characters may name the person. A fact that
    begins with "My brother and I" is about the user.
    """
    words = _WORD.findall(_strip_possessives(text[:READ].lower()))
    for place, word in enumerate(words[:LONGEST_SUBJECT]):
        following = words[place + 1 : place + 1 + LONGEST_PREDICATE]
        if word in USER_WORDS:
            # "I have a sister called Anna" tells of both.
            introduces = not HAVING.isdisjoint(words[: place + 2]) and any(map(names_people, following))
            return None if introduces else "user"
        if names_people(word):
            if following[:2] in _WITH_USER:
                return "user"
            return None if DESCRIPTION.intersection(following[:1]) else "others"
        if word not in BEFORE_NOUN and not (is_cyrillic(word) and "ADJF" in list_grammemes(word)):
            return None
    return None


@lru_cache(maxsize=REMEMBERED)
def find_query_person(query: str) -> Person | None:
    """Return whom a question is about.

    Return None if the question names both the user and others, or neither, or has a word of `RELATIVES`. Only
    the first `READ` characters of the question are read.
    """
    written = _WORD.findall(_strip_possessives(query[:READ]))
    words = [word.lower() for word in written]
    names_user = not FIRST_PERSON.isdisjoint(words)
    if not RELATIVES.isdisjoint(words):
        return None
    if any(map(names_people, words)):
        return None if USER_WORDS.intersection(words) else "others"
    named = (low for word, low in zip(written[1:], words[1:], strict=True) if word != low)
    if any(map(is_given_name, named)):
        return None if names_user else "others"
    return "user" if names_user else None


def _strip_possessives(text: str) -> str:
    """Return a text without the endings of possessives; "the user's" becomes "the my"."""
    return text.replace("’s", "'s").replace("user's", "my").replace("'s", "")
