"""Query fit: decides whether the words of a query name a fact, and chooses one of several facts.

A query must not change or remove any fact but the intended one. So a fact has a word of the query only if it
has the same word, in any form or in another alphabet. Vectors and synonyms are not used: vectors treat "rent"
and "house" as alike.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from mnemon_consumers.domain.alignment.lexicon import list_words
from mnemon_consumers.domain.alignment.parser import parse_fact
from mnemon_consumers.domain.alignment.query.agreement import agrees_in_order, agrees_in_tense
from mnemon_consumers.domain.alignment.query.content_words import (
    COMMON_WEIGHT,
    ContentWord,
    ContentWords,
    parse_words,
)
from mnemon_consumers.domain.alignment.query.question_phrase import is_only_answer
from mnemon_consumers.domain.alignment.term import EXACT_KINDS

LONGEST: Final = 500
"""Maximum number of characters of a query to read, from its beginning."""

NEEDED: Final = 0.999
"""Minimum fit of a fact that a query names: the fact has all content words of the query."""

MARGIN: Final = 0.15
"""Minimum lead in fit of the named fact over the next fact."""

SHARE_BY_ONE: Final = 0.4
"""Minimum share of the weight of a fact's words that a query of one word must have.

One word of a long fact seldom names the subject of the fact.
"""

SHARE_BY_SEVERAL: Final = 0.3
"""Minimum share of the weight of a fact's words that a query of several words must have."""

DISAGREEMENT: Final = 0.5
"""Factor for the fit of a fact that disagrees with the query: in person, negation, direction, word order or
tense."""


class FactFit(NamedTuple):
    """A fact that a query may mean, and how well it fits the query: 0 (not at all) to 1 (fully)."""

    id: str
    fit: float


@dataclass(frozen=True, slots=True)
class QueryMatches:
    """The facts that a query may mean.

    Attributes:
        named: the id of the one fact that the query clearly means; None if it means no fact or several.
        ranked: the facts that have at least one of the query's content words, or exactly its words, best
            first.
    """

    named: str | None
    ranked: tuple[FactFit, ...]


def choose_fact(query: str, facts: Iterable[tuple[str, str]]) -> QueryMatches:
    """Choose the fact that a query names; `facts` yields the id and the text of each fact.

    Only the first `LONGEST` characters of the query count.
    """
    asked = parse_words(query[:LONGEST])
    known = {fact_id: parse_words(text) for fact_id, text in facts}
    same = [fact_id for fact_id, words in known.items() if words.plain == asked.plain != ()]
    fits = {
        fact_id: 1.0 if fact_id in same else _measure_fit(asked, words) for fact_id, words in known.items()
    }
    named = same[0] if len(same) == 1 else _find_named_fact(asked, known, fits)
    ranked = sorted(fits, key=lambda each: (each != named, -fits[each]))
    return QueryMatches(named, tuple(FactFit(each, fits[each]) for each in ranked if fits[each] > 0))


def _find_named_fact(
    query: ContentWords, known: Mapping[str, ContentWords], fits: Mapping[str, float]
) -> str | None:
    """Return the id of the fact that the query clearly means; None if there is none.

    Such a fact fits fully, and by `MARGIN` better than every other, and the query cannot mean another fact.
    In a language without rules, the fact has the words of the query as they are. The fact says only the
    answer to a question phrase; or the query has enough of its words (`SHARE_BY_ONE`, `SHARE_BY_SEVERAL`) and
    a word of each of its clauses, and is more than common words, one number, one date or one adjective.
    """
    if not fits:
        return None
    best, *others = sorted(fits, key=lambda each: -fits[each])
    if fits[best] < NEEDED or (others and fits[best] - fits[others[0]] < MARGIN):
        return None
    # Of "Likes dark beer" and "Does not like dark beer", "dark beer" means either, "no beer" the second.
    if not query.denies and any(_may_mean(query, known[other], known[best]) for other in others):
        return None
    if parse_fact(known[best].text).is_clearly_foreign and not _has_equal_words(known[best], query):
        return None
    if is_only_answer(known[best], query):
        return best
    if all(word.weight <= COMMON_WEIGHT for word in query.content):
        return None
    if _says_something_else(known[best], query):
        return None
    if len(query.content) == 1 and (query.content[0].is_measure or query.content[0].is_adjective):
        return None
    needed = SHARE_BY_ONE if len(query.content) == 1 else SHARE_BY_SEVERAL
    return best if known[best].sum_weight_in(query) >= needed * known[best].weight else None


def _may_mean(query: ContentWords, other: ContentWords, best: ContentWords) -> bool:
    """Return whether a query that denies nothing may mean `other` instead of `best`, the fact that fits best.

    `other` must have all words of the query, none of them in a contrary direction. A query of one word may
    mean every fact with this word. A longer query may mean `other` only if the facts differ in negation, or
    in the person while the query names no person.
    """
    found = [(word, other.find(word)) for word in query.content]
    if any(known is None or _is_contrary(word, known) for word, known in found):
        return False
    says_whose = query.people or not list_words("first_person").isdisjoint(query.plain)
    is_of_others = not says_whose and other.people != best.people
    return len(query.content) == 1 or other.denies != best.denies or is_of_others


def _has_equal_words(fact: ContentWords, query: ContentWords) -> bool:
    """Return whether the fact has the words of the query as they are, not in other forms.

    In a language without rules, another form may mean another person: "arbeite" (I work), "arbeitet" (works).
    """
    return {word.text for word in query.content} <= {word.text for word in fact.content}


def _says_something_else(fact: ContentWords, query: ContentWords) -> bool:
    """Return whether the fact has a clause without any word of the query.

    Clauses of only names, dates and numbers do not count.
    """
    parsed = parse_fact(fact.text)
    clauses = [[term for term in parsed.words if term.place in clause] for clause in parsed.clauses]
    telling = [terms for terms in clauses if not all(term.kind in EXACT_KINDS for term in terms)]
    said = [parse_words(" ".join(term.text for term in terms)) for terms in telling]
    return any(words.content and not words.sum_weight_in(query) for words in said)


def _is_contrary(word: ContentWord, other: ContentWord) -> bool:
    return bool(word.direction and other.direction and word.direction != other.direction)


def _measure_fit(query: ContentWords, fact: ContentWords) -> float:
    """Measure how well a query names a fact, 0 to 1.

    The fit is 1 if the fact has every content word of the query, and agrees with it. A disagreement in
    person, negation, direction, word order or tense halves the fit.
    """
    found = query.sum_weight_in(fact)
    if not found:
        return 0.0
    return found / query.weight * (1.0 if _agrees_with_fact(query, fact) else DISAGREEMENT)


def _agrees_with_fact(query: ContentWords, fact: ContentWords) -> bool:
    """Return whether query and fact agree in person, negation, direction, word order and tense."""
    if query.denies != fact.denies:
        return False
    # A query with a person's name may leave out how that person is related to the user.
    is_named = not query.people and any(query.find(name) for name in fact.names)
    if query.people != fact.people and not is_named:
        return False
    for word in query.content:
        other = fact.find(word)
        if other and _is_contrary(word, other):
            return False
    return agrees_in_order(query, fact) and agrees_in_tense(query, fact)
