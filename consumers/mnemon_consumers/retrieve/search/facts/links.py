"""Links between facts by the names that they share. No I/O, no clock.

"What breed is my sister's dog?" has no word of "Rex is a Labrador". The fact "My sister has a dog named Rex"
has words of the question, and the name that leads to the other fact.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from mnemon_consumers.domain.alignment.morphology import is_proper_name, list_lemmas, list_name_lemmas
from mnemon_consumers.retrieve.search.facts.ranking import RankedFact
from mnemon_consumers.retrieve.search.query.intent import TIMES, split_words
from mnemon_consumers.retrieve.search.query.names import (
    find_mentioned_names,
    is_given_name,
    list_capitalised_names,
    split_name,
)
from mnemon_infra.database.facts.fact_repository import FactRecord
from mnemon_infra.models.months import ENGLISH, RUSSIAN

LEADING_FACTS: Final = 3
"""Maximum number of best facts whose names lead to other facts."""

LINK_SHARE: Final = 0.3
"""Relevance of a link, as a share of the relevance of the fact from which the link leads.

With 0.5, the benchmark LoCoMo gains as much, and the benchmark REALTALK loses.
"""

MOST_FACTS_PER_NAME: Final = 8
"""Maximum number of facts with the same name, if the name is to lead from one of them to another: a name in
more facts, such as the user's own, says little."""

_TIMES: Final = TIMES.union(map(str.lower, ENGLISH + RUSSIAN))

_FIRST_WORD: Final = re.compile(r"[^\W\d_]{2,}")

_SUBJECT: Final = re.compile(
    r"(?!(?:the|user|she|he|it|they|this|that|there|пользователь|он|она|они|это)\b)"
    r"[^\W\d_]{2,}(?:['’]s|,? (?:is|was|has|had|lives|works|likes|loves)\b|,? (?:[—–-]|это) )",
    re.IGNORECASE,
)
"""A name at the beginning of a fact, where a capital letter marks no name: "Rex is", «Рекс — это» (Rex is a).
"""


class NameSpellings(NamedTuple):
    """Spellings of each word of a name, in lower case; those of a Russian word include its nominative.

    A name that begins with a known given name has only this word.
    """

    words: tuple[frozenset[str], ...]


class LeadingFact(NamedTuple):
    """A fact that was found, its relevance, and the names in it that the query lacks."""

    fact: FactRecord
    relevance: float
    names: frozenset[NameSpellings]


def find_leading_facts(query: str, ranked: Sequence[RankedFact]) -> list[LeadingFact]:
    """Return those of the `LEADING_FACTS` best facts that have names which the query lacks, with these names.

    Args:
        query: the query.
        ranked: the facts found, best first.
    """
    asked = split_words(query)
    found = []
    for each in ranked[:LEADING_FACTS]:
        names = _collect_names(each.fact)
        spellings = frozenset(spelling for name in names for word in name.words for spelling in word)
        known = find_mentioned_names(query, spellings) | asked
        rest = frozenset(name for name in names if any(word.isdisjoint(known) for word in name.words))
        if rest:
            found.append(LeadingFact(each.fact, each.parts["relevance"], rest))
    return found


def list_spellings(name: NameSpellings) -> list[str]:
    """Return the spellings of the words of a name, in alphabetical order."""
    return sorted({spelling for word in name.words for spelling in word})


def score_links(leading: Sequence[LeadingFact], facts: Iterable[FactRecord]) -> Mapping[str, float]:
    """Return, for each fact that shares a name with a leading fact, the relevance that the link gives it.

    A name in more than `MOST_FACTS_PER_NAME` facts gives no link.

    Args:
        leading: the facts from which links lead.
        facts: facts that have words of the names of `leading`.
    """
    named: dict[NameSpellings, list[str]] = {name: [] for each in leading for name in each.names}
    spellings = frozenset(spelling for name in named for word in name.words for spelling in word)
    beginnings = {word[: max(2, len(word) - 2)].title() for word in spellings}
    for fact in facts:
        # Few texts have a word that begins like a name, and finding names takes a hundred times as long.
        text = " ".join((fact.text, *map(str.title, fact.names)))
        titled = text.title() if text.islower() else text
        if any(map(titled.__contains__, beginnings)):
            has = find_mentioned_names(text, spellings)
            for name, ids in named.items():
                if not any(word.isdisjoint(has) for word in name.words):
                    ids.append(fact.id)
    links: dict[str, float] = {}
    for each in leading:
        for name in each.names:
            if len(named[name]) <= MOST_FACTS_PER_NAME:
                for fact_id in named[name]:
                    if fact_id != each.fact.id:
                        links[fact_id] = max(links.get(fact_id, 0.0), LINK_SHARE * each.relevance)
    return links


def _collect_names(fact: FactRecord) -> frozenset[NameSpellings]:
    """Return the names in a fact: those that a model extracted with it, else those that rules find."""
    return _build_names(fact.names) if fact.names else _find_names(fact.text)


@lru_cache(maxsize=4_000)
def _find_names(text: str) -> frozenset[NameSpellings]:
    """Return the names in a text by their capital letters, without those that have a word of a time."""
    found = set(list_capitalised_names(text))
    first = _FIRST_WORD.match(text)
    if first and first[0].istitle() and (_SUBJECT.match(text) or is_proper_name(first[0].lower())):
        found.add(first[0])
    return _build_names(name for name in found if _TIMES.isdisjoint(split_words(name)))


def _build_names(names: Iterable[str]) -> frozenset[NameSpellings]:
    return frozenset(name for name in map(_build_name, names) if name.words)


def _build_name(name: str) -> NameSpellings:
    words = [each.text.removesuffix("'s") for each in split_name(name)]
    # A person's given name stands for the whole name.
    telling = words[:1] if words and is_given_name(words[0]) else words
    return NameSpellings(
        tuple(frozenset((word,)) | list_name_lemmas(word) | list_lemmas(word) for word in telling)
    )
