"""Relation of a new fact to a known fact: same, update, different or undecided, decided on evidence."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from mnemon_consumers.domain.alignment.distinction import is_about_another_thing
from mnemon_consumers.domain.alignment.lexicon import is_in_table, list_words
from mnemon_consumers.domain.alignment.matching import (
    WordSimilarity,
    align_facts,
    are_opposite,
    have_contrary_roles,
    is_kind_of,
)
from mnemon_consumers.domain.alignment.morphology import (
    fold_characters,
    is_cyrillic,
    is_ordinal,
    is_verb,
    list_forms,
    list_grammemes,
)
from mnemon_consumers.domain.alignment.parser import parse_fact, parse_pair
from mnemon_consumers.domain.alignment.qualification import (
    find_other_qualification,
    find_other_symbol,
    find_partial_change,
    is_limited,
    is_part_of_time,
    says_almost,
)
from mnemon_consumers.domain.alignment.replacement import (
    WORD_SLOTS,
    Replacement,
    consists_of,
    is_beginning,
    is_habitual,
    is_listed,
    is_year,
    list_kinds,
)
from mnemon_consumers.domain.alignment.revision import (
    find_other_restriction,
    find_revision,
    has_other_adjective,
    is_permission,
    is_switch_of_kind,
    list_denied_values,
    permits_something_else,
    replaces_other_value,
)
from mnemon_consumers.domain.alignment.statement import EXACT_KINDS, NUMERIC_KINDS, ParsedFact, Term, TermKind
from mnemon_consumers.domain.alignment.syntax import is_past_form


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
        is_related: whether a proposal that names the older fact may replace it: both facts are about the same
            thing, do not contradict each other, and the older fact is about nothing else.
        is_contradicted: whether a person, a value, a direction or a denial shows that the facts differ.
        is_open: whether no rule tells the facts apart, so that similarity may decide.
    """

    relation: FactRelation
    evidence: str
    score: float = 0.0
    is_covered: bool = False
    is_related: bool = False
    is_open: bool = False
    is_contradicted: bool = False


SAME_SHARE: Final = 0.5
"""Minimum share of each fact that must have a counterpart for differently worded facts to be the same."""

UNDECIDED_SHARE: Final = 0.3
"""Minimum share of each fact that must have a counterpart for two facts to be undecided, not different.
`SUBSET_SHARE` of one of the facts is enough, too."""

RELATED_SHARE: Final = 0.4
"""Minimum share of each fact that must have a counterpart for a proposal to replace the older fact that it
names. Facts that give a value to the same slot need no share."""

SUBSTITUTED_SHARE: Final = 0.5
"""Minimum share of each fact that must have a counterpart for two facts to be one sentence with a part
replaced."""

_KINDS_OF_DETAILS: Final = NUMERIC_KINDS | {TermKind.LIGHT}
"""Kinds of terms that facts on different things may share, such as "since" and "years"."""

_KINDS_OF_QUALIFIERS: Final = (TermKind.WORD, TermKind.NUMBER)
"""Kinds of terms that may tell a person apart from another one, such as "best" and "twin"."""

_ADDRESS_KINDS: Final = frozenset((TermKind.NAME, TermKind.NUMBER))

PARTNERS: Final = ("wife", "husband", "spouse", "partner", "girlfriend", "boyfriend", "fiance", "fiancee")
"""People whose mention tells the marital status."""

_TIES: Final = frozenset(("friendship", "romance", "quarrel"))
"""Names of axes, of the table `stages`, for relationships between people."""

_GENERAL_PEOPLE: Final = frozenset(
    ("people child", "people friend", "people friend_female", "people parents")
)
"""Keys of general words for people, for which the other fact may have a more exact word."""

SUBSET_SHARE: Final = 0.95
"""Minimum share of a fact that must have a counterpart in another fact for the other to contain it."""


def relate_facts(old: str, new: str, similarity: WordSimilarity | None = None) -> RelationVerdict:
    """Decide the relation of a new fact to a known fact."""
    return _PairComparison(*parse_pair(old, new), similarity).decide_relation()


