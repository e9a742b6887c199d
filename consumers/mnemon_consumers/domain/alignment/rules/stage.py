"""Stages and plans: whether the newer fact reaches the next stage, or carries out a plan."""

from collections.abc import Sequence
from typing import Final

from mnemon_consumers.domain.alignment.comparison import FactComparison
from mnemon_consumers.domain.alignment.lexicon import (
    is_in_table,
    is_in_word_list,
    list_lookup_forms,
    list_words,
)
from mnemon_consumers.domain.alignment.morphology import list_grammemes, list_lemmas
from mnemon_consumers.domain.alignment.rules.noun_phrase import is_genitive_of_noun, qualifies_noun
from mnemon_consumers.domain.alignment.rules.revision import has_other_adjective
from mnemon_consumers.domain.alignment.statement import ParsedFact, is_part_of_phrase, leaves_place
from mnemon_consumers.domain.alignment.term import (
    Term,
    TermKind,
    has_exact_term,
    is_listed,
)

_USER_AXES: Final = frozenset(("birth", "work"))
"""Names of axes, of the table `stages`, on which a person is at one stage at a time."""

_SOUGHT_AXES: Final = frozenset(("search", "wait"))
"""Names of axes, of the table `stages`, on which a person looks or waits for one thing, and then gets it."""


def find_next_stage(facts: FactComparison) -> str | None:
    """Return the axis on which the newer fact reaches the next stage, as "found" follows "looks for".

    Returns:
        None if the newer fact reaches no next stage of the same thing.
    """
    before = _list_begun_axes(facts.old)
    after = {
        pole[:-1]
        for term in facts.new.terms
        for pole in term.stages
        if pole.endswith("-") and not _is_age_of_other_thing(facts, term)
    }
    axes = before & after
    if not axes or facts.new.is_planned or ("broken" in axes and facts.new.has_word_of("past_work")):
        return None
    old, new = (
        _list_without_stage(facts.alignment.old, axes),
        _list_without_stage(facts.alignment.new, axes),
    )
    if axes & {"birth"}:
        old = [term for term in old if term.kind is not TermKind.NUMBER and not is_listed(term, "units")]
        new = [term for term in new if term.kind is not TermKind.NUMBER]
    if "debt" in axes and _is_paid_by_creditor(facts):
        return None
    if "debt" in axes and not any(term.kind is TermKind.NUMBER for term in facts.new.terms):
        old = [term for term in old if term.kind is not TermKind.NUMBER and not is_listed(term, "units")]
        new = [term for term in new if term.text not in list_words("debts")]
    about = [
        (a, b) for a, b in facts.alignment.pairs if a.kind is not TermKind.LIGHT and not _has_stage(a, axes)
    ]
    is_other_event = ("prepare" in axes and any(_is_particular_event(b, new) for _, b in about)) or (
        "loss" in axes and has_other_adjective(facts.alignment)
    )
    is_of_other_object = axes <= _SOUGHT_AXES and bool(old) and all(a.is_head and b.is_head for a, b in about)
    is_unpaid = "debt" in axes and bool(new) and any(t.kind is TermKind.NUMBER for t in facts.alignment.old)
    is_other = is_unpaid or bool(old and new) or len(old) > 1 or has_exact_term(old)
    if (
        is_other
        or is_other_event
        or is_of_other_object
        or any(qualifies_noun(facts.new, new, b) or is_genitive_of_noun(facts.new, new, b) for _, b in about)
        or not about
        or any(term.is_head for term in (*old, *new))
        or is_part_of_phrase(facts.new, new)
    ):
        return None
    return min(axes)


def find_next_stage_of_user(facts: FactComparison) -> str | None:
    """Return the axis on which the user reaches the next stage, even if the facts have no word in common.

    For example, "Gave birth to a son" follows "Is pregnant": a person has one pregnancy at a time.

    Returns:
        None if the user reaches no next stage; if one of the facts has another subject; or if the newer fact
        names another person, takes the stage back, or may be about a former year or a former child.
    """
    old, new = facts.old, facts.new
    if old.has_head or new.has_head or old.denies_or_ends or old.is_past or new.is_planned:
        return None
    axes = _list_begun_axes(old) & _USER_AXES
    is_back = not axes.isdisjoint(_list_begun_axes(new))
    is_limited = new.denies_or_ends or is_back or new.has_word_of("stage_limits")
    if not axes or is_limited or is_for_someone(facts) or not _is_stage_alone(old, axes):
        return None
    reached = {
        axis
        for axis in axes
        for term in new.terms
        if f"{axis}-" in term.stages and _is_stage_of_user(facts, axis, term)
    }
    return min(reached, default=None)


def _list_begun_axes(statement: ParsedFact) -> set[str]:
    """Return the axes of the table `stages` on which a fact tells the first stage, such as "looks for"."""
    begun = {pole[:-1] for term in statement.terms for pole in term.stages if pole.endswith("+")}
    return begun if tells_illness(statement) else begun - {"illness"}


def tells_illness(statement: ParsedFact) -> bool:
    """Return whether a fact says that someone is ill; False for "is afraid of covid"."""
    words = [term for term in statement.terms if term.kind is TermKind.WORD and not term.is_head]
    return any(
        "illness+" in term.stages
        and all("illness+" in each.stages for each in words if each.place < term.place)
        for term in statement.terms
    )


