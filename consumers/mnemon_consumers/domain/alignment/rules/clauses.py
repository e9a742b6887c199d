"""Clauses: the leading statement of a newer fact, and clauses on which the newer fact says nothing."""

from collections.abc import Sequence
from typing import Final

from mnemon_consumers.domain.alignment.comparison import KINDS_OF_DETAILS, FactComparison
from mnemon_consumers.domain.alignment.lexicon import list_words
from mnemon_consumers.domain.alignment.parser import parse_fact
from mnemon_consumers.domain.alignment.rules.values.slot_words import WORD_SLOTS, are_slot_words
from mnemon_consumers.domain.alignment.statement import ParsedFact
from mnemon_consumers.domain.alignment.term import NUMERIC_KINDS, Term, TermKind, begins_with_verb, list_kinds

_ADDRESS_KINDS: Final = frozenset((TermKind.NAME, TermKind.NUMBER))


def find_leading_end(old: ParsedFact, text: str) -> str | None:
    """Return the statement of a newer fact before "and now" or the like, if it denies or ends something.

    For example, this is "Sold the car" in "Sold the car and now cycles". The result is None if the words
    after "and" may take the statement back: if they have a word of the older fact `old`, or a word such as
    "him" or "back".
    """
    words = text.split()
    for at in range(1, len(words)):
        if words[at].lower() in list_words("next_state_conjunctions") and _tells_state(words[at + 1 :]):
            lead = " ".join(words[:at]).rstrip(",;")
            return lead if parse_fact(lead).denies_or_ends and not _takes_back(old, words[at + 1 :]) else None
    return None


def _takes_back(old: ParsedFact, words: Sequence[str]) -> bool:
    said = parse_fact(" ".join(words))
    is_repeated = any(not term.keys.isdisjoint(old.keys) for term in said.words)
    return is_repeated or said.has_word_of("objects") or said.has_word_of("return_words")


def has_unmatched_clause(facts: FactComparison) -> bool:
    """Return whether a clause of the older fact says something on which the newer fact says nothing.

    For example, "Lives in York" says nothing on "is allergic to nuts" in "Lives in Leeds and is allergic
    to nuts". If the facts have no word in common, the result is True only if there are at least
    two such clauses.
    """
    unmatched = [clause for clause in facts.old.clauses if not _is_matched(facts, clause)]
    # If no word has a counterpart, the newer fact is about one of these clauses.
    return len(unmatched) > (0 if facts.has_common_word() else 1)


def joins_clauses(facts: FactComparison) -> bool:
    """Return whether the newer fact joins parts of several clauses of the older fact into fewer clauses.

    For example, "Hates coffee" has a part of both clauses of "Likes coffee but hates tea".
    """
    left = [term.place for term in facts.alignment.old]
    matched = [a.place for a, _ in facts.alignment.pairs if a.kind is not TermKind.LIGHT]
    shared = [
        clause
        for clause in facts.old.clauses
        if any(place in clause for place in left) and any(place in clause for place in matched)
    ]
    return len(shared) > 1 and len(facts.new.clauses) < len(facts.old.clauses)


def reports_unsaid_end(facts: FactComparison) -> bool:
    """Return whether the newer fact tells a denial, an end or a change that no clause of the older one tells.

    For example, "I no longer smoke" ends what "I smoke" says in "I smoke but I'm trying to quit". Only
    clauses with a word of the newer fact count. The result is False if the older fact has a single clause.
    """
    is_moved = facts.new.is_changed and facts.new.is_past
    if len(facts.old.clauses) < 2 or not (facts.new.denies_or_ends or is_moved):
        return False
    matched = [a.place for a, _ in facts.alignment.pairs if a.kind is not TermKind.LIGHT]
    clauses = [
        parse_fact(" ".join(facts.old.raw[clause.start : clause.stop]))
        for clause in facts.old.clauses
        if any(place in clause for place in matched)
    ]
    return not any(
        clause.denies_or_ends == facts.new.denies_or_ends and (clause.is_past or not is_moved)
        for clause in clauses
    )


