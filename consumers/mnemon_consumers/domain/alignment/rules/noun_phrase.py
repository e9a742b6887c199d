"""Noun phrases: whether a word that both facts have only qualifies another thing in one of them."""

from collections.abc import Sequence

from mnemon_consumers.domain.alignment.comparison import SUBSET_SHARE, FactComparison
from mnemon_consumers.domain.alignment.lexicon import list_words
from mnemon_consumers.domain.alignment.morphology import list_grammemes
from mnemon_consumers.domain.alignment.statement import ParsedFact
from mnemon_consumers.domain.alignment.term import Term, TermKind, is_listed


def qualifies_other_thing(facts: FactComparison) -> bool:
    """Return whether a word of both facts only qualifies another thing in one of them.

    For example, "cats" only qualifies "videos" in "Likes videos about cats" beside "Likes cats"; "phone" only
    qualifies "case" in "Bought a phone case" beside "Needs a phone".
    """
    if max(facts.share_old, facts.share_new) < SUBSET_SHARE:
        return False
    # The end of "chocolate" also ends "a bar of chocolate".
    sides = (1,) if facts.new.denies_or_ends else (0, 1)
    return any(_is_narrower(facts, pair, side) for pair in facts.alignment.pairs for side in sides)


def _is_narrower(facts: FactComparison, pair: tuple[Term, Term], side: int) -> bool:
    """Return whether a word of both facts qualifies another thing in the fact of a side: 0 older, 1 newer."""
    if pair[0].kind not in (TermKind.WORD, TermKind.NAME):
        return False
    statement, other = (facts.old, facts.new) if side == 0 else (facts.new, facts.old)
    left = (facts.alignment.old, facts.alignment.new)[side]
    return (qualifies_noun(statement, left, pair[side]) and not find_preposition(other, pair[1 - side])) or (
        _modifies_noun(statement, left, pair[side]) and not _stands_before_noun(other, pair[1 - side])
    )


def qualifies_noun(statement: ParsedFact, left: Sequence[Term], term: Term) -> bool:
    """Return whether a term follows a noun of `left` and a preposition: "videos about cats"."""
    preposition = find_preposition(statement, term)
    return preposition > 0 and any(
        noun.kind in (TermKind.WORD, TermKind.NAME)
        and noun.end == preposition
        and may_be_noun(statement, noun)
        for noun in left
    )


def find_preposition(statement: ParsedFact, term: Term) -> int:
    """Return the index of the preposition before a term and its determiners.

    The result is 0 if there is no preposition, or if it begins the fact.
    """
    at = term.place - 1
    while at > 0 and statement.raw[at] in list_words("determiners"):
        at -= 1
    return at if at > 0 and is_preposition(statement.raw[at]) else 0


def is_preposition(word: str) -> bool:
    """Return whether a word can stand before a value or a limit: "in", "with", "about"."""
    return word in list_words("value_prepositions") or word in list_words("limit_prepositions")


def may_be_noun(statement: ParsedFact, term: Term) -> bool:
    """Return whether a term may be a noun.

    A Russian term may be a noun if the dictionary says so. An English term may be a noun if another term,
    other than adverbs, stands between it and the subject, or if a determiner or "has" stands right before it.
    """
    if not statement.is_english:
        return "NOUN" in list_grammemes(term.text)
    is_first = all(
        other.is_head or other.place >= term.place or other.text in list_words("adverbs")
        for other in statement.terms
    )
    before = statement.find_word_before(term)
    return not is_first or before in list_words("determiners") | list_words("perfect_auxiliaries")


def _modifies_noun(statement: ParsedFact, left: Sequence[Term], term: Term) -> bool:
    """Return whether a term is a Russian adjective or an English noun right before a noun of `left`."""
    nouns = [
        noun
        for noun in left
        if noun.kind is TermKind.WORD
        and noun.place == term.end
        and term.end not in statement.clause_starts
        and noun.is_head == term.is_head
        and not is_listed(noun, "attributes")
    ]
    if not statement.is_english:
        return "ADJF" in list_grammemes(term.text) and any("NOUN" in list_grammemes(n.text) for n in nouns)
    return may_be_noun(statement, term) and any(
        not (noun.stages or noun.text in list_words("participles") or noun.text.endswith(("ly", "ing", "ed")))
        for noun in nouns
    )


def is_genitive_of_noun(statement: ParsedFact, left: Sequence[Term], term: Term) -> bool:
    """Return whether a Russian term is the genitive after a noun of `left`.

    For example, «клуба» is such a term in «правление теннисного клуба» (the board of the tennis club).
    """
    at = term.place - 1
    while at > 0 and "ADJF" in list_grammemes(statement.raw[at]):
        at -= 1
    return "gent" in list_grammemes(term.text) and any(
        noun.place == at and "NOUN" in list_grammemes(noun.text) and not is_listed(noun, "units")
        for noun in left
    )


def _stands_before_noun(statement: ParsedFact, adjective: Term) -> bool:
    return not statement.is_english and "NOUN" in list_grammemes(statement.find_word_after(adjective))
