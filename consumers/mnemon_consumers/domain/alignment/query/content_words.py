"""Content words of a query or a fact, and their comparison."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final, NamedTuple

from anyascii import anyascii

from mnemon_consumers.domain.alignment.lexicon import (
    find_word_entries,
    is_in_table,
    list_lookup_forms,
    list_words,
    load_lexicon,
)
from mnemon_consumers.domain.alignment.morphology import (
    COMBINING_MARKS,
    fold_characters,
    is_cyrillic,
    list_forms,
    list_grammemes,
    list_lemmas,
    list_name_lemmas,
    restore_contractions,
)

COMMON_WEIGHT: Final = 0.5
"""Weight of a word that many facts have and that alone names no fact; any other word has weight 1."""

_LETTERS: Final = rf"[^\W_]+(?:[{COMBINING_MARKS}]+[^\W_]*)*"

TOKEN: Final = re.compile(rf"{_LETTERS}(?:['-]{_LETTERS})*[+#]*")
"""A word of a query or a fact."""

_SHORTEST_PREFIX: Final = 5
"""Minimum number of letters of a form that a form of the same word may extend by an ending."""

_LONGEST_ENDING: Final = 2
"""Maximum number of letters by which a form of the same word may be longer."""

_OWN_ENDINGS: Final = "aio"
"""Final letters that no ending of an English word has: "martini" is not a form of "martin"."""

_BASES: Final[Mapping[str, str]] = {
    form: line.split()[0]
    for line in (
        "eat ate eaten",
        "buy bought",
        "drive drove driven",
        "fly flew flown flight flights",
        "break broke broken",
        "grow grew grown",
        "write wrote written",
        "speak spoke spoken",
        "take took taken",
        "go went gone",
        "run ran",
        "drink drank drunk",
        "teach taught",
        "sell sold",
    )
    for form in line.split()[1:]
}
"""English verbs whose forms have no common stem: the base of each form."""


class ContentWord(NamedTuple):
    """A word with content of its own, in a query or a fact.

    Attributes:
        text: the word in lower case.
        forms: the forms by which the word is matched.
        weight: the weight of the word in the fit.
        direction: `from` or `to` if a preposition of that meaning precedes it; else empty.
        before: the token before it, in lower case; empty at the beginning.
        is_person: whether it is a word for a person, such as `mother`.
        is_capital: whether it begins with a capital letter.
        is_first: whether it is the first word of its text, where a capital letter means nothing.
        is_measure: whether it is a number or a date.
    """

    text: str
    forms: frozenset[str]
    weight: float
    direction: str
    before: str = ""
    is_person: bool = False
    is_capital: bool = False
    is_first: bool = False
    is_measure: bool = False

    @property
    def is_name(self) -> bool:
        """Return whether the word is a proper name, judged by its capital letter.

        The first word of a text must also be a possible Russian name.
        """
        return self.is_capital and (not self.is_first or bool(list_name_lemmas(self.text)))

    @property
    def is_adjective(self) -> bool:
        """Return whether the word is an adjective, which only describes the thing that another word names."""
        if is_cyrillic(self.text):
            return not self.is_name and not list_grammemes(self.text).isdisjoint(("ADJF", "ADJS", "COMP"))
        return self.text in list_words("adjectives")


@dataclass(frozen=True, slots=True)
class ContentWords:
    """The words of a text, prepared for comparison.

    Attributes:
        content: its content words, each once.
        people: the people that the text is about besides the user, such as `mother`.
        names: the content words that are names of these people, such as Tom in "brother Tom".
        denies: whether the text denies something, tells a dislike, or says that something is over.
        plain: all words in lower case.
        text: the text.
    """

    content: tuple[ContentWord, ...]
    people: frozenset[str]
    names: tuple[ContentWord, ...]
    denies: bool
    plain: tuple[str, ...]
    text: str

    @property
    def weight(self) -> float:
        return sum(word.weight for word in self.content)

    def find(self, word: ContentWord) -> ContentWord | None:
        """Return the word of this text that is the same as `word`, see `is_same`; None if there is none."""
        return next((each for each in self.content if is_same(each, word)), None)

    def sum_weight_in(self, other: "ContentWords") -> float:
        """Return the sum of the weights of the words that this text and another text have."""
        return sum(word.weight for word in self.content if other.find(word))


def is_same(one: ContentWord, other: ContentWord) -> bool:
    """Return whether two words are the same, also in another form, with an ending or in another alphabet."""
    if one.text == other.text:
        return True
    if one.is_measure or other.is_measure or one.is_person or other.is_person:
        return not one.forms.isdisjoint(other.forms)
    if is_cyrillic(one.text) != is_cyrillic(other.text):
        return not _romanize_forms(one).isdisjoint(_romanize_forms(other)) and _ends_alike(one, other)
    if one.is_name or other.is_name:
        return _is_same_name(one, other)
    if not one.forms.isdisjoint(other.forms):
        return True
    if one.text[0].isdigit() or other.text[0].isdigit() or one.is_capital or other.is_capital:
        return False
    if one.text[-1] in _OWN_ENDINGS or other.text[-1] in _OWN_ENDINGS:
        return False
    return any(_is_longer(a, b) or _is_longer(b, a) for a in one.forms for b in other.forms)


def _is_same_name(one: ContentWord, other: ContentWord) -> bool:
    """Return whether two words in the same alphabet, one of them a name, are forms of that name."""
    if not is_cyrillic(one.text):
        return one.text.removesuffix("s") == other.text.removesuffix("s")
    names = list_name_lemmas(one.text), list_name_lemmas(other.text)
    if any(names):
        return names[0] == names[1]
    return not list_lemmas(one.text).isdisjoint(list_lemmas(other.text))


def _ends_alike(one: ContentWord, other: ContentWord) -> bool:
    """Return whether a name and its transliteration both end in a vowel, or both in a consonant.

    For example, the result is False for Валентина (Valentina) and Valentin. It is True if the Cyrillic word
    is not a known name.
    """
    names = list_name_lemmas(one.text) | list_name_lemmas(other.text)
    latin = other.text if is_cyrillic(one.text) else one.text
    return not names or any((name[-1] in "аеиоуыэюя") == (latin[-1] in "aeiouy") for name in names)


def _is_longer(long: str, short: str) -> bool:
    """Return whether the longer form is the shorter form with an ending added."""
    return (
        len(short) >= _SHORTEST_PREFIX
        and long.startswith(short)
        and len(long) - len(short) <= _LONGEST_ENDING
    )


@lru_cache(maxsize=50_000)
def _romanize_forms(word: ContentWord) -> frozenset[str]:
    latin = (anyascii(form).casefold().replace("'", "") for form in word.forms)
    return frozenset(
        each.replace("ks", "x").replace("w", "v").rstrip("aeiouy") for each in latin if len(each) > 2
    )


@lru_cache(maxsize=20_000)
def parse_words(text: str) -> ContentWords:
    """Read the content words of a query or a fact."""
    content: dict[frozenset[str], ContentWord] = {}
    people: set[str] = set()
    names: list[ContentWord] = []
    denies = False
    direction = ""
    is_introduced = False
    tokens = TOKEN.findall(restore_contractions(fold_characters(text)))
    for at, token in enumerate(tokens):
        word = token.casefold().removesuffix("'s")
        if word in list_words("query_from") or word in list_words("query_to"):
            direction = "from" if word in list_words("query_from") else "to"
            is_introduced = False
            continue
        is_negation = word in list_words("query_negations") or word in list_words("foreign_negations")
        if is_negation or word.endswith("n't"):
            denies = True
            continue
        entries = [
            each
            for each in find_word_entries(list_lookup_forms(_BASES.get(word, word)))
            if each.table in ("stop", "people")
        ]
        persons = {each.concept for each in entries if each.table == "people"}
        if (
            (entries and not persons)
            or not _list_base_forms(word).isdisjoint(_list_forms_of_all("unspecific_words"))
            or word in ("i", "s", "t")
        ):
            continue
        people |= persons
        number = load_lexicon().find_number(list_lookup_forms(_BASES.get(word, word)))
        keys = frozenset(persons) or (
            _list_base_forms(word) if number is None else frozenset((f"{number:g}",))
        )
        weight = COMMON_WEIGHT if not keys.isdisjoint(_list_forms_of_all("common_words")) else 1.0
        known = ContentWord(
            word,
            keys,
            weight,
            direction,
            before=tokens[at - 1].casefold() if at else "",
            is_person=bool(persons),
            is_capital=token[0].isupper(),
            is_first=at == 0,
            is_measure=number is not None or word[0].isdigit() or is_in_table(word, "dates"),
        )
        content.setdefault(keys, known)
        direction = ""
        if is_introduced and token[0].isupper():
            names.append(known)
        is_introduced = bool(persons) or (
            is_introduced and not keys.isdisjoint(_list_forms_of_all("query_name_nouns"))
        )
    plain = tuple(token.casefold() for token in tokens)
    return ContentWords(tuple(content.values()), frozenset(people), tuple(names), denies, plain, text)


def _list_base_forms(word: str) -> frozenset[str]:
    return list_forms(_BASES.get(word, word))


@cache
def _list_forms_of_all(list_name: str) -> frozenset[str]:
    """Return the forms of all words of the list with this name."""
    return frozenset(form for word in list_words(list_name) for form in _list_base_forms(word))
