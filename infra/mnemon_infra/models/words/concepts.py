"""Concepts of words, in English and Russian.

Texts about the same thing share a concept even if they share no word: a question may say `job`, in Russian
`работа`, and the message `office`, in Russian `контора`. The concepts are terms of sparse vectors, beside the
words, so that searches weigh them by rarity too.

A concept may have members, such as the makes of cars. A text with a member has the concept, so that "What is
my car?" finds "I drive a Skoda". A query with a member does not, so that "Skoda" does not find other makes.
"""

import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final, NamedTuple

from mnemon_infra.models.embedding import Sparse
from mnemon_infra.models.words import bm25

CONCEPTS_FILE: Final = "concepts.txt"
"""File with one concept in each line: English words, a bar, and Russian words. After `>` follow the members
of the concept, also in both languages. A word may have several concepts.
"""

FIRST_ID: Final = 2**31
"""Id of the first concept. Ids of words are lower."""

QUERY_WEIGHT: Final = 0.5
"""Weight of a concept in a query, as a share of the weight of its heaviest word.

Searches find about as much with any weight from 0.3 to 0.8.
"""

_IMPLIED: Final = tuple(
    (re.compile(rf"\b(?:{phrase})\b", re.IGNORECASE), word)
    for phrase, word in (
        ("where|whereabouts|где|куда|откуда", "city"),
        (r"what (?:do|does|did) .{1,40}?(?<! to) do(?= for (?:a living|work))", "profession"),
        (r"what (?:do|does|did) .{1,40}?(?<! to) do(?=(?: now| again| these days)?\W*$)", "profession"),
        (r"(?<!с )(?<!со )(?<!за )(?<!перед )(?<!над )(?<!под )(?<!между )кем", "profession"),
        (r"чем .{0,40}?(?:занима|зарабатыва)\w+", "profession"),
        ("how old|сколько .{0,30}?лет|когда родил(?:ся|ась)", "age"),
    )
)
"""Phrases of questions, each with a word: a question with the phrase has the concepts of the word."""


class ConceptLexicon(NamedTuple):
    """The concepts of words, and the words of concepts; a word is the id of its stem.

    Attributes:
        query_concepts: for each word, the concepts that it gives to a query.
        text_concepts: for each word, the concepts that it gives to a text; some words give them to texts
            only.
        words: for each concept, the words that give it to a text.
    """

    query_concepts: Mapping[int, frozenset[int]]
    text_concepts: Mapping[int, frozenset[int]]
    words: Mapping[int, frozenset[int]]


def weigh_document(text: str) -> Sparse:
    """Return the weights of a text's words and concepts."""
    words = bm25.weigh_document(text)
    return _add_concepts(
        dict(zip(words.indices, words.values, strict=True)), load_concepts().text_concepts, 1.0
    )


def weigh_query(text: str) -> Sparse:
    """Return the weights of a query's words and concepts."""
    words = bm25.weigh_query(text)
    return add_query_concepts(dict(zip(words.indices, words.values, strict=True)), text)


def add_query_concepts(words: Mapping[int, float], text: str) -> Sparse:
    """Return the weights of a query's words, of their concepts, and of concepts that its phrases imply.

    Args:
        words: the weights, by the ids of stems.
        text: the query, whose phrases may imply concepts.
    """
    weighed = _add_concepts(words, load_concepts().query_concepts, QUERY_WEIGHT)
    if implied := find_implied_concepts(text).difference(weighed.indices):
        return Sparse([*weighed.indices, *implied], [*weighed.values, *[QUERY_WEIGHT] * len(implied)])
    return weighed


def find_concepts(terms: Iterable[int]) -> frozenset[int]:
    """Return the ids of the concepts of a query's words, given the ids of the stemmed words."""
    query_concepts = load_concepts().query_concepts
    return frozenset(concept for term in terms for concept in query_concepts.get(term, ()))


def has_concept(terms: AbstractSet[int], sought: Iterable[int]) -> bool:
    """Return whether a text has one of the concepts `sought`, given the ids of the text's stemmed words."""
    words = load_concepts().words
    return any(not terms.isdisjoint(words[concept]) for concept in sought)


@lru_cache(bm25.RECENT_QUERIES)
def find_implied_concepts(query: str) -> frozenset[int]:
    """Return the ids of the concepts that phrases of a query imply, such as that of places for "where"."""
    implied = " ".join(word for phrase, word in _IMPLIED if phrase.search(query))
    return find_concepts(bm25.weigh_query(implied).indices) if implied else frozenset()


@cache
def load_concepts() -> ConceptLexicon:
    """Return the concepts of all words, read once per process in 0.2 s."""
    lines = (files(__package__) / CONCEPTS_FILE).read_text(encoding="utf-8").splitlines()
    query_concepts: dict[int, set[int]] = {}
    text_concepts: dict[int, set[int]] = {}
    words_of: dict[int, frozenset[int]] = {}
    for concept, line in enumerate(lines, FIRST_ID):
        words, _, members = line.partition(">")
        words_of[concept] = frozenset(bm25.weigh_document(f"{words} {members}").indices)
        for term in bm25.weigh_document(words).indices:
            query_concepts.setdefault(term, set()).add(concept)
        for term in words_of[concept]:
            text_concepts.setdefault(term, set()).add(concept)
    return ConceptLexicon(_freeze_sets(query_concepts), _freeze_sets(text_concepts), words_of)


def _freeze_sets(concepts_of: Mapping[int, set[int]]) -> dict[int, frozenset[int]]:
    return {term: frozenset(concepts) for term, concepts in concepts_of.items()}


def _add_concepts(
    words: Mapping[int, float], concepts_of: Mapping[int, frozenset[int]], share: float
) -> Sparse:
    """Return the weights of words and of their concepts.

    A concept weighs `share` times as much as its heaviest word.
    """
    weights = dict(words)
    for term, weight in words.items():
        for concept in concepts_of.get(term, ()):
            weights[concept] = max(weights.get(concept, 0.0), share * weight)
    return Sparse(list(weights), list(weights.values()))
