"""Verdicts on two facts, with the checks that keep what only the older fact says."""

from dataclasses import replace
from typing import Final

from mnemon_consumers.domain.alignment.comparison import (
    KINDS_OF_DETAILS,
    SUBSET_SHARE,
    UNDECIDED_SHARE,
    FactComparison,
)
from mnemon_consumers.domain.alignment.rules.clauses import (
    has_unmatched_clause,
    joins_clauses,
    reports_unsaid_end,
)
from mnemon_consumers.domain.alignment.rules.qualification import is_part_of_time
from mnemon_consumers.domain.alignment.rules.values.lost_part import find_lost_part
from mnemon_consumers.domain.alignment.term import TermKind, is_part_of_day, list_kinds
from mnemon_consumers.domain.alignment.verdict import FactRelation, RelationVerdict

_RELATED_SHARE: Final = 0.4
"""Minimum share of each fact that must have a counterpart for a proposal to replace the older fact that it
names. Facts that give a value to the same slot need no share."""


def decide_update(facts: FactComparison, evidence: str) -> RelationVerdict:
    """Decide that the newer fact updates the older fact, unless that is doubtful.

    It is doubtful if the facts share only details such as dates, or if a clause of the older fact would be
    lost.
    """
    if _shares_only_details(facts):
        return decide_undecided(facts, "the facts have only dates and numbers in common")
    if has_unmatched_clause(facts):
        undecided = decide_undecided(facts, f"{evidence}; the older fact also says something else")
        # A proposal that names the older fact to replace must not remove its other clause.
        return replace(undecided, is_related=False)
    return RelationVerdict(FactRelation.UPDATE, evidence, facts.score, is_related=True)


def decide_new_value(facts: FactComparison, evidence: str, slot: str = "") -> RelationVerdict:
    """Decide that a new value updates the older fact, unless another part of the older fact would be lost.

    Args:
        facts: the facts.
        evidence: the reason for the update.
        slot: the slot that has another value; empty for an amount or a date without a slot.
    """
    part = find_lost_part(facts, slot)
    is_timed = any(is_part_of_time(facts.old, term) for term in facts.alignment.old)
    if (is_timed and slot in ("employer", "job", "residence")) or _has_value_of_another_time(facts):
        part = "says when its value holds"
    if part is None:
        return decide_update(facts, evidence)
    undecided = decide_undecided(facts, f"{evidence}; the older fact also {part}")
    # A proposal that names the older fact to replace must not remove that part.
    return replace(undecided, is_related=False)


def _has_value_of_another_time(facts: FactComparison) -> bool:
    """Return whether the newer fact gives another value for another part of the time.

    For example, the result is True for "1200 in summer" beside "900 in winter". It is False if only the times
    differ, and if the newer fact reports a change. A part of the day is not such a time: it tells only which
    hour is meant.
    """
    left = facts.alignment
    parts = [
        [term for term in side if is_part_of_time(statement, term) and not is_part_of_day(term)]
        for statement, side in ((facts.old, left.old), (facts.new, left.new))
    ]
    if facts.new.is_changed or not all(parts):
        return False
    return len(facts.left) > len(parts[0]) + len(parts[1]) or len(left.old) != len(left.new)


def decide_same(facts: FactComparison, evidence: str, *, is_covered: bool = False) -> RelationVerdict:
    """Decide that the facts say the same, or leave the relation undecided if that is doubtful.

    It is doubtful if the facts share only details such as dates. If the older fact covers the newer fact
    (`is_covered`), it is also doubtful if the newer fact joins parts of several clauses, or tells a denial,
    an end or a change that no clause tells.
    """
    if _shares_only_details(facts):
        return decide_undecided(facts, "the facts have only dates and numbers in common")
    if is_covered and joins_clauses(facts):
        return decide_undecided(facts, "the newer fact may join parts of two statements of the older one")
    if is_covered and reports_unsaid_end(facts):
        return decide_undecided(facts, "no statement of the older fact says that this is over or has changed")
    # A proposal that names an older fact which says more must not remove the rest.
    is_whole = not is_covered or facts.share_old >= SUBSET_SHARE
    return RelationVerdict(FactRelation.SAME, evidence, facts.score, is_covered, is_related=is_whole)


def decide_different(
    facts: FactComparison, evidence: str, *, is_contradicted: bool = True
) -> RelationVerdict:
    """Decide that the facts are about different things, or contradict each other.

    `is_contradicted` is False if nothing in the facts shows that they differ, see `RelationVerdict`.
    """
    return RelationVerdict(FactRelation.DIFFERENT, evidence, facts.score, is_contradicted=is_contradicted)


def decide_undecided(facts: FactComparison, evidence: str) -> RelationVerdict:
    """Leave the relation undecided, for the reason `evidence`: both facts may hold, or say the same."""
    return RelationVerdict(FactRelation.UNDECIDED, evidence, facts.score, is_related=_is_related(facts))


def decide_open(facts: FactComparison, relation: FactRelation, evidence: str) -> RelationVerdict:
    """Decide that no rule tells the facts apart, so that their similarity may decide."""
    return RelationVerdict(relation, evidence, facts.score, is_related=_is_related(facts), is_open=True)


def decide_doubtful(facts: FactComparison, evidence: str) -> RelationVerdict:
    """Decide by the shares alone; such a verdict never lets a proposal replace the older fact."""
    return RelationVerdict(choose_doubtful_relation(facts), evidence, facts.score)


def choose_doubtful_relation(facts: FactComparison) -> FactRelation:
    """Return `UNDECIDED` if the shares are large enough for facts about the same thing, else `DIFFERENT`."""
    is_likely = facts.score >= UNDECIDED_SHARE or max(facts.share_old, facts.share_new) >= SUBSET_SHARE
    return FactRelation.UNDECIDED if is_likely else FactRelation.DIFFERENT


def _is_related(facts: FactComparison) -> bool:
    """Return whether both facts are about the same thing, not only about the same person."""
    says_same = facts.score >= _RELATED_SHARE and facts.says_same_of_subject()
    return says_same or facts.shares_slot()


def _shares_only_details(facts: FactComparison) -> bool:
    """Return whether the facts have only details in common, such as dates, and one says something else.

    For example, "Got married in 2020" and "Graduated in 2020" have only the year in common, and so have
    "Graduated in 2020" and "Retired in 2020", although their verbs say only that something is over. The
    result is False if both facts give a value to the same attribute.
    """
    left = list_kinds(facts.left) - KINDS_OF_DETAILS
    old, new = (
        {term.text for term in fact.terms if term.kind is TermKind.LIGHT} for fact in (facts.old, facts.new)
    )
    return (bool(left) or old != new) and not facts.has_common_word() and not facts.shares_slot()
