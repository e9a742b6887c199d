"""Quantities: whether the facts tell a number or date of one thing, which has changed or grown."""

from itertools import chain
from typing import Final

from mnemon_consumers.domain.alignment.comparison import FactComparison
from mnemon_consumers.domain.alignment.lexicon import is_in_table, list_words
from mnemon_consumers.domain.alignment.morphology import is_cyrillic, is_ordinal, is_verb, list_grammemes
from mnemon_consumers.domain.alignment.rules.values.attribute import (
    has_other_words,
    is_attribute_value,
)
from mnemon_consumers.domain.alignment.statement import ParsedFact
from mnemon_consumers.domain.alignment.term import (
    Term,
    TermKind,
    is_habitual,
    is_listed,
    is_part_of_day,
    is_year,
    list_kinds,
)
from mnemon_consumers.domain.alignment.tokenizer import parse_number_key

_FREQUENCIES: Final = frozenset(("dates daily", "dates weekly", "dates monthly", "dates yearly"))
"""Keys of terms for a frequency, such as "every day"."""


def differs_in_quantity(facts: FactComparison) -> bool:
    """Return whether the numbers or dates in which the facts differ are values of one amount, count or time.

    The caller has checked with `differs_only_in_numbers` that the facts differ in little else.
    """
    if tells_former_age(facts.old) or tells_former_age(facts.new):
        return False
    if _is_next_model(facts) or (facts.is_current and _is_frequency(facts)):
        return True
    if facts.new.is_changed and facts.new.is_english and is_attribute_value(facts):
        return True
    if _counts_progress(facts) and not facts.new.has_word_of("present_result_verbs"):
        is_amount = all(_is_amount(facts.find_statement(term), term) for term in facts.numeric_terms)
        return is_amount and _has_grown(facts) and not _has_label_or_year(facts)
    if not facts.numeric_terms or not facts.is_current:
        return False
    if TermKind.NUMBER in list_kinds(facts.left) and any(map(is_part_of_day, facts.left)):
        return False  # one amount in the morning, another one in the evening
    if _is_measure(facts) or _is_position(facts) or _has_been_changed(facts):
        return True
    return _is_scheduled(facts) and not _has_label_or_year(facts)


def tells_former_age(statement: ParsedFact) -> bool:
    """Return whether a fact tells no present age, but one at an event or a felt one: "since 16 years old"."""
    return "age" in statement.slots and any(
        term.kind is TermKind.NUMBER
        and not is_year(term)
        and (
            statement.find_word_before(term) in list_words("before_former_age")
            or not list_words("since_then").isdisjoint(statement.raw[term.place + 1 : term.place + 3])
        )
        for term in statement.terms
    )


def has_advanced(facts: FactComparison) -> bool:
    """Return whether the newer fact says that a number has grown.

    For example, the result is True for "started year 7" and «уже в 4 классе» (already in year 4).
    """
    is_begun = facts.new.has_word_of("next_stage_verbs") and all(
        facts.is_next_to_listed(term, "positions") for term in facts.numeric_terms
    )
    if not (is_begun or "уже" in facts.new.raw) or any(map(is_year, facts.numeric_terms)):
        return False
    sides = (facts.alignment.old, facts.alignment.new)
    numbers = [tuple(term for term in side if term.kind is TermKind.NUMBER) for side in sides]
    rest = [[t for t in side if t.kind is not TermKind.NUMBER and not is_verb(t.text)] for side in sides]
    rest = [[t for t in side if t.text not in list_words("next_stage_verbs")] for side in rest]
    is_of_other = all(rest) or any(term.kind is not TermKind.WORD for term in chain(*rest))
    is_event = facts.new.is_past and not (facts.old.is_past or is_begun)
    return not (is_of_other or is_event) and _is_growth(*numbers)


