"""Relation of a new fact to a known fact, decided on evidence: the order of the rules."""

from dataclasses import replace

from mnemon_consumers.domain.alignment.comparison import FactComparison, build_comparison
from mnemon_consumers.domain.alignment.matching import WordSimilarity
from mnemon_consumers.domain.alignment.parser import parse_fact
from mnemon_consumers.domain.alignment.rules.clauses import find_leading_end
from mnemon_consumers.domain.alignment.rules.coexistence import (
    find_reason_against_repetition,
    find_reason_to_keep,
)
from mnemon_consumers.domain.alignment.rules.contradiction import decide_feeling, find_contradiction
from mnemon_consumers.domain.alignment.rules.decision import (
    decide_different,
    decide_doubtful,
    decide_open,
    decide_same,
    decide_undecided,
    decide_update,
)
from mnemon_consumers.domain.alignment.rules.denial_or_end import decide_denial_or_end, decide_hidden_denial
from mnemon_consumers.domain.alignment.rules.distinction import is_another_part, may_name_another_kind
from mnemon_consumers.domain.alignment.rules.paraphrase import decide_paraphrase
from mnemon_consumers.domain.alignment.rules.qualification import (
    find_other_qualification,
    find_other_symbol,
    find_partial_change,
    says_almost,
)
from mnemon_consumers.domain.alignment.rules.replacement import decide_replacement, decide_slot
from mnemon_consumers.domain.alignment.rules.revision import (
    find_other_restriction,
    find_revision,
    is_switch_of_kind,
    replaces_other_value,
)
from mnemon_consumers.domain.alignment.rules.stage import (
    find_next_stage,
    find_next_stage_of_user,
    is_for_someone,
    is_trip_over,
)
from mnemon_consumers.domain.alignment.rules.subject import find_other_subject, may_be_about_others
from mnemon_consumers.domain.alignment.rules.values.swap import swaps_old_thing
from mnemon_consumers.domain.alignment.term import Term, TermKind, is_year
from mnemon_consumers.domain.alignment.verdict import FactRelation, RelationVerdict


def relate_facts(old: str, new: str, similarity: WordSimilarity | None = None) -> RelationVerdict:
    """Decide the relation of a new fact to a known fact.

    If the rules find neither an update nor a repetition, they are applied again to the end with which the new
    fact begins, such as "Left Acme" of "Left Acme and now runs a bakery". Their second result counts only if
    it is an update.

    Args:
        old: the text of the known fact.
        new: the text of the new fact.
        similarity: measures how near in meaning two English words are; None matches no words by it.
    """
    verdict = _decide_relation(old, new, similarity)
    if verdict.relation in (FactRelation.UNDECIDED, FactRelation.DIFFERENT) and (
        lead := find_leading_end(parse_fact(old), new)
    ):
        update = _decide_relation(old, lead, similarity)
        if update.relation is FactRelation.UPDATE:
            return update
    return verdict


def find_event_year(old: str, new: str) -> int | None:
    """Return the year of the past event in a newer fact that lacks a term of the older fact.

    Returns:
        The latest year that the newer fact names. None if that fact tells no past event, names no year, or
        has counterparts of all terms of the older fact. None also if that fact has the word "last", as in
        "last year (2025)": such a year belongs to the time at which the words were said.
    """
    facts = build_comparison(old, new)
    is_relative = any("dates last" in term.keys for term in facts.new.terms)
    if is_relative or not (facts.new.is_past and facts.alignment.old):
        return None
    years = [int(term.text) for term in facts.new.terms if is_year(term) and term.text.isdecimal()]
    return max(years, default=None)


def _decide_relation(old: str, new: str, similarity: WordSimilarity | None) -> RelationVerdict:
    """Decide the relation by the rules, and leave it undecided if there is a reason to doubt the verdict."""
    facts = build_comparison(old, new, similarity)
    verdict = _apply_rules(facts)
    if verdict.relation is FactRelation.SAME:
        verdict = decide_hidden_denial(facts) or verdict
    if verdict.relation is FactRelation.SAME and (problem := find_reason_against_repetition(facts)):
        return decide_undecided(facts, problem)
    is_replaced = verdict.relation in (FactRelation.SAME, FactRelation.UPDATE)
    if not (is_replaced or verdict.is_open):
        return verdict
    doubt = _find_doubt(facts, verdict)
    if doubt is None:
        return verdict
    relation = FactRelation.UNDECIDED if is_replaced else verdict.relation
    return replace(verdict, relation=relation, evidence=doubt, is_covered=False, is_open=False)


