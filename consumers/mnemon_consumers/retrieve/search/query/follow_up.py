"""Follow-up questions: how far a query depends on the messages before it. No I/O, no clock.

"And when was that?" has no word to search for, so the search also uses words of the messages before it. A
query that stands alone uses only its own words: the user may have changed the topic.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from mnemon_consumers.retrieve.search.query.names import list_capitalised_names
from mnemon_infra.models.embedding import Dense, normalise_length
from mnemon_infra.models.words import bm25

LONGEST_ANTECEDENT: Final = 400
"""Maximum number of characters of a preceding message to read; the beginning of a message tells its topic."""

LONGEST_FOLLOW_UP: Final = 400
"""Number of characters above which a query stands alone."""

FADING: Final = 0.5
"""Weight of the last preceding message for a query without content, where the query's own words have 1. The
message before it has half of that weight, and so on."""

USUAL_TERMS: Final = 6
"""Number of terms of a preceding message up to which its weight does not depend on its length. A message with
twice as many terms has half the weight, so that a long answer does not outweigh the question before it."""


class ContentRange(NamedTuple):
    """Amounts of content that tell how far a query depends on the messages before it.

    A term counts once, and a name twice. Between the two amounts, dependence falls evenly.

    Attributes:
        dependent: amount up to which a query depends fully.
        independent: amount from which on a query does not depend.
    """

    dependent: int
    independent: int

    def compute_dependence(self, content: int) -> float:
        """Return the dependence of a query with this amount of content, 0 to 1."""
        share = (self.independent - content) / (self.independent - self.dependent)
        return min(1.0, max(0.0, share))


POINTING_CONTENT: Final = ContentRange(2, 6)
"""Range for queries with a pronoun, or another word that points at something outside of the query."""

CONTINUING_CONTENT: Final = ContentRange(2, 4)
"""Range for queries that begin with a conjunction, and have no word that points outside of the query."""

QUESTION_CONTENT: Final = ContentRange(0, 2)
"""Range for questions without a conjunction at the beginning or a word that points outside of the query."""

_WORD: Final = re.compile(r"[^\W_]+")

_FILLERS: Final = frozenset(
    str.split("""
about actually again also anyone anything anybody else ever everyone exactly former instead last latter maybe
mean okay ok one ones other others please precisely really same tell then thing things too well would could
should may might us will don yes
ага ведь давай вот том всё все еще заодно именно кстати ладно насчет насчёт например откуда ответь подробнее
пожалуйста потом просто расскажи скажи снова соответственно тоже также точно точнее ясно
""")
)
"""Words without a topic, besides the stop words."""

_PRONOUNS: Final = frozenset(
    str.split("""
he him his she her hers they them their theirs himself herself themselves
он его него ему нему им ним нём нем она её ее неё нее ей ней ею нею они их них ими ними
""")
)
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
"""Words that point at something outside of the query: "it", "was that", «там» (there). Phrases such as "this
year" and "the day that" are not among them."""

_CONTINUING: Final = re.compile(
    r"^\W*(?:(?:and|but|or|so|also|then|what about|how about|а|и|но|или|ну|так|тогда|потом)\b)", re.IGNORECASE
)


class Antecedent(NamedTuple):
    """The beginning of a message before the query, with its weight; the query's own words have weight 1."""

    text: str
    weight: float


def weigh_antecedents(dependence: float, preceding: Sequence[str]) -> tuple[Antecedent, ...]:
    """Return the preceding messages that count for a query, newest first.

    Args:
        dependence: how far the query depends on the messages before it, 0 to 1.
        preceding: the messages before it, oldest first; of each, the first `LONGEST_ANTECEDENT` characters
            count.
    """
    if dependence == 0:
        return ()
    texts = [text[:LONGEST_ANTECEDENT] for text in reversed(preceding)]
    return tuple(
        Antecedent(text, dependence * FADING**distance * _weigh_length(text))
        for distance, text in enumerate(texts, 1)
        if text.strip()
    )


def measure_dependence(query: str) -> float:
    """Return how far a query depends on the messages before it, 0 to 1; 0 if it stands alone.

    The more content words a query has, the lower is the result; a name counts as two words. A query without
    content words, such as `really?`, depends fully. A query with content words stands alone unless it has a
    pronoun and no name, has another word that points back, such as "those" or "else", begins with a
    conjunction, or has a question mark. A query without words, and one of more than `LONGEST_FOLLOW_UP`
    characters, stand alone, too.
    """
    if len(query) > LONGEST_FOLLOW_UP:
        return 0.0
    words = [each.lower() for each in _WORD.findall(query)]
    names = {word for name in list_capitalised_names(query) for word in name.lower().split()}
    content = len(bm25.weigh_query(" ".join(set(words) - _FILLERS)).indices) + len(names)
    if content == 0:
        return 1.0 if words else 0.0
    has_pronoun = not names and not _PRONOUNS.isdisjoint(words)
    if has_pronoun or _POINTING.search(query) is not None:
        return POINTING_CONTENT.compute_dependence(content)
    if _CONTINUING.match(query) is not None:
        return CONTINUING_CONTENT.compute_dependence(content)
    return QUESTION_CONTENT.compute_dependence(content) if "?" in query else 0.0


def weigh_query_terms(query: str, antecedents: Sequence[Antecedent]) -> dict[int, float]:
    """Return the weight of each term of a query and of the messages that it depends on."""
    weights: dict[int, float] = {}
    for antecedent in antecedents:
        for term in bm25.weigh_query(antecedent.text).indices:
            weights[term] = max(weights.get(term, 0.0), antecedent.weight)
    return weights | dict.fromkeys(bm25.weigh_query(query).indices, 1.0)


def mix_vectors(query: Dense, antecedents: Sequence[tuple[Dense, float]]) -> Dense:
    """Return the weighted mean, scaled to length 1, of the vectors of a query and of the messages before it.

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


def _weigh_length(text: str) -> float:
    return min(1.0, USUAL_TERMS / max(1, len(bm25.weigh_query(text).indices)))
