"""Slots: the attribute, such as age or employer, that has another value in the newer fact."""

import re
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Final

from mnemon_consumers.domain.alignment.comparison import FactComparison
from mnemon_consumers.domain.alignment.lexicon import list_lookup_forms, list_words
from mnemon_consumers.domain.alignment.morphology import is_cyrillic, is_verb, list_grammemes
from mnemon_consumers.domain.alignment.rules.subject import is_spouse
from mnemon_consumers.domain.alignment.rules.values.occupation import has_other_job, names_other_employer
from mnemon_consumers.domain.alignment.rules.values.quantity import tells_former_age
from mnemon_consumers.domain.alignment.rules.values.residence import keeps_home, names_only_origin
from mnemon_consumers.domain.alignment.rules.values.slot_words import (
    NAMED_SLOTS,
    WORD_SLOTS,
    are_slot_words,
    list_slot_words,
)
from mnemon_consumers.domain.alignment.rules.values.swap import swaps_other_thing
from mnemon_consumers.domain.alignment.statement import ParsedFact
from mnemon_consumers.domain.alignment.term import (
    NUMERIC_KINDS,
    Term,
    TermKind,
    is_listed,
    is_naming,
    is_part_of_day,
    is_year,
    list_kinds,
)

_HOURS: Final = ("wake", "bedtime", "breakfast", "lunch", "dinner")
"""Slots whose value is a time of the day."""

_NUMBER_SLOTS: Final[Sequence[str]] = (*_HOURS, "weight", "salary")
"""Slots whose value is a number."""

_LANGUAGE_LEVEL: Final = re.compile("[abc][12]")
"""A level of the Common European Framework of Reference for Languages, in lower case."""


def find_changed_slot(facts: FactComparison) -> str | None:
    """Return the slot, such as `residence`, that has another value in the newer fact.

    Returns:
        None if no slot clearly has another value. The result may also be `language level`, which is no slot
        of the lexicon.
    """
    if facts.old.is_planned or _tells_former_state(facts.old):
        return None
    if tells_former_age(facts.old) or tells_former_age(facts.new):
        return None
    if slot := _find_amount_slot(facts):
        return slot
    return _find_value_slot(facts) if _may_have_another_value(facts) else None


def _tells_former_state(statement: ParsedFact) -> bool:
    """Return whether a fact tells a former home, job or school: "lived in Madrid", not "has lived"."""
    perfect = list_words("perfect_auxiliaries")
    return any(
        word in list_words("former_state_verbs") and before not in perfect
        for before, word in pairwise(("", *statement.raw))
    )


def _find_amount_slot(facts: FactComparison) -> str | None:
    """Return the slot with another level, age or other amount; None if no slot has one."""
    if facts.new.is_planned or facts.old.is_negated or facts.new.is_negated:
        return None
    if _has_reached_level(facts):
        return "language level"
    if _tells_age(facts.old) and _tells_age(facts.new) and _has_only_ages(facts):
        return "age"
    slots = facts.old.slots & facts.new.slots
    return next((slot for slot in _NUMBER_SLOTS if slot in slots and _is_amount_of(facts, slot)), None)


def _may_have_another_value(facts: FactComparison) -> bool:
    """Return whether the newer fact may give another value to an attribute of the same subject, now."""
    old, new, left = facts.old, facts.new, facts.alignment
    is_other_head = _has_own_head(old) != _has_own_head(new)
    if not (left.old and left.new) or new.is_planned or not facts.is_current or is_other_head:
        return False
    if (new.is_negated and not old.is_negated) or _is_no_longer(new):
        return False  # the newer fact denies a value, and names none
    # Two events may each have a date.
    shared = list_kinds(left.old) & list_kinds(left.new)
    return not (old.is_event_past and new.is_event_past and shared & NUMERIC_KINDS)


def _is_no_longer(statement: ParsedFact) -> bool:
    """Return whether a fact of one clause only says that something holds no longer."""
    phrases = (("no", "longer"), ("больше", "не"), ("уже", "не"))
    is_said = "anymore" in statement.raw or any(pair in phrases for pair in pairwise(statement.raw))
    return is_said and len(statement.clauses) == 1


