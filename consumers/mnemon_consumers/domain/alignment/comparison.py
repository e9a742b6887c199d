"""Comparison of two facts: both facts, their alignment, and properties of both that several rules read."""

from dataclasses import dataclass
from typing import Final

from mnemon_consumers.domain.alignment.lexicon import is_in_table
from mnemon_consumers.domain.alignment.matching import Alignment, WordSimilarity, align_facts
from mnemon_consumers.domain.alignment.parser import parse_pair
from mnemon_consumers.domain.alignment.statement import ParsedFact
from mnemon_consumers.domain.alignment.term import NUMERIC_KINDS, Term, TermKind, list_kinds

UNDECIDED_SHARE: Final = 0.3
"""Minimum share of each fact that must have a counterpart for two facts to be undecided, not different, if
only the shares decide. `SUBSET_SHARE` of one of the facts is enough, too."""

SUBSTITUTED_SHARE: Final = 0.5
"""Minimum share of each fact that must have a counterpart for two facts to be one sentence with a part
replaced."""

SUBSET_SHARE: Final = 0.95
"""Minimum share of one fact that must have a counterpart in a second fact, for the second to contain it."""

KINDS_OF_DETAILS: Final = NUMERIC_KINDS | {TermKind.LIGHT}
"""Kinds of terms that facts on different things may have in common: numbers, dates and light words."""


@dataclass(frozen=True, slots=True)
class FactComparison:
    """A known fact and a newer fact, parsed and aligned; the rules compare them.

    Attributes:
        old, new: the facts.
        alignment: their matched terms, and the terms of each without a counterpart.
        share_old, share_new: share of each fact's weight that has a counterpart in the other fact, 0 to 1.
    """

    old: ParsedFact
    new: ParsedFact
    alignment: Alignment
    share_old: float
    share_new: float

    @property
    def score(self) -> float:
        """Return the smaller of the two shares, 0 to 1."""
        return min(self.share_old, self.share_new)

    @property
    def left(self) -> tuple[Term, ...]:
        """Return the terms of both facts that have no counterpart, except light words."""
        return (*self.alignment.old, *self.alignment.new)

    @property
    def numeric_terms(self) -> list[Term]:
        """Return the numbers and dates of both facts that have no counterpart."""
        return [term for term in self.left if term.kind in NUMERIC_KINDS]

    @property
    def is_current(self) -> bool:
        """Return whether the newer fact reports a change, or neither fact is past (`is_event_past`)."""
        return self.new.is_changed or not (self.old.is_event_past or self.new.is_event_past)

    def shares_slot(self) -> bool:
        """Return whether both facts give a value to the same attribute."""
        return bool(self.old.slots & self.new.slots)

    def has_common_word(self) -> bool:
        """Return whether the facts have more in common than dates, numbers and light words."""
        return bool(list_kinds(term for term, _ in self.alignment.pairs) - KINDS_OF_DETAILS)

    def says_same_of_subject(self) -> bool:
        """Return whether the facts share terms besides the subject, words for people and light words."""
        said = [
            (a, b)
            for a, b in self.alignment.pairs
            if a.kind not in (TermKind.LIGHT, TermKind.PERSON) and not (a.is_head and b.is_head)
        ]
        return any(not a.is_head for a, _ in said) and any(not b.is_head for _, b in said)

    def find_statement(self, term: Term) -> ParsedFact:
        """Return the fact to which a term without a counterpart belongs."""
        return self.old if any(term is each for each in self.alignment.old) else self.new

    def is_next_to_listed(self, term: Term, table: str) -> bool:
        """Return whether the word before or after a term is in a table of the lexicon.

        The term is one without a counterpart.
        """
        statement = self.find_statement(term)
        beside = (statement.find_word_before(term), statement.find_word_after(term))
        return any(word and is_in_table(word, table) for word in beside)


def build_comparison(old: str, new: str, similarity: WordSimilarity | None = None) -> FactComparison:
    """Parse and align a known and a newer fact.

    Without `similarity`, English words that are only near in meaning do not match.
    """
    parsed = parse_pair(old, new)
    alignment = align_facts(*parsed, similarity)
    share_old, share_new = map(alignment.compute_share, (alignment.old, alignment.new))
    return FactComparison(*parsed, alignment, share_old, share_new)
