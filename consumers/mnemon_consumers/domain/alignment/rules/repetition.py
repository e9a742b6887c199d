"""Repetitions: reasons why a newer fact with matching words does not repeat the older fact."""

from mnemon_consumers.domain.alignment.comparison import FactComparison
from mnemon_consumers.domain.alignment.lexicon import list_words
from mnemon_consumers.domain.alignment.morphology import list_grammemes
from mnemon_consumers.domain.alignment.rules.stage import USER_AXES
from mnemon_consumers.domain.alignment.statement import ParsedFact, tells_past_state
from mnemon_consumers.domain.alignment.term import Term, TermKind


def find_reason_against_repetition(facts: FactComparison) -> str | None:
    """Return why the facts do not say the same although their words match; None if they may."""
    is_former = not list_words("past_state_verbs").isdisjoint(facts.old.raw[:2])
    if is_former and tells_past_state(facts.old) and not facts.new.is_past:
        return "only the older fact is about a former state"
    if any(_shares_only_word_of_phrase(a, b) for a, b in facts.alignment.pairs):
        return "a common word belongs to a phrase with another meaning in one of the facts"
    if any(_has_other_adjective(facts, a, b) for a, b in facts.alignment.pairs):
        return "the facts have different adjectives before a noun"
    return None


def _shares_only_word_of_phrase(a: Term, b: Term) -> bool:
    """Return whether one term is a phrase for a stage of the user, and the other is not about that stage.

    For example, "works" in "Works at Acme" is no counterpart of the phrase in "Is out of work".
    """
    poles = {f"{axis}+" for axis in USER_AXES}
    stages = [term.stages & poles for term in (a, b)]
    return stages[0] != stages[1] and any(" " in term.text for term in (a, b))


def _has_other_adjective(facts: FactComparison, a: Term, b: Term) -> bool:
    """Return whether a light adjective in the newer fact stands where the older fact has another word.

    For example, "long" and "curly" are such words in "Has long hair" and "Has curly hair".
    """
    is_replaced = any(term.end == a.place for term in facts.alignment.old)
    return a.kind is TermKind.WORD and is_replaced and _find_light_adjective(facts.new, b) is not None


def _find_light_adjective(statement: ParsedFact, noun: Term) -> Term | None:
    return next(
        (
            term
            for term in statement.terms
            if term.kind is TermKind.LIGHT
            and term.end == noun.place
            and (term.text in list_words("adjectives") or "ADJF" in list_grammemes(term.text))
        ),
        None,
    )
