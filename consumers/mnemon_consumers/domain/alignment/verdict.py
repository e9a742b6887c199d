"""Relation of a newer fact to an older fact, with the reason."""

from dataclasses import dataclass
from enum import StrEnum


class FactRelation(StrEnum):
    """Relation of a new fact to a known fact."""

    SAME = "same"
    UPDATE = "update"
    DIFFERENT = "different"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class RelationVerdict:
    """The relation of two facts, with the reason.

    Attributes:
        relation: relation of the newer fact to the older fact.
        evidence: the reason, without a quotation of the facts, because reasons are stored longer than facts.
        score: share of a fact's weight that has a counterpart in the other fact, 0 to 1; the smaller of the
            two facts' shares. The score ranks candidates.
        is_covered: whether the older fact says everything that the newer fact says, and perhaps more.
        is_related: whether a proposal that names the older fact may replace it: both facts seem to be about
            the same thing and not to contradict each other, and no rule finds a part of the older fact that
            would be lost.
        is_contradicted: whether something in the facts, such as another person, another date or a contrary
            word, shows that they differ.
        is_open: whether no rule tells the facts apart, so that similarity may decide.
    """

    relation: FactRelation
    evidence: str
    score: float = 0.0
    is_covered: bool = False
    is_related: bool = False
    is_open: bool = False
    is_contradicted: bool = False
