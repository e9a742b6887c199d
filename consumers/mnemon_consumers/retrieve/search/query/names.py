"""Recognition of people's names in other spellings, short forms, grammatical cases and alphabets.

No clock, no network.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from itertools import combinations
from typing import Final, NamedTuple

from anyascii import anyascii
from nicknames import name_triplets
from rapidfuzz.distance import OSA, JaroWinkler

from mnemon_consumers.domain.alignment.morphology import (
    fold_characters,
    is_cyrillic,
    is_known_word,
    is_proper_name,
    list_grammemes,
    list_lemmas,
    list_name_lemmas,
)
from mnemon_infra.models.scripts import UNSPACED

LONGEST_QUERY: Final = 2_000
"""Maximum number of characters of a query to read, from its beginning."""

LONGEST_NAME: Final = 200
"""Maximum number of characters of a name to read, from its beginning."""

SIMILAR: Final = 0.9
"""Minimum Jaro-Winkler similarity of two spellings of one name.

From 0.85 to 0.92 all pairs in the tests come out right; above, Elise and Elisa differ.
"""

_SHORTEST_SIMILAR: Final = 5
"""Minimum number of letters of spellings that may differ; shorter names differ in one letter too often."""

_SHORTEST_SOUND: Final = 4
"""Minimum number of letters of a phonetic key that tells a name, unless the word itself is a known name."""

_LONG: Final = 7
"""Number of letters from which two spellings of one name may differ in two places instead of one."""

_SHORTEST_OWNER: Final = 3
"""Minimum number of letters of a name that may have a possessive without an apostrophe."""

_SHORTEST_CAPITALISED: Final = 3
"""Minimum number of letters of a word that counts as a name because of its capital letter."""

_LATIN_END: Final = "\u0250"
"""The first character after the Latin letters of European languages."""

_VOWELS: Final = "aeiou"

_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_PLAIN_WORD: Final = re.compile(r"[^\W_]+")
_SENTENCE_END: Final = re.compile(r"[.!?…:\n]")
_TIME_BEFORE: Final = re.compile(
    r"(?:\d(?:st|nd|rd|th)?|\b(?:in|of|since|until|till|during|last|this|next|by|from|on|early|late|mid))[\s-]+\Z",
    re.IGNORECASE,
)
_TIME_REACH: Final = 12
"""Number of characters before a month in which its preposition stands."""
_TIME_AFTER: Final = re.compile(r",?\s+\d")
_POSSESSIVE: Final = re.compile(r"(.{2,})ин(?:а|о|ы|у|ой|ого|ому|ым|ом|ых|ыми)?")
"""Russian possessive of a name in -а or -я: "Сашина" (Sasha's), "Катиного" (Katya's)."""

_SOUNDS: Final = tuple(
    (re.compile(pattern), sound)
    for pattern, sound in (
        (r"[^a-z0-9]", ""),
        (r"dzh|zh", "j"),
        (r"kh", "h"),
        (r"ph", "f"),
        (r"th", "t"),
        (r"ck|q", "k"),
        (r"x", "ks"),
        (r"(?<=[b-df-hj-np-tv-xz])yo", "e"),
        (r"w", "v"),
        (r"z", "s"),
        (r"c(?=[eiy])", "s"),
        (r"c(?!h)", "k"),
        (r"g(?=[eiy])", "j"),
        (r"(?<=[^sc])h", ""),
        (r"^ye", "e"),
        (r"y", "i"),
        (r"ee", "i"),
        (r"oo|ou", "u"),
        (r"ae", "e"),
        (r"(.)\1+", r"\1"),
        (r"(?:ie|ei)$", "i"),
    )
)
"""Letters that spellings and transliterations of one name exchange, in the order of replacement."""


class NameWord(NamedTuple):
    """A word of a name: its text in lower case, and its phonetic key."""

    text: str
    sound: str


@dataclass(frozen=True, slots=True)
class PossibleName:
    """A word that may be a name.

    Attributes:
        texts: the word in lower case, and its nominative.
        sounds: phonetic keys of `texts`.
        others: phonetic keys of the word's short forms, full names and dictionary forms.
        possessives: phonetic keys of the names whose possessive the word may be.
        similar: phonetic keys that also match names with one or two other letters.
        keys: all texts and phonetic keys by which a name is looked up.
    """

    texts: frozenset[str]
    sounds: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    possessives: frozenset[str] = frozenset()
    similar: frozenset[str] = frozenset()
    keys: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", self.texts.union(self.sounds, self.others, self.possessives))


class _QueryWord(NamedTuple):
    """A word of a query: the name that it may be, and whether it may be a month or a season instead."""

    name: PossibleName | None
    may_be_time: bool


@dataclass(frozen=True, slots=True)
class NameIndex:
    """Names by the texts and by the phonetic keys of their words.

    Attributes:
        texts: for each word of a name, in lower case, the names that have it.
        sounds: for each phonetic key of a word, the names that have the word.
        keys: all texts and phonetic keys.
        unspaced: the texts in scripts without spaces between words.
        long_sounds: by first letter, the phonetic keys of at least `_SHORTEST_SIMILAR` letters, which a query
            may misspell.
    """

    texts: Mapping[str, AbstractSet[str]]
    sounds: Mapping[str, AbstractSet[str]]
    keys: frozenset[str] = field(init=False)
    unspaced: Sequence[str] = field(init=False)
    long_sounds: Mapping[str, Sequence[str]] = field(init=False)

    def __post_init__(self) -> None:
        long_sounds: dict[str, list[str]] = {}
        for sound in self.sounds:
            if len(sound) >= _SHORTEST_SIMILAR:
                long_sounds.setdefault(sound[0], []).append(sound)
        object.__setattr__(self, "keys", frozenset((*self.texts, *self.sounds)))
        object.__setattr__(self, "unspaced", tuple(filter(UNSPACED.fullmatch, self.texts)))
        object.__setattr__(self, "long_sounds", long_sounds)

    def find_names(self, word: PossibleName) -> AbstractSet[str]:
        """Return the names that fit a word best.

        The names are found as written, else by phonetic key, by another form of the word, by a similar key,
        or as the owner that a possessive names; the first way that finds a name counts.
        """
        if word.keys.isdisjoint(self.keys):
            return (
                _collect_names(self.sounds, self._list_similar_sounds(word)) if word.similar else frozenset()
            )
        return (
            _collect_names(self.texts, word.texts)
            or _collect_names(self.sounds, word.sounds)
            or _collect_names(self.sounds, word.others)
            or _collect_names(self.sounds, self._list_similar_sounds(word))
            or _collect_names(self.sounds, word.possessives)
        )

    def _list_similar_sounds(self, word: PossibleName) -> AbstractSet[str]:
        return {
            sound
            for each in word.similar
            for sound in self.long_sounds.get(each[:1], ())
            if _is_similar(each, sound)
        }


@dataclass(frozen=True, slots=True)
class GivenNames:
    """Given names and their short forms.

    Attributes:
        relatives: maps the phonetic key of a name or a short form to the keys of the names and forms that may
            mean the same person.
        spellings: these names and forms as they are written, in Latin letters.
        russian: the Russian names and short forms, in Cyrillic letters.
        transliterations: phonetic keys of `russian`, if they have at least `_SHORTEST_SIMILAR` letters.
        words: English names that are also ordinary words.
        names_foremost: those of `words` that mean a person at the beginning of several capitalised words.
        function_words: those of `words` that are not a name even at the beginning of a sentence.
        mostly_ordinary_words: English names that are more often another word than a form of a name.
        sound_alikes: ordinary words that only sound like a name.
        times: months and seasons.
        particles: words of a speaker's name that do not identify a person, such as `Dr`.
    """

    relatives: Mapping[str, AbstractSet[str]]
    spellings: frozenset[str]
    russian: frozenset[str]
    transliterations: frozenset[str]
    words: frozenset[str]
    names_foremost: frozenset[str]
    function_words: frozenset[str]
    mostly_ordinary_words: frozenset[str]
    sound_alikes: frozenset[str]
    times: frozenset[str]
    particles: frozenset[str]


def find_mentioned_names(query: str, names: Iterable[str]) -> frozenset[str]:
    """Return the names that a query has, in any spelling, short form, grammatical case or alphabet that fits.

    Only the first `LONGEST_QUERY` characters of the query are read.

    A word of the query that fits several names means those that it fits best: "Kate" means Kate and not
    Katherine, and "Саша" (Sasha) both Александр (Alexander) and Александра (Alexandra). Of Anna Smith and
    Anna Jones, "Anna Smith" means only the first; without Anna Smith among the names, it means Anna Jones.
    """
    words = _match_names(query, names)
    return frozenset(name for name, own in words.items() if not any(own < other for other in words.values()))


def find_name_words(query: str, names: Iterable[str]) -> frozenset[str]:
    """Return the words of a query, in lower case and in the nominative too, by which it mentions names."""
    return frozenset().union(*_match_names(query, names).values())


def _match_names(query: str, names: Iterable[str]) -> dict[str, set[str]]:
    """Return the names that words of a query fit, each with these words as `find_name_words` returns them."""
    query = query[:LONGEST_QUERY]
    index = _index_names(frozenset(names))
    words: dict[str, set[str]] = {}
    for word in _read_query(query):
        for name in index.find_names(word):
            words.setdefault(name, set()).update(word.texts)
    if index.unspaced and not query.isascii():
        normalized = fold_characters(query)
        for text in index.unspaced:
            if text in normalized:
                for name in index.texts[text]:
                    words.setdefault(name, set()).add(text)
    return words


def list_capitalised_names(text: str) -> list[str]:
    """Return the runs of capitalised words within sentences, such as "New York".

    Words of one or two letters, such as `OK`, do not count. A text in capitals has no such names.
    """
    if text.isupper():
        return []
    names: list[str] = []
    word_end = name_end = 0
    for match in _PLAIN_WORD.finditer(text):
        start, end = match.span()
        if (
            text[start].isupper()
            and end - start >= _SHORTEST_CAPITALISED
            and word_end
            and not _SENTENCE_END.search(text, word_end, start)
        ):
            if name_end == word_end and text[word_end:start] == " ":
                names[-1] += f" {match[0]}"
            else:
                names.append(match[0])
            name_end = end
        word_end = end
    return names


def is_given_name(word: str) -> bool:
    """Return whether a capitalised word, here in lower case, is a known given name or a short form of one.

    Sound does not decide, because many words sound like a name: "wall" like Val, «дом» (house) like Dom.
    Sound decides only for transliterations of longer Russian names, which have many spellings.
    """
    given = _load_given_names()
    if is_cyrillic(word):
        return "Name" in list_grammemes(word) or not given.russian.isdisjoint(list_name_lemmas(word) | {word})
    if word in given.words:
        return word in given.names_foremost
    return word in given.spellings or spell_by_sound(word) in given.transliterations


def list_other_forms(text: str) -> AbstractSet[str]:
    """Return the other spellings, full and short forms of the English given names in a text, in lower case.

    A name begins with a capital letter. `GivenNames.function_words` are never names.
    `GivenNames.mostly_ordinary_words` at the beginning of a sentence, or in a text in capitals, are names
    only with an apostrophe: "Bill for the water", but "Bill's dog". Forms that are words of either list, such
    as Will, are left out. Russian names are not looked up here: the forms of a Russian name share a concept.
    """
    forms: set[str] = set()
    is_cased = not text.isupper()
    text = fold_characters(text)
    end = -1
    for match in _WORD.finditer(text):
        is_first = end < 0 or _SENTENCE_END.search(text, end, match.start()) is not None
        end = match.end()
        word, apostrophe, _ = match[0].partition("'")
        is_sure = bool(apostrophe) or (is_cased and not is_first)
        if word[0].isupper() and _may_have_forms(word.lower(), is_sure=is_sure):
            forms |= _load_english_forms().get(word.lower(), frozenset())
    return forms


def _may_have_forms(word: str, *, is_sure: bool) -> bool:
    given = _load_given_names()
    return word not in given.function_words and (is_sure or word not in given.mostly_ordinary_words)


@lru_cache(maxsize=10_000)
def split_name(name: str) -> tuple[NameWord, ...]:
    """Return the words of a name without titles, particles and initials; all words if none is left.

    Only the first `LONGEST_NAME` characters of the name count.
    """
    words = [_fold_word(each) for each in _WORD.findall(fold_characters(name[:LONGEST_NAME]))]
    particles = _load_given_names().particles
    telling = [each for each in words if (len(each) > 1 or each.isdigit()) and each not in particles]
    return tuple(NameWord(each, spell_by_sound(each)) for each in telling or words)


@lru_cache(maxsize=20_000)
def spell_by_sound(word: str) -> str:
    """Return the phonetic key of a word, in Latin letters: it is the same for `Aqib` and `Akib`."""
    latin = anyascii(word).casefold()
    for pattern, sound in _SOUNDS:
        latin = pattern.sub(sound, latin)
    return latin or word


def _fold_word(word: str) -> str:
    """Return a word in lower case, and without accents if its letters are Latin."""
    return anyascii(word).lower() if word.isascii() or max(word) < _LATIN_END else word.lower()


@lru_cache(maxsize=1_000)
def _read_query(query: str) -> tuple[PossibleName, ...]:
    return tuple(_read_words(fold_characters(query)))


def _read_words(query: str) -> Iterator[PossibleName]:
    is_cased = not query.isupper() and not query.islower()
    found: set[tuple[str, bool]] = set()
    end = -1
    for match in _WORD.finditer(query):
        is_first = end < 0 or _SENTENCE_END.search(query, end, match.start()) is not None
        end = match.end()
        key = (match[0], is_first)
        if key in found:
            continue
        word = _read_token(match[0], is_cased, is_first)
        if word.name and not (word.may_be_time and _is_time(query, match)):
            found.add(key)
            yield word.name


@lru_cache(maxsize=20_000)
def _read_token(token: str, is_cased: bool, is_first: bool) -> _QueryWord:
    word = _fold_word(token).removesuffix("'s")
    is_capital = is_cased and token[0].isupper()
    is_sure = is_capital and (not is_first or token.lower().endswith("'s"))
    name = None
    if _may_be_name(word, is_cased=is_cased, is_capital=is_capital, is_sure=is_sure):
        is_read_as_text = _matches_text_only(word, is_sure)
        name = PossibleName(list_lemmas(word) | {word}) if is_read_as_text else _read_word(word, is_sure)
    return _QueryWord(name, is_capital and word in _load_given_names().times)


def _may_be_name(word: str, *, is_cased: bool, is_capital: bool, is_sure: bool) -> bool:
    """Return whether a word may be a name.

    In a text with capital letters, an ordinary word in lower case is not a name.

    Args:
        word: the word in lower case.
        is_cased: whether the text has both capital and small letters.
        is_capital: whether the word has a capital letter in such a text.
        is_sure: whether the capital letter can only mark a name: the word does not begin a sentence, or ends
            in "'s".
    """
    given = _load_given_names()
    if is_sure or (is_capital and word not in given.function_words):
        return True
    forms = {word, word.removesuffix("s")}
    if not forms.isdisjoint(given.function_words) or (is_cased and not forms.isdisjoint(given.words)):
        return False
    return not is_cased or not _is_ordinary(word)


def _is_ordinary(word: str) -> bool:
    """Return whether a Russian word may be a name by the dictionary, but is more likely another word."""
    return (
        is_cyrillic(word)
        and not is_proper_name(word)
        and is_known_word(word)
        and bool(list_name_lemmas(word))
    )


def _matches_text_only(word: str, is_sure: bool) -> bool:
    """Return whether a word matches names by its text only, and not by its sound.

    This holds for nicknames such as "Mum", for words that sound like a name ("week" like Vic, "see" like Si),
    and for Russian words of the dictionary that are no names. `is_sure` is that of `_may_be_name`.
    """
    given = _load_given_names()
    if not given.sound_alikes.isdisjoint(list_lemmas(word) | {word}):
        return True
    if is_sure:
        return False
    if is_cyrillic(word):
        return is_known_word(word) and not list_name_lemmas(word)
    owner = word.removesuffix("s")
    return (
        word not in given.spellings
        and owner not in given.spellings
        and len(spell_by_sound(owner)) < _SHORTEST_SOUND
    )


def _is_time(query: str, word: re.Match[str]) -> bool:
    before = query[max(0, word.start() - _TIME_REACH) : word.start()]
    return bool(_TIME_BEFORE.search(before) or _TIME_AFTER.match(query, word.end()))


def _read_word(word: str, is_sure: bool) -> PossibleName:
    texts = frozenset((word,)) | list_name_lemmas(word)
    sounds = frozenset(map(spell_by_sound, texts))
    oblique = frozenset(map(spell_by_sound, list_lemmas(word)))
    relatives = _load_given_names().relatives
    return PossibleName(
        texts,
        sounds,
        oblique.union(*(relatives.get(sound, ()) for sound in sounds | oblique)),
        frozenset(map(spell_by_sound, _list_owners(word))),
        sounds if is_sure else frozenset(),
    )


def _list_owners(word: str) -> Iterator[str]:
    """Yield the names of which a word may be the possessive: "Сашина" or "Sashas", both for "Sasha's"."""
    if word.endswith("s") and not word.endswith("ss") and len(word) > _SHORTEST_OWNER:
        yield word[:-1]
    if is_cyrillic(word) and word not in list_name_lemmas(word) and (found := _POSSESSIVE.fullmatch(word)):
        yield from (found[1] + ending for ending in "ая")


@lru_cache(maxsize=20_000)
def _is_similar(one: str, other: str) -> bool:
    """Return whether two phonetic keys may be those of one name, misspelt or spelt as in another country.

    Two known names with fewer than two forms in common are different, such as Martin and Marvin.
    """
    if one[:1] != other[:1] or min(len(one), len(other)) < _SHORTEST_SIMILAR or not (one + other).isalpha():
        return False
    limit = 2 if min(len(one), len(other)) >= _LONG else 1
    if OSA.distance(one, other, score_cutoff=limit) > limit:
        return False
    if JaroWinkler.similarity(one, other) < SIMILAR:
        return False
    relatives = _load_given_names().relatives
    if one in relatives and other in relatives:
        return _have_matching_endings(one, other) and len(relatives[one] & relatives[other]) > 1
    misses_e = (one + "e" == other and one not in relatives) or (
        one == other + "e" and other not in relatives
    )
    return misses_e or _have_matching_endings(one, other)


def _have_matching_endings(one: str, other: str) -> bool:
    """Return whether the last letters allow the same name: Mario is not Maria, Евгений not Евгения."""
    a, b = one[-1], other[-1]
    if one + "a" == other or one == other + "a":
        return False
    return (a in _VOWELS) == (b in _VOWELS) and {a, b} != {"a", "o"}


@lru_cache(maxsize=2_000)
def _index_names(names: frozenset[str]) -> NameIndex:
    texts: dict[str, set[str]] = {}
    sounds: dict[str, set[str]] = {}
    for name in names:
        for word in split_name(name):
            texts.setdefault(word.text, set()).add(name)
            sounds.setdefault(word.sound, set()).add(name)
    return NameIndex(texts, sounds)


def _collect_names(names: Mapping[str, AbstractSet[str]], keys: AbstractSet[str]) -> AbstractSet[str]:
    if keys.isdisjoint(names):
        return frozenset()
    return {name for key in names.keys() & keys for name in names[key]}


@cache
def _load_names() -> dict[str, str]:
    return tomllib.loads((files(__package__) / "names.toml").read_text(encoding="utf-8"))


@cache
def _load_given_names() -> GivenNames:
    data = _load_names()
    relatives: dict[str, set[str]] = {}
    spellings: set[str] = set()
    fulls: set[str] = set()
    for language in ("english", "russian"):
        for line in data[language].strip().splitlines():
            # anyascii writes the soft sign as an apostrophe.
            spellings.update(anyascii(line).casefold().replace("|", " ").replace("'", "").split())
            full, short = ([spell_by_sound(each) for each in part.split()] for part in line.split("|"))
            _relate_names(relatives, full, short, is_russian=language == "russian")
            fulls.update(full)
    own = frozenset(relatives)
    for name, _, short_form in name_triplets():
        a, b = spell_by_sound(name), spell_by_sound(short_form)
        # The short forms in the package `nicknames` include names of their own, such as Lisa for Alice.
        if a not in own and b not in fulls and a[:1] == b[:1]:
            _relate_pair(relatives, a, b)
            spellings.update((name, short_form))
    russian = frozenset(data["russian"].replace("|", " ").split())
    sounds = map(spell_by_sound, russian)
    transliterations = frozenset(sound for sound in sounds if len(sound) >= _SHORTEST_SIMILAR)
    keys = (
        "words",
        "names_foremost",
        "function_words",
        "mostly_ordinary_words",
        "sound_alikes",
        "times",
        "particles",
    )
    return GivenNames(
        relatives,
        frozenset(spellings),
        russian,
        transliterations,
        *(frozenset(data[key].split()) for key in keys),
    )


@cache
def _load_english_forms() -> Mapping[str, AbstractSet[str]]:
    data = _load_names()
    relatives: dict[str, set[str]] = {}
    for line in data["english"].strip().splitlines():
        full, short = (part.split() for part in line.split("|"))
        _relate_names(relatives, full, short, is_russian=False)
    given = _load_given_names()
    ordinary = given.mostly_ordinary_words | given.function_words
    return {word: frozenset(forms - ordinary - {word}) for word, forms in relatives.items()}


def _relate_names(
    relatives: dict[str, set[str]], full: list[str], short: list[str], *, is_russian: bool
) -> None:
    for name in (*full, *short):
        relatives.setdefault(name, set())
    for a, b in combinations((*full, *short), 2):
        # A Russian uses several short forms; Liz is seldom called Beth.
        if a in full or b in full or is_russian or a[:2] == b[:2]:
            _relate_pair(relatives, a, b)


def _relate_pair(relatives: dict[str, set[str]], one: str, other: str) -> None:
    if one != other:
        relatives.setdefault(one, set()).add(other)
        relatives.setdefault(other, set()).add(one)
