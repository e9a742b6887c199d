"""A fact, taken apart: its terms, and what the sentence says of them."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class TermKind(Enum):
    """What a term is; its weight is how much one without a counterpart speaks against sameness."""

    WORD = 1.0
    NAME = 1.5
    NUMBER = 1.01
    DATE = 0.8
    PERSON = 1.02
    LIGHT = 0.0

    def __init__(self, weight: float) -> None:
        self.weight = weight


class Term(NamedTuple):
    """A word or phrase with content.

    Attributes:
        text: as it stands in the fact, in lower case.
        keys: two terms with a key in common say the same.
        opposites: poles such as `trade+`, whose counterpart `trade-` says the contrary.
        stages: poles such as `search+`, which `search-` follows in time.
        kinds: poles such as `instrument+` for any of a kind and `instrument-` for one kind of it.
        role: the preposition before it, of those that have a contrary one.
        is_head: it belongs to what the sentence is about.
        place: number of its first token.
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

    @property
    def weight(self) -> float:
        return self.kind.weight


@dataclass(frozen=True, slots=True)
class ParsedFact:
    """A fact, taken apart.

    Attributes:
        text: as it was given.
        terms: with content, in the order of the text.
        words: the terms whose absence matters.
        keys: of all terms.
        tokens: for every token its term's place in `terms`, or the token itself where it has no content.
        slots: attributes that it gives a value to, such as `residence`.
        is_negated: it denies something.
        is_ended: it says that something is over.
        is_changed: it says that something has changed.
        is_planned: it speaks of a plan or a wish.
        is_resumed: it says that something is so again.
        is_quit: it says that a person has given up a habit.
        is_foreign: its language has no words in the lexicon.
        is_past: it tells of something that happened.
        is_english: it has no Cyrillic letter.
        reason_at: the token from which on it gives a reason.
        raw: its words, in lower case.
        concepts: of all its words and phrases.
        compounds: of its phrases whose words say something by themselves.
        is_copular: it says of something what it is.
    """

    text: str
    terms: tuple[Term, ...]
    words: tuple[Term, ...]
    keys: frozenset[str]
    tokens: tuple[int | str, ...]
    slots: frozenset[str]
    is_negated: bool
    is_ended: bool
    is_changed: bool
    is_planned: bool
    is_past: bool
    is_english: bool
    reason_at: int
    raw: tuple[str, ...]
    concepts: frozenset[str] = frozenset()
    compounds: frozenset[str] = frozenset()
    is_copular: bool = False
    is_resumed: bool = False
    is_quit: bool = False
    is_foreign: bool = False

    def word_before(self, term: Term) -> str:
        """The word before a term, in lower case; empty at the beginning."""
        return self.raw[term.place - 1] if term.place else ""

    def word_after(self, term: Term) -> str:
        """The word behind a term, in lower case; empty at the end."""
        return self.raw[term.place + 1] if term.place + 1 < len(self.raw) else ""

    @property
    def has_head(self) -> bool:
        """Whether it is about anything but the user."""
        return any(term.is_head and term.kind is not TermKind.LIGHT for term in self.terms)
