"""Near-duplicates among the hits of a search: texts that say the same in the same words. No I/O."""

import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

from mnemon_consumers.domain.alignment.morphology import is_cyrillic, list_grammemes, stem_word
from mnemon_consumers.retrieve.search.query.intent import LOOKED_AT, TIMES
from mnemon_consumers.retrieve.search.text_properties import describe_text
from mnemon_infra.database.messages.lookup import VisibleMessage
from mnemon_infra.models.words import bm25

Item = TypeVar("Item")

_TOKEN: Final = re.compile(r"[\w.+-]{1,64}@[\w.-]*\w|[^\W_]+(?:'[^\W_]+)*")
"""An e-mail address, of which RFC 5321 allows 64 characters before the @, or a word."""

_NUMBER: Final = re.compile(r"[-−]?\d+(?:[.,:/]\d+)*")
_PUNCTUATION: Final = frozenset("'\"«»„“”‘’`.,;:!?…¿¡()[]{}<>-–—_*/\\|")
"""Characters that comparisons ignore. Other characters tell texts apart: "C" and "C++", "5 $" and "5 €"."""

_CONTRACTIONS: Final = tuple(
    (re.compile(pattern), full)
    for pattern, full in (
        (r"\bcannot\b|\bcan't\b", "can not"),
        (r"\bwon't\b", "will not"),
        (r"n't\b", " not"),
        (r"'m\b", " am"),
        (r"'re\b", " are"),
        (r"'ve\b", " have"),
        (r"'ll\b", " will"),
    )
)

_LIGHT_WORDS: Final = frozenset(
    str.split("a an the and so just very really too oh и а ну вот же очень просто")
)
"""Words without which a text says the same. All other words count, also "not", "was" and "after"."""

_CLAUSE_END: Final = re.compile(r"[;!?]|\.(?!\w)|,(?!\d)|\b(?:and|и)\b")
_NEGATIONS_AND_PREPOSITIONS: Final = """
not no never neither nor не ни нет никогда
about above across after against along around at before behind below beneath beside between beyond by down
during for from in inside into near of off on onto out outside over past per since than through till to
toward towards under until up upon via with within without
"""
_QUALIFIERS: Final = frozenset(_NEGATIONS_AND_PREPOSITIONS.split())
"""Negations and English prepositions; the dictionary knows the Russian prepositions. Each counts together
with the word that follows it.
"""

_PARTICLES: Final = frozenset(("down", "off", "on", "out", "up"))
"""Prepositions that may also be the particle of a verb, before or after its object: "turn the TV off"."""

_VERB_FORMS: Final = frozenset(("past", "1per", "2per", "3per", "plur"))
"""OpenCorpora's grammemes of tense, person and number; verbs that differ in them say something else."""


class WordingFeatures(NamedTuple):
    """Features of the wording of a text. Two texts with the same terms and features say the same.

    Attributes:
        words: the words in lower case that BM25 does not weigh, such as stop words, without `_LIGHT_WORDS`.
        foreign_words: the words in lower case with a letter outside of ASCII, but no Russian letter: stemming
            or folding would make "schön" the same as "schon".
        verb_forms: the terms of verbs with their tense, and for Russian verbs person and number; stemming
            gives "loved" the term of "love", and "учит" (teaches) the term of "учу" (I teach).
        numbers: the numbers, sorted.
        symbols: characters that are neither letters, digits, spaces nor punctuation.
        name_words: words of names within sentences: "Anna loves Boris" differs from "Boris loves Anna".
        is_question: whether the text has a question mark.
        clauses: the clauses, sorted; `_list_clauses` describes the order of the terms in each.
    """

    words: frozenset[str]
    foreign_words: frozenset[str]
    verb_forms: frozenset[tuple[int, str]]
    numbers: tuple[str, ...]
    symbols: frozenset[str]
    name_words: frozenset[str]
    is_question: bool
    clauses: tuple[tuple[int | str, ...], ...]


class _QualifiedTime(NamedTuple):
    """A number or a word of a time.

    Attributes:
        qualifiers: the prepositions and negations before it, without particles, joined by spaces.
        word: the number or word, in lower case.
        place: number of the clause's terms and qualifiers before it.
    """

    qualifiers: str
    word: str
    place: int


def list_distinct_items(
    items: Iterable[Item], get_text: Callable[[Item], tuple[Hashable, str]], limit: int
) -> list[Item]:
    """Return the first items that each say something other than the items before them.

    Args:
        items: items, best first.
        get_text: returns the source of an item and its text; equal texts of two sources are kept.
        limit: maximum number of items to return.
    """
    kept: list[Item] = []
    texts: dict[tuple[Hashable, frozenset[int]], list[str]] = {}
    for item in items:
        if len(kept) >= limit:
            break
        source, text = get_text(item)
        # Few texts have the same terms, so that few have to be compared.
        alike = texts.setdefault((source, describe_text(text).terms), [])
        if not any(says_same(text, other) for other in alike):
            alike.append(text)
            kept.append(item)
    return kept


def describe_source(message: VisibleMessage) -> Hashable:
    """Return the speaker of a message, and its day if the text names a time.

    "Yesterday" means another date each day.
    """
    day = message.sent_at.date() if describe_text(message.content).tells_time else None
    return message.name or message.role, day


def says_same(text: str, other: str) -> bool:
    """Return whether two texts with the same terms say the same.

    Two texts say the same if they have the same words, numbers and symbols in the same order, whatever the
    punctuation (except question marks). They also say the same if they differ only in these respects:

    - letter case, white space, contractions, and punctuation that ends no clause;
    - `_LIGHT_WORDS` that BM25 does not weigh;
    - the order of their clauses, and the place of a time or a particle in its clause;
    - endings that stemming removes, except those of `_VERB_FORMS`.

    A text longer than `LOOKED_AT` characters says the same only as an exact copy of it.
    """
    if text == other:
        return True
    if max(len(text), len(other)) > LOOKED_AT:
        return False
    return _normalise_text(text) == _normalise_text(other) or _describe_wording(text) == _describe_wording(
        other
    )