class _PairComparison:
    def __init__(self, old: ParsedFact, new: ParsedFact, similarity: WordSimilarity | None) -> None:
        self.old = old
        self.new = new
        self.alignment = align_facts(old, new, similarity)
        left = self.alignment
        self.share_old = left.compute_share(left.old)
        self.share_new = left.compute_share(left.new)
        self.score = min(self.share_old, self.share_new)
        self.replacement = Replacement(old, new, left)

    def decide_relation(self) -> RelationVerdict:
        verdict = self._compare_terms()
        is_replaced = verdict.relation in (FactRelation.SAME, FactRelation.UPDATE)
        doubt = find_other_qualification(self.alignment)
        if verdict.relation is FactRelation.SAME or verdict.is_open:
            doubt = doubt or find_other_symbol(self.alignment)
        if verdict.relation is FactRelation.UPDATE:
            if says_almost(self.new):
                doubt = "the newer fact says that something almost happened"
            doubt = doubt or find_partial_change(self.alignment)
            if replaces_other_value(self.alignment):
                doubt = doubt or "the newer fact denies another value than that of the older one"
        restriction = find_other_restriction(self.alignment) if is_replaced else None
        if restriction and find_revision(self.alignment) is None:
            doubt = doubt or restriction
        if doubt is None or not (is_replaced or verdict.is_open):
            return verdict
        relation = FactRelation.UNDECIDED if is_replaced else verdict.relation
        return replace(verdict, relation=relation, evidence=doubt, is_covered=False, is_open=False)

    def _compare_terms(self) -> RelationVerdict:
        facts = self.old, self.new
        is_foreign = any(fact.is_clearly_foreign for fact in facts) or all(fact.is_foreign for fact in facts)
        if self.old.text == self.new.text or (is_foreign and self.old.raw == self.new.raw):
            return self._decide_same("they have the same words", is_covered=True)
        if is_foreign:
            return RelationVerdict(
                self._choose_doubtful_relation(),
                "one of the facts is in a language without rules",
                self.score,
            )
        if is_switch_of_kind(self.alignment):
            evidence = "the newer fact switches to another thing of the kind"
            return RelationVerdict(FactRelation.UPDATE, evidence, self.score, is_related=True)
        if not any(a.kind is not TermKind.LIGHT for a, _ in self.alignment.pairs) and not self._shares_slot():
            if all(any(map(_has_digit, side)) for side in (self.alignment.old, self.alignment.new)):
                return self._decide_different("they have no word in common, and their numbers differ")
            return self._decide_open(FactRelation.DIFFERENT, "they have no word in common")
        if problem := self._find_other_subject():
            return self._decide_different(problem)
        if revision := find_revision(self.alignment):
            return self._decide_update(revision)
        is_against = (
            self._applies_to_all_kinds()
            or self.new.is_ended
            or self.old.is_negated != self.new.is_negated
            or self._has_opposite_feeling()
        )
        if self._is_of_another_kind() or (self.alignment.kind_pairs and is_against):
            return self._decide_undecided("one fact names a kind of thing, the other perhaps another kind")
        if self.replacement.swaps_old_thing():
            return self._decide_update("the newer fact names the replacement")
        if self._is_another_part():
            return self._decide_undecided("one of the facts names a part of a series")
        if self._is_for_someone():
            return self._decide_undecided("the newer fact is about something for another person")
        if stage := self._find_next_stage():
            return self._decide_update(f"the newer fact reaches the next stage: {stage}")
        if self._is_trip_over():
            return self._decide_update("the newer fact says that the plan is carried out")
        if problem := self._find_contradiction():
            return self._decide_different(problem)
        if problem := self._find_reason_to_keep():
            return self._decide_undecided(problem)
        if slot := self.replacement.find_changed_slot():
            is_replaced = _says_alone(self.new) or _has_companion_phrase(self.alignment.new)
            if _has_companion_phrase(self.alignment.old) and not is_replaced:
                return self._decide_undecided(
                    f"a new value: {slot}; the older fact also says with whom or with what, and the newer "
                    "one does not"
                )
            return self._decide_new_value(f"a new value: {slot}", slot)
        return (
            self._decide_feeling()
            or self._decide_end()
            or self._decide_replacement()
            or self._decide_wording()
        )

    def _applies_to_all_kinds(self) -> bool:
        """Return whether the older fact denies, or one of the facts names an allergy."""
        return self.old.is_negated or any(each.has_word_of("allergies") for each in (self.old, self.new))

    def _find_reason_to_keep(self) -> str | None:
        """Return why the older fact may still hold beside a newer fact about the same; None otherwise."""
        if self._names_former_value():
            return "the newer fact is about a former state"
        if self._wishes_for_amount():
            return "the newer fact is about a wished amount"
        if self._is_of_other_amount():
            return "the newer fact ends another amount"
        if self._denies_only_part():
            return "only one of the facts is a denial, and it may deny a part of what the other says"
        if is_about_another_thing(self.alignment):
            return "a word before a thing may tell it apart from another thing of the kind"
        if self._has_other_qualifier():
            return "a word before a person or thing may tell it apart from another one"
        return None

    def _names_former_value(self) -> bool:
        """Return whether the newer fact is about a former state, and says more than that it is over.

        For example, "Used to live in York" does so beside "Lives in Leeds", but "Used to smoke" does not
        beside "Smokes".
        """
        if self.old.is_past or self.new.is_changed or _list_former_clauses(self.old):
            return False
        former, left = _list_former_clauses(self.new), self.alignment.new
        return bool(former and left) and all(any(term.place in each for each in former) for term in left)

    def _wishes_for_amount(self) -> bool:
        """Return whether only the newer fact is about a plan, and its number differs: "wants 3 children"."""
        is_wish = self.new.is_planned and not (self.old.is_planned or self.new.is_changed)
        return is_wish and all(
            TermKind.NUMBER in list_kinds(side) and TermKind.DATE not in list_kinds(side)
            for side in (self.alignment.old, self.alignment.new)
        )

    def _is_of_other_amount(self) -> bool:
        """Return whether the newer fact ends another amount of the same: "Sold two bikes" of five."""
        if not self.new.is_ended or self.old.is_ended or "weight" in self.old.slots & self.new.slots:
            return False
        sides = ((self.old, self.alignment.old), (self.new, self.alignment.new))
        return any(
            a.kind in (TermKind.WORD, TermKind.PERSON)
            and all(
                any(number.kind is TermKind.NUMBER and term.place - number.place == 1 for number in left)
                for term, (_, left) in zip((a, b), sides, strict=True)
            )
            for a, b in self.alignment.pairs
        )

    def _denies_only_part(self) -> bool:
        """Return whether only one fact is a denial, with an adjective or a habit's date that the other lacks.

        For example, «Не пьёт козье молоко» and «Не пьёт молоко по будням» are beside «Пьёт молоко».
        """
        left, is_old_denial = self.alignment, self.old.is_negated
        share_affirmed = self.share_new if is_old_denial else self.share_old
        if is_old_denial == self.new.is_negated or share_affirmed < SUBSET_SHARE:
            return False
        side, extra = (0, left.old) if is_old_denial else (1, left.new)
        nouns = {pair[side].place for pair in left.pairs if pair[side].kind is not TermKind.LIGHT}
        return any(
            _is_regular(term) or (_is_descriptive(term.text) and term.place + 1 in nouns) for term in extra
        )

    def _has_other_qualifier(self) -> bool:
        """Return whether a word that qualifies a person in one fact is not in the other: "best friend"."""
        if self.new.is_ended:
            return False
        left = {id(term) for term in (*self.alignment.old, *self.alignment.new)}
        return any(
            term.is_head
            and ((id(term) in left and term.kind in _KINDS_OF_QUALIFIERS) or _is_light_adjective(term))
            and any(
                pair[side].kind is TermKind.PERSON and pair[side].place - term.place == 1
                for pair in self.alignment.pairs
            )
            for side, statement in enumerate((self.old, self.new))
            for term in statement.terms
            if not any(pair[side] is term for pair in self.alignment.pairs)
        )

    def _is_for_someone(self) -> bool:
        """Return whether the newer fact reaches a next stage for another person.

        For example, "Found a job for her brother" does beside "Is looking for a job".
        """
        return any(
            term.is_someone
            and not term.is_head
            and (term.role == "for" or self.new.find_word_before(term) == "для")
            for term in self.alignment.new
        ) and any(pole.endswith("-") for term in self.new.terms for pole in term.stages)

    def _decide_different(self, evidence: str, *, is_contradicted: bool = True) -> RelationVerdict:
        return RelationVerdict(FactRelation.DIFFERENT, evidence, self.score, is_contradicted=is_contradicted)

    def _decide_undecided(self, evidence: str) -> RelationVerdict:
        return RelationVerdict(FactRelation.UNDECIDED, evidence, self.score, is_related=self._is_related())

    def _decide_open(self, relation: FactRelation, evidence: str) -> RelationVerdict:
        return RelationVerdict(relation, evidence, self.score, is_related=self._is_related(), is_open=True)

    def _is_related(self) -> bool:
        """Return whether both facts are about the same thing, not only about the same person."""
        says_same = self.score >= RELATED_SHARE and self._says_same_of_subject()
        return says_same or self._shares_slot()

    def _decide_update(self, evidence: str) -> RelationVerdict:
        if self._shares_only_details():
            return self._decide_undecided("the facts have only dates and numbers in common")
        if self._has_unmatched_clause():
            undecided = self._decide_undecided(f"{evidence}; the older fact also says something else")
            # A proposal that names the older fact to replace must not remove its other clause.
            return replace(undecided, is_related=False)
        return RelationVerdict(FactRelation.UPDATE, evidence, self.score, is_related=True)

    def _decide_new_value(self, evidence: str, slot: str = "") -> RelationVerdict:
        """Decide on a new value, which does not replace what the older fact says beside its value."""
        part = self.replacement.find_lost_part(slot)
        if slot in ("employer", "job") and any(is_part_of_time(self.old, t) for t in self.alignment.old):
            part = "says when the person works"
        if part is None:
            return self._decide_update(evidence)
        undecided = self._decide_undecided(f"{evidence}; the older fact also {part}")
        # A proposal that names the older fact to replace must not remove that part.
        return replace(undecided, is_related=False)

    def _has_unmatched_clause(self) -> bool:
        """Return whether a clause of the older fact says something on which the newer fact says nothing.

        For example, "Lives in York" says nothing on "is allergic to nuts" in "Lives in Leeds and is allergic
        to nuts".
        """
        unmatched = [clause for clause in self.old.clauses if not self._is_matched(clause)]
        # If no word has a counterpart, the newer fact is about one of these clauses.
        return len(unmatched) > (0 if self._has_common_word() else 1)

    def _has_common_word(self) -> bool:
        return bool(list_kinds(term for term, _ in self.alignment.pairs) - _KINDS_OF_DETAILS)

    def _shares_only_details(self) -> bool:
        """Return whether the facts have only dates and numbers in common, and one of them says something
        else.

        For example, "Got married in 2020" and "Graduated in 2020" do. So do "Graduated in 2020" and "Retired
        in 2020", although their verbs say only that something is over.
        """
        left = list_kinds((*self.alignment.old, *self.alignment.new)) - _KINDS_OF_DETAILS
        old, new = (
            {term.text for term in fact.terms if term.kind is TermKind.LIGHT} for fact in (self.old, self.new)
        )
        return (bool(left) or old != new) and not self._has_common_word() and not self._shares_slot()

    def _is_matched(self, clause: range) -> bool:
        """Return whether the newer fact has a counterpart of a clause, or replaces its value.

        A word that the older fact repeats, such as "likes" in "likes tea and likes coffee", is no counterpart
        of a clause. Neither is a date or a number if the clause has other words, such as "birthday" in
        "birthday 5 May" and "years old" in "is 45 years old since 5 May".
        """
        left = [term for term in self.alignment.old if term.place in clause]
        if not left:
            return True
        matched = [
            a for a, _ in self.alignment.pairs if a.place in clause and not self._is_repeated(a, clause)
        ]
        if list_kinds(matched) - _KINDS_OF_DETAILS or (matched and self._is_time(clause)):
            return True
        return not self.new.is_ended and self._belongs_to_value(clause, left)

    def _is_repeated(self, term: Term, clause: range) -> bool:
        """Return whether the older fact has a term outside of a clause, too."""
        return any(not term.keys.isdisjoint(each.keys) for each in self.old.terms if each.place not in clause)

    def _belongs_to_value(self, clause: range, left: Sequence[Term]) -> bool:
        """Return whether a clause is a part of the value that the newer fact replaces.

        Such parts are the second name in "Leeds, England", the second word in "black and white", the date in
        "on Monday, 5 May", further words of an address, and further words that the lexicon lists for the
        slot.

        Args:
            clause: a clause of the older fact.
            left: its terms, none with a counterpart.
        """
        kinds, slots = list_kinds(left), self.old.slots & self.new.slots
        is_joined = clause.start > 0 and self.old.raw[clause.start - 1] in list_words("conjunctions")
        if "residence" in slots:
            places = [term for term in left if term.text in list_words("places")]
            is_address = all(term.kind in _ADDRESS_KINDS or term in places for term in left)
            is_name = kinds == {TermKind.NAME} and len(left) == len(clause)
            return is_address and not is_joined and (bool(places) or is_name)
        if any(consists_of(left, slot) for slot in WORD_SLOTS if slot in slots):
            return True
        before = next((t for t in reversed(self.alignment.old) if t.place < clause.start), None)
        if before is None:
            return False
        is_after_time = before.kind in NUMERIC_KINDS and self._is_time(clause)
        if is_after_time and TermKind.DATE in list_kinds(self.alignment.new):
            return True
        if len(left) < len(clause):
            return False
        if TermKind.WORD not in kinds and kinds in map(list_kinds, self._list_bare_clauses()):
            return True
        is_name = kinds == {TermKind.NAME} and before.kind is TermKind.NAME
        is_list = is_joined and not any(self._is_repeated(term, clause) for term in left)
        if not is_list or self._is_statement(clause, left):
            return is_name
        return is_name or "favourite" in slots or self.old.is_copular

    def _is_statement(self, clause: range, terms: Sequence[Term]) -> bool:
        """Return whether a clause says something by itself: "speaks French", "rent 900", "vegan"."""
        said = parse_fact(" ".join(self.old.raw[clause.start : clause.stop]))
        kinds = list_kinds(terms)
        has_amount = TermKind.WORD in kinds and not kinds.isdisjoint(NUMERIC_KINDS)
        return bool(said.slots) or said.is_copular or has_amount or _begins_with_verb(terms)

    def _is_time(self, clause: range) -> bool:
        """Return whether a clause of the older fact has only dates and numbers: "since 5 May", "at 10"."""
        kinds = list_kinds(term for term in self.old.terms if term.place in clause)
        words = self.old.raw[clause.start : clause.stop]
        return kinds <= NUMERIC_KINDS and list_words("copulas").isdisjoint(words)

    def _list_bare_clauses(self) -> list[list[Term]]:
        """Return the terms of the later clauses of the newer fact that have no other words."""
        clauses = [
            (clause, [term for term in self.alignment.new if term.place in clause])
            for clause in self.new.clauses[1:]
        ]
        return [left for clause, left in clauses if len(left) == len(clause)]

    def _joins_clauses(self) -> bool:
        """Return whether the newer fact has a part of one clause and a part of another of the older fact.

        For example, "Hates coffee" has a part of both clauses of "Likes coffee but hates tea".
        """
        left = [term.place for term in self.alignment.old]
        matched = [a.place for a, _ in self.alignment.pairs if a.kind is not TermKind.LIGHT]
        shared = [
            clause
            for clause in self.old.clauses
            if any(place in clause for place in left) and any(place in clause for place in matched)
        ]
        return len(shared) > 1 and len(self.new.clauses) < len(self.old.clauses)

    def _reports_unsaid_end(self) -> bool:
        """Return whether the newer fact denies, ends or has changed what no clause of the older fact does.

        For example, "I no longer smoke" ends what "I smoke" says in "I smoke but I'm trying to quit".
        """
        is_moved = self.new.is_changed and self.new.is_past
        if len(self.old.clauses) < 2 or not (self.new.denies_or_ends or is_moved):
            return False
        matched = [a.place for a, _ in self.alignment.pairs if a.kind is not TermKind.LIGHT]
        clauses = [
            parse_fact(" ".join(self.old.raw[clause.start : clause.stop]))
            for clause in self.old.clauses
            if any(place in clause for place in matched)
        ]
        return not any(
            clause.denies_or_ends == self.new.denies_or_ends and (clause.is_past or not is_moved)
            for clause in clauses
        )

    def _decide_same(self, evidence: str, *, is_covered: bool = False) -> RelationVerdict:
        if self._shares_only_details():
            return self._decide_undecided("the facts have only dates and numbers in common")
        if is_covered and self._joins_clauses():
            return self._decide_undecided("the newer fact may join parts of two statements of the older one")
        if is_covered and self._reports_unsaid_end():
            return self._decide_undecided(
                "no statement of the older fact says that this is over or has changed"
            )
        return RelationVerdict(FactRelation.SAME, evidence, self.score, is_covered, is_related=True)

    def _shares_slot(self) -> bool:
        return bool(self.old.slots & self.new.slots)

    def _find_other_subject(self) -> str | None:
        """Return why the facts differ if only one is about a person, thing or name; None otherwise."""
        for statement, left in ((self.old, self.alignment.old), (self.new, self.alignment.new)):
            has_common_name = any(a.kind is TermKind.NAME for a, _ in self.alignment.pairs)
            is_ended_name = statement is self.old and self.new.is_ended and has_common_name
            if is_ended_name and not any(_is_owner(statement, term) for term in left):
                continue
            for term in left:
                if term.kind is TermKind.PERSON and not (
                    (not term.is_head and term.role in ("with", "for"))
                    or self._is_job(term)
                    or (statement is self.new and self._is_receiver(term))
                    or self._is_spouse(term)
                    or self._is_named_in_both(statement, term)
                    or self._is_in_both(term)
                ):
                    return "only one of the facts is about that person"
        if self._has_other_names() or self._is_of_other_relatives() or self._is_another_of_a_kind():
            return "one of the facts is about another person or thing of the same kind"
        old, new = _list_subjects(self.alignment.old), _list_subjects(self.alignment.new)
        if old and new and (self.alignment.is_substituted or old[0].kind is new[0].kind is TermKind.NAME):
            return "they are about different people or things"
        names = [term for term in (*old, *new) if term.kind is TermKind.NAME]
        return "only one of the facts is about that name" if names else None

    def _has_other_names(self) -> bool:
        """Return whether two people of one kind have different names: "sister Kate", "sister Mary"."""
        sides = (self.alignment.old, self.alignment.new)
        return any(
            a.kind is TermKind.PERSON
            and not is_listed(a, "roles_of_one")
            and all(
                any(term.kind is TermKind.NAME and term.place - person.place == 1 for term in side)
                for person, side in zip((a, b), sides, strict=True)
            )
            for a, b in self.alignment.pairs
        )

    def _is_of_other_relatives(self) -> bool:
        """Return whether the facts are about people in different relations, such as a brother and a son."""
        sides = (self.alignment.old, self.alignment.new)
        return all(
            any(
                term.kind is TermKind.PERSON and term.is_head and term.keys.isdisjoint(_GENERAL_PEOPLE)
                for term in side
            )
            for side in sides
        )

    def _is_another_of_a_kind(self) -> bool:
        """Return whether only one fact names a further thing of a kind: "the other", "the second"."""
        others = list_words("others")
        return self._has_other_ordinals() or any(
            a.is_head
            and b.is_head
            and a.kind is not TermKind.LIGHT
            and (self.old.find_word_before(a) in others) != (self.new.find_word_before(b) in others)
            for a, b in self.alignment.pairs
        )

    def _has_other_ordinals(self) -> bool:
        """Return whether the facts begin with different ordinals: "first exam", "second exam"."""
        first = [next(iter(statement.terms), None) for statement in (self.old, self.new)]
        sides = zip(first, (self.alignment.old, self.alignment.new), strict=True)
        if not all(term in left and is_ordinal(term.text) for term, left in sides if term is not None):
            return False
        return None not in first and any(
            a.kind in (TermKind.WORD, TermKind.PERSON)
            and not (is_listed(a, "positions") or is_listed(a, "levels"))
            and a.place == self.old.terms[0].place + 1
            and b.place == self.new.terms[0].place + 1
            for a, b in self.alignment.pairs
        )

    def _is_receiver(self, person: Term) -> bool:
        """Return whether a person receives what has ended or changed: "gave the piano to her sister"."""
        if person.kind is not TermKind.PERSON:
            return False
        is_given = person.role == "to" or "datv" in list_grammemes(person.text)
        return is_given and not person.is_head and (self.new.is_ended or self.new.is_changed)

    def _is_spouse(self, person: Term) -> bool:
        """Return whether a person is mentioned only for the marital status."""
        is_partner = any(key.removeprefix("people ") in PARTNERS for key in person.keys)
        return is_partner and not person.is_head and "marital" in self.old.slots & self.new.slots

    def _is_job(self, person: Term) -> bool:
        """Return whether a word for a person names a job: "works as a store manager"."""
        is_told = "job" in self.old.slots & self.new.slots and not person.is_head
        return is_told and is_listed(person, "professions")

    def _is_in_both(self, person: Term) -> bool:
        return any(person.keys & (a.keys | b.keys) for a, b in self.alignment.pairs)

    def _is_named_in_both(self, statement: ParsedFact, person: Term) -> bool:
        """Return whether a name beside a word such as `brother` is in the other fact too."""
        side = 0 if statement is self.old else 1
        return not _is_owner(statement, person) and any(
            pair[side].kind is TermKind.NAME and _is_name_beside(statement, person, pair[side])
            for pair in self.alignment.pairs
        )

    def _is_of_another_kind(self) -> bool:
        """Return whether the facts may name different kinds of a thing, such as "jazz" and "rock music"."""
        left = self.alignment
        if any(_are_other_compounds(a.text, b.text) for a, b in left.pairs):
            return True
        return any(
            term.kind is TermKind.WORD and general.place - term.place == 1
            for pair in left.kind_pairs
            for general, exact, side in zip(pair, reversed(pair), (left.old, left.new), strict=False)
            if is_kind_of(exact, general)
            for term in _list_nouns(side)
        )

    def _is_another_part(self) -> bool:
        """Return whether one fact adds a number or name to a name in both facts: "Dune 2", "Dune"."""
        left = self.alignment
        sides = ((left.old, left.new, 0), (left.new, left.old, 1))
        return any(
            term.kind in (TermKind.NUMBER, TermKind.NAME)
            and term.kind not in list_kinds(other)
            and pair[at].kind is TermKind.NAME
            and term.place - pair[at].place == 1
            and not (is_year(term) or self._has_unit(term))
            for side, other, at in sides
            for term in side
            for pair in left.pairs
        )

    def _is_paid_by_creditor(self) -> bool:
        """Return whether the newer fact says that the creditor pays or returns something."""
        return any(a.is_someone and b.is_head and not a.is_head for a, b in self.alignment.pairs)

    def _has_unit(self, number: Term) -> bool:
        """Return whether a date or a unit follows a number: "3 мая", "3000 рублей"."""
        return any(
            term.place - number.place == 1 and (term.kind is TermKind.DATE or is_listed(term, "units"))
            for statement in (self.old, self.new)
            if any(each is number for each in statement.terms)
            for term in statement.terms
        )

    def _find_next_stage(self) -> str | None:
        """Return the axis on which the newer fact reaches the next stage, as "found" follows "looks for".

        Returns:
            None if the newer fact reaches no next stage of the same thing.
        """
        before = {pole[:-1] for term in self.old.terms for pole in term.stages if pole.endswith("+")}
        after = {pole[:-1] for term in self.new.terms for pole in term.stages if pole.endswith("-")}
        axes = before & after
        if not axes or self.new.is_planned:
            return None
        old, new = (
            _list_without_stage(self.alignment.old, axes),
            _list_without_stage(self.alignment.new, axes),
        )
        if axes & {"birth"}:
            old = [term for term in old if term.kind is not TermKind.NUMBER and not is_listed(term, "units")]
            new = [term for term in new if term.kind is not TermKind.NUMBER]
        if "debt" in axes and self._is_paid_by_creditor():
            return None
        if "debt" in axes and not any(term.kind is TermKind.NUMBER for term in self.new.terms):
            old = [term for term in old if term.kind is not TermKind.NUMBER and not is_listed(term, "units")]
            new = [term for term in new if term.text not in list_words("debts")]
        about = [
            a for a, _ in self.alignment.pairs if a.kind is not TermKind.LIGHT and not _has_stage(a, axes)
        ]
        is_unpaid = (
            "debt" in axes and bool(new) and any(t.kind is TermKind.NUMBER for t in self.alignment.old)
        )
        is_other = is_unpaid or bool(old and new) or len(old) > 1 or _has_exact_term(old)
        if (
            is_other
            or not about
            or any(term.is_head for term in (*old, *new))
            or _is_part_of_phrase(self.new, new)
        ):
            return None
        return min(axes)

    def _is_trip_over(self) -> bool:
        """Return whether the newer fact reports the return from a trip that the older fact plans."""
        if not self.old.is_planned or self.new.is_planned or self.new.is_negated:
            return False
        is_stay = "residence" in self.old.slots or any(
            term.is_someone or term.kind is TermKind.NUMBER for term in self.alignment.old
        )
        is_back = bool(self.alignment.new) and all(
            term.kind is TermKind.WORD and not list_words("return_words").isdisjoint(term.text.split())
            for term in self.alignment.new
        )
        return (
            is_back
            and not is_stay
            and any(
                a.kind is TermKind.NAME
                and a.role == "to"
                and (b.role == "from" or _leaves_place(self.new, b))
                for a, b in self.alignment.pairs
            )
        )

    def _find_contradiction(self) -> str | None:
        """Return why the facts contradict each other; None if they do not."""
        matched = {id(term) for pair in self.alignment.pairs for term in pair}
        is_ignored = self.new.is_ended or self.new.is_changed or self.old.is_ended
        sides = (self.alignment.old, self.alignment.new) if is_ignored else (self.old.terms, self.new.terms)
        old, new = ([term for term in side if term.opposites] for side in sides)
        for a in old:
            for b in new:
                if (
                    {id(a), id(b)}.isdisjoint(matched)
                    and are_opposite(a, b)
                    and not (_list_feelings((a,)) or {"marital", "diet"} & self.old.slots & self.new.slots)
                    and not self._reports_change()
                ):
                    return "a word of one is the contrary of a word of the other"
        for a, b in self.alignment.pairs:
            if self.new.is_ended or self.new.is_changed:
                break
            if have_contrary_roles(a, b) and a.kind is not TermKind.LIGHT:
                return "the directions are contrary, such as from and to"
        is_swapped = self._has_swapped_roles() or self._has_reversed_order()
        return "the two persons or things have changed places" if is_swapped else None

    def _reports_change(self) -> bool:
        """Return whether a Russian fact reports a change, which explains a contrary word."""
        return self.new.is_changed and not (self.old.is_changed or self.new.is_english)

    def _has_swapped_roles(self) -> bool:
        """Return whether a person does in one fact what the user does to that person in the other."""
        verb, other = _find_predicate(self.old), _find_predicate(self.new)
        if verb is None or other is None or verb.text[:4] != other.text[:4] or self._is_passive():
            return False
        is_over = self.new.is_ended and not self.new.is_english
        if (
            self.new.is_changed
            or is_over
            or any(is_cyrillic(each.text) and not _is_predicate(each.text) for each in (verb, other))
        ):
            return False
        is_told = self.old.has_word_of("objects") or self.new.has_word_of("objects")
        return any(
            (a.is_someone or (a.kind is TermKind.WORD and is_told))
            and a.is_head != b.is_head
            and not (self.new if a.is_head else self.old).has_head
            for a, b in self.alignment.pairs
        )

    def _has_reversed_order(self) -> bool:
        """Return whether two things that both facts name are in the opposite order: "tea over coffee"."""
        if self._is_passive():
            return False
        is_comparison = self.old.has_word_of("order_comparisons") and self.new.has_word_of(
            "order_comparisons"
        )
        pairs = [
            (a, b)
            for a, b in self.alignment.pairs
            if a.kind not in (TermKind.LIGHT, TermKind.DATE, TermKind.NUMBER)
        ]
        return any(
            is_comparison or self._have_changed_places(first, second)
            for first in pairs
            for second in pairs
            if first[0].place < second[0].place and first[1].place > second[1].place
        )

    def _have_changed_places(self, first: tuple[Term, Term], second: tuple[Term, Term]) -> bool:
        """Return whether two people or names have exchanged their places before and after the verb."""
        (a, b), (c, d) = first, second
        if is_cyrillic(a.text) and a.text == b.text and c.text == d.text:
            return False
        are_names = all(x.is_someone or y.is_someone for x, y in (first, second))
        return are_names and _has_word_between(self.old, a, c) and _has_word_between(self.new, d, b)

    def _is_passive(self) -> bool:
        return "by" in self.old.raw or "by" in self.new.raw

    def _decide_end(self) -> RelationVerdict | None:
        """Decide the relation if one fact denies or ends the other; None if other rules must decide."""
        old, new, left = self.old, self.new, self.alignment
        if old.is_negated == new.is_negated and old.is_ended == new.is_ended:
            return None
        is_unmarried = "marital" in old.slots & new.slots and (old.is_ended or old.is_negated)
        if is_unmarried and new.is_changed and not new.denies_or_ends:
            return self._decide_update("a new value: marital")
        if old.is_negated and not new.denies_or_ends and (problem := self._find_limit_of_reversal()):
            return self._decide_undecided(problem)
        if self._is_denied_in_clause():
            return self._decide_update("one of the facts denies the statement of the other")
        if new.is_ended and self.replacement.is_left_for_another():
            return self._decide_new_value("the newer fact leaves one thing for another", "employer")
        if self._is_departure():
            return self._decide_update("the newer fact says that the older one has ended")
        if _list_weekdays(left.old) and _list_weekdays(left.new) and not new.is_changed:
            return self._decide_different("they are about different days of the week")
        if TermKind.DATE in list_kinds(left.old) and any(
            t.kind is TermKind.DATE and t.is_head for t in left.new
        ):
            return self._decide_different("they are about different dates")
        if self._is_other_event():
            return self._decide_undecided("the facts tell the dates of two events")
        if self._ends_only_part():
            return self._decide_undecided("one of the facts is about a part of the topic of the other")
        left_new = tuple(term for term in left.new if term.place < new.reason_at)
        clause = self._find_clause_end()
        left_new = tuple(term for term in left_new if term.place < clause)
        if new.is_ended:
            bare = ("после", "going", "going to")
            left_new = tuple(term for term in left_new if term.role != "after" and term.text not in bare)
        if new.is_ended or self._is_stopped():
            left_new = tuple(
                term
                for term in left_new
                if term.kind not in NUMERIC_KINDS and not (self._is_stopped() and is_listed(term, "units"))
            )
            left_new = tuple(term for term in left_new if not self._is_receiver(term))
        share_new = left.compute_share(left_new)
        if self._is_learned():
            return self._decide_update("the person has learned an ability that the older fact denies")
        if self._is_retired(left_new):
            return self._decide_update("a retired person no longer has the job")
        if self._is_given_up(left_new) or self._is_resumed():
            return self._decide_update("the newer fact says that the older one has ended or holds again")
        pairs = sum(a.kind is not TermKind.LIGHT for a, _ in left.pairs)
        nouns_differ = left.is_substituted and _list_nouns(left.old) and _list_nouns(left_new)
        if nouns_differ or (_has_exact_term(left.old) and _has_exact_term(left_new)):
            if self.score >= SUBSTITUTED_SHARE or _has_exact_term(left.old):
                return self._decide_different("they differ in more than the denial")
            return None
        is_wanted = old.is_planned and not old.is_past
        is_sale = any("trade-" in term.opposites for term in old.terms)
        if (
            is_wanted
            and is_sale
            and new.is_past
            and not _has_exact_term(left.old)
            and not _has_exact_term(left_new)
        ):
            return self._decide_update("the newer fact says that the plan is carried out")
        if is_wanted and new.is_past and any("trade-" in term.opposites for term in new.terms):
            return self._decide_undecided("a sale does not end the older fact's plan to have a thing")
        if self._ends_something_else(left_new):
            return self._decide_undecided("the newer fact may end something else")
        if "marital" in new.slots - old.slots and any(a.kind is TermKind.NAME for a, _ in left.pairs):
            return self._decide_undecided("the end of a marriage ends nothing else")
        is_over = new.is_ended and not old.is_ended and not self._shares_only_person()
        is_term = any(t.role == "before" for t in left.old) and not any(map(is_habitual, left.old))
        if is_over and is_term and new.has_head and not left_new and list_kinds(left.old) <= NUMERIC_KINDS:
            return self._decide_update("the newer fact says that the older one has ended")
        if is_over and self.share_old >= 0.45 and (share_new >= 0.7 or (share_new >= 0.6 and pairs >= 2)):
            return self._decide_update("the newer fact says that the older one has ended")
        if is_over and share_new >= 0.95 and list_kinds(tuple(a for a, _ in left.pairs)) & {TermKind.NAME}:
            return self._decide_update("the newer fact says that the older one has ended")
        if old.is_negated != new.is_negated and self.score >= 0.75:
            return self._decide_update("one of the facts denies the statement of the other")
        if old.is_ended and not new.is_ended and self.score >= 0.75:
            return self._decide_update("the newer fact says that the older one holds again")
        if self.score >= 0.3:
            return self._decide_undecided(
                "one of the facts denies something, or says that something has ended"
            )
        return None

    def _find_limit_of_reversal(self) -> str | None:
        """Return why a denial of the older fact may hold although the newer fact affirms it; None otherwise.

        For example, "Eats meat again abroad" is beside "Doesn't eat meat".
        """
        left = self.alignment
        # A phrase such as "has no" denies, although the fact is not marked as a denial.
        is_denial = any(is_in_table(word, "negation") for word in self.new.raw)
        if is_denial or self._is_learned() or (_list_nouns(left.old) and _list_nouns(left.new)):
            return None
        if permits_something_else(left):
            return "only the newer fact gives a permission"
        if any(a.kind is TermKind.NAME and b.is_head and not a.is_head for a, b in left.pairs):
            return "only the newer fact is about what a name stands for"
        is_event = self.new.is_past and not self.old.is_past and not self.old.has_word_of("past_auxiliaries")
        if is_event and any(_differ_in_tense(a, b) for a, b in left.pairs):
            return "the newer fact may be about one event"
        extra = [
            term
            for term in left.new
            if term.kind in (TermKind.WORD, TermKind.NAME, TermKind.PERSON)
            and term.place < self.new.reason_at
            and not (is_permission(term) or is_beginning(term) or term.text in list_words("learning_verbs"))
        ]
        if extra or is_limited(left, 1) or has_other_adjective(left):
            return "the newer fact may say when, where or for whom the denial does not hold"
        return None

    def _is_other_event(self) -> bool:
        """Return whether the facts tell different dates of two coming events: "arrives", "leaves"."""
        left = self.alignment
        is_dated = _has_exact_term(left.old) and _has_exact_term(left.new)
        is_coming = not (self.old.is_past or self.new.is_past or self.new.is_changed)
        has_date = TermKind.DATE in list_kinds(self.old.terms) & list_kinds(self.new.terms)
        return is_dated and is_coming and has_date and _begins_with_verb(left.old)

    def _shares_only_person(self) -> bool:
        """Return whether the facts have only their subject, a person, in common."""
        return (
            not self._shares_slot()
            and bool(_list_nouns(self.alignment.old))
            and all(
                a.kind in (TermKind.PERSON, TermKind.LIGHT) and a.is_head for a, _ in self.alignment.pairs
            )
        )

    def _find_clause_end(self) -> int:
        """Return the index of "and" after the clause that ends a state: "sold the car and bought a bike".

        Returns:
            The number of words of the newer fact if it ends no state, if the older fact has ended already, or
            if no clause follows.
        """
        raw = self.new.raw
        if not self.new.is_ended or self.old.is_ended:
            return len(raw)
        for at, word in enumerate(raw[:-1]):
            following = raw[at + 1]
            is_clause = (
                is_verb(following) or following in list_words("past_verbs") or following.endswith("ed")
            )
            if word in ("и", "and") and is_clause and any(is_in_table(w, "ended") for w in raw[:at]):
                return at
        return len(raw)

    def _is_denied_in_clause(self) -> bool:
        """Return whether a part of one Russian fact denies everything that the other fact says."""
        old, new, left = self.old, self.new, self.alignment
        if old.is_english or _has_exact_term(left.old) or _list_nouns(left.old):
            return False
        if old.is_negated and old.is_planned and new.is_past and not new.is_negated:
            return not left.old
        is_verb_denied = any(
            is_verb(a.text) and _is_denied(old, a) != _is_denied(new, b) for a, b in left.pairs
        )
        is_about_same = any(a.kind is not TermKind.LIGHT and not is_verb(a.text) for a, _ in left.pairs)
        is_other = any(term.is_someone for term in left.new)
        if not (self._is_stopped() or old.is_negated):
            is_other = is_other or any(
                term.role in ("with", "after", "before", "without") and term.place < new.reason_at
                for term in left.new
            )
        return is_verb_denied and is_about_same and not is_other and self.share_old >= SUBSET_SHARE

    def _ends_only_part(self) -> bool:
        """Return whether a Russian fact ends something that only qualifies the topic of the older fact.

        For example, "the car is broken" does not end a "car loan".
        """
        left, pairs = (
            self.alignment.old,
            [(a, b) for a, b in self.alignment.pairs if a.kind is not TermKind.LIGHT],
        )
        is_part = bool(pairs) and all(
            a.kind is TermKind.WORD and b.is_head and not a.is_head for a, b in pairs
        )
        is_noun_first = bool(left) and left[0] is self.old.words[0] and bool(_list_nouns(left[:1]))
        return is_noun_first and is_part and not self.new.is_english

    def _is_departure(self) -> bool:
        """Return whether the newer, Russian fact leaves the place or state that the older fact names.

        For example, "вышла из отпуска" leaves the state of "в отпуске".
        """
        old, new, left = self.old, self.new, self.alignment
        if new.is_english or not new.is_ended or new.is_negated or old.is_ended:
            return False
        if new.has_word_of("moving_out_verbs") and "residence" not in old.slots:
            return False
        if all(any(term.is_someone for term in side) for side in (left.old, left.new)):
            return False
        return any(
            a.role == "to"
            and (b.role == "from" or _leaves_place(new, b))
            and self.share_old >= UNDECIDED_SHARE + 0.05
            and not a.is_head
            and a.kind is not TermKind.LIGHT
            for a, b in left.pairs
        )

    def _is_given_up(self, left_new: tuple[Term, ...]) -> bool:
        """Return whether the newer fact says that a habit or a possession of the older fact has ended."""
        left = self.alignment
        pairs = [(a, b) for a, b in left.pairs if a.kind is TermKind.WORD]
        is_given_up = self.new.is_quit or (self._is_stopped() and self._says_amount(left.old))
        return (
            is_given_up
            and not (self.old.is_quit or self.old.is_negated or left_new)
            and len(pairs) == 1
            and (not pairs[0][0].role or pairs[0][0].role == pairs[0][1].role == "to")
            and TermKind.NAME not in list_kinds(left.old)
            and len(self.old.words) <= 4
        )

    def _ends_something_else(self, left_new: tuple[Term, ...]) -> bool:
        """Return whether the newer fact ends a friendship, job or activity that is not in the older fact."""
        old, new = self.old, self.new
        poles = {pole[:-1] for term in old.terms for pole in term.stages} & _TIES
        is_tied = bool(poles) or not old.slots.isdisjoint(("marital", "residence"))
        if any(pole in ("friendship-", "quarrel+") for term in new.terms for pole in term.stages):
            return not is_tied and any(a.kind is TermKind.NAME for a, _ in self.alignment.pairs)
        is_employed = not old.slots.isdisjoint(("job", "employer")) or any(
            is_listed(term, "professions") or "people colleague" in term.keys for term in old.terms
        )
        if new.has_word_of("job_end_verbs"):
            return not is_employed
        if new.has_word_of("moving_out_verbs"):
            return "residence" not in old.slots
        if new.is_quit and any(_is_adverb(term.text) for term in left_new):
            return True  # only the manner has ended
        has_own_verb = any(is_verb(word) for word in old.raw)
        return has_own_verb and any(is_verb(t.text) and _is_denied(new, t) for t in left_new)

    def _is_learned(self) -> bool:
        """Return whether a person has learned an ability that the older fact denies."""
        is_unable = self.old.is_negated and self.old.has_word_of("ability_words")
        is_able = self.new.has_word_of("learning_verbs") and not (self.new.is_negated or self.new.is_planned)
        is_whole = (
            not _has_exact_term(self.alignment.old)
            and len(_list_nouns(self.alignment.old)) <= self.old.is_english
        )
        has_topic = any(a.kind is not TermKind.LIGHT and not a.is_head for a, _ in self.alignment.pairs)
        return is_unable and is_able and is_whole and has_topic

    def _is_retired(self, left_new: tuple[Term, ...]) -> bool:
        """Return whether a person has a job in the older fact, and has retired in the newer fact."""
        is_retired = not {"пенсию", "пенсии", "retired"}.isdisjoint(self.new.raw)
        is_job = not self.old.slots.isdisjoint(("job", "employer")) or any(
            is_listed(term, "professions") for term in self.alignment.old if not term.role
        )
        is_same = self.old.has_head == self.new.has_head and not self.old.is_past
        return is_retired and is_job and is_same and not left_new

    def _is_stopped(self) -> bool:
        """Return whether a Russian fact says that an activity has stopped: "не курит уже три месяца"."""
        is_over = not {"уже", "больше"}.isdisjoint(self.new.raw) and not self.old.is_negated
        return is_over and any(
            is_verb(b.text) and _is_denied(self.new, b) and not _is_denied(self.old, a)
            for a, b in self.alignment.pairs
        )

    def _says_amount(self, left: Sequence[Term]) -> bool:
        """Return whether terms of the older fact only tell how much or how often."""
        return all(
            term.kind in NUMERIC_KINDS or is_listed(term, "units") or self.old.find_word_before(term) == "по"
            for term in left
        )

    def _switches_from_old(self) -> bool:
        """Return whether the newer fact switches from the thing in the older fact: "from tea to coffee"."""
        return (
            self.new.has_word_of("switch_verbs")
            and self.share_old >= 0.35
            and list_kinds(self.alignment.old) <= {TermKind.WORD, TermKind.DATE}
            and not (self.new.is_planned or self.old.is_past)
            and any(b.role == "from" and not a.is_head and a.role != "from" for a, b in self.alignment.pairs)
        )

    def _is_resumed(self) -> bool:
        """Return whether the newer fact says that an ended state holds again."""
        pairs = [a for a, _ in self.alignment.pairs if a.kind is not TermKind.LIGHT]
        return (
            self.new.is_resumed
            and (self.old.is_ended or self.old.is_negated)
            and not self.new.is_negated
            and self.share_old >= 0.45
            and bool(pairs)
            and not (
                _has_exact_term(self.alignment.old)
                or (_list_nouns(self.alignment.old) and _list_nouns(self.alignment.new))
            )
        )

    def _has_opposite_feeling(self) -> bool:
        """Return whether one fact expresses liking, and the other dislike."""
        old, new = (_list_feelings(terms) for terms in (self.alignment.old, self.alignment.new))
        return any(are_opposite(a, b) for a in old for b in new)

    def _decide_feeling(self) -> RelationVerdict | None:
        """Decide the relation if one fact expresses liking and the other dislike; None otherwise."""
        old, new = (_list_feelings(terms) for terms in (self.alignment.old, self.alignment.new))
        if not self._has_opposite_feeling():
            return None
        if len(self.alignment.old) == len(old) and len(self.alignment.new) == len(new):
            return self._decide_update("the feeling about the same thing has changed")
        return self._decide_different("the feelings are about different things")

    def _decide_replacement(self) -> RelationVerdict | None:
        """Decide the relation by the terms that each fact lacks; None if other rules must decide."""
        left = self.alignment
        if left.new and self._names_replacement():
            return self._decide_update("the newer fact names something else instead")
        if not (left.old and left.new):
            return None
        hard = list_kinds(left.old) & list_kinds(left.new) & EXACT_KINDS
        is_done = self._is_carried_out() and self.new.is_past
        if is_done and all(term.kind is TermKind.DATE for term in (*left.old, *left.new)):
            return self._decide_update("the newer fact says that the plan is carried out")
        if self._switches_from_old():
            return self._decide_update("the newer fact switches from the thing in the older one")
        if self.replacement.has_advanced():
            return self._decide_update("the number has grown since")
        if self.replacement.is_more_exact():
            return self._decide_update("the newer fact names the same thing more exactly")
        if self.replacement.has_only_values():
            if self.replacement.is_quantity():
                return self._decide_new_value("a new value of the same amount or date")
            if self.replacement.is_current:
                return self._decide_undecided("the numbers or dates differ, and both facts may be true")
        if self.replacement.is_variant():
            return self._decide_update("the newer fact says that the thing is of another kind now")
        if self.replacement.is_value():
            return self._decide_update("a new value of the same thing")
        replaced = _list_nouns(left.old)
        score = min(left.compute_share(replaced), self.share_new)
        has_changed = self.new.is_changed and not (self.old.is_changed and self.old.is_past)
        has_changed = has_changed and (self.old.is_planned or not self.new.is_planned)
        is_short = len(replaced) <= 2 and len(left.new) <= 2
        is_other = self._has_kept_value() or self._is_narrower()
        is_other = is_other or (bool(replaced) and self.replacement.swaps_other_thing())
        is_other = is_other or (not self.old.has_head and any(term.is_head for term in left.new))
        is_new = has_changed and not is_other
        is_part = self.new.has_word_of("switch_verbs") and _is_part_of_phrase(self.new, left.new)
        if (
            is_new
            and is_short
            and not is_part
            and score >= 0.35
            and self._has_changed_topic()
            and self._has_one_value()
        ):
            evidence = "the newer fact says that the value has changed"
            if "employer" in self.old.slots & self.new.slots:
                return self._decide_new_value(evidence, "employer")
            return self._decide_update(evidence)
        if hard or (left.is_substituted and self.score >= SUBSTITUTED_SHARE):
            if not hard and not _list_nouns(left.old) and not _list_nouns(left.new):
                return self._decide_open(FactRelation.UNDECIDED, "their verbs may say the same")
            problem = "another name, number or date" if hard else "another word stands in the same place"
            return self._decide_different(problem, is_contradicted=bool(hard))
        return None

    def _has_one_value(self) -> bool:
        """Return whether the older value cannot hold beside the newer one.

        A word such as "now" alone does not say so: "Plays the piano now" is beside "Plays the guitar". It
        says so after a verb such as "prefers", for the way of an answer, and where no verb is said.
        """
        if list_denied_values(self.new):
            return True
        if not self.new.has_word_of("now") or any(
            is_in_table(word, "changed") and word not in list_words("now") for word in self.new.raw
        ):
            return True
        verbs = [a for a, _ in self.alignment.pairs if a.text.split()[0] in list_words("preference_verbs")]
        if verbs:
            return not any(is_limited(self.alignment, side) for side in (0, 1))
        if any(a.is_head and b.is_head and not a.is_someone and a.weight for a, b in self.alignment.pairs):
            return True
        if self._is_way_of_answer():
            return True
        return (
            "favourite" in self.old.slots & self.new.slots
            or self.old.is_copular
            or not (self.new.is_english or any(map(is_verb, self.new.raw)))
        )

    def _is_way_of_answer(self) -> bool:
        """Return whether both facts tell in what language or form to answer: "Answer in German"."""
        left = self.alignment
        if not len(left.old) == len(left.new) == 1:
            return False
        is_told = any(a.text in list_words("reply_verbs") for a, _ in left.pairs)
        ways = (_find_way(self.old, left.old), _find_way(self.new, left.new))
        return is_told and ways[0] == ways[1] != ""

    def _has_changed_topic(self) -> bool:
        """Return whether the newer fact reports a change of the same thing, not only of the same person."""
        topics = [
            (a, b)
            for a, b in self.alignment.pairs
            if a.kind not in (TermKind.LIGHT, TermKind.DATE)
            and not (a.is_head and b.is_head and a.is_someone)
            and not (is_listed(a, "levels") or is_listed(a, "units"))
        ]
        # "Moved to Dublin" says nothing about what else happened there.
        is_move = "residence" in self.new.slots and (
            "residence" not in self.old.slots or self.replacement.keeps_home()
        )
        if is_move and all(a.kind is TermKind.NAME for a, _ in topics):
            return False
        if self.new.is_english:
            return bool(topics)
        is_same = any(not is_listed(a, "changed") for a, _ in topics)
        return is_same and not self.old.is_changed

    def _is_narrower(self) -> bool:
        """Return whether a word of the older fact narrows the thing down: "car lease", "lease"."""
        is_head_shared = any(a.is_head and a.kind is TermKind.WORD for a, _ in self.alignment.pairs)
        is_favourite = "favourite" in self.old.slots & self.new.slots
        is_other = any(term.is_head for term in self.alignment.old) and not is_favourite
        return is_other and (is_head_shared or not self.new.has_head)

    def _has_kept_value(self) -> bool:
        """Return whether the older fact already has the value to which the newer fact reports a change."""
        is_value_new = any(
            t.kind in EXACT_KINDS and t.role != "from" and not t.is_head for t in self.alignment.new
        )
        last = tuple(term for term in self.new.words if not is_listed(term, "units"))[-1:]
        if any(b.kind is TermKind.NUMBER and (b,) == last for _, b in self.alignment.pairs):
            return True
        return not is_value_new and any(
            (b.kind in EXACT_KINDS or is_listed(b, "units"))
            and (self.new.find_word_before(b) in ("to", "на", "в", "во", "до") or (b,) == last)
            for _, b in self.alignment.pairs
        )

    def _names_replacement(self) -> bool:
        """Return whether a Russian fact names a replacement of the thing in the older fact."""
        is_current = not (self.old.is_past or self.old.is_ended or self.old.is_planned or self.new.is_planned)
        return (
            is_current
            and not _has_exact_term(self.alignment.old)
            and not any(term.is_head and "nomn" in list_grammemes(term.text) for term in self.alignment.new)
            and any(
                b.kind is TermKind.NAME and self.new.find_word_before(b) == "вместо"
                for _, b in self.alignment.pairs
            )
        )

    def _drops_amount(self) -> bool:
        """Return whether a Russian fact reports a change, and lacks only the amount of the older fact."""
        is_marked = self.new.is_changed and not (self.old.is_changed or self.new.is_english)
        return is_marked and list_kinds(self.alignment.old) == {TermKind.NUMBER}

    def _names_other_place(self) -> bool:
        """Return whether the facts name different places after a verb, as in "лежит в больнице"."""
        sides = (self.old, self.new)
        left = (self.alignment.old, self.alignment.new)
        return any(
            pair[at].text.split()[0] == pair[1 - at].text
            and is_cyrillic(pair[at].text)
            and any(t.role == "to" and 0 < t.place - pair[1 - at].place <= 2 for t in left[1 - at])
            for at in range(len(sides))
            for pair in self.alignment.pairs
            if " " in pair[at].text
        )

    def _changes_count_to_once(self) -> bool:
        """Return whether the older fact names a number of times, and the newer fact says "раз" (once)."""
        left = self.alignment
        is_single = "раз" in self.new.raw and not any(term.kind is TermKind.NUMBER for term in self.new.terms)
        is_amount = list_kinds(left.old) == {TermKind.NUMBER} and self.old.find_word_after(left.old[0]) in (
            "раз",
            "раза",
        )
        return is_amount and is_single and not left.new

    def _describes_known_thing(self) -> bool:
        """Return whether the newer fact describes a thing whose existence the older fact states by "есть"."""
        old, new, left = self.old, self.new, self.alignment
        if "есть" not in old.raw or new.is_negated or new.is_ended or left.old:
            return False
        is_told = new.is_copular or "name" in new.slots
        return is_told and any((b.is_head or not b.place) and b.kind is TermKind.WORD for _, b in left.pairs)

    def _decide_wording(self) -> RelationVerdict:
        left, (old, new) = self.alignment, (self.share_old, self.share_new)
        if (new >= SUBSET_SHARE and self._drops_amount()) or self._describes_known_thing():
            return self._decide_update("the newer fact says the same with another amount, or more exactly")
        if self._names_other_place():
            return self._decide_undecided("one of the facts names another place")
        if self._changes_count_to_once():
            return self._decide_update("the newer fact says the same of another amount")
        if self._is_of_another_time():
            return self._decide_undecided("one of the facts is about another time")
        if new >= SUBSET_SHARE > old and self.new.is_changed and not self.old.is_changed:
            return self._decide_undecided("the newer fact says that something has changed")
        pairs = sum(a.kind is not TermKind.LIGHT for a, _ in left.pairs)
        one_head = any(term.is_head for term in (*left.old, *left.new))
        if any(
            a.role == "to" and _leaves_place(self.new, b) and not _leaves_place(self.old, a)
            for a, b in left.pairs
        ):
            if self.new.is_changed and old >= SUBSET_SHARE and not self.old.is_past:
                return self._decide_update("the newer fact leaves the place that the older fact names")
            return self._decide_undecided("the newer fact leaves the place that the older fact names")
        if old >= SUBSET_SHARE and new >= SUBSET_SHARE:
            if self._is_carried_out():
                return self._decide_update("the newer fact says that the plan is carried out")
            if self._has_other_denials():
                return self._decide_update("the newer fact denies more, less or something else")
            is_repeated = all(_have_one_form(a, b) or is_kind_of(a, b) for a, b in left.pairs)
            return self._decide_same(
                "all words of one have a counterpart in the other", is_covered=is_repeated
            )
        if one_head and (self.score < 0.75 or self._is_person_narrowed()):
            return RelationVerdict(
                self._choose_doubtful_relation(), "one of the facts may be about something else", self.score
            )
        is_phrase = pairs == 1 and (
            _is_part_of_phrase(self.new, left.new) or _is_part_of_phrase(self.old, left.old)
        )
        objects = [a for a, _ in left.pairs if a.kind is not TermKind.LIGHT and not a.is_head]
        has_other_verb = _has_own_verb(self.new, left.new) or _has_own_verb(self.old, left.old)
        if len(objects) <= 1 and has_other_verb and self.score < SUBSET_SHARE and not self._is_carried_out():
            return self._decide_undecided("the facts say different things about one subject")
        if (
            old >= SUBSET_SHARE
            and not is_phrase
            and (pairs >= 2 or len(left.new) <= 2 or self._is_continued())
        ):
            return self._decide_update("the newer fact says the same, and more")
        if self._is_part_of_comparison():
            return self._decide_undecided("only one of the facts compares things, or they compare others")
        if new >= SUBSET_SHARE and self._is_carried_out():
            return self._decide_update("the newer fact says that the plan is carried out")
        if list_kinds(left.old) == {TermKind.DATE} and self.new.has_word_of("totality_words"):
            return self._decide_update("the newer fact applies to every day")
        if new >= SUBSET_SHARE and left.old and any(is_kind_of(b, a) for a, b in left.kind_pairs):
            return self._decide_undecided("the newer fact says a part of the older one, and more exactly")
        is_event = self.new.is_past and not (self.new.is_changed or self.old.is_past or self.old.is_planned)
        if is_event and self.score >= SAME_SHARE:
            return self._decide_undecided("only the newer fact is about the past")
        if new >= SUBSET_SHARE and not is_phrase and (pairs >= 2 or len(left.old) <= 2):
            return self._decide_same("the older fact says the same, and more", is_covered=True)
        if self.score >= SAME_SHARE and pairs >= 2 and self._says_same_of_subject():
            if self._differs_in_clause():
                return self._decide_undecided("two clauses begin with the same word and differ after it")
            return self._decide_same(f"{self.score:.0%} of the words have a counterpart")
        if pairs and not self._says_same_of_subject():
            return self._decide_undecided(
                "both facts may be about one subject, and say different things about it"
            )
        return self._decide_open(
            self._choose_doubtful_relation(), f"{self.score:.0%} of the words have a counterpart"
        )

    def _is_part_of_comparison(self) -> bool:
        """Return whether the newer fact has only a part of what the older fact compares.

        For example, "Uses Windows" does beside "Thinks Linux is better than Windows", and so does "Prefers
        coffee to cocoa" beside "Prefers tea to coffee".
        """
        left = self.alignment
        if self.old.has_word_of("degree_comparisons") and not self.new.has_word_of("degree_comparisons"):
            return bool(left.old) and self.share_new >= SUBSET_SHARE
        comparisons = list_words("order_comparisons")
        is_compared = self.old.has_word_of("order_comparisons") and self.new.has_word_of("order_comparisons")
        verbs = [b.place for _, b in left.pairs if b.text in comparisons]
        has_moved = any(
            self.old.words.index(a) != self.new.words.index(b)
            for a, b in left.pairs
            if a.kind is not TermKind.LIGHT and b.place - 1 in verbs
        )
        return is_compared and has_moved and bool(left.old and left.new)

    def _differs_in_clause(self) -> bool:
        """Return whether later clauses of the facts begin with the same word and differ after it.

        For example, "likes tennis" and "likes golf" do so at the end of two facts about a job.
        """
        old, new = (
            {
                statement.raw[clause.start]
                for clause in statement.clauses[1:]
                if any(term.place in clause[1:] for term in left)
            }
            for statement, left in ((self.old, self.alignment.old), (self.new, self.alignment.new))
        )
        return not old.isdisjoint(new)

    def _is_of_another_time(self) -> bool:
        """Return whether a verb has different tenses in the facts, or only the newer fact is about a plan."""
        if self.new.is_ended or self.new.is_changed or self.new.is_resumed or self._is_carried_out():
            return False
        if self.new.is_planned and not self.old.is_planned and self.share_old >= SUBSET_SHARE:
            return True
        is_over = self.new.is_past and not (self.old.is_past or self.old.is_planned)
        if is_over and _was_so(self.new) and self.share_old >= SUBSET_SHARE:
            return True
        return self.new.is_past != self.old.is_past and any(
            _differ_in_tense(a, b) for a, b in self.alignment.pairs
        )

    def _is_person_narrowed(self) -> bool:
        """Return whether a word after a person says which person is meant: "the neighbour upstairs"."""
        people = {
            (side, pair[side].place)
            for pair in self.alignment.pairs
            for side in (0, 1)
            if pair[side].kind is TermKind.PERSON and pair[side].is_head
        }
        return any(
            term.kind is TermKind.WORD
            and term.is_head
            and any(s == side and p < term.place for s, p in people)
            for side, left in enumerate((self.alignment.old, self.alignment.new))
            for term in left
        )

    def _is_carried_out(self) -> bool:
        """Return whether the newer fact completes a plan, or a stage such as waiting, of the older fact."""
        is_before = any(pole.endswith("+") for term in self.alignment.old for pole in term.stages)
        is_open = self.old.is_planned or (is_before and self.new.is_past)
        return is_open and not self.new.is_planned and not self.new.is_negated

    def _has_other_denials(self) -> bool:
        """Return whether the facts deny different things: "neither meat nor fish", "fish, but no meat"."""
        denials = self.old.tokens.count("not"), self.new.tokens.count("not")
        return denials[0] != denials[1] or (denials[0] > 0 and self.new.is_changed != self.old.is_changed)

    def _is_continued(self) -> bool:
        """Return whether the newer fact begins like the older fact: "has a dog", "has a dog called Rex"."""
        old, new = _drop_fillers(self.old), _drop_fillers(self.new)
        return len(old) >= 2 and new[: len(old)] == old

    def _says_same_of_subject(self) -> bool:
        """Return whether the facts have words in common besides their subject."""
        said = [
            (a, b)
            for a, b in self.alignment.pairs
            if a.kind not in (TermKind.LIGHT, TermKind.PERSON) and not (a.is_head and b.is_head)
        ]
        return any(not a.is_head for a, _ in said) and any(not b.is_head for _, b in said)

    def _choose_doubtful_relation(self) -> FactRelation:
        is_likely = self.score >= UNDECIDED_SHARE or max(self.share_old, self.share_new) >= SUBSET_SHARE
        return FactRelation.UNDECIDED if is_likely else FactRelation.DIFFERENT