def _apply_rules(facts: FactComparison) -> RelationVerdict:
    """Return the verdict of the first rule that applies; the order of the rules is part of the decision."""
    if verdict := _decide_foreign(facts):
        return verdict
    if is_switch_of_kind(facts.alignment):
        evidence = "the newer fact says that a person switched to another thing of the kind"
        return RelationVerdict(FactRelation.UPDATE, evidence, facts.score, is_related=True)
    if stage := find_next_stage_of_user(facts):
        evidence = f"the newer fact reaches the next stage: {stage}"
        return RelationVerdict(FactRelation.UPDATE, evidence, facts.score, is_related=True)
    if not any(a.kind is not TermKind.LIGHT for a, _ in facts.alignment.pairs) and not facts.shares_slot():
        return _decide_without_common_word(facts)
    if problem := find_other_subject(facts):
        return decide_different(facts, problem)
    if revision := find_revision(facts.alignment):
        return decide_update(facts, revision)
    if may_name_another_kind(facts):
        return decide_undecided(facts, "one fact names a kind of thing, the other perhaps another kind")
    if swaps_old_thing(facts):
        return decide_update(facts, "the newer fact names the replacement")
    if is_another_part(facts):
        return decide_undecided(facts, "one of the facts names a part of a series")
    if is_for_someone(facts):
        return decide_undecided(facts, "the newer fact is about something for another person")
    if stage := find_next_stage(facts):
        return decide_update(facts, f"the newer fact reaches the next stage: {stage}")
    if is_trip_over(facts):
        return decide_update(facts, "the newer fact says that the plan is carried out")
    if problem := find_contradiction(facts):
        return decide_different(facts, problem)
    if problem := find_reason_to_keep(facts):
        return decide_undecided(facts, problem)
    return (
        decide_slot(facts)
        or decide_feeling(facts)
        or decide_denial_or_end(facts)
        or decide_replacement(facts)
        or decide_paraphrase(facts)
    )


def _decide_foreign(facts: FactComparison) -> RelationVerdict | None:
    """Decide the relation of equal texts, or of facts in a language without rules; None otherwise."""
    both = facts.old, facts.new
    is_foreign = any(fact.is_clearly_foreign for fact in both) or all(fact.is_foreign for fact in both)
    if facts.old.text == facts.new.text or (is_foreign and facts.old.raw == facts.new.raw):
        return decide_same(facts, "they have the same words", is_covered=True)
    if is_foreign:
        return decide_doubtful(facts, "one of the facts is in a language without rules")
    return None


def _decide_without_common_word(facts: FactComparison) -> RelationVerdict:
    if all(any(map(_has_digit, side)) for side in (facts.alignment.old, facts.alignment.new)):
        return decide_different(facts, "they have no word in common, and their numbers differ")
    return decide_open(facts, FactRelation.DIFFERENT, "they have no word in common")


def _find_doubt(facts: FactComparison, verdict: RelationVerdict) -> str | None:
    """Return the reason why an open verdict, or the verdict `SAME` or `UPDATE`, does not hold.

    Returns:
        None if the verdict holds.
    """
    is_update = verdict.relation is FactRelation.UPDATE
    if is_update and says_almost(facts.new):
        return "the newer fact says that something almost happened"
    if _is_only_one_about_planned_end(facts):
        return "only one of the facts is about an end that a person thinks of"
    if may_be_about_others(facts):
        return "one of the facts may be about another person"
    is_repetition = verdict.relation is FactRelation.SAME
    if is_repetition and facts.old.has_word_of("conditions") and not facts.new.has_word_of("conditions"):
        return "only the older fact has a condition"
    doubt = find_other_qualification(facts.alignment)
    if is_repetition or verdict.is_open:
        doubt = doubt or find_other_symbol(facts.alignment)
    if is_update:
        doubt = doubt or find_partial_change(facts.alignment)
        if doubt is None and replaces_other_value(facts.alignment):
            doubt = "the newer fact denies another value than that of the older one"
    if doubt or verdict.relation not in (FactRelation.SAME, FactRelation.UPDATE):
        return doubt
    restriction = find_other_restriction(facts.alignment, is_update=is_update)
    return restriction if restriction and find_revision(facts.alignment) is None else None


def _is_only_one_about_planned_end(facts: FactComparison) -> bool:
    """Return whether one fact is about an end that may come, and the other is a plain statement.

    A plain statement is no denial, and is about no end, change or plan. For example, "Is thinking of quitting
    Acme" and "Works at Acme" are such facts.
    """
    others = [fact for fact in (facts.old, facts.new) if not fact.is_end_planned]
    return len(others) == 1 and not any(
        fact.denies_or_ends or fact.is_changed or fact.is_planned for fact in others
    )


def _has_digit(term: Term) -> bool:
    return any(map(str.isdigit, term.text))
