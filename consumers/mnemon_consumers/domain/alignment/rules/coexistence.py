"""Coexistence: why the older fact may hold beside a newer fact on the same topic, or in the same words."""

from itertools import pairwise
from typing import Final

from mnemon_consumers.domain.alignment.comparison import SUBSET_SHARE, FactComparison
from mnemon_consumers.domain.alignment.lexicon import list_words
from mnemon_consumers.domain.alignment.morphology import list_grammemes
from mnemon_consumers.domain.alignment.rules.distinction import has_other_qualifier, is_about_another_thing
from mnemon_consumers.domain.alignment.rules.noun_phrase import qualifies_other_thing
from mnemon_consumers.domain.alignment.rules.qualification import follows_limit, is_part_of_time
from mnemon_consumers.domain.alignment.rules.subject import is_about_companion, is_about_namesake
from mnemon_consumers.domain.alignment.rules.values.quantity import tells_former_age
from mnemon_consumers.domain.alignment.statement import ParsedFact, tells_past_state
from mnemon_consumers.domain.alignment.term import Term, TermKind, is_habitual, list_kinds
from mnemon_consumers.domain.alignment.tokenizer import list_number_keys

_OCCUPATION_STAGES: Final = frozenset(("leave+", "service+", "work+"))
"""Poles of the table `stages` whose phrases have words such as "work" with another meaning."""


def find_reason_to_keep(facts: FactComparison) -> str | None:
    """Return why the older fact may still hold beside a newer fact about the same; None otherwise."""
    if is_about_companion(facts):
        return "the newer fact may be about an end or a move of another person alone"
    if _names_former_value(facts):
        return "the newer fact is about a former state"
    if _names_value_beside_former(facts):
        return "the older fact is about a former state"
    if _wishes_for_amount(facts):
        return "the newer fact is about a wished amount"
    if _is_of_other_amount(facts):
        return "the newer fact ends another amount"
    if _denies_less(facts):
        return "the newer fact denies only a part of what the older one denies"
    if _denies_only_part(facts):
        return "only one of the facts is a denial, and it may deny a part of what the other says"
    if qualifies_other_thing(facts):
        return "a word of both facts qualifies another thing in one of them"
    if tells_former_age(facts.old) != tells_former_age(facts.new):
        return "only one of the facts tells an age at an event"
    if is_about_another_thing(facts):
        return "a word before a thing may tell it apart from another thing of the kind"
    if is_about_namesake(facts):
        return "the facts may be about two people of one name"
    if has_other_qualifier(facts):
        return "a word before a person or thing may tell it apart from another one"
    return None


def _names_former_value(facts: FactComparison) -> bool:
    """Return whether the newer fact is about a former state, and says more than that the state is over.

    For example, the result is True for "Used to live in York" beside "Lives in Leeds", and for "Used to
    smoke" beside the denial "Doesn't smoke". It is False for "Used to smoke" beside "Smokes".
    """
    if facts.old.is_past or facts.new.is_changed or _list_former_clauses(facts.old):
        return False
    former, left = _list_former_clauses(facts.new), facts.alignment.new
    is_told = bool(former) and (bool(left) or facts.old.is_negated)
    return is_told and all(any(term.place in each for each in former) for term in left)


def _names_value_beside_former(facts: FactComparison) -> bool:
    """Return whether the older fact is about a past state, and the newer fact about another, present state.

    For example, "Is now a vegan" does not replace "Was a vegetarian in college". Each fact must have a term
    without a counterpart.
    """
    is_former = facts.old.is_past and not facts.old.is_planned and tells_past_state(facts.old)
    is_present = not (facts.new.is_past or facts.new.is_ended)
    return is_former and is_present and bool(facts.alignment.old and facts.alignment.new)


def _list_former_clauses(statement: ParsedFact) -> list[range]:
    """Return the clauses about a former state, such as "used to smoke" and «раньше курил» (smoked before)."""
    if not (statement.is_past or statement.is_english):
        return []  # "раньше" may mean "earlier"
    places = [at for at, word in enumerate(statement.raw) if word in list_words("former_state_adverbs")]
    places += [term.place for term in statement.terms if term.text == "used to"]
    return [clause for clause in statement.clauses if any(place in clause for place in places)]


def _wishes_for_amount(facts: FactComparison) -> bool:
    """Return whether only the newer fact is about a plan, and a number but no date differs.

    For example, "Wants 3 children" is such a plan beside "Has 2 children".
    """
    is_wish = facts.new.is_planned and not facts.old.is_planned
    return is_wish and all(
        TermKind.NUMBER in list_kinds(side) and TermKind.DATE not in list_kinds(side)
        for side in (facts.alignment.old, facts.alignment.new)
    )


