"""How a new fact stands to a known one, decided on evidence; similarity only supports what alignment allows."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from consumers.alignment.lexicon import lexicon
from consumers.alignment.matching import Alignment, WordSimilarity, align, are_opposite, have_contrary_roles
from consumers.alignment.statement import Kind, Statement, Term, parse


class Relation(StrEnum):
    """How a new fact stands to a known one."""

    SAME = "same"
    UPDATE = "update"
    DIFFERENT = "different"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision about two facts.

    Attributes:
        relation: of the newer fact to the older one.
        evidence: for a person.
        score: how much of both is accounted for, 0 to 1: ranks candidates.
        is_covered: the older fact says all that the newer one does, and more.
        is_related: both are about the same person and have something in common.
    """

    relation: Relation
    evidence: str
    score: float = 0.0
    is_covered: bool = False
    is_related: bool = False


SAME_SHARE: Final = 0.62
"""Of each fact at least this part has a counterpart in the other where both are worded differently."""

UNDECIDED_SHARE: Final = 0.45
"""Below it on either side, two facts are different."""

SUBSET_SHARE: Final = 0.95
"""From here on, one fact holds the other."""


def relate(old: str, new: str, similarity: WordSimilarity | None = None) -> Verdict:
    """Decide how a new fact stands to a known one."""
    return _Comparison(parse(old), parse(new), similarity).verdict()