def _was_so(statement: ParsedFact) -> bool:
    """Return whether a fact is about a past state, such as "was married", not about an event: "was sold"."""
    state_verbs, participles = list_words("past_state_verbs"), list_words("participles")
    return any(
        word in state_verbs
        and not (following == "born" or (following.endswith("ed") and following not in participles))
        for word, following in zip(statement.raw, (*statement.raw[1:], ""), strict=True)
    )


def _is_light_adjective(term: Term) -> bool:
    """Return whether a Russian term without weight is an adjective other than "новый" (new)."""
    is_new = fold_characters(term.text).startswith("нов")
    return term.kind is TermKind.LIGHT and "ADJF" in list_grammemes(term.text) and not is_new


def _find_way(statement: ParsedFact, left: Sequence[Term]) -> str:
    """Return the form in which a term tells how to answer; empty if it tells no manner.

    The form is a Russian grammeme ("loct", "ablt" or "ADVB"), or "in" in English.
    """
    term = left[0]
    if is_cyrillic(term.text):
        if term.text.startswith("по-"):
            return "ADVB"
        tags = list_grammemes(term.text)
        return next((tag for tag in ("loct", "ablt", "ADVB") if tag in tags), "")
    return "in" if statement.find_word_before(term) == "in" else ""


def _is_regular(date: Term) -> bool:
    """Return whether a date tells when or how often something happens again: «по вечерам», "every day"."""
    return is_habitual(date) or (date.kind is TermKind.DATE and date.text in list_words("recurrence_words"))


