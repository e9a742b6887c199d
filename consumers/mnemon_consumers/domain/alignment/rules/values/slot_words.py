"""Words of a slot: the words that the lexicon lists for the values of an attribute."""

from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import Final

from mnemon_consumers.domain.alignment.lexicon import list_lookup_forms, list_words, load_lexicon
from mnemon_consumers.domain.alignment.term import Term, TermKind, is_listed

NAMED_SLOTS: Final = ("employer", "vehicle", "provider", "device", "school")
"""Slots whose value is a name."""

WORD_SLOTS: Final = ("workplace", "proficiency", "study_year")
"""Slots whose value is one of the words that the lexicon lists for the slot."""


def are_slot_words(terms: Sequence[Term], slot: str) -> bool:
    """Return whether all terms are words of a slot, or words for a change or a beginning."""
    return not drop_slot_words(terms, slot)


def drop_slot_words(terms: Sequence[Term], slot: str) -> list[Term]:
    """Return the terms that are neither words of a slot nor words for a change or a beginning.

    For `proficiency`, a word for a level or a skill, such as "speaks", is a word of the slot, too.
    """
    words = list_slot_words(slot)
    return [
        term
        for term in terms
        if not (term.kind is TermKind.WORD or (term.kind is TermKind.NAME and not term.place))
        or not (
            is_listed(term, "changed")
            or (slot == "proficiency" and is_listed(term, "levels"))
            or (slot == "proficiency" and term.text in list_words("skill_verbs"))
            or term.text in list_words("beginning_verbs")
            or all(not list_lookup_forms(word).isdisjoint(words) for word in term.text.split())
        )
    ]


@cache
def list_slot_words(slot: str) -> frozenset[str]:
    """Return the forms of all words in the phrases of a slot."""
    known = load_lexicon()
    longer = (entries for seconds in known.longer.values() for entries in seconds.values())
    return frozenset(
        form
        for entries in chain(known.words.values(), longer)
        for entry in entries
        if entry.table == "slots" and entry.concept == slot
        for word in entry.words
        for form in word
    )