def _find_value_slot(facts: FactComparison) -> str | None:
    """Return the slot to which the words without a counterpart give another value; None if there is none."""
    left, slots = facts.alignment, facts.old.slots & facts.new.slots
    shared = list_kinds(left.old) & list_kinds(left.new)
    if (
        "residence" in slots
        and not (names_only_origin(facts) or swaps_other_thing(facts) or keeps_home(facts))
        and (TermKind.NAME in shared or (facts.new.is_changed and not facts.old.is_changed))
    ):
        return "residence"
    is_number = shared == {TermKind.NUMBER} and not any(map(is_year, facts.left))
    is_age_only = are_slot_words([t for t in facts.left if t.kind is not TermKind.NUMBER], "age")
    if "age" in slots and is_number and (is_age_only or facts.new.is_english):
        return "age"
    if "marital" in slots and _tells_marital_status(facts):
        return "marital"
    if "diet" in slots and _has_other_diet(facts):
        return "diet"
    if slot := _find_word_slot(facts, slots):
        return slot
    if "favourite" in slots and len(left.pairs) >= 2 and len(left.old) == len(left.new) == 1:
        return "favourite"
    if has_other_job(facts):
        return "job"
    if "transport" in slots and are_slot_words(facts.left, "means"):
        return "transport"
    return _find_name_slot(facts, slots)


def _has_own_head(statement: ParsedFact) -> bool:
    """Return whether a fact has a subject other than the user, a companion ("with Ann") or an age."""
    heads = [t for t in statement.terms if t.is_head and t.kind is not TermKind.LIGHT and t.role != "with"]
    return bool(heads) and not are_slot_words(heads, "age")


def _find_word_slot(facts: FactComparison, slots: frozenset[str]) -> str | None:
    for slot in WORD_SLOTS:
        is_whole = slot != "study_year" or all(_ends_phrase(facts, term) for term in facts.left)
        if slot in slots and are_slot_words(facts.left, slot) and is_whole:
            return slot
    return None


def _ends_phrase(facts: FactComparison, term: Term) -> bool:
    """Return whether an English word qualifies no other word: "is a junior", not "a junior colleague".

    The result is True for every Russian word.
    """
    statement = facts.find_statement(term)
    last = statement.find_word_after(term._replace(place=term.end - 1))
    is_end = not last or last in list_words("after_value")
    return is_end or is_cyrillic(term.text) or is_listed(term, "changed")


def _find_name_slot(facts: FactComparison, slots: frozenset[str]) -> str | None:
    left = facts.alignment
    if any(term.role == "with" for term in facts.left):
        return None
    if "employer" in slots and TermKind.NAME in list_kinds(left.old) & list_kinds(left.new):
        return "employer" if names_other_employer(facts) else None
    if "device" in slots and list_kinds(left.old) == list_kinds(left.new) == {TermKind.NUMBER}:
        return "device"
    if list_kinds(left.old) == list_kinds(left.new) == {TermKind.NAME}:
        return next((slot for slot in NAMED_SLOTS if slot in slots), None)
    return None


def _has_other_diet(facts: FactComparison) -> bool:
    """Return whether both facts name a diet such as "vegan".

    In the older fact, the word "diet" alone names none: a gluten-free diet may also be vegan.
    """
    old, new = (
        [term for term in side if term.kind is TermKind.WORD]
        for side in (facts.alignment.old, facts.alignment.new)
    )
    is_named = any(are_slot_words((term,), "diet") and not is_listed(term, "attributes") for term in old)
    return is_named and are_slot_words(new, "diet")


def _tells_marital_status(facts: FactComparison) -> bool:
    """Return whether the newer fact gives another marital status: "got engaged", not "is afraid of divorce".

    The result is False if the newer fact ends a marriage to another person than the older fact names.
    """
    left, new = facts.alignment, facts.new
    is_over = new.is_ended or any("married-" in t.opposites and not t.role for t in new.terms)
    is_other = TermKind.NAME in list_kinds(left.old) and any(
        term.kind is TermKind.NAME and term.role in ("", "from", "with") for term in left.new
    )
    first = next((term for term in left.new if term.kind in (TermKind.WORD, TermKind.PERSON)), None)
    return not (is_over and is_other) and (first is None or _is_status(facts, first))


