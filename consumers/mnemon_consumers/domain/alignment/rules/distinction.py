"""Distinction of things of one kind, by words such as "second" and "old", and by their names."""

from collections.abc import Set as AbstractSet
from typing import Final

from mnemon_consumers.domain.alignment.comparison import FactComparison
from mnemon_consumers.domain.alignment.lexicon import list_words
from mnemon_consumers.domain.alignment.matching import is_kind_of
from mnemon_consumers.domain.alignment.morphology import (
    fold_characters,
    is_cyrillic,
    is_ordinal,
    is_verb,
    list_grammemes,
    list_lemmas,
)
from mnemon_consumers.domain.alignment.rules.contradiction import has_opposite_feeling
from mnemon_consumers.domain.alignment.statement import ParsedFact
from mnemon_consumers.domain.alignment.term import Term, TermKind, is_listed, is_year, list_kinds, list_nouns

_KINDS_OF_QUALIFIERS: Final = (TermKind.WORD, TermKind.NUMBER)
"""Kinds of terms that may tell a person apart from another one, such as "best" and "twin"."""


def may_name_another_kind(facts: FactComparison) -> bool:
    """Return whether one fact names a kind of thing, and the other fact may be about another kind.

    The facts may name a thing, such as "violin", and its general kind, such as "instrument". If one of them
    is a denial, tells an end, or names an allergy or a dislike, it may be about another thing of that kind.
    """
    if _is_of_another_kind(facts):
        return True
    return bool(facts.alignment.kind_pairs) and (
        _applies_to_all_kinds(facts)
        or facts.new.is_ended
        or facts.old.is_negated != facts.new.is_negated
        or has_opposite_feeling(facts)
    )


def _is_of_another_kind(facts: FactComparison) -> bool:
    """Return whether the facts may name different kinds of a thing, such as "jazz" and "rock music"."""
    left = facts.alignment
    if any(_are_other_compounds(a.text, b.text) for a, b in left.pairs):
        return True
    return any(
        term.kind is TermKind.WORD and general.place - term.place == 1
        for pair in left.kind_pairs
        for general, exact, side in zip(pair, reversed(pair), (left.old, left.new), strict=False)
        if is_kind_of(exact, general)
        for term in list_nouns(side)
    )


def _are_other_compounds(a: str, b: str) -> bool:
    """Return whether two Russian compounds have the same first word and differ in the last word.

    For example, the result is True for «врач-хирург» (surgeon) and «врач-терапевт» (physician).
    """
    if "-" not in a or "-" not in b or not (is_cyrillic(a) and is_cyrillic(b)):
        return False
    first, last = zip(a.rsplit("-", 1), b.rsplit("-", 1), strict=True)
    return first[0][:4] == first[1][:4] and last[0][:4] != last[1][:4]


def _applies_to_all_kinds(facts: FactComparison) -> bool:
    """Return whether the older fact is a denial, or one of the facts names an allergy."""
    return facts.old.is_negated or any(each.has_word_of("allergies") for each in (facts.old, facts.new))


def is_another_part(facts: FactComparison) -> bool:
    """Return whether one fact adds a number or name to a name in both facts: "Dune 2", "Dune"."""
    left = facts.alignment
    sides = ((left.old, left.new, 0), (left.new, left.old, 1))
    return any(
        term.kind in (TermKind.NUMBER, TermKind.NAME)
        and term.kind not in list_kinds(other)
        and pair[at].kind is TermKind.NAME
        and term.place - pair[at].place == 1
        and not (is_year(term) or _has_unit(facts, term))
        for side, other, at in sides
        for term in side
        for pair in left.pairs
    )


def _has_unit(facts: FactComparison, number: Term) -> bool:
    """Return whether a date or a unit follows a number: "3 May", "3000 dollars"."""
    return any(
        term.place - number.place == 1 and (term.kind is TermKind.DATE or is_listed(term, "units"))
        for statement in (facts.old, facts.new)
        if any(each is number for each in statement.terms)
        for term in statement.terms
    )


def is_about_another_thing(facts: FactComparison) -> bool:
    """Return whether a word before a shared noun says that the facts may be about two things of a kind.

    For example, "second" says so in "Has a second rabbit" beside "Has a rabbit". If only one of the facts
    says that something has ended, two other words say so, too: "old" in "Sold the old piano" beside "Owns a
    piano", and the indefinite article in "Had a cat that died" beside "Has a cat". The article does not count
    if both facts have another word in common after the noun, as in "a cat from York". Neither does the end of
    one thing end what a fact says of many: "Repairs cars" and "Sold the car".
    """
    old, new = facts.old, facts.new
    things = [(a, b) for a, b in facts.alignment.pairs if _may_be_thing(a) and _may_be_thing(b)]
    are_denied = old.is_negated and new.is_negated
    if not are_denied and any(
        _are_counted_apart(_list_qualifiers(old, a), _list_qualifiers(new, b))
        for a, b in things
        if not (is_listed(a, "positions") or is_listed(a, "levels"))
    ):
        return True
    if _tells_end(old) == _tells_end(new) or old.is_quit or new.is_quit:
        return False
    ended, current = (0, 1) if _tells_end(old) else (1, 0)
    statements = old, new
    return any(
        (_is_introduced(statements[ended], pair[ended]) and not _is_told_further(facts, pair))
        or _is_one_of_many(pair[ended], statements[current], pair[current])
        or _has_other_age(*(_list_qualifiers(statements[side], pair[side]) for side in (ended, current)))
        for pair in things
    )


