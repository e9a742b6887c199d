"""Attributes with one value at a time, such as a colour, a level or the person in a role."""

from collections.abc import Sequence
from itertools import chain

from mnemon_consumers.domain.alignment.comparison import FactComparison
from mnemon_consumers.domain.alignment.lexicon import list_words
from mnemon_consumers.domain.alignment.matching import is_kind_of
from mnemon_consumers.domain.alignment.morphology import is_verb, list_grammemes
from mnemon_consumers.domain.alignment.rules.values.slot_words import drop_slot_words
from mnemon_consumers.domain.alignment.statement import ParsedFact
from mnemon_consumers.domain.alignment.term import (
    EXACT_KINDS,
    NUMERIC_KINDS,
    Term,
    TermKind,
    is_listed,
    list_kinds,
)


def differs_in_attribute(facts: FactComparison) -> bool:
    """Return whether both facts give a value to the same thing, which has one value at a time."""
    is_elected = facts.new.has_word_of("election_verbs") and not facts.old.is_past
    if is_elected and _is_in_one_role(facts):
        return True
    return facts.is_current and (
        is_attribute_value(facts)
        or _is_level(facts)
        or _is_rank(facts)
        or _is_recoloured(facts)
        or _is_in_one_role(facts)
        or _is_used_for(facts)
        or _is_address(facts)
    )


def is_attribute_value(facts: FactComparison) -> bool:
    """Return whether both facts say what the same thing is, or who has a role: "The manager is Ann"."""
    old, new = facts.alignment.old, facts.alignment.new
    pairs = [(a, b) for a, b in facts.alignment.pairs if a.kind is not TermKind.LIGHT]
    if not all(a.is_head and b.is_head for a, b in pairs) or any(term.is_head for term in facts.left):
        return False
    kinds = list_kinds(facts.left)
    is_event = TermKind.NAME in kinds and bool(kinds & NUMERIC_KINDS)
    is_model = bool({"device", "vehicle"} & facts.old.slots & facts.new.slots) and TermKind.DATE not in kinds
    is_code = all(len(term.text) == 1 for term in facts.left if term.kind is TermKind.NAME)
    if _is_complemented(facts):
        return False
    if (is_event and not (is_model or is_code)) or not (facts.old.is_copular and facts.new.is_copular):
        return False
    is_of_person = any(a.is_someone for a, _ in pairs)
    if has_other_words(facts) and list_kinds(old) & list_kinds(new) & NUMERIC_KINDS:
        return False  # another thing of the same kind at another time
    is_exact_value = list_kinds(old) == list_kinds(new) and list_kinds(old) <= EXACT_KINDS
    attributes = [a for a, _ in pairs if is_listed(a, "attributes")]
    if attributes and all(a.text in list_words("described_things") for a in attributes):
        # A thing or a person has many qualities, but one name: "My boss is strict", "My boss is on vacation".
        return _names_thing(facts.old, old) and _names_thing(facts.new, new)
    return bool(attributes) or (is_exact_value and not is_of_person)


def _names_thing(statement: ParsedFact, terms: Sequence[Term]) -> bool:
    """Return whether one of some terms says which thing it is, as "Ann" and "an iPhone" do, not "slow"."""
    return any(term.kind in EXACT_KINDS or statement.find_word_before(term) in ("a", "an") for term in terms)


def _is_complemented(facts: FactComparison) -> bool:
    """Return whether a Russian preposition adds another complement to a noun in the facts.

    For example, «на» adds one in «подписка на Окко» (subscription to Okko). The result is False if the newer
    fact reports a change.
    """
    if facts.new.is_changed:
        return False
    behind = [
        [t for t in side if facts.find_statement(t).find_word_before(t) in list_words("noun_complements")]
        for side in (facts.alignment.old, facts.alignment.new)
    ]
    is_name = any(term.kind is TermKind.NAME for term in chain(*behind))
    return is_name or all(
        any(term.kind is TermKind.WORD and not is_listed(term, "units") for term in side) for side in behind
    )