def _is_status(facts: FactComparison, term: Term) -> bool:
    """Return whether a word gives a marital status: "single", "boyfriend"; not in "after the divorce"."""
    is_tie = any(stage.startswith("romance") for stage in term.stages)
    is_named = is_tie or are_slot_words((term,), "marital") or is_spouse(facts, term)
    return is_named and not term.role and not _qualifies_noun(facts, "marital")


def _qualifies_noun(facts: FactComparison, slot: str) -> bool:
    """Return whether a value of a slot qualifies a noun in the newer fact: "near a married couple"."""
    words = list_slot_words(slot)
    return any(
        term.kind in (TermKind.WORD, TermKind.NUMBER)
        and not list_lookup_forms(facts.new.find_word_before(term)).isdisjoint(words)
        and not (are_slot_words((term,), slot) or is_naming(term))
        for term in facts.alignment.new
    )


def _is_amount_of(facts: FactComparison, slot: str) -> bool:
    """Return whether the facts differ only in the number that is the value of a slot."""
    if facts.old.is_past and not facts.old.is_changed:
        return False  # a past state is not replaced
    return all(_is_one_amount_of(side, slot) for side in (facts.alignment.old, facts.alignment.new))


def _is_one_amount_of(left: Sequence[Term], slot: str) -> bool:
    numbers = [term for term in left if term.kind is TermKind.NUMBER]
    rest = [
        term
        for term in left
        if term.kind is not TermKind.NUMBER
        and not (slot in _HOURS and is_part_of_day(term))
        and not (is_listed(term, "units") and term.text != "час")
    ]
    if slot in _HOURS:
        hours = [
            t for t in rest if t.text == "час" or not t.keys.isdisjoint(("dates noon", "dates midnight"))
        ]
        numbers, rest = [*numbers, *hours], [term for term in rest if term not in hours]
    return len(numbers) == 1 and not any(map(is_year, numbers)) and are_slot_words(rest, slot)


def _has_reached_level(facts: FactComparison) -> bool:
    """Return whether the newer fact names a higher level of the same language: "B1", "passed C1"."""
    sides = (facts.alignment.old, facts.alignment.new)
    levels = [[t.text for t in side if _LANGUAGE_LEVEL.fullmatch(t.text)] for side in sides]
    rest = [t for t in chain(*sides) if not (_LANGUAGE_LEVEL.fullmatch(t.text) or is_listed(t, "levels"))]
    has_topic = any(a.kind not in (TermKind.LIGHT, TermKind.NUMBER) for a, _ in facts.alignment.pairs)
    is_other = any(t.kind is not TermKind.WORD or not _is_reaching(t) for t in rest)
    return all(len(each) == 1 for each in levels) and levels[0] < levels[1] and has_topic and not is_other


def _is_reaching(term: Term) -> bool:
    """Return whether a word says that a level is reached: a Russian verb, or a word such as "passed"."""
    return is_verb(term.text) or term.text in list_words("attainment_words") or is_listed(term, "changed")


def _tells_age(statement: ParsedFact) -> bool:
    """Return whether a Russian fact tells only an age: «Сыну 10 месяцев» (the son is 10 months old)."""
    words = [term for term in statement.words if term.kind is not TermKind.NUMBER and not is_of_age(term)]
    is_amount = TermKind.NUMBER in list_kinds(statement.words) or statement.has_word_of("age_words")
    is_period = any(_is_period(word) for word in statement.raw)
    return is_amount and is_period and bool(words) and all("datv" in list_grammemes(t.text) for t in words)


def _has_only_ages(facts: FactComparison) -> bool:
    return bool(facts.left) and all(term.kind is TermKind.NUMBER or is_of_age(term) for term in facts.left)


def is_of_age(term: Term) -> bool:
    """Return whether a word only belongs to an age: «месяцев» (months), «исполнилось» (turned)."""
    return _is_period(term.text) or not list_lookup_forms(term.text).isdisjoint(list_words("age_verbs"))


def _is_period(word: str) -> bool:
    return word in list_words("age_words") or not list_lookup_forms(word).isdisjoint(list_words("age_units"))