def _is_descriptive(word: str) -> bool:
    """Return whether a Russian word is an adjective other than a pronoun such as «никакой»."""
    tags = list_grammemes(word)
    return "ADJF" in tags and "Apro" not in tags


def _list_former_clauses(statement: ParsedFact) -> list[range]:
    """Return the clauses about a former state, such as "used to smoke" and «раньше курил»."""
    if not (statement.is_past or statement.is_english):
        return []  # "раньше" may mean "earlier"
    places = [at for at, word in enumerate(statement.raw) if word in list_words("former_state_adverbs")]
    places += [term.place for term in statement.terms if term.text == "used to"]
    return [clause for clause in statement.clauses if any(place in clause for place in places)]


def _have_one_form(a: Term, b: Term) -> bool:
    """Return whether two terms are the same word, not only synonyms."""
    return any(not key.startswith("same ") for key in a.keys & b.keys)


def _is_owner(statement: ParsedFact, person: Term) -> bool:
    """Return whether a person is the owner of something: "собака друга", "the neighbour's dog"."""
    if person.kind is not TermKind.PERSON:
        return False
    if is_cyrillic(person.text):
        return "gent" in list_grammemes(person.text) and "NOUN" in list_grammemes(
            statement.find_word_before(person)
        )
    is_possessive = f"{person.text}'s" in fold_characters(statement.text).casefold()
    return person.is_head and any(
        term.is_head and (is_possessive or term.kind is TermKind.WORD) and term.place - person.place == 1
        for term in statement.terms
    )