def _is_stage_alone(statement: ParsedFact, axes: set[str]) -> bool:
    """Return whether a fact tells a stage, and besides it only a date or the child that a person expects.

    "Expecting" tells a pregnancy only beside a child.
    """
    rest = [term for term in statement.words if not _has_stage(term, axes)]
    children = [term for term in rest if is_in_word_list(term.text, "unborn_children")]
    is_told = any(
        _has_stage(term, axes) and term.text not in list_words("waiting_verbs") for term in statement.terms
    )
    return (is_told or bool(children)) and all(
        term in children or term.kind is TermKind.DATE or is_listed(term, "scheduled") for term in rest
    )


def _is_stage_of_user(facts: FactComparison, axis: str, stage: Term) -> bool:
    """Return whether a term of the newer fact says that the user reached a stage, such as a job or a birth.

    It does not in "has a job interview", «взял на работу няню» (hired a nanny), "had a baby shower", "gave
    birth to an idea" and «родилась в Омске» (was born in Omsk).
    """
    new = facts.new
    rest = [term for term in new.words if not _has_stage(term, {axis})]
    is_dated = any(
        term.kind is TermKind.NUMBER and not is_in_word_list(term.text, "newborns") for term in rest
    )
    if is_dated or any(term.is_someone and term.place < stage.place for term in rest):
        return False
    following = new.raw[stage.end : stage.end + 1]
    is_complete = all(
        word in list_words("stage_detail_prepositions") or is_in_table(word, "dates") for word in following
    )
    if axis == "work":
        return is_complete or "ablt" in list_grammemes(*following)
    children = [term for term in rest if is_in_word_list(term.text, "newborns")]
    is_birth = new.is_past and (
        "родить" in list_lookup_forms(stage.text) or stage.text.startswith(("gave birth", "had "))
    )
    others = [
        term
        for term in rest
        if term.is_someone and term not in children and not _follows(new, term, children)
    ]
    return is_birth and (is_complete or bool(children)) and not others


def _follows(statement: ParsedFact, name: Term, children: Sequence[Term]) -> bool:
    """Return whether a name stands right after a child or a word such as "named"."""
    is_named = statement.find_word_before(name) in list_words("person_name_words")
    return name.kind is TermKind.NAME and (is_named or any(child.end == name.place for child in children))


def _is_particular_event(event: Term, left: Sequence[Term]) -> bool:
    """Return whether a word or number of `left` stands before an event: "half marathon", "mock exam"."""
    return any(
        term.kind in (TermKind.WORD, TermKind.NUMBER) and event.place - term.place == 1 for term in left
    )


def _is_age_of_other_thing(facts: FactComparison, term: Term) -> bool:
    """Return whether "new" stands before a thing that only the newer fact has: "has a new stereo"."""
    is_age = not list_words("age_adjectives").isdisjoint((term.text, *list_lemmas(term.text)))
    return is_age and any(thing.place - term.place == 1 for thing in facts.alignment.new)


def _has_stage(term: Term, axes: set[str]) -> bool:
    """Return whether a term is a pole of one of the named axes of the table `stages`."""
    return any(pole[:-1] in axes for pole in term.stages)


def _list_without_stage(terms: tuple[Term, ...], axes: set[str]) -> list[Term]:
    """Return the terms that are no pole of the named axes of the table `stages`."""
    return [term for term in terms if not _has_stage(term, axes)]


def _is_paid_by_creditor(facts: FactComparison) -> bool:
    """Return whether the newer fact says that the creditor pays or returns something."""
    return any(a.is_someone and b.is_head and not a.is_head for a, b in facts.alignment.pairs)


def is_for_someone(facts: FactComparison) -> bool:
    """Return whether the newer fact reaches a next stage for another person.

    For example, the result is True for "Found a job for her brother" beside "Is looking for a job".
    """
    return any(
        term.is_someone
        and not term.is_head
        and (term.role == "for" or facts.new.find_word_before(term) == "для")
        for term in facts.alignment.new
    ) and any(pole.endswith("-") for term in facts.new.terms for pole in term.stages)


def is_trip_over(facts: FactComparison) -> bool:
    """Return whether the newer fact reports the return from a trip that is planned in the older fact."""
    if not facts.old.is_planned or facts.new.is_planned or facts.new.is_negated:
        return False
    is_stay = "residence" in facts.old.slots or any(
        term.is_someone or term.kind is TermKind.NUMBER for term in facts.alignment.old
    )
    is_back = bool(facts.alignment.new) and all(
        term.kind is TermKind.WORD and not list_words("return_words").isdisjoint(term.text.split())
        for term in facts.alignment.new
    )
    return (
        is_back
        and not is_stay
        and any(
            a.kind is TermKind.NAME and a.role == "to" and (b.role == "from" or leaves_place(facts.new, b))
            for a, b in facts.alignment.pairs
        )
    )


def is_carried_out(facts: FactComparison) -> bool:
    """Return whether the newer fact may complete a plan, or a stage such as waiting, of the older fact.

    False for a plan to live in a place, because a visit does not carry it out.
    """
    is_before = any(pole.endswith("+") for term in facts.alignment.old for pole in term.stages)
    is_open = facts.old.is_planned or (is_before and facts.new.is_past)
    if any(
        not list_lookup_forms(term.text).isdisjoint(list_words("stay_verbs")) for term in facts.alignment.old
    ):
        return False  # a visit does not carry out the plan to live in a place
    return is_open and not facts.new.is_planned and not facts.new.is_negated
