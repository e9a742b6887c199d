"""Follow-up questions: how far a query depends on the messages before it. No I/O, no clock.

"And when was that?" has no word to search for, so the messages before it lend their words. A query that
stands by itself borrows none: the user may have changed the topic.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from mnemon_infra.models import bm25
from mnemon_infra.models.embedding import Dense, normalise_length

LONGEST_ANTECEDENT: Final = 400
"""Maximum number of characters of a preceding message to read; the beginning of a message tells its topic."""

LONGEST_FOLLOW_UP: Final = 400
"""Number of characters above which a query stands by itself."""

FADING: Final = 0.5
"""Weight of the last preceding message for a query without content, where the query's own words have 1. The
message before it has half of that weight, and so on."""

USUAL_TERMS: Final = 6
"""Number of terms of a preceding message up to which its weight does not depend on its length. A message with
twice as many terms has half the weight, so that a long answer does not outweigh the question before it."""

_WORD: Final = re.compile(r"[^\W_]+")

_FILLERS: Final = """
about actually again also anyone anything anybody else ever everyone exactly former instead last latter maybe
mean okay ok one ones other others please precisely really same tell then thing things too well would could
should may might us yes
ага ведь давай вот всё все еще заодно именно кстати ладно насчет насчёт например откуда ответь подробнее
пожалуйста потом просто расскажи скажи снова соответственно тоже также точно точнее ясно
"""
"""Words without a topic, besides the stop words."""

_BOUND_BY_NAMES: Final = """
he him his she her hers they them their theirs himself herself themselves
он его него ему нему им ним нём нем она её ее неё нее ей ней ею нею они их них ими ними
"""
"""Pronouns that may mean a person whom the query itself names."""

_POINTING: Final = re.compile(
    r"""
    \b(?:it|its|itself|those|else|same|ones|others|latter|former)\b
    | \bthese\b (?!\ (?:days?|weeks?|months?|years?))
    | \bthis\b (?!\ (?:day|week|weekend|month|year|morning|afternoon|evening|time|spring|summer|autumn|fall
        |winter)\b)
    | \b(?:is|was|were|are|did|does|do|about|of|for|to|from|with|after|before|like|than|at|in|on|by|during)
      \ that\b
    | \bthat\b (?=\W*$)
    | \bthen\b (?=\W*$)
    | \bthere\b (?=\W*$)
    | (?<!is\ )(?<!are\ )(?<!was\ )(?<!were\ ) \bthere\b (?!\ (?:is|are|was|were|be|been)\b | ['’]s)
    | \b(?:which|what|that|other)\ one\b
    | \b(?:это|этого|этому|этим|этом|эта|эту|этой|этот|эти|этих|этими)\b
      (?!\ (?:год|лет|зим|весн|осен|недел|месяц|утр|вечер|раз|выходн))
    | \b(?:тот|та|ту|той|те|тех|теми|тем|того|тому|том)\b (?!,?\ (?:что|кто|как|котор|где|чтобы|же\ сам))
    | \b(?:там|туда|оттуда|тогда|столько|такой|такая|такое|такие)\b (?!,?\ (?:что|кто|как|где|когда|чтобы))
    | \b(?:кто|что|где|куда|когда|чем|кого|о\ чём|о\ чем)\ (?:ещё|еще)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Words that point at something outside of the query: "it", "was that", «там». "This year" and "the day that"
do not."""

_CONTINUING: Final = re.compile(
    r"^\W*(?:(?:and|but|or|so|also|then|what about|how about|а|и|но|или|ну|так|тогда|потом)\b)", re.IGNORECASE
)
_SENTENCE_ENDS: Final = ".!?…"
_OPENING: Final = " \t\n\"'«»„“”(—–-"


class Antecedent(NamedTuple):
    """The beginning of a message before the query, with its weight; the query's own words have 1."""

    text: str
    weight: float


def weigh_antecedents(query: str, preceding: Sequence[str]) -> tuple[Antecedent, ...]:
    """Return the preceding messages that count for a query, newest first.

    Args:
        query: the query.
        preceding: the messages before it, oldest first.
    """
    dependence = measure_dependence(query) if preceding else 0.0
    if dependence == 0:
        return ()
    texts = [text[:LONGEST_ANTECEDENT] for text in reversed(preceding)]
    return tuple(
        Antecedent(text, dependence * FADING**distance * _weigh_length(text))
        for distance, text in enumerate(texts, 1)
        if text.strip()
    )


def measure_dependence(query: str) -> float:
    """Return how far a query depends on the messages before it, 0 to 1; 0 if it stands by itself.

    Content decides, and names count twice: a pronoun, or a conjunction at the beginning, tells little in a
    query that has a topic of its own. A single word is a search for this word, unless it is a question.
    """
    if len(query) > LONGEST_FOLLOW_UP:
        return 0.0
    words = [each.lower() for each in _WORD.findall(query)]
    names = _count_names(query)
    content = len(frozenset(bm25.weigh_query(" ".join(set(words) - _FILLER_WORDS)).indices)) + names
    if content == 0:
        return 1.0 if words else 0.0
    is_pronoun_free = names > 0 or _PRONOUNS.isdisjoint(words)
    if not is_pronoun_free or _POINTING.search(query) is not None:
        return _limit((6 - content) / 4)
    if _CONTINUING.match(query) is not None:
        return _limit((4 - content) / 2)
    return _limit((2 - content) / 2) if "?" in query else 0.0


def weigh_terms(query: str, antecedents: Sequence[Antecedent]) -> dict[int, float]:
    """Return the weight of each term of a query and of the messages that it depends on."""
    weights: dict[int, float] = {}
    for antecedent in antecedents:
        for term in bm25.weigh_query(antecedent.text).indices:
            weights[term] = max(weights.get(term, 0.0), antecedent.weight)
    return weights | dict.fromkeys(bm25.weigh_query(query).indices, 1.0)


def mix_vectors(query: Dense, antecedents: Sequence[tuple[Dense, float]]) -> Dense:
    """Return the weighted mean of the vectors of a query and of the messages before it, of length 1.

    Args:
        query: vector of the query, with weight 1.
        antecedents: vectors of preceding messages, each with its weight.
    """
    if not antecedents:
        return query
    mixed = query.copy()
    for vector, weight in antecedents:
        mixed += np.float32(weight) * vector
    return normalise_length(mixed)


def _count_names(query: str) -> int:
    """Return the number of words with a capital letter within a sentence; 0 if all words have one."""
    if query.isupper() or query.islower():
        return 0
    names = set()
    for match in _WORD.finditer(query):
        before = query[: match.start()].rstrip(_OPENING)
        if match[0][0].isupper() and match[0] != "I" and before and before[-1] not in _SENTENCE_ENDS:
            names.add(match[0].lower())
    return len(names)


def _weigh_length(text: str) -> float:
    return min(1.0, USUAL_TERMS / max(1, len(bm25.weigh_query(text).indices)))


def _limit(share: float) -> float:
    return min(1.0, max(0.0, share))


_FILLER_WORDS: Final = frozenset(_FILLERS.split())
_PRONOUNS: Final = frozenset(_BOUND_BY_NAMES.split())