def _is_of_other_amount(facts: FactComparison) -> bool:
    """Return whether the newer fact ends only some of several things: "Sold two bikes" of five."""
    if not facts.new.is_ended or facts.old.is_ended or "weight" in facts.old.slots & facts.new.slots:
        return False
    if _names_some_of_several(facts.new) and not _names_some_of_several(facts.old):
        return True
    sides = ((facts.old, facts.alignment.old), (facts.new, facts.alignment.new))
    return any(
        a.kind in (TermKind.WORD, TermKind.PERSON)
        and all(
            any(number.kind is TermKind.NUMBER and term.place - number.place == 1 for number in left)
            for term, (_, left) in zip((a, b), sides, strict=True)
        )
        for a, b in facts.alignment.pairs
    )


def _denies_less(facts: FactComparison) -> bool:
    """Return whether both facts deny the same, and the newer one only a kind of it, or at a place or a time.

    For example, the result is True for "No longer eats meat on Fridays" and "Doesn't eat red meat" beside
    "Doesn't eat meat".
    """
    both_deny = facts.old.denies_or_ends and facts.new.denies_or_ends
    if not both_deny or facts.alignment.old or facts.new.has_word_of("permission_words"):
        return False
    nouns = {b.place for _, b in facts.alignment.pairs}
    return any(
        is_part_of_time(facts.new, term)
        or (term.kind is TermKind.WORD and (term.end in nouns or follows_limit(facts.new, term)))
        for term in facts.alignment.new
    )


def _names_some_of_several(statement: ParsedFact) -> bool:
    """Return whether a fact has a phrase such as "one of ten hives", «один из ульев» (one of the hives)."""
    prepositions, parts = ("of", "из"), list_words("partial_quantities")
    return any(
        (word in prepositions and (list_number_keys(before) is not None or before in parts))
        or (before in prepositions and list_number_keys(word) is not None)
        for before, word in pairwise(statement.raw)
    )


def _denies_only_part(facts: FactComparison) -> bool:
    """Return whether only one fact is a denial, and denies a part of what the other fact says.

    Such a denial has an adjective, or the date of a habit, that the other fact lacks.

    For example, «Не пьёт козье молоко» (drinks no goat's milk) and «Не пьёт молоко по будням» (drinks no milk
    on workdays) deny only a part of «Пьёт молоко» (drinks milk).
    """
    left, is_old_denial = facts.alignment, facts.old.is_negated
    share_affirmed = facts.share_new if is_old_denial else facts.share_old
    if is_old_denial == facts.new.is_negated or share_affirmed < SUBSET_SHARE:
        return False
    side, extra = (0, left.old) if is_old_denial else (1, left.new)
    nouns = {pair[side].place for pair in left.pairs if pair[side].kind is not TermKind.LIGHT}
    return any(
        _is_regular(term) or (_is_descriptive(term.text) and term.place + 1 in nouns) for term in extra
    )


def _is_regular(date: Term) -> bool:
    """Return whether a date tells when or how often something happens again: "on Mondays", "every day"."""
    return is_habitual(date) or (date.kind is TermKind.DATE and date.text in list_words("recurrence_words"))


def _is_descriptive(word: str) -> bool:
    """Return whether a Russian word is an adjective other than a pronoun such as «никакой» (no)."""
    tags = list_grammemes(word)
    return "ADJF" in tags and "Apro" not in tags


def find_reason_against_repetition(facts: FactComparison) -> str | None:
    """Return why the facts do not say the same although their words match; None if they may."""
    is_former = not list_words("past_state_verbs").isdisjoint(facts.old.raw[:2])
    if is_former and tells_past_state(facts.old) and not facts.new.is_past:
        return "only the older fact is about a former state"
    if any(_shares_only_word_of_phrase(a, b) for a, b in facts.alignment.pairs):
        return "a common word belongs to a phrase with another meaning in one of the facts"
    if any(_replaces_word_by_adjective(facts, a, b) for a, b in facts.alignment.pairs):
        return "an adjective of the newer fact stands where the older fact has another word"
    return None


def _shares_only_word_of_phrase(a: Term, b: Term) -> bool:
    """Return whether one term is a phrase for a stage of the user, and the other is not about that stage.

    For example, "works" in "Works at Acme" is no counterpart of the phrase in "Is out of work".
    """
    stages = [term.stages & _OCCUPATION_STAGES for term in (a, b)]
    return stages[0] != stages[1] and any(" " in term.text for term in (a, b))


def _replaces_word_by_adjective(facts: FactComparison, a: Term, b: Term) -> bool:
    """Return whether a light adjective in the newer fact stands where the older fact has another word.

    For example, "long" in "Has long hair" stands where "Has curly hair" has "curly".
    """
    is_replaced = any(term.end == a.place for term in facts.alignment.old)
    return a.kind is TermKind.WORD and is_replaced and _has_light_adjective(facts.new, b)


def _has_light_adjective(statement: ParsedFact, noun: Term) -> bool:
    return any(
        term.kind is TermKind.LIGHT
        and term.end == noun.place
        and (term.text in list_words("adjectives") or "ADJF" in list_grammemes(term.text))
        for term in statement.terms
    )
