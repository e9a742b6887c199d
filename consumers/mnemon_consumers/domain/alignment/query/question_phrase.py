"""Question phrase: a query such as "where I live" or "my car", and the facts that say only its answer."""

import re
from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Final, NamedTuple

from mnemon_consumers.domain.alignment.lexicon import list_words
from mnemon_consumers.domain.alignment.morphology import (
    fold_characters,
    is_cyrillic,
    list_grammemes,
    restore_contractions,
)
from mnemon_consumers.domain.alignment.query.content_words import (
    COMMON_WEIGHT,
    TOKEN,
    ContentWord,
    ContentWords,
    is_same,
)

LONGEST_ANSWER: Final = 3
"""Maximum number of content words of an answer; a longer text probably says more than the answer."""

_PLACES: Final = {"where": frozenset(("in", "at", "near", "outside")), "где": frozenset(("в", "во"))}
"""Questions for a place, each with the prepositions of an answer.

"On" and «на» are absent, because they also introduce things, as in "works on robots".
"""
_QUESTIONS: Final = frozenset(("what", "что", "кем", *_PLACES))
_CASES: Final = {
    "кем": frozenset(("ablt",)),
    "где": frozenset(("loct", "gent", "datv")),
    "что": frozenset(("accs", "nomn", "gent")),
}
"""Russian questions, each with the cases of an answer; several cases have the same forms."""

_PART: Final = re.compile(rf"{TOKEN.pattern}|[^\w\s]")


class QuestionPhrase(NamedTuple):
    """A question about the user.

    Attributes:
        question: the question word; empty for a phrase such as "my car".
        is_about_own: whether the question is about a person or thing of the user, such as "my car".
        predicate: the words after the user, which precede the answer in a fact: `live` of "where I live", or
            `car` of "my car".
    """

    question: str
    is_about_own: bool
    predicate: Sequence[str]


def is_only_answer(fact: ContentWords, query: ContentWords) -> bool:
    """Return whether a query is a question phrase, and a fact says only the answer to it.

    "I live in Ghent" is only the answer to "where I live". "I live in Ghent with two flatmates" says more,
    and "I live with two flatmates" answers another question. The query must agree with the fact.
    """
    asked = _parse_question(query.plain)
    if asked is None:
        return False
    parts = _PART.findall(restore_contractions(fold_characters(fact.text)).rstrip(" .!"))
    words = [part.casefold() for part in parts]
    start = (
        _count_leading(words, "asking_owner", "answer_owners")
        if asked.is_about_own
        else _count_leading(words, "asking_user", "answer_subjects")
    )
    end = start + len(asked.predicate)
    pairs = zip(asked.predicate, words[start:end], strict=False)
    if not all(_is_same_word(word, query, other, fact) for word, other in pairs):
        return False
    for introduction in (asked.is_about_own and list_words("answer_copulas"), _PLACES.get(asked.question)):
        if introduction:
            if words[end : end + 1] == [] or words[end] not in introduction:
                return False
            end += 1
    return _is_one_answer(asked.question, parts[end:], fact)


def _parse_question(words: Sequence[str]) -> QuestionPhrase | None:
    """Return the question of a query; None if the query is not a question phrase about the user."""
    rest = words[_count_leading(words, "requests") :]
    question = rest[0] if rest and rest[0] in _QUESTIONS else ""
    rest = rest[1:] if question else rest
    start = _count_leading(rest, "asking_user", "asking_owner", "before_predicate")
    subject, predicate = rest[:start], rest[start:]
    is_about_own = not list_words("asking_owner").isdisjoint(subject)
    if is_about_own and predicate and predicate[-1] in list_words("answer_copulas"):
        predicate = predicate[:-1]
    if not predicate or not (question or is_about_own):
        return None
    has_user = not list_words("asking_user").isdisjoint(subject)
    is_about_user = has_user or "1per" in list_grammemes(predicate[0])
    return QuestionPhrase(question, is_about_own, predicate) if is_about_own or is_about_user else None


def _count_leading(words: Sequence[str], *list_names: str) -> int:
    """Return the number of words, from the beginning, that are in one of the lists with these names."""
    known = frozenset().union(*map(list_words, list_names))
    return sum(1 for _ in takewhile(known.__contains__, words))


def _is_same_word(word: str, query: ContentWords, other: str, fact: ContentWords) -> bool:
    asked, known = _find_content(word, query), _find_content(other, fact)
    return word == other or (asked is not None and known is not None and is_same(asked, known))


def _find_content(word: str, words: ContentWords) -> ContentWord | None:
    return next((each for each in words.content if each.text == word), None)


def _is_one_answer(question: str, parts: Sequence[str], fact: ContentWords) -> bool:
    """Return whether `parts`, the last words of a fact, are one noun or name with nothing but its adjectives.

    They may have at most `LONGEST_ANSWER` content words. In Russian, their case must answer `question`.
    """
    determiners = list_words("answer_determiners")
    named = [part for part in parts if part != "," and part.casefold() not in determiners]
    content = [word for part in named if (word := _find_content(part.casefold(), fact))]
    if not 0 < len(content) == len(named) <= LONGEST_ANSWER:
        return False
    # "In Ghent, Belgium" is one place; "a Volvo, a Skoda" are two things.
    if "," in parts and question not in _PLACES:
        return False
    # Only a name belongs to the name before it: "New York" and "Ghent, Belgium", but not "Ghent alone".
    after_names = [after for before, after in pairwise(parts) if before[0].isupper() or before == ","]
    if not all(after == "," or after[0].isupper() for after in after_names):
        return False
    cases = _CASES.get(question)
    if cases and any(
        is_cyrillic(word.text) and cases.isdisjoint(list_grammemes(word.text))
        for place, word in enumerate(content)
        if place == 0 or not word.is_capital
    ):
        return False
    # The last word is the noun: "drives trucks fast" says more than the thing.
    is_one = len(content) == 1
    return not content[-1].is_adjective and all(_may_be_in_answer(word, is_one) for word in content)


def _may_be_in_answer(word: ContentWord, is_one: bool) -> bool:
    """Return whether a word may be a noun, a name or an adjective; `is_one` if it is the whole answer."""
    is_common = word.weight <= COMMON_WEIGHT and not (word.is_adjective or word.is_capital)
    if word.is_measure or word.is_person or is_common:
        return False
    if is_cyrillic(word.text):
        return not list_grammemes(word.text).isdisjoint(("NOUN", "ADJF"))
    if word.is_capital or word.is_adjective:
        return True
    # "Studies nursing" has a noun, "lives in ghent studying law" has a participle.
    is_participle = word.text.endswith(("ing", "ed")) and not is_one
    is_addition = word.text.endswith("ly") or word.text in list_words("answer_additions")
    return not (is_participle or is_addition)
