"""Matching of the terms of two facts: pairs of terms that say the same, and terms without a counterpart."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final, TypeAlias

from anyascii import anyascii

from mnemon_consumers.domain.alignment.lexicon import list_words
from mnemon_consumers.domain.alignment.morphology import is_cyrillic, list_forms
from mnemon_consumers.domain.alignment.statement import ParsedFact
from mnemon_consumers.domain.alignment.syntax import are_contrary, is_past_form
from mnemon_consumers.domain.alignment.term import Term, TermKind

WordSimilarity: TypeAlias = Callable[[str, str], float]
"""Function that returns the cosine similarity of two words, -1 to 1."""

SIMILAR: Final = 0.55
"""Cosine similarity above which two English words match. Static vectors lack Russian words, which match
only by the lexicon, their forms or their root."""

PREFIX: Final = 5
"""Minimum number of letters, from the beginning, that two words of one root have in common."""

_MATCHED_BY_KEY: Final = (TermKind.NUMBER, TermKind.DATE, TermKind.PERSON)
"""Kinds of terms that match only by a common key, or as a thing and its kind."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """The matched terms of two facts.

    Attributes:
        statements: the older and the newer fact.
        matched: maps the index, in `terms`, of each matched term of the older fact to that of its
            counterpart.
        pairs: the matched terms, each of the older fact with its counterpart in the newer fact.
        old, new: terms of each fact without a counterpart, except those of kind `LIGHT`, in the order of the
            text.
        weight: sum over `pairs` of the mean weight of both terms.
    """

    statements: tuple[ParsedFact, ParsedFact]
    matched: Mapping[int, int]
    pairs: tuple[tuple[Term, Term], ...]
    old: tuple[Term, ...]
    new: tuple[Term, ...]
    weight: float

    @property
    def is_substituted(self) -> bool:
        """Return whether matched terms have the same order, and words with content replace each other."""
        return _is_substituted(*self.statements, self.matched)

    @property
    def kind_pairs(self) -> list[tuple[Term, Term]]:
        """Return the pairs in which one term names a thing exactly and the other term names its kind."""
        return [
            (a, b)
            for a, b in self.pairs
            if a.keys.isdisjoint(b.keys) and (is_kind_of(a, b) or is_kind_of(b, a))
        ]

    def compute_share(self, left: Sequence[Term]) -> float:
        """Return the share, 0 to 1, of a fact's weight that has a counterpart.

        `left` has the terms of the fact that have no counterpart.
        """
        total = self.weight + sum(term.weight for term in left)
        return self.weight / total if total else 0.0


def align_facts(old: ParsedFact, new: ParsedFact, similarity: WordSimilarity | None = None) -> Alignment:
    """Match the terms of two facts: first terms with a common key, then similar terms."""
    of_old: dict[int, int] = {}
    _match_pairs(_pair_common_keys(old, new), of_old)
    left_old = [i for i, term in enumerate(old.terms) if i not in of_old and _is_comparable(term)]
    matched = set(of_old.values())
    left_new = [j for j, term in enumerate(new.terms) if j not in matched and _is_comparable(term)]
    alike = [
        (score, -abs(i - j), i, j)
        for i in left_old
        for j in left_new
        if (score := _measure_likeness(old.terms[i], new.terms[j], similarity)) > 0
    ]
    _match_pairs(alike, of_old)
    pairs = tuple((old.terms[i], new.terms[j]) for i, j in sorted(of_old.items()))
    weight = sum((a.weight + b.weight) / 2 for a, b in pairs)
    return Alignment(
        (old, new),
        of_old,
        pairs,
        _list_unmatched(old, of_old),
        _list_unmatched(new, set(of_old.values())),
        weight,
    )


def _pair_common_keys(old: ParsedFact, new: ParsedFact) -> list[tuple[float, int, int, int]]:
    """Return the pairs of terms that have a key in common, each with its score.

    Returns:
        For each pair: the score; the distance of the indexes, negative; the index in `old.terms`; and the
        index in `new.terms`.
    """
    places: dict[str, list[int]] = {}
    for j, term in enumerate(new.terms):
        for key in term.keys:
            places.setdefault(key, []).append(j)
    pairs = {(i, j) for i, term in enumerate(old.terms) for key in term.keys for j in places.get(key, ())}
    return [(1.0, -abs(i - j), i, j) for i, j in pairs]


def _match_pairs(scored: list[tuple[float, int, int, int]], of_old: dict[int, int]) -> None:
    """Add pairs to the matched terms, the best score first; a term is in one pair at most.

    Args:
        scored: pairs of indexes with their scores, as `_pair_common_keys` returns them.
        of_old: maps the index of each matched term of the older fact to that of its counterpart.
    """
    taken = set(of_old.values())
    for _, _, i, j in sorted(scored, reverse=True):
        if i not in of_old and j not in taken:
            of_old[i] = j
            taken.add(j)


def _list_unmatched(statement: ParsedFact, matched: Container[int]) -> tuple[Term, ...]:
    return tuple(
        term for i, term in enumerate(statement.terms) if i not in matched and term.kind is not TermKind.LIGHT
    )


def _is_comparable(term: Term) -> bool:
    """Return whether a term may match a term with which it has no key in common."""
    return term.kind not in _MATCHED_BY_KEY or bool(term.kinds)


def _measure_likeness(a: Term, b: Term, similarity: WordSimilarity | None) -> float:
    """Return how alike two terms without a common key are, 0 to 1; terms with 0 do not match."""
    if (a.kinds or b.kinds) and (is_kind_of(a, b) or is_kind_of(b, a)):
        return 0.7
    if a.kind in _MATCHED_BY_KEY or b.kind in _MATCHED_BY_KEY or (a.opposites and are_opposite(a, b)):
        return 0.0
    if a.sorts and b.sorts:
        return 0.0  # "nuts" and "peanuts"
    if a.kind is TermKind.NAME or b.kind is TermKind.NAME:
        return 0.9 if _romanize_name(a.text) == _romanize_name(b.text) else 0.0
    if _have_one_root(a.text, b.text):
        return 0.8
    if similarity is None or not (_is_english_word(a.text) and _is_english_word(b.text)):
        return 0.0
    near = similarity(a.text, b.text)
    return near * 0.8 if near > SIMILAR else 0.0


def are_opposite(a: Term, b: Term) -> bool:
    """Return whether two terms are opposite poles of one axis."""
    return any(f"{pole[:-1]}{'-' if pole[-1] == '+' else '+'}" in b.opposites for pole in a.opposites)


def is_kind_of(particular: Term, general: Term) -> bool:
    """Return whether the first term is a kind of the second term, as a violin is an instrument.

    Every name counts as a kind of "place".
    """
    if "place+" in general.kinds and particular.kind is TermKind.NAME:
        return True
    return any(f"{pole[:-1]}+" in general.kinds for pole in particular.kinds if pole.endswith("-"))


def have_contrary_roles(a: Term, b: Term) -> bool:
    """Return whether two matching terms have contrary roles, such as from Rome and to Rome."""
    return bool(a.role and b.role) and are_contrary(a.role, b.role)


def _is_english_word(text: str) -> bool:
    return " " not in text and not is_cyrillic(text)


@lru_cache(maxsize=50_000)
def _romanize_name(name: str) -> str:
    return anyascii(name).casefold()


def _have_one_root(a: str, b: str) -> bool:
    if a[:PREFIX] != b[:PREFIX]:
        return False
    pairs = enumerate(zip(a, b, strict=False))
    shared = next((at for at, (x, y) in pairs if x != y), min(len(a), len(b)))
    return shared >= PREFIX and max(len(a), len(b)) - shared <= 4


def _is_substituted(old: ParsedFact, new: ParsedFact, matched: Mapping[int, int]) -> bool:
    """Return whether matched terms have the same order, and words with content replace each other."""
    places = [matched[i] for i in sorted(matched)]
    if places != sorted(places) or len(matched) == len(old.terms) == len(new.terms):
        return False
    of_new = {j: i for i, j in matched.items()}
    a = [_mark_token(old, token, token if token in matched else None) for token in old.tokens]
    b = [
        _mark_token(new, token, of_new.get(token) if isinstance(token, int) else None) for token in new.tokens
    ]
    changes = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    kept = sum(mark.startswith("=") for tag, i1, i2, _, _ in changes if tag == "equal" for mark in a[i1:i2])
    return kept == len(matched) and any(
        tag == "replace" and _has_content(old, old.tokens[i1:i2]) and _has_content(new, new.tokens[j1:j2])
        for tag, i1, i2, j1, j2 in changes
    )


def _mark_token(statement: ParsedFact, token: int | str, pair: int | str | None) -> str:
    """Return the string by which a token is compared.

    For a matched term, it is made from `pair`, the index of the older fact's term. For any other token, it is
    the word.
    """
    if isinstance(pair, int):
        return f"={pair}"
    return token if isinstance(token, str) else statement.terms[token].text


def _has_content(statement: ParsedFact, tokens: Sequence[int | str]) -> bool:
    return any(
        isinstance(token, int) and statement.terms[token].kind is not TermKind.LIGHT for token in tokens
    )


def differ_in_tense(a: Term, b: Term) -> bool:
    """Return whether two matching terms have one verb, and only one of them has it in the past tense.

    For example, the result is True for "collects" and "collected".
    """
    return any(
        is_past_form(verb) != is_past_form(other) and _are_forms_of_one_verb(verb, other)
        for verb in a.text.split()
        for other in b.text.split()
    )


def _are_forms_of_one_verb(verb: str, other: str) -> bool:
    """Return whether words of matching terms may be forms of one verb.

    An irregular past form, such as "bought", counts as a form of every verb with the same first letter.
    """
    is_irregular = not list_words("past_verbs").isdisjoint((verb, other))
    return not list_forms(verb).isdisjoint(list_forms(other)) or (is_irregular and verb[0] == other[0])
