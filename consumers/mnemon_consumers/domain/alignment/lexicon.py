"""Lexicon: the words that the comparison of facts needs, by language.

The folder `words` has two files for each language: lists of words (TOML), and a thesaurus with one group of
words per line.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from itertools import chain
from threading import Lock
from typing import Any, Final

from mnemon_consumers.domain.alignment.morphology import (
    SHARED_STEM,
    WORDS,
    fold_characters,
    is_cyrillic,
    list_forms,
    list_lemmas,
    stem_word,
)

LANGUAGES: Final = ("en", "ru")

TABLES: Final = ("dates", "people", "slots")
"""Names of the tables that map a concept, such as "month 1" or "mother", to the words for it."""

AXES: Final = ("stages", "kinds", "sorts")
"""Names of the tables of axes, apart from the table `opposites`.

An axis has two poles, such as "looks for" and "found", each a list of phrases.
"""

EXACT: Final = (
    "dates",
    "people",
    "professions",
    "ended",
    "changed",
    "quit",
    "stages",
    "kinds",
    "sorts",
    "resumed",
)
"""Tables whose single words are matched without stemming, because other words have the same stems.

For Russian words, see `_EXACT_IN_RUSSIAN`.
"""

_EXACT_IN_RUSSIAN: Final = (*EXACT, "slots", "stop", "light", "negation", "plan")


@dataclass(frozen=True, slots=True)
class Entry:
    """A word or phrase of the lexicon.

    Attributes:
        words: the forms of each word of the entry.
        table: name of the table of the lexicon that has the entry.
        concept: the meaning that this table gives the entry.
        is_compound: whether it has several words with content, each with a meaning of its own.
    """

    words: tuple[frozenset[str], ...]
    table: str
    concept: str
    is_compound: bool = False

    def matches(self, words: Sequence[frozenset[str]]) -> bool:
        """Return whether this phrase matches the first words of a text.

        `words` has the set of forms of each word.
        """
        if len(words) < len(self.words):
            return False
        for own, given in zip(reversed(self.words), reversed(words[: len(self.words)]), strict=True):
            if own.isdisjoint(given):
                return False
        return True


@dataclass(slots=True)
class Lexicon:
    """The words and phrases that the comparison of facts needs, of all languages.

    Attributes:
        words: entries of one word, by its forms.
        longer: entries of several words, by the forms of their first word and then of their second.
        numbers: numbers by the forms of their words.
        roles: the meaning, such as `from`, of each preposition that has a contrary preposition.
        word_lists: lists of words that the rules of alignment name, by name of the list.
    """

    words: dict[str, list[Entry]] = field(default_factory=dict)
    longer: dict[str, dict[str, list[Entry]]] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    word_lists: dict[str, frozenset[str]] = field(default_factory=dict)

    def add(self, entry: Entry) -> None:
        for form in entry.words[0]:
            if len(entry.words) == 1:
                self.words.setdefault(form, []).append(entry)
                continue
            for second in entry.words[1]:
                self.longer.setdefault(form, {}).setdefault(second, []).append(entry)

    def find_entries(self, words: Sequence[frozenset[str]]) -> list[Entry]:
        """Return the entries that match the first words of a text, the longest first.

        `words` has the set of forms of each word.
        """
        if self.longer.keys().isdisjoint(words[0]):
            return list(find_word_entries(words[0]))
        found = {
            id(entry): entry
            for form in (words[0] if len(words) > 1 else ())
            if (seconds := self.longer.get(form)) is not None
            for second in words[1]
            for entry in seconds.get(second, ())
            if entry.matches(words)
        }
        longest = sorted(found.values(), key=lambda entry: -len(entry.words))
        return [*longest, *find_word_entries(words[0])]

    def find_number(self, word: frozenset[str]) -> float | None:
        """Return the number that a word means, given its lookup forms; None if it is not a number."""
        if self.numbers.keys().isdisjoint(word):
            return None
        return next(self.numbers[form] for form in word if form in self.numbers)


_WORDS: Final = files(__package__) / "words"

_LOADING: Final = Lock()
"""Lock that makes other threads wait while one thread loads the lexicon."""


@cache
def load_lexicon() -> Lexicon:
    """Return the lexicon of all languages. A process loads it once, in 0.7 s; all threads share it."""
    with _LOADING:
        return _load_entries()


@cache
def list_words(list_name: str) -> frozenset[str]:
    """Return the words of the list with this name."""
    return load_lexicon().word_lists[list_name]


@cache
def _load_entries() -> Lexicon:
    loaded = Lexicon()
    for language in LANGUAGES:
        document = _load_document(language)
        thesaurus = (_WORDS / f"{language}.txt").read_text(encoding="utf-8")
        bare = {stem_word(word) for mark in ("stop", "light") for word in document[mark].split()}
        for entry in chain(_read_entries(document), _read_thesaurus(thesaurus, language, bare)):
            loaded.add(entry)
        for role, words in document["roles"].items():
            loaded.roles |= dict.fromkeys(words.split(), role)
        for name, words in document["word_lists"].items():
            known = loaded.word_lists.get(name, frozenset())
            loaded.word_lists[name] = known.union(fold_characters(words).split())
        for word, number in document["numbers"].items():
            loaded.numbers |= dict.fromkeys(_list_number_forms(fold_characters(word)), float(number))
    return loaded


@cache
def _load_people() -> frozenset[str]:
    """Return the lookup forms of the single words for people, without loading the whole lexicon."""
    listed = (words for language in LANGUAGES for words in _load_document(language)["people"].values())
    entries = (_build_entry(each, "people", "") for words in listed for each in _split_list(words, ","))
    return frozenset(form for entry in entries if len(entry.words) == 1 for form in entry.words[0])


def _load_document(language: str) -> dict[str, Any]:
    return tomllib.loads((_WORDS / f"{language}.toml").read_text(encoding="utf-8"))


@lru_cache(maxsize=WORDS)
def list_lookup_forms(word: str) -> frozenset[str]:
    """Return the forms by which a lower-case word is looked up."""
    return list_forms(word).union(map(build_exact_form, list_lemmas(word)))


@lru_cache(maxsize=WORDS)
def find_word_entries(forms_of_word: frozenset[str]) -> tuple[Entry, ...]:
    """Return the entries that consist of one word, given the word's forms."""
    words = load_lexicon().words
    found = {id(entry): entry for form in forms_of_word for entry in words.get(form, ())}
    return tuple(found.values())