def _is_name_beside(statement: ParsedFact, person: Term, name: Term) -> bool:
    """Return whether a name stands beside a word for a person, and so names this person.

    It does in "brother Tom" and "a friend called Tom", but not in "friend uses Linux".
    """
    first, last = sorted((person.place, name.place))
    between = statement.raw[first + 1 : last]
    said = {term.place for term in statement.terms if term.text not in list_words("person_name_words")}
    is_said = any(place in said for place in range(first + 1, last))
    return len(between) <= 1 and not is_said and between not in (("—",), ("–",))


def _are_other_compounds(a: str, b: str) -> bool:
    """Return whether two Russian compounds differ within one kind: "врач-хирург", "врач-терапевт"."""
    if "-" not in a or "-" not in b or not (is_cyrillic(a) and is_cyrillic(b)):
        return False
    first, last = zip(a.rsplit("-", 1), b.rsplit("-", 1), strict=True)
    return first[0][:4] == first[1][:4] and last[0][:4] != last[1][:4]


def _is_adverb(word: str) -> bool:
    """Return whether a Russian word tells the manner, as «сверхурочно» does; English has no such forms."""
    tags = list_grammemes(word)
    return "ADVB" in tags or {"ADJS", "neut"} <= tags


def _has_digit(term: Term) -> bool:
    return any(map(str.isdigit, term.text))


