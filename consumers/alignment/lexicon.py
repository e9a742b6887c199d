"""Words that a comparison of facts has to know, by language: read from the TOML files beside this module."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final

from consumers.alignment.morphology import forms, normalize

LANGUAGES: Final = ("en", "ru")

MARKS: Final = ("stop", "light", "negation", "ended", "changed", "plan", "attributes", "professions")
"""Lists of words; every other table of the files maps a name to words."""

TABLES: Final = ("dates", "people", "slots")


@dataclass(frozen=True, slots=True)
class Entry:
    """A word or phrase of the lexicon: its words' forms, the table it stands in, and its concept there."""

    words: tuple[frozenset[str], ...]
    table: str
    concept: str

    def matches(self, words: Sequence[frozenset[str]]) -> bool:
        """Whether words that begin a text are this phrase."""
        return len(words) >= len(self.words) and not any(
            ours.isdisjoint(theirs) for ours, theirs in zip(self.words, words, strict=False)
        )


@dataclass(slots=True)
class Lexicon:
    """Every entry by the forms of its first word, the longest phrases first; numbers by form."""

    entries: dict[str, list[Entry]] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)

    def phrases(self, words: Sequence[frozenset[str]]) -> list[Entry]:
        """The entries that stand at the beginning of these words, the longest first."""
        found = {
            id(entry): entry
            for form in words[0]
            for entry in self.entries.get(form, ())
            if entry.matches(words)
        }
        return sorted(found.values(), key=lambda entry: -len(entry.words))

    def number(self, word: frozenset[str]) -> float | None:
        """The number that a word stands for."""
        return next((self.numbers[form] for form in word if form in self.numbers), None)


@cache
def lexicon() -> Lexicon:
    """The lexicon of all languages, loaded once per process in 0.2 s."""
    loaded = Lexicon()
    for language in LANGUAGES:
        text = files(__package__).joinpath(f"{language}.toml").read_text(encoding="utf-8")
        document = tomllib.loads(text)
        for entry in _entries(document, language):
            for form in entry.words[0]:
                loaded.entries.setdefault(form, []).append(entry)
        for word, number in document["numbers"].items():
            for form in forms(normalize(word)):
                loaded.numbers[form] = float(number)
    return loaded


def _entries(document: Mapping[str, Any], language: str) -> Iterator[Entry]:
    for mark in MARKS:
        value = document[mark]
        listed = value["words"] if isinstance(value, dict) else value
        separator = "," if "," in listed else None
        yield from (_entry(each, mark, mark) for each in _split(listed, separator))
    for table in TABLES:
        for concept, listed in document[table].items():
            yield from (_entry(each, table, concept) for each in _split(listed, ","))
    for number, line in enumerate(document["same"]["groups"].strip().splitlines()):
        yield from (_entry(each, "same", f"{language}{number}") for each in _split(line, ","))
    for axis, poles in document["opposites"].items():
        for pole, listed in zip("+-", poles.split("|"), strict=True):
            yield from (_entry(each, "opposites", f"{axis}{pole}") for each in _split(listed, None))
    for pole, listed in document["feelings"].items():
        yield from (_entry(each, "feelings", pole) for each in _split(listed, None))


def _split(listed: str, separator: str | None) -> list[str]:
    return [word.strip() for word in listed.split(separator) if word.strip()]


def _entry(words: str, table: str, concept: str) -> Entry:
    parts = normalize(words).casefold().replace("_", " ").split()
    return Entry(tuple(forms(part) for part in parts), table, concept)