def _normalise_text(text: str) -> tuple[list[str], list[str], bool]:
    plain = _simplify_text(text)
    symbols = [each for each in plain if _is_symbol(each)]
    return _TOKEN.findall(plain) + _NUMBER.findall(plain), symbols, describe_text(text).is_question


@lru_cache(maxsize=1_000)
def _describe_wording(text: str) -> WordingFeatures:
    plain = _simplify_text(text)
    properties = describe_text(text)
    words = frozenset(_TOKEN.findall(plain)) - _LIGHT_WORDS
    return WordingFeatures(
        frozenset(each for each in words if not bm25.weigh_document(each).indices),
        frozenset(each for each in words if not (each.isascii() or is_cyrillic(each))),
        frozenset(
            (term, form)
            for each in words
            for form in _list_verb_forms(each)
            for term in bm25.weigh_document(each).indices
        ),
        tuple(sorted(_NUMBER.findall(plain))),
        frozenset(filter(_is_symbol, plain)),
        properties.name_words,
        properties.is_question,
        tuple(sorted(_list_clauses(plain), key=str)),
    )


def _list_clauses(text: str) -> list[tuple[int | str, ...]]:
    """Return the clauses of a text, each as terms, particles and times.

    A clause has its terms in order, each term after its negations and prepositions: "tea, not coffee" differs
    from "coffee, not tea", and "from Rome to Paris" from "to Rome from Paris". `_PARTICLES` stand after the
    terms, because "turn off the TV" says the same as "turn the TV off". The numbers and times of a clause
    stand at its end, because "yesterday" or "on Monday" may stand first or last in it. They are sorted by
    their prepositions unless one of them stands between terms: "gym at 5 then dinner before 8".

    A clause with times only, as in "Yesterday, I slept", joins the next clause, or the last one at the end of
    the text.
    """
    clauses: list[tuple[list[int | str], list[_QualifiedTime]]] = []
    times: list[_QualifiedTime] = []
    for clause in _CLAUSE_END.split(text):
        ordered, own_times = _order_terms(clause)
        times += own_times
        if ordered:
            clauses.append((ordered, times))
            times = []
    if times:
        ordered, earlier = clauses.pop() if clauses else ([], [])
        clauses.append((ordered, earlier + times))
    return [(*ordered, *_list_times(own, len(ordered))) for ordered, own in clauses]


def _list_times(times: Sequence[_QualifiedTime], length: int) -> list[str]:
    """Return the times of a clause, sorted by their qualifiers unless one stands between terms.

    A time between terms belongs to one of them: "works from 9 sleeps at 5".

    Args:
        times: the times of the clause, in order.
        length: number of the clause's terms and qualifiers.
    """
    is_free = all(time.place in (0, length) for time in times)
    ordered = sorted(times, key=lambda time: time.qualifiers) if is_free else times
    return [f"{time.qualifiers} {time.word}" for time in ordered]


def _order_terms(clause: str) -> tuple[list[int | str], list[_QualifiedTime]]:
    """Return two lists: the terms of a clause, then its particles; and the times of the clause.

    Each term comes after its `_QUALIFIERS`. One of `_PARTICLES` right before the first term of a
    clause, or "on" right before a time, is a preposition.
    """
    ordered: list[int | str] = []
    particles: list[str] = []
    times: list[_QualifiedTime] = []
    qualifiers: list[str] = []
    for word in _TOKEN.findall(clause):
        if word in _QUALIFIERS or "PREP" in list_grammemes(word):
            qualifiers.append(word)
        elif word in TIMES or word[0].isdigit():
            preposition = ["on"] if qualifiers[-1:] == ["on"] else []
            others, own_particles = _separate_particles(qualifiers[: len(qualifiers) - len(preposition)])
            particles += own_particles
            times.append(_QualifiedTime(" ".join(others + preposition), word, len(ordered)))
            qualifiers = []
        elif terms := [word] if "@" in word else sorted(bm25.weigh_document(word).indices):
            if ordered:
                qualifiers, own_particles = _separate_particles(qualifiers)
                particles += own_particles
            ordered += [*qualifiers, *terms]
            qualifiers = []
    others, own_particles = _separate_particles(qualifiers)
    end = [*ordered, *others, *particles, *own_particles]
    return end, [time._replace(place=len(end)) if time.place == len(ordered) else time for time in times]


def _separate_particles(qualifiers: list[str]) -> tuple[list[str], list[str]]:
    """Return two lists: the qualifiers outside of `_PARTICLES`, and the qualifiers in `_PARTICLES`."""
    particles = [each for each in qualifiers if each in _PARTICLES]
    return [each for each in qualifiers if each not in _PARTICLES], particles


def _list_verb_forms(word: str) -> frozenset[str]:
    """Return the `_VERB_FORMS` of a lower-case word; of English verbs, only the regular past tense."""
    grammemes = list_grammemes(word)
    if "VERB" in grammemes:
        return grammemes & _VERB_FORMS
    is_past = "past" in grammemes or (word.endswith("ed") and stem_word(word) != word)
    return frozenset(("past",)) if is_past else frozenset()


def _simplify_text(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).translate(bm25.YO).casefold().replace("’", "'")
    for pattern, full in _CONTRACTIONS:
        plain = pattern.sub(full, plain)
    return plain


def _is_symbol(character: str) -> bool:
    return not (character.isalnum() or character.isspace() or character in _PUNCTUATION)