def _is_matched(facts: FactComparison, clause: range) -> bool:
    """Return whether the newer fact has a counterpart of a clause, or replaces the value in the clause.

    A light word is no counterpart of a clause, nor is a word that the older fact repeats, such as "likes" in
    "likes tea and likes coffee". Neither is a date or a number if the clause has other words, such as
    "birthday" in "birthday 5 May" and "years old" in "is 45 years old since 5 May".
    """
    left = [term for term in facts.alignment.old if term.place in clause]
    if not left:
        return True
    matched = [
        a for a, _ in facts.alignment.pairs if a.place in clause and not _is_repeated(facts, a, clause)
    ]
    if list_kinds(matched) - KINDS_OF_DETAILS or (matched and _is_time(facts, clause)):
        return True
    return not facts.new.is_ended and _belongs_to_value(facts, clause, left)


def _is_repeated(facts: FactComparison, term: Term, clause: range) -> bool:
    """Return whether the older fact has a term outside of a clause, too."""
    return any(not term.keys.isdisjoint(each.keys) for each in facts.old.terms if each.place not in clause)


def _belongs_to_value(facts: FactComparison, clause: range, left: Sequence[Term]) -> bool:
    """Return whether a clause is a part of the value that the newer fact replaces.

    Such parts are the second name in "Leeds, England", the second word in "black and white", the date in
    "on Monday, 5 May", further words of an address, and further words that the lexicon lists for the
    slot.

    Args:
        facts: the facts.
        clause: a clause of the older fact.
        left: its terms that have no counterpart.
    """
    kinds, slots = list_kinds(left), facts.old.slots & facts.new.slots
    is_joined = clause.start > 0 and facts.old.raw[clause.start - 1] in list_words("conjunctions")
    if "residence" in slots:
        places = [term for term in left if term.text in list_words("places")]
        is_address = all(term.kind in _ADDRESS_KINDS or term in places for term in left)
        is_name = kinds == {TermKind.NAME} and len(left) == len(clause)
        return is_address and not is_joined and (bool(places) or is_name)
    if any(are_slot_words(left, slot) for slot in WORD_SLOTS if slot in slots):
        return True
    before = next((t for t in reversed(facts.alignment.old) if t.place < clause.start), None)
    if before is None:
        return False
    is_after_time = before.kind in NUMERIC_KINDS and _is_time(facts, clause)
    if is_after_time and TermKind.DATE in list_kinds(facts.alignment.new):
        return True
    if len(left) < len(clause):
        return False
    if TermKind.WORD not in kinds and kinds in map(list_kinds, _list_bare_clauses(facts)):
        return True
    is_name = kinds == {TermKind.NAME} and before.kind is TermKind.NAME
    is_list = is_joined and not any(_is_repeated(facts, term, clause) for term in left)
    if not is_list or _is_statement(facts, clause, left):
        return is_name
    return is_name or "favourite" in slots or facts.old.is_copular


def _is_statement(facts: FactComparison, clause: range, terms: Sequence[Term]) -> bool:
    """Return whether a clause is a statement of its own: "speaks French", "rent 900", "vegan"."""
    said = parse_fact(" ".join(facts.old.raw[clause.start : clause.stop]))
    kinds = list_kinds(terms)
    has_amount = TermKind.WORD in kinds and not kinds.isdisjoint(NUMERIC_KINDS)
    return bool(said.slots) or said.is_copular or has_amount or begins_with_verb(terms)


def _is_time(facts: FactComparison, clause: range) -> bool:
    """Return whether a clause of the older fact has only dates and numbers: "since 5 May", "at 10"."""
    kinds = list_kinds(term for term in facts.old.terms if term.place in clause)
    words = facts.old.raw[clause.start : clause.stop]
    return kinds <= NUMERIC_KINDS and list_words("copulas").isdisjoint(words)


def _list_bare_clauses(facts: FactComparison) -> list[list[Term]]:
    """Return the terms of each later clause of the newer fact that has only words without a counterpart."""
    clauses = [
        (clause, [term for term in facts.alignment.new if term.place in clause])
        for clause in facts.new.clauses[1:]
    ]
    return [left for clause, left in clauses if len(left) == len(clause)]


def _tells_state(words: Sequence[str]) -> bool:
    """Return whether words tell the present state: "now cycles", "eats meat again", "his boss is Ann now"."""
    if not words:
        return False
    if words[0].lower() in list_words("next_state_adverbs"):
        return True
    said = parse_fact(" ".join(words))
    is_present = said.is_resumed or said.has_word_of("now")
    return is_present and bool(said.words) and (said.is_copular or begins_with_verb(said.words))