class _Comparison:
    def __init__(self, old: Statement, new: Statement, similarity: WordSimilarity | None) -> None:
        self.old = old
        self.new = new
        self.alignment = align(old, new, similarity)
        left = self.alignment
        self.share_old = left.share(left.old)
        self.share_new = left.share(left.new)
        self.score = min(self.share_old, self.share_new)

    def verdict(self) -> Verdict:
        if not any(a.kind is not Kind.LIGHT for a, _ in self.alignment.pairs) and not self._shares_slot():
            return self._different("they have nothing in common", is_related=False)
        if problem := self._other_subject():
            return self._different(problem, is_related=False)
        if problem := self._contrary():
            return self._different(problem)
        return self._ended() or self._feeling() or self._replaced_value() or self._worded_otherwise()

    def _different(self, evidence: str, *, is_related: bool = True) -> Verdict:
        return Verdict(Relation.DIFFERENT, evidence, self.score, is_related=is_related)

    def _undecided(self, evidence: str) -> Verdict:
        return Verdict(Relation.UNDECIDED, evidence, self.score, is_related=True)

    def _update(self, evidence: str) -> Verdict:
        return Verdict(Relation.UPDATE, evidence, self.score, is_related=True)

    def _same(self, evidence: str, *, is_covered: bool = False) -> Verdict:
        return Verdict(Relation.SAME, evidence, self.score, is_covered, is_related=True)

    def _shares_slot(self) -> bool:
        return bool(self.old.slots & self.new.slots)

    def _other_subject(self) -> str | None:
        """Tell whom only one of the facts is about."""
        for statement, left in ((self.old, self.alignment.old), (self.new, self.alignment.new)):
            for term in left:
                if term.kind is Kind.PERSON and not self._is_named_in_both(statement, term):
                    return f"only one of them is about “{term.text}”"
        old, new = _subjects(self.alignment.old), _subjects(self.alignment.new)
        if old and new:
            return f"one is about “{old[0].text}”, the other about “{new[0].text}”"
        names = [term for term in (*old, *new) if term.kind is Kind.NAME]
        return f"only one of them is about “{names[0].text}”" if names else None

    def _is_named_in_both(self, statement: Statement, person: Term) -> bool:
        """Whether a name beside a word such as `brother` stands in the other fact too."""
        side = 0 if statement is self.old else 1
        return any(
            pair[side].kind is Kind.NAME and abs(pair[side].place - person.place) <= 2
            for pair in self.alignment.pairs
        )

    def _contrary(self) -> str | None:
        for a in self.alignment.old:
            for b in self.alignment.new:
                if are_opposite(a, b) and not {"marital", "diet"} & self.old.slots & self.new.slots:
                    return f"“{a.text}” is not “{b.text}”"
        for a, b in self.alignment.pairs:
            if have_contrary_roles(a, b) and a.kind is not Kind.LIGHT:
                return f"“{a.role} {a.text}” is not “{b.role} {b.text}”"
        if self._is_swapped():
            return "who does it and to whom is the other way round"
        return None

    def _is_swapped(self) -> bool:
        """Whether a person does in one fact what the user does to that person in the other."""
        if " by " in f" {self.old.text} {self.new.text} ":
            return False
        turned = [
            (a, b)
            for a, b in self.alignment.pairs
            if a.kind in (Kind.NAME, Kind.PERSON) and a.is_head != b.is_head
        ]
        acts = any(
            a.kind in (Kind.WORD, Kind.LIGHT) and a.text[:4] == b.text[:4] and not a.is_head and not b.is_head
            for a, b in self.alignment.pairs
        )
        other = [term for a, b in turned for term, side in ((a, self.new), (b, self.old)) if term.is_head and not _has_head(side)]
        return bool(other) and acts

    def _ended(self) -> Verdict | None:
        """Decide where one of the facts denies the other, or says that it is over."""
        old, new, left = self.old, self.new, self.alignment
        if old.is_negated == new.is_negated and old.is_ended == new.is_ended:
            return None
        if left.is_substituted and not (new.is_ended and not left.new) or self._hard(left.old) and self._hard(left.new):
            return self._different("they differ in more than what one of them denies") if left.is_substituted else None
        if new.is_ended and not old.is_ended and self.share_new >= 0.7 and self.share_old >= 0.5:
            return self._update("the newer one says that it is over")
        if old.is_negated != new.is_negated and self.score >= 0.75:
            return self._update("one denies what the other says")
        if old.is_ended and not new.is_ended and self.score >= 0.75:
            return self._update("the newer one says that it is so again")
        if self.score >= 0.3:
            return self._undecided("one of them denies something, or says that it is over")
        return self._different("they have little in common")

    def _feeling(self) -> Verdict | None:
        if not (self.old.feelings and self.new.feelings) or self.old.feelings & self.new.feelings:
            return None
        left = [term for term in (*self.alignment.old, *self.alignment.new) if not _is_feeling(term)]
        if not left:
            return self._update("the feeling about it is another one")
        return self._different("the feelings are about different things")

    def _replaced_value(self) -> Verdict | None:
        """Decide where each fact has something that the other one has not."""
        left = self.alignment
        if not (left.old and left.new):
            return None
        if slot := self._replaced_slot():
            return self._update(f"a new value: {slot}")
        hard = self._hard(left.old) and self._hard(left.new)
        rest = [term for term in (*left.old, *left.new) if term.kind not in (Kind.NUMBER, Kind.DATE)]
        values = {term.kind for term in left.old} & {term.kind for term in left.new}
        changes = self.new.is_changed or not (self.old.is_past or self.new.is_past)
        if hard and changes and values & {Kind.NUMBER, Kind.DATE} and (not rest or self._may_say_more(rest)):
            terms = [term for term in (*left.old, *left.new) if term.kind in values]
            if self._is_measure(terms) or self._has_attribute():
                return self._update(f"a new value: “{left.new[0].text}” instead of “{left.old[0].text}”")
        if changes and self._has_attribute(in_head=True) and len(left.old) <= 2 and len(left.new) <= 3:
            return self._update(f"a new value: “{left.new[0].text}” instead of “{left.old[0].text}”")
        if hard or left.is_substituted:
            return self._different(f"“{left.old[0].text}” is not “{left.new[0].text}”")
        return None

    def _replaced_slot(self) -> str | None:
        left, slots = self.alignment, self.old.slots & self.new.slots
        names = _kinds(left.old) & _kinds(left.new)
        is_current = self.new.is_changed or not (self.old.is_past or self.new.is_past)
        if self.new.is_planned or not is_current:
            return None
        if "residence" in slots and Kind.NAME in names:
            return "residence"
        if "employer" in slots and Kind.NAME in names:
            return "employer"
        if "age" in slots and names == {Kind.NUMBER}:
            return "age"
        if "marital" in slots and not left.is_substituted:
            return "marital status"
        for slot in ("wake", "bedtime"):
            if slot in slots and Kind.NUMBER in names:
                return slot
        if "favourite" in slots and len(self.alignment.pairs) >= 2 and len(left.old) == len(left.new) == 1:
            return "favourite"
        if _has_profession(left.old) and _has_profession(left.new) and not _has_other_head(self.old, self.new):
            return "job"
        return None

    def _hard(self, left: tuple[Term, ...]) -> bool:
        """Whether a name, a number or a date has no counterpart."""
        return any(term.kind in (Kind.NAME, Kind.NUMBER, Kind.DATE) for term in left)

    def _may_say_more(self, rest: list[Term]) -> bool:
        return self.new.is_changed and all(term in self.alignment.new for term in rest) and len(rest) <= 2

    def _is_measure(self, terms: list[Term]) -> bool:
        """Whether numbers are amounts, not years, numbers of rooms or what tells one thing from another."""
        statements = [self.old if term in self.alignment.old else self.new for term in terms]
        return all(
            term.kind is Kind.NUMBER and _is_amount(statement, term)
            for term, statement in zip(terms, statements, strict=True)
        )

    def _has_attribute(self, *, in_head: bool = False) -> bool:
        """Whether both facts name the same attribute, such as a rent or a deadline."""
        return any(
            _is_listed(a, "attributes") and _is_listed(b, "attributes") and (a.is_head and b.is_head or not in_head)
            for a, b in self.alignment.pairs
        )

    def _worded_otherwise(self) -> Verdict:
        left, (old, new) = self.alignment, (self.share_old, self.share_new)
        pairs = sum(a.kind is not Kind.LIGHT for a, _ in left.pairs)
        one_head = any(term.is_head for term in (*left.old, *left.new))
        if old >= SUBSET_SHARE and new >= SUBSET_SHARE:
            return self._same("all words of one have a counterpart in the other")
        if one_head and self.score < 0.75:
            return self._undecided("one of them may be about something else")
        if old >= SUBSET_SHARE and (pairs >= 2 or len(left.new) <= 2):
            return self._update("the newer one says the same, and more")
        if new >= SUBSET_SHARE and (pairs >= 2 or len(left.old) <= 2):
            return self._same("the older one says it, and more", is_covered=True)
        if self.score >= SAME_SHARE and pairs >= 2:
            return self._same(f"{self.score:.0%} of the words have a counterpart")
        if self.score >= UNDECIDED_SHARE or max(old, new) >= SUBSET_SHARE:
            return self._undecided(f"{self.score:.0%} of the words have a counterpart")
        return self._different("they have little in common")