def is_in_word_list(word: str, list_name: str) -> bool:
    """Return whether a lower-case word, or one of its lookup forms, is in the list with this name."""
    words = list_words(list_name)
    return word in words or not words.isdisjoint(list_lookup_forms(word))


def is_in_table(word: str, table: str) -> bool:
    """Return whether a lower-case word alone is an entry of a table."""
    return any(entry.table == table for entry in find_word_entries(list_lookup_forms(word)))


def is_date_or_unit(word: str) -> bool:
    """Return whether a lower-case word alone is an entry of the table `dates` or `units`, such as "week"."""
    return is_in_table(word, "dates") or is_in_table(word, "units")


def names_people(word: str) -> bool:
    """Return whether a lower-case word stands for people by their relation to another person: "sister"."""
    return not list_lookup_forms(word).isdisjoint(_load_people())


def _read_entries(document: Mapping[str, Any]) -> Iterator[Entry]:
    """Yield the entries of all tables but `word_lists`, `roles` and `numbers`.

    A string is a plain list of words. A section has lists of words by the name of a concept or an axis.
    """
    for table, listed in document.items():
        if isinstance(listed, str):
            separator = "," if "," in listed else None
            yield from (_build_entry(each, table, table) for each in _split_list(listed, separator))
    for table in TABLES:
        for concept, listed in document[table].items():
            yield from (_build_entry(each, table, concept) for each in _split_list(listed, ","))
    for axis, poles in document["opposites"].items():
        for pole, listed in zip("+-", poles.split("|"), strict=True):
            yield from (
                _build_entry(each, "opposites", f"{axis}{pole}") for each in _split_list(listed, None)
            )
    for table in AXES:
        for axis, poles in document[table].items():
            for pole, listed in zip("+-", poles.split("|"), strict=True):
                yield from (_build_entry(each, table, f"{axis}{pole}") for each in _split_list(listed, ","))


def _read_thesaurus(thesaurus: str, language: str, bare: AbstractSet[str]) -> Iterator[Entry]:
    """Yield an entry for each word of the thesaurus; the words of a line have the same meaning.

    A word matches as it is written and by its stem; the thesaurus also lists other forms, such as "taught".

    Args:
        thesaurus: the lines.
        language: the language of the words.
        bare: stems of words without content.
    """
    for number, line in enumerate(thesaurus.splitlines()):
        for each in _split_list(line, ","):
            parts = fold_characters(each).casefold().split()
            words = tuple(frozenset((word, stem_word(word))) for word in parts)
            is_compound = sum(stem_word(word) not in bare for word in parts) > 1
            yield Entry(words, "same", f"{language}{number}", is_compound)


def _split_list(listed: str, separator: str | None) -> list[str]:
    return [word.strip() for word in listed.split(separator) if word.strip()]


def _build_entry(words: str, table: str, concept: str) -> Entry:
    parts = fold_characters(words).casefold().replace("_", " ").split()
    exact_tables = _EXACT_IN_RUSSIAN if is_cyrillic(words) else EXACT
    if table in exact_tables and len(parts) == 1:
        return Entry((_list_exact_forms(parts[0]),), table, concept)
    return Entry(tuple(map(_select_phrase_forms, parts)), table, concept)


def _list_exact_forms(word: str) -> frozenset[str]:
    """Return the forms by which only the dictionary forms of a word are matched."""
    found = list_lemmas(word)
    return frozenset(map(build_exact_form, {word} if word in found else found))


def _list_number_forms(word: str) -> frozenset[str]:
    """Return the forms by which the word of a number is matched.

    A Russian word is matched without stemming: «стоит» (costs) has the stem of «сто» (hundred).
    """
    return _list_exact_forms(word) if is_cyrillic(word) else list_forms(word)


def _select_phrase_forms(word: str) -> frozenset[str]:
    """Return the forms by which a word of an entry is matched, for entries that also match by stems.

    A Russian stem of at most `SHARED_STEM` letters is left out if the word has a longer form, because other
    words may have the same stem: "жен" is the stem of "жениться" (marry) and of "жена" (wife).
    """
    found = list_forms(word)
    if not is_cyrillic(word):
        return found
    return frozenset(form for form in found if len(form) > SHARED_STEM or form == word) or found


def build_exact_form(word: str) -> str:
    """Return the form by which only the dictionary form of a word is matched.

    So "manager" does not match "managed", and "другой" (other) does not match "друг" (friend).
    """
    return f"={word}"