def qualifies_topic(facts: FactComparison) -> bool:
    """Return whether the newer fact qualifies a word that both facts have: "hot yoga" instead of "yoga"."""
    common = [b.place for _, b in facts.alignment.pairs if b.kind is TermKind.WORD]

    def is_qualifier(term: Term) -> bool:
        may_precede = facts.new.is_english or "ADJF" in list_grammemes(term.text)
        is_purpose = term.role == "for" or facts.new.find_word_before(term) == "для"
        return term.kind is TermKind.WORD and (is_purpose or (may_precede and term.end in common))

    return any(map(is_qualifier, facts.alignment.new))


def differs_only_in_numbers(facts: FactComparison) -> bool:
    """Return whether only numbers and dates differ, or, if the newer fact reports a change, little else."""
    result_verbs = list_words("present_result_verbs")
    rest = [
        term
        for term in facts.left
        if term not in facts.numeric_terms
        and not (_names_changed_thing(facts, term) or _tells_cause(facts, term) or term.text in result_verbs)
    ]
    is_of_other = sum(term.is_someone for term in rest) > 1
    is_narrower = any(term.is_head and facts.find_statement(term) is facts.old for term in rest)
    is_other_topic = has_other_words(facts) and (not _has_topic(facts) or _has_other_complement(facts))
    is_of_other = is_of_other or is_narrower or is_other_topic
    has_changed = facts.new.is_changed and not facts.old.is_event_past
    is_small = has_changed and len(rest) <= 2 and not is_of_other
    return bool(facts.numeric_terms) and (not rest or is_small)


def _tells_cause(facts: FactComparison, term: Term) -> bool:
    """Return whether a word of the newer fact tells the cause of a change, after "after" or «после»."""
    return term.text == "после" or (term.role == "after" and facts.find_statement(term) is facts.new)


def _names_changed_thing(facts: FactComparison, term: Term) -> bool:
    """Return whether a word of the newer fact only names what changed: "rent" in "raised the rent"."""
    is_told = is_listed(term, "attributes") or is_listed(term, "changed")
    return facts.new.is_changed and is_told and facts.find_statement(term) is facts.new and _has_topic(facts)


def _has_topic(facts: FactComparison) -> bool:
    """Return whether both facts have a word in common, besides units and words such as "moved"."""
    bare = ("units", "changed")
    return any(
        a.kind is TermKind.WORD and not any(is_listed(term, table) for table in bare for term in (a, b))
        for a, b in facts.alignment.pairs
    )


def _has_other_complement(facts: FactComparison) -> bool:
    """Return whether different words follow the same preposition: "pays for water", "pays for gas"."""
    old, new = (
        {statement.find_word_before(term) for term in side if term.kind is TermKind.WORD}
        for statement, side in ((facts.old, facts.alignment.old), (facts.new, facts.alignment.new))
    )
    return not (old & new).isdisjoint(("for", "on", "за", "по", *list_words("noun_complements")))


def _is_next_model(facts: FactComparison) -> bool:
    """Return whether the number after the same name has changed: "Pixel 6", "Pixel 8"."""
    left = facts.alignment
    is_same = facts.old.is_copular and facts.new.is_copular and not any(t.is_head for t in facts.left)
    if not (
        (facts.new.is_changed or is_same)
        and list_kinds(left.old) == list_kinds(left.new) == {TermKind.NUMBER}
    ):
        return False
    is_alone = len(left.old) == len(left.new) == 1
    return is_alone and any(
        a.kind is TermKind.NAME and left.old[0].place - a.place == 1 and left.new[0].place - b.place == 1
        for a, b in left.pairs
    )


def _is_frequency(facts: FactComparison) -> bool:
    """Return whether the same thing happens at another frequency: "monthly", "every week"."""
    sides = (facts.alignment.old, facts.alignment.new)
    return _has_topic(facts) and all(
        len(side) == 1 and not side[0].keys.isdisjoint(_FREQUENCIES) for side in sides
    )


def _counts_progress(facts: FactComparison) -> bool:
    """Return whether both facts count the progress of one activity, as "has read 9 books" does.

    A newer fact in English must have "has", "have" or "I've": "Read 9 books" may be about one event.
    """
    is_total = not facts.new.is_english or not {"has", "have", "i've"}.isdisjoint(facts.new.raw)
    return is_total and any(
        is_listed(a, "progress") and is_listed(b, "progress") for a, b in facts.alignment.pairs
    )