def _is_predicate(word: str) -> bool:
    return is_verb(word) or "ADJS" in list_grammemes(word)


def _has_word_between(statement: ParsedFact, first: Term, second: Term) -> bool:
    return any(
        term.kind is TermKind.WORD and first.place < term.place < second.place for term in statement.terms
    )


def _differ_in_tense(a: Term, b: Term) -> bool:
    """Return whether matching terms have the same verb, of which only one is in the past tense.

    For example, "collects stamps" and "collected stamps" do.
    """
    return any(
        is_past_form(verb) != is_past_form(other) and _are_forms_of_one_verb(verb, other)
        for verb in a.text.split()
        for other in b.text.split()
    )


def _are_forms_of_one_verb(verb: str, other: str) -> bool:
    """Return whether words of matching terms may be one verb; irregular forms have the same first letter."""
    is_irregular = not list_words("past_verbs").isdisjoint((verb, other))
    return not list_forms(verb).isdisjoint(list_forms(other)) or (is_irregular and verb[0] == other[0])


def _list_weekdays(terms: tuple[Term, ...]) -> list[Term]:
    return [term for term in terms if any(key.startswith("dates weekday") for key in term.keys)]


def _is_denied(statement: ParsedFact, verb: Term) -> bool:
    return statement.find_word_before(verb) == "не"


