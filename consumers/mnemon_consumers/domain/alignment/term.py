"""Terms of a fact: words and phrases with content, their kinds, and properties of single terms."""

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final, NamedTuple

from mnemon_consumers.domain.alignment.lexicon import is_in_table, list_words
from mnemon_consumers.domain.alignment.morphology import is_verb, list_grammemes


class TermKind(Enum):
    """Kind of a term. The greater its weight, the more a term without a counterpart makes facts differ."""

    WORD = 1.0
    NAME = 1.5
    NUMBER = 1.01
    DATE = 0.8
    PERSON = 1.02
    LIGHT = 0.0

    def __init__(self, weight: float) -> None:
        self.weight = weight


NUMERIC_KINDS: Final = frozenset((TermKind.NUMBER, TermKind.DATE))

EXACT_KINDS: Final = NUMERIC_KINDS | {TermKind.NAME}

WISH_STAGES: Final = frozenset(("search+", "saving+"))
"""Poles of the table `stages` with verbs such as "looks for", "wants" and "dreams of"."""


class Term(NamedTuple):
    """A word or phrase with content.

    Attributes:
        text: the spelling of the term in the fact, in lower case; of a date, a person or a number in several
            words, only the first word.
        keys: the meanings of the term; two terms with a key in common mean the same.
        opposites: poles such as `trade+`, whose counterpart `trade-` says the contrary.
        stages: poles such as `search+`, which `search-` follows in time.
        kinds: poles such as `instrument+` for a general word and `instrument-` for a kind of instrument.
        sorts: poles such as `nut+` for a general word, by which a fact such as "is allergic to nuts" means
            all sorts, and `nut-` for a sort. Two terms that have such poles match only by a common key.
        role: the meaning of the preposition before the term, such as `from`, if a contrary preposition
            exists.
        is_head: whether it belongs to the subject of the sentence.
        place: index of its first token; for a number in several words, index of its last token.
    """

    text: str
    kind: TermKind
    keys: frozenset[str]
    opposites: frozenset[str] = frozenset()
    role: str = ""
    is_head: bool = False
    place: int = 0
    stages: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    sorts: frozenset[str] = frozenset()

    @property
    def weight(self) -> float:
        return self.kind.weight

    @property
    def end(self) -> int:
        """Return the index of the token after the term.

        It is too low for a date or a person in several words, and too high for a number such as "10 000".
        """
        return self.place + len(self.text.split())

    @property
    def is_someone(self) -> bool:
        """Return whether the term is a name or a word for a person."""
        return self.kind in (TermKind.NAME, TermKind.PERSON)


def list_kinds(terms: Iterable[Term]) -> set[TermKind]:
    """Return the distinct kinds of some terms."""
    return {term.kind for term in terms}


def is_listed(term: Term, table: str) -> bool:
    """Return whether a term, or the last word of a phrase, is in a table of the lexicon."""
    return bool(term.text) and is_in_table(term.text.split()[-1], table)


def list_nouns(terms: tuple[Term, ...]) -> list[Term]:
    """Return the terms without the Russian verbs; English verbs are not recognised, and stay."""
    return [term for term in terms if term.kind is not TermKind.WORD or not is_verb(term.text)]


def has_exact_term(terms: Sequence[Term]) -> bool:
    """Return whether a name, a number or a date is among the terms."""
    return any(term.kind in EXACT_KINDS for term in terms)


def begins_with_verb(terms: Sequence[Term]) -> bool:
    """Return whether the first of the terms is a verb; English verbs are found by ending or in a list.

    `terms` must not be empty.
    """
    first, *others = terms
    word = first.text.split()[0]
    is_third_person = first.kind is TermKind.WORD and word.endswith("s") and not word.endswith("ss")
    return is_verb(word) or word in list_words("past_verbs") or (is_third_person and bool(others))


def is_beginning(term: Term) -> bool:
    """Return whether a word says only that something has begun or changed, such as "started" and "now"."""
    return term.text in list_words("beginning_verbs") or is_listed(term, "changed")


def is_naming(term: Term) -> bool:
    """Return whether a word introduces a name, such as "called"."""
    return not list_words("role_name_words").isdisjoint(term.text.split())


def is_habitual(term: Term) -> bool:
    """Return whether a date is a plural in "days" or a Russian plural, as for a habit: "on Mondays"."""
    return term.kind is TermKind.DATE and (term.text.endswith("days") or "plur" in list_grammemes(term.text))


def is_part_of_day(date: Term) -> bool:
    """Return whether a date is a part of the day, such as "morning"."""
    return not date.keys.isdisjoint(("dates morning", "dates afternoon", "dates evening", "dates night"))


def is_year(number: Term) -> bool:
    """Return whether a number is a year from 1900 to 2100."""
    key = min(number.keys, default="")
    return key.isdigit() and len(key) == 4 and 1900 <= int(key) <= 2100