def _kinds(terms: tuple[Term, ...]) -> set[Kind]:
    return {term.kind for term in terms}


def _subjects(left: tuple[Term, ...]) -> list[Term]:
    return [term for term in left if term.is_head and term.kind in (Kind.WORD, Kind.NAME)]


def _has_head(statement: Statement) -> bool:
    return any(term.is_head and term.kind is not Kind.LIGHT for term in statement.terms)


def _has_other_head(old: Statement, new: Statement) -> bool:
    return _has_head(old) != _has_head(new)


def _is_listed(term: Term, table: str) -> bool:
    return any(
        entry.table == table for key in term.keys for entry in lexicon().entries.get(key, ()) if len(entry.words) == 1
    )


def _has_profession(left: tuple[Term, ...]) -> bool:
    return any(_is_listed(term, "professions") for term in left)


def _is_feeling(term: Term) -> bool:
    return _is_listed(term, "feelings")


def _is_amount(statement: Statement, number: Term) -> bool:
    """Whether a number counts or measures something that is the user's, rather than naming one of many."""
    (key,) = number.keys
    if key.isdigit() and len(key) == 4 and 1900 <= int(key) <= 2100:
        return False
    words = statement.text.casefold().split()
    at = next((i for i, word in enumerate(words) if word.strip(".,;:()").startswith(number.text[:4])), None)
    before = words[at - 1] if at else ""
    if before in ("a", "an") or number.text.endswith(("й", "st", "nd", "rd", "th")):
        return False
    following = [term for term in statement.terms if term.place == number.place + 1]
    return bool(following) or before.rstrip(",") in ("is", "на", "до", "to", "—", "at", "в", "weighs", "весит")