def has_other_words(facts: FactComparison) -> bool:
    """Return whether each fact has a word that the other lacks, besides units and words like "moved"."""
    return bool(_list_content_words(facts.alignment.old) and _list_content_words(facts.alignment.new))


def _list_content_words(terms: Sequence[Term]) -> list[Term]:
    """Return the words that are neither units nor words for a change."""
    bare = ("changed", "units")
    return [t for t in terms if t.kind is TermKind.WORD and not any(is_listed(t, table) for table in bare)]


def _is_level(facts: FactComparison) -> bool:
    """Return whether the same thing is at another level: "at A2 level", "a brown belt"."""
    old, new = facts.alignment.old, facts.alignment.new
    return len(old) == len(new) == 1 and all(
        not term.is_head and facts.is_next_to_listed(term, "levels") for term in facts.left
    )


def _is_rank(facts: FactComparison) -> bool:
    """Return whether a person has another rank in the same profession: "junior cook", "senior cook"."""
    left = facts.alignment
    old, new = drop_slot_words(left.old, "job"), drop_slot_words(left.new, "job")
    return (
        len(old) == len(new) == 1
        and all(is_listed(term, "ranks") and not term.is_head for term in (*old, *new))
        and any(is_listed(a, "professions") and a.place - old[0].place == 1 for a, _ in left.pairs)
    )


def _is_recoloured(facts: FactComparison) -> bool:
    """Return whether the same thing has another colour."""
    left = facts.alignment
    return (
        all(any(is_listed(term, "colours") for term in side) for side in (left.old, left.new))
        and max(len(left.old), len(left.new)) <= 2
        and list_kinds(facts.left) == {TermKind.WORD}
        and any(a.is_head and b.is_head for a, b in left.pairs)
    )


def _is_in_one_role(facts: FactComparison) -> bool:
    """Return whether another person now has a role that one person can have: "a manager called Ann"."""
    left = facts.alignment
    old, new = _drop_naming_words(left.old), _drop_naming_words(left.new)
    if not list_kinds(old) == list_kinds(new) == {TermKind.NAME}:
        return False
    roles = [(a, b) for a, b in left.pairs if is_listed(a, "roles_of_one")]
    return any(_is_name_of(facts.old, a, old[0]) and _is_name_of(facts.new, b, new[0]) for a, b in roles)


def _drop_naming_words(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    return tuple(term for term in terms if term.text not in list_words("role_name_words"))


def _is_name_of(statement: ParsedFact, role: Term, name: Term) -> bool:
    """Return whether a name comes after a role, with only words of the list `role_name_words` between.

    If there is such a word, words in the genitive may be between, too.
    """
    between = statement.raw[role.end : name.place]
    name_words = list_words("role_name_words")
    is_named = not name_words.isdisjoint(between)
    return role.place < name.place and all(
        word in name_words or (is_named and "gent" in list_grammemes(word)) for word in between
    )


def _is_used_for(facts: FactComparison) -> bool:
    """Return whether another thing is used for the same purpose: "uses Todoist for shopping lists"."""
    left = facts.alignment
    return (
        list_kinds(left.old) == list_kinds(left.new) == {TermKind.NAME}
        and any(a.role == b.role == "for" and a.kind is TermKind.WORD for a, b in left.pairs)
        and all(each.has_word_of("tool_use_verbs") for each in (facts.old, facts.new))
    )


def _is_address(facts: FactComparison) -> bool:
    """Return whether both facts tell the address of one thing, and differ only in names and numbers."""
    is_hard = bool(facts.left) and list_kinds(facts.left) <= {TermKind.NAME, TermKind.NUMBER}
    return "address" in facts.old.slots & facts.new.slots and is_hard


def is_more_exact(facts: FactComparison) -> bool:
    """Return whether the newer fact names a profession more exactly: "doctor", "cardiologist"."""
    return all(is_verb(term.text) for term in facts.alignment.old) and any(
        a.kinds and is_kind_of(b, a) and is_listed(a, "professions") for a, b in facts.alignment.pairs
    )