def _is_measure(facts: FactComparison) -> bool:
    """Return whether the differing numbers are amounts, not years, room numbers or other labels."""
    return not _has_label_or_year(facts) and all(
        term.kind is TermKind.NUMBER and _is_amount(facts.find_statement(term), term)
        for term in facts.numeric_terms
    )


def _is_position(facts: FactComparison) -> bool:
    """Return whether a number tells a person's progress, and has grown: page 3, page 90."""
    if not _has_grown(facts) or facts.old.is_past or facts.new.is_past:
        return False
    feelings = (pole for term in facts.new.terms for pole in term.opposites)
    return not any(pole.startswith("feeling") for pole in feelings) and all(
        facts.is_next_to_listed(term, "positions") and not term.is_head for term in facts.numeric_terms
    )


def _has_been_changed(facts: FactComparison) -> bool:
    """Return whether the newer, Russian fact says that a value has changed, and is about the same thing."""
    is_marked = facts.new.is_changed and not (facts.old.is_changed or facts.old.is_past)
    has_topic = any(a.kind is not TermKind.LIGHT for a, _ in facts.alignment.pairs)
    is_value = (
        bool(facts.alignment.old) and bool(facts.alignment.new) and not any(map(is_year, facts.numeric_terms))
    )
    is_of_other = any(term.is_someone for term in facts.left)
    return is_marked and has_topic and is_value and not (is_of_other or facts.new.is_english)


def _is_scheduled(facts: FactComparison) -> bool:
    """Return whether both facts tell the date or number of one thing, such as a deadline or a rent."""
    if not facts.new.is_changed and any(map(is_habitual, facts.left)):
        return False
    is_due = all(term.kind is TermKind.DATE and term.role in ("to", "before") for term in facts.left)
    return is_due or any(
        is_listed(a, table) and is_listed(b, table)
        for a, b in facts.alignment.pairs
        for table in ("attributes", "scheduled")
    )


def _has_grown(facts: FactComparison) -> bool:
    return list_kinds(facts.left) == {TermKind.NUMBER} and _is_growth(
        facts.alignment.old, facts.alignment.new
    )


def _is_growth(old: tuple[Term, ...], new: tuple[Term, ...]) -> bool:
    """Return whether each fact has one number, and the number of the newer fact is greater."""
    if len(old) != 1 or len(new) != 1:
        return False
    before, after = (parse_number_key(min(term.keys)) for term in (old[0], new[0]))
    return before is not None and after is not None and before < after


def _has_label_or_year(facts: FactComparison) -> bool:
    """Return whether a value without a counterpart is a label, as in "bus 14", or a year."""
    return any(is_label(facts.find_statement(term), term) or is_year(term) for term in facts.numeric_terms)


def is_label(statement: ParsedFact, number: Term) -> bool:
    """Return whether a number tells which thing is meant, as in "bus 14"."""
    before, after = statement.find_word_before(number), statement.find_word_after(number)
    signs = list_words("number_signs")
    if after and is_in_table(after, "units") and not is_ordinal(number.text):
        return before in signs
    if number.is_head and after and is_ordinal(number.text):
        return True
    kinds = {term.place - number.place: term.kind for term in statement.terms}
    if kinds.get(-1) is TermKind.NAME and 1 not in kinds:
        return True
    if before in signs or (before and is_in_table(before, "numbered")):
        return True
    if not after or not is_in_table(after, "numbered"):
        return False
    return is_ordinal(number.text) or not _is_counted(after)


def _is_counted(noun: str) -> bool:
    """Return whether a noun has the form that follows an amount: "90 days", "90 дней"."""
    if is_cyrillic(noun):
        return not list_grammemes(noun).isdisjoint(("gent", "plur"))
    return noun.endswith("s")


def _is_amount(statement: ParsedFact, number: Term) -> bool:
    """Return whether a number is no ordinal and follows no article, and so may count or measure something."""
    return not is_ordinal(number.text) and statement.find_word_before(number) not in ("a", "an", "the")