def _leaves_place(statement: ParsedFact, place: Term) -> bool:
    """Return whether a Russian preposition before a word says that a person leaves the place."""
    return statement.find_word_before(place) in ("из", "изо", "с", "со")


def _has_stage(term: Term, axes: set[str]) -> bool:
    """Return whether a term is a pole of one of the named axes of the table `stages`."""
    return any(pole[:-1] in axes for pole in term.stages)


def _list_without_stage(terms: tuple[Term, ...], axes: set[str]) -> list[Term]:
    """Return the terms that are no pole of the named axes of the table `stages`."""
    return [term for term in terms if not _has_stage(term, axes)]


def _is_part_of_phrase(statement: ParsedFact, left: Sequence[Term]) -> bool:
    """Return whether a word in both facts only qualifies another, as "piano" does in "piano lessons"."""
    places = {term.place for term in statement.terms if term.kind is TermKind.WORD} - {t.place for t in left}
    return statement.is_english and any(
        term.kind is TermKind.WORD
        and term.place - 1 in places
        and not term.stages
        and term.text not in list_words("participles")
        and not term.text.endswith(("ly", "ing"))
        for term in left
    )


def _begins_with_verb(terms: Sequence[Term]) -> bool:
    """Return whether the first of the terms is a verb; English verbs are found by ending or in a list."""
    first, *others = terms
    word = first.text.split()[0]
    is_third_person = first.kind is TermKind.WORD and word.endswith("s") and not word.endswith("ss")
    return is_verb(word) or word in list_words("past_verbs") or (is_third_person and bool(others))


