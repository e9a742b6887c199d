"""Agreement of a query and a fact in word order and tense."""

from collections.abc import Sequence
from typing import Final, TypeAlias

from mnemon_consumers.domain.alignment.lexicon import list_words
from mnemon_consumers.domain.alignment.morphology import is_cyrillic, is_nominative, is_verb, list_grammemes
from mnemon_consumers.domain.alignment.parser import parse_text
from mnemon_consumers.domain.alignment.query.content_words import ContentWord, ContentWords

Pairs: TypeAlias = Sequence[tuple[ContentWord, ContentWord]]
"""Words of a query, each with the same word of the fact."""

_COMPARING_STEM: Final = "предпоч"
_TENSES: Final = frozenset(("past", "pres", "futr"))


def agrees_in_order(query: ContentWords, fact: ContentWords) -> bool:
    """Return whether the common words of query and fact have the same order, where order carries meaning.

    The order tells subject from object for names, persons and compared things. In Russian, the grammatical
    case also tells them apart.
    """
    pairs = _pair_words(query, fact)
    persons = [pair for pair in pairs if any(word.is_name or word.is_person for word in pair)]
    is_compared = _has_comparison(query) or _has_comparison(fact)
    if len(pairs) > 1 and (persons or is_compared):
        places = [fact.content.index(other) for _, other in pairs]
        if places != sorted(places):
            return False
    if is_compared:
        return all(word.text == other.text for word, other in pairs if "NOUN" in list_grammemes(word.text))
    return len(persons) < 2 or all(
        is_nominative(word.text) == is_nominative(other.text)
        for word, other in persons
        if is_cyrillic(word.text) and is_cyrillic(other.text)
    )


def agrees_in_tense(asked: ContentWords, fact: ContentWords) -> bool:
    """Return whether query and fact are about the same time, as far as their verbs tell."""
    pairs = _pair_words(asked, fact)
    if not all(_has_same_tense(word, other) for word, other in pairs):
        return False
    query, known = parse_text(asked.text), parse_text(fact.text)
    marks, known_marks = ((each.is_planned, each.is_ended or each.is_quit) for each in (query, known))
    if marks == known_marks:
        return True
    return not any(marks) and not any(_is_verb(word) or _is_verb(other) for word, other in pairs)


def _pair_words(query: ContentWords, fact: ContentWords) -> Pairs:
    found = ((word, fact.find(word)) for word in query.content)
    return [(word, other) for word, other in found if other is not None]


def _has_comparison(words: ContentWords) -> bool:
    return any(
        word in list_words("query_comparisons") or word.startswith(_COMPARING_STEM) for word in words.plain
    )


def _has_same_tense(word: ContentWord, other: ContentWord) -> bool:
    if word.text == other.text:
        return True
    if is_cyrillic(word.text):
        tenses = [list_grammemes(each.text) & _TENSES for each in (word, other) if is_verb(each.text)]
        return len(tenses) < 2 or not all(tenses) or tenses[0] == tenses[1]
    if any(each.is_name or each.text.endswith("ing") for each in (word, other)):
        return True
    return _is_past(word) == _is_past(other)


def _is_past(word: ContentWord) -> bool:
    text = word.text
    return text in list_words("past_verbs") or (len(text) > 4 and text.endswith("ed"))


def _is_verb(word: ContentWord) -> bool:
    if is_cyrillic(word.text):
        return is_verb(word.text)
    if word.is_name:
        return False
    is_infinitive = word.before in list_words("before_verbs")
    return is_infinitive or word.text.endswith("ing") or _is_past(word)