def _is_one_of_many(one: Term, statement: ParsedFact, many: Term) -> bool:
    """Return whether a noun is in the singular in one fact, and in the plural in another statement."""
    if not is_cyrillic(one.text):
        return many.text in (f"{one.text}s", f"{one.text}es")
    # «Машины» is "cars" after a verb, and may be "of the car" after a noun; «собак» is "dogs" everywhere.
    tags = list_grammemes(many.text)
    is_plural = {"plur", "gent"} <= tags or (
        not tags.isdisjoint(("plur", "gent")) and is_verb(statement.find_word_before(many))
    )
    is_same_word = not list_lemmas(one.text).isdisjoint(list_lemmas(many.text))
    return is_same_word and is_plural and "plur" not in list_grammemes(one.text)


def _is_told_further(facts: FactComparison, thing: tuple[Term, Term]) -> bool:
    """Return whether both facts have another word in common after the thing: "a book about Rome"."""
    return any(
        a.weight > 0 and a.place > thing[0].place and b.place > thing[1].place
        for a, b in facts.alignment.pairs
    )


def _may_be_thing(term: Term) -> bool:
    """Return whether a term may name a thing; in Russian, a noun: «ещё» before a verb means "still"."""
    is_noun = not is_cyrillic(term.text) or "NOUN" in list_grammemes(term.text)
    return is_noun and term.kind in (TermKind.WORD, TermKind.NAME, TermKind.PERSON)


def _tells_end(statement: ParsedFact) -> bool:
    return statement.is_ended and statement.is_past and not statement.is_negated


def _are_counted_apart(old: AbstractSet[str], new: AbstractSet[str]) -> bool:
    """Return whether one set has a word such as "another", and the other set has no such word or ordinal."""
    has_other = [not words.isdisjoint(list_words("others")) for words in (old, new)]
    return has_other[0] != has_other[1] and not all(
        has or any(map(is_ordinal, words)) for has, words in zip(has_other, (old, new), strict=True)
    )


def _has_other_age(ended: AbstractSet[str], current: AbstractSet[str]) -> bool:
    """Return whether the thing of the ended fact has a word such as "old" that the other thing lacks."""
    return bool((ended & list_words("age_adjectives")) - current)


def _is_introduced(statement: ParsedFact, thing: Term) -> bool:
    """Return whether a fact introduces a thing: "a cat", «был кот» (there was a cat).

    A profession is no thing.
    """
    is_subject = not is_cyrillic(thing.text) or "nomn" in list_grammemes(thing.text)
    if is_listed(thing, "professions") or not is_subject:
        return False
    return statement.find_word_before(thing) in list_words("introduction_words")


def _list_qualifiers(statement: ParsedFact, thing: Term) -> frozenset[str]:
    """Return the words before a noun that tell which one or what number is meant, with all of their forms."""
    known = (
        list_words("others")
        | list_words("age_adjectives")
        | list_words("introduction_words")
        | list_words("determiners")
    )
    found: set[str] = set()
    for word in reversed(statement.raw[: thing.place]):
        forms = {word, *list_lemmas(word)}
        if known.isdisjoint(forms) and not is_ordinal(word) and "ADJF" not in list_grammemes(word):
            break
        found |= forms
    return frozenset(found)


def has_other_qualifier(facts: FactComparison) -> bool:
    """Return whether a word before the subject, a person, is in only one of the facts: "best friend".

    False if the newer fact tells an end.
    """
    if facts.new.is_ended:
        return False
    left = {id(term) for term in facts.left}
    return any(
        term.is_head
        and ((id(term) in left and term.kind in _KINDS_OF_QUALIFIERS) or _is_light_adjective(term))
        and any(
            pair[side].kind is TermKind.PERSON and pair[side].place - term.place == 1
            for pair in facts.alignment.pairs
        )
        for side, statement in enumerate((facts.old, facts.new))
        for term in statement.terms
        if not any(pair[side] is term for pair in facts.alignment.pairs)
    )


def _is_light_adjective(term: Term) -> bool:
    """Return whether a Russian term without weight is an adjective other than "новый" (new)."""
    is_new = fold_characters(term.text).startswith("нов")
    return term.kind is TermKind.LIGHT and "ADJF" in list_grammemes(term.text) and not is_new