def _has_own_verb(statement: ParsedFact, left: Sequence[Term]) -> bool:
    """Return whether `left` has a verb with content, such as "rented" where the other fact says "has"."""
    return any(
        term.kind is TermKind.WORD
        and not term.is_head
        and (is_verb(term.text) or (statement.is_english and _is_before_object(statement, term)))
        for term in left
    )


def _is_before_object(statement: ParsedFact, term: Term) -> bool:
    is_first = all(other.is_head or other.place >= term.place for other in statement.terms)
    is_third_person = statement.has_head and term.text.endswith("s") and not term.text.endswith("ss")
    is_followed = statement.find_word_after(term) in list_words("determiners")
    return is_first and (is_followed or is_third_person or term.text in list_words("past_verbs"))


def _list_subjects(left: tuple[Term, ...]) -> list[Term]:
    return [term for term in left if term.is_head and term.kind in (TermKind.WORD, TermKind.NAME)]


def _find_predicate(statement: ParsedFact) -> Term | None:
    return next(
        (
            term
            for term in statement.terms
            if not term.is_head and term.kind in (TermKind.WORD, TermKind.LIGHT)
        ),
        None,
    )


def _list_nouns(terms: tuple[Term, ...]) -> list[Term]:
    """Return the terms that are not known to be verbs."""
    return [term for term in terms if term.kind is not TermKind.WORD or not is_verb(term.text)]


def _has_exact_term(terms: Sequence[Term]) -> bool:
    """Return whether a name, a number or a date is among terms."""
    return any(term.kind in EXACT_KINDS for term in terms)


def _says_alone(statement: ParsedFact) -> bool:
    """Return whether a fact says that someone is alone; «один» before a noun is a number."""
    alone = list_words("alone")
    following = zip(statement.raw, (*statement.raw[1:], ""), strict=True)
    return any(word in alone and "NOUN" not in list_grammemes(after) for word, after in following)


def _has_companion_phrase(terms: Sequence[Term]) -> bool:
    """Return whether one of the terms has the role "with": "with Bob", «с Анной», "with a nut allergy"."""
    return any(term.role == "with" for term in terms)


def _list_feelings(terms: tuple[Term, ...]) -> list[Term]:
    return [term for term in terms if any(pole.startswith("feeling") for pole in term.opposites)]


def _drop_fillers(statement: ParsedFact) -> list[str]:
    """Return the words of a fact except words for the user, determiners, counts and light words."""
    fillers = list_words("user") | list_words("determiners") | {"s"}
    numbers = {term.text for term in statement.terms if term.kind is TermKind.NUMBER}
    light = {term.text for term in statement.terms if term.kind is TermKind.LIGHT}
    return [word for word in statement.raw if word not in fillers | numbers | light]
