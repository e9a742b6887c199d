"""How a new fact stands to a known one, decided on evidence."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from consumers.alignment.lexicon import is_in_table
from consumers.alignment.matching import WordSimilarity, align, are_opposite, have_contrary_roles
from consumers.alignment.morphology import is_cyrillic, is_ordinal, is_verb
from consumers.alignment.parser import parse_both
from consumers.alignment.statement import Kind, Statement, Term


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
        is_related: both are about the same person, have something in common, and nothing contradicts it.
        is_contradicted: a person, a value, a direction or a denial says that they are not the same.
        is_about_other: they are about different people or things.
        is_open: nothing speaks against sameness but other words: the similarity of both may decide.
    """

    relation: Relation
    evidence: str
    score: float = 0.0
    is_covered: bool = False
    is_related: bool = False
    is_open: bool = False
    is_contradicted: bool = False
    is_about_other: bool = False


SAME_SHARE: Final = 0.5
"""Of each fact at least this part has a counterpart in the other where both are worded differently."""

UNDECIDED_SHARE: Final = 0.3
"""Below it on either side, two facts are different."""

SUBSTITUTED_SHARE: Final = 0.5
"""From here on, words in the same order are the same sentence with something replaced."""

_NUMBER_SIGNS: Final = ("№", "no", "#")

SUBSET_SHARE: Final = 0.95
"""From here on, one fact holds the other."""


def relate(old: str, new: str, similarity: WordSimilarity | None = None) -> Verdict:
    """Decide how a new fact stands to a known one."""
    return _Comparison(*parse_both(old, new), similarity).verdict()


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
            return self._open(Relation.DIFFERENT, "they have no word in common", is_related=False)
        if problem := self._other_subject():
            return Verdict(Relation.DIFFERENT, problem, self.score, is_contradicted=True, is_about_other=True)
        if problem := self._contrary():
            return self._different(problem)
        if slot := self._replaced_slot():
            return self._update(f"a new value: {slot}")
        return self._feeling() or self._ended() or self._replaced_value() or self._worded_otherwise()

    def _different(self, evidence: str, *, is_contradicted: bool = True) -> Verdict:
        return Verdict(Relation.DIFFERENT, evidence, self.score, is_contradicted=is_contradicted)

    def _undecided(self, evidence: str) -> Verdict:
        return Verdict(Relation.UNDECIDED, evidence, self.score, is_related=True)

    def _open(self, relation: Relation, evidence: str, *, is_related: bool = True) -> Verdict:
        return Verdict(relation, evidence, self.score, is_related=is_related, is_open=True)

    def _update(self, evidence: str) -> Verdict:
        return Verdict(Relation.UPDATE, evidence, self.score, is_related=True)

    def _same(self, evidence: str, *, is_covered: bool = False) -> Verdict:
        return Verdict(Relation.SAME, evidence, self.score, is_covered, is_related=True)

    def _shares_slot(self) -> bool:
        return bool(self.old.slots & self.new.slots)

    def _other_subject(self) -> str | None:
        """Tell whom only one of the facts is about."""
        for statement, left in ((self.old, self.alignment.old), (self.new, self.alignment.new)):
            if statement is self.old and self.new.is_ended and self._has_common_name():
                continue
            for term in left:
                if term.kind is Kind.PERSON and not (
                    _is_beside(term) or self._is_named_in_both(statement, term) or self._is_in_both(term)
                ):
                    return f"only one of them is about “{term.text}”"
        old, new = _subjects(self.alignment.old), _subjects(self.alignment.new)
        if old and new and (self.alignment.is_substituted or old[0].kind is new[0].kind is Kind.NAME):
            return f"one is about “{old[0].text}”, the other about “{new[0].text}”"
        names = [term for term in (*old, *new) if term.kind is Kind.NAME]
        return f"only one of them is about “{names[0].text}”" if names else None

    def _has_common_name(self) -> bool:
        return any(a.kind is Kind.NAME for a, _ in self.alignment.pairs)

    def _is_in_both(self, person: Term) -> bool:
        return any(person.keys & (a.keys | b.keys) for a, b in self.alignment.pairs)

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
                if are_opposite(a, b) and not (
                    _feelings((a,)) or {"marital", "diet"} & self.old.slots & self.new.slots
                ):
                    return f"“{a.text}” is not “{b.text}”"
        for a, b in self.alignment.pairs:
            if self.new.is_ended or self.new.is_changed:
                break
            if have_contrary_roles(a, b) and a.kind is not Kind.LIGHT:
                return f"“{a.role} {a.text}” is not “{b.role} {b.text}”"
        return "who does it and to whom is the other way round" if self._is_swapped() else None

    def _is_swapped(self) -> bool:
        """Whether a person does in one fact what the user does to that person in the other."""
        verb, other = _first_after_head(self.old), _first_after_head(self.new)
        if verb is None or other is None or verb.text[:4] != other.text[:4] or self._is_passive():
            return False
        if self.new.is_changed or any(
            is_cyrillic(each.text) and not is_verb(each.text) for each in (verb, other)
        ):
            return False
        return any(
            a.kind in (Kind.NAME, Kind.PERSON)
            and a.is_head != b.is_head
            and not _has_head(self.new if a.is_head else self.old)
            for a, b in self.alignment.pairs
        )

    def _is_passive(self) -> bool:
        return "by" in self.old.raw or "by" in self.new.raw

    def _ended(self) -> Verdict | None:
        """Decide where one of the facts denies the other, or says that it is over."""
        old, new, left = self.old, self.new, self.alignment
        if old.is_negated == new.is_negated and old.is_ended == new.is_ended:
            return None
        left_new = tuple(term for term in left.new if term.place < new.reason_at)
        if new.is_ended:
            left_new = tuple(term for term in left_new if term.kind not in (Kind.DATE, Kind.NUMBER))
        share_new = left.share(left_new)
        pairs = sum(a.kind is not Kind.LIGHT for a, _ in left.pairs)
        nouns_differ = left.is_substituted and _nouns(left.old) and _nouns(left_new)
        if nouns_differ or (self._hard(left.old) and self._hard(left_new)):
            if self.score >= SUBSTITUTED_SHARE or self._hard(left.old):
                return self._different("they differ in more than what one of them denies")
            return None
        is_over = new.is_ended and not old.is_ended
        if is_over and self.share_old >= 0.45 and (share_new >= 0.7 or (share_new >= 0.6 and pairs >= 2)):
            return self._update("the newer one says that it is over")
        if is_over and share_new >= 0.95 and _kinds(tuple(a for a, _ in left.pairs)) & {Kind.NAME}:
            return self._update("the newer one says that it is over")
        if old.is_negated != new.is_negated and self.score >= 0.75:
            return self._update("one denies what the other says")
        if old.is_ended and not new.is_ended and self.score >= 0.75:
            return self._update("the newer one says that it is so again")
        if self.score >= 0.3:
            return self._undecided("one of them denies something, or says that it is over")
        return None

    def _feeling(self) -> Verdict | None:
        """Decide where one of the facts is for something and the other is against something."""
        old, new = (_feelings(terms) for terms in (self.alignment.old, self.alignment.new))
        if not any(are_opposite(a, b) for a in old for b in new):
            return None
        if len(self.alignment.old) == len(old) and len(self.alignment.new) == len(new):
            return self._update("the feeling about it is another one")
        return self._different("the feelings are about different things")

    def _replaced_value(self) -> Verdict | None:
        """Decide where each fact has something that the other one has not."""
        left = self.alignment
        if not (left.old and left.new):
            return None
        shared = _kinds(left.old) & _kinds(left.new)
        hard = shared & {Kind.NAME, Kind.NUMBER, Kind.DATE}
        is_current = self.new.is_changed or not (self.old.is_past or self.new.is_past)
        values = [term for term in (*left.old, *left.new) if term.kind in (Kind.NUMBER, Kind.DATE)]
        rest = [term for term in (*left.old, *left.new) if term not in values]
        instead = f"“{left.new[0].text}” instead of “{left.old[0].text}”"
        if values and is_current and (not rest or self._is_said_to_change(rest)):
            if self._is_measure(values) or (self._is_scheduled() and not self._is_numbered(values)):
                return self._update(f"a new value: {instead}")
            return self._undecided(f"{instead}: both may be true")
        if is_current and (self._is_attribute_value() or self._is_recoloured()):
            return self._update(f"a new value: {instead}")
        if self.new.is_changed and self.score >= 0.35 and len(left.old) <= 2 and len(left.new) <= 2:
            return self._update(f"it has changed: {instead}")
        if hard or (left.is_substituted and self.score >= SUBSTITUTED_SHARE):
            if not hard and not _nouns(left.old) and not _nouns(left.new):
                return self._open(Relation.UNDECIDED, f"{instead} may be the same")
            problem = f"“{left.old[0].text}” is not “{left.new[0].text}”"
            return self._different(problem, is_contradicted=bool(hard))
        return None

    def _replaced_slot(self) -> str | None:
        left, slots = self.alignment, self.old.slots & self.new.slots
        shared = _kinds(left.old) & _kinds(left.new)
        is_current = self.new.is_changed or not (self.old.is_past or self.new.is_past)
        is_other_head = _has_head(self.old) != _has_head(self.new)
        if not (left.old and left.new) or self.new.is_planned or not is_current or is_other_head:
            return None
        if "residence" in slots and (
            Kind.NAME in shared or (self.new.is_changed and not self.old.is_changed)
        ):
            return "residence"
        if "employer" in slots and Kind.NAME in shared:
            return "employer"
        if "age" in slots and shared == {Kind.NUMBER} and not any(map(_is_year, (*left.old, *left.new))):
            return "age"
        if "marital" in slots:
            return "marital status"
        if "diet" in slots:
            return "diet"
        for slot in ("wake", "bedtime"):
            if slot in slots and _kinds(left.old) == _kinds(left.new) == {Kind.NUMBER}:
                return slot
        if "favourite" in slots and len(left.pairs) >= 2 and len(left.old) == len(left.new) == 1:
            return "favourite"
        if _has_profession(left.old) and _has_profession(left.new):
            return "job"
        return None

    def _hard(self, left: tuple[Term, ...]) -> bool:
        """Whether a name, a number or a date has no counterpart."""
        return any(term.kind in (Kind.NAME, Kind.NUMBER, Kind.DATE) for term in left)

    def _is_said_to_change(self, rest: list[Term]) -> bool:
        return self.new.is_changed and len(rest) <= 2

    def _is_measure(self, values: list[Term]) -> bool:
        """Whether numbers are amounts, not years, numbers of rooms or what tells one thing from another."""
        return not self._is_numbered(values) and all(
            term.kind is Kind.NUMBER and _is_amount(self._statement_of(term), term) for term in values
        )

    def _statement_of(self, term: Term) -> Statement:
        """The fact that a term without a counterpart stands in."""
        return self.old if any(term is each for each in self.alignment.old) else self.new

    def _is_numbered(self, values: list[Term]) -> bool:
        """Whether a number tells which of many it is, as in "bus 14", or a year when it happened."""
        for term in values:
            statement = self._statement_of(term)
            before, after = statement.word_before(term), statement.word_after(term)
            is_which = (
                is_in_table(before, "numbered") or is_in_table(after, "numbered") or before in _NUMBER_SIGNS
            )
            if is_which or _is_year(term):
                return True
        return False

    def _is_scheduled(self) -> bool:
        """Whether both facts tell the date or the number of one thing, such as a deadline or a rent."""
        left = (*self.alignment.old, *self.alignment.new)
        is_due = all(term.kind is Kind.DATE and term.role in ("to", "before") for term in left)
        return is_due or any(
            _is_listed(a, "attributes") and _is_listed(b, "attributes") for a, b in self.alignment.pairs
        )

    def _is_attribute_value(self) -> bool:
        """Whether both facts say of the same thing what it is, as in "The manager is Ann"."""
        old, new = self.alignment.old, self.alignment.new
        pairs = [(a, b) for a, b in self.alignment.pairs if a.kind is not Kind.LIGHT]
        if not all(a.is_head and b.is_head for a, b in pairs) or any(term.is_head for term in (*old, *new)):
            return False
        if not (self.old.is_copular and self.new.is_copular):
            return False
        is_attribute = any(_is_listed(a, "attributes") for a, _ in pairs)
        is_of_person = any(a.kind in (Kind.PERSON, Kind.NAME) for a, _ in pairs)
        is_value = _kinds(old) == _kinds(new) and _kinds(old) <= {Kind.NAME, Kind.NUMBER, Kind.DATE}
        return is_attribute or (is_value and not is_of_person)

    def _is_recoloured(self) -> bool:
        """Whether the same thing has another colour."""
        left = self.alignment
        return (
            len(left.old) == len(left.new) == 1
            and all(_is_listed(term, "colours") for term in (*left.old, *left.new))
            and any(a.is_head and b.is_head for a, b in left.pairs)
        )

    def _worded_otherwise(self) -> Verdict:
        left, (old, new) = self.alignment, (self.share_old, self.share_new)
        pairs = sum(a.kind is not Kind.LIGHT for a, _ in left.pairs)
        one_head = any(term.is_head for term in (*left.old, *left.new))
        if old >= SUBSET_SHARE and new >= SUBSET_SHARE:
            is_repeated = all(_have_one_form(a, b) for a, b in left.pairs)
            return self._same("all words of one have a counterpart in the other", is_covered=is_repeated)
        if one_head and self.score < 0.75:
            return self._open(self._doubt(), "one of them may be about something else")
        if old >= SUBSET_SHARE and (pairs >= 2 or len(left.new) <= 2):
            return self._update("the newer one says the same, and more")
        if new >= SUBSET_SHARE and (pairs >= 2 or len(left.old) <= 2):
            return self._same("the older one says it, and more", is_covered=True)
        if self.score >= SAME_SHARE and pairs >= 2 and self._says_same_of_subject():
            return self._same(f"{self.score:.0%} of the words have a counterpart")
        if pairs and not self._says_same_of_subject():
            return self._undecided("both may be about the same, and say different things of it")
        return self._open(self._doubt(), f"{self.score:.0%} of the words have a counterpart")

    def _says_same_of_subject(self) -> bool:
        """Whether words match beyond those that say what both facts are about."""
        said = [
            (a, b)
            for a, b in self.alignment.pairs
            if a.kind not in (Kind.LIGHT, Kind.PERSON) and not (a.is_head and b.is_head)
        ]
        return any(not a.is_head for a, _ in said) and any(not b.is_head for _, b in said)

    def _doubt(self) -> Relation:
        is_likely = self.score >= UNDECIDED_SHARE or max(self.share_old, self.share_new) >= SUBSET_SHARE
        return Relation.UNDECIDED if is_likely else Relation.DIFFERENT


def _have_one_form(a: Term, b: Term) -> bool:
    """Whether two terms are the same word, not only words for the same."""
    return any(" " not in key or not key.startswith("same ") for key in a.keys & b.keys)


def _kinds(terms: tuple[Term, ...]) -> set[Kind]:
    return {term.kind for term in terms}


def _subjects(left: tuple[Term, ...]) -> list[Term]:
    return [term for term in left if term.is_head and term.kind in (Kind.WORD, Kind.NAME)]


def _has_head(statement: Statement) -> bool:
    return any(term.is_head and term.kind is not Kind.LIGHT for term in statement.terms)


def _first_after_head(statement: Statement) -> Term | None:
    return next((term for term in statement.terms if not term.is_head), None)


def _nouns(terms: tuple[Term, ...]) -> list[Term]:
    """The terms that are not known to be verbs."""
    return [term for term in terms if term.kind is not Kind.WORD or not is_verb(term.text)]


def _is_beside(term: Term) -> bool:
    """Whether a person is only with somebody, or something is for them."""
    return not term.is_head and term.role in ("with", "for")


def _is_listed(term: Term, table: str) -> bool:
    return is_in_table(term.text, table)


def _has_profession(left: tuple[Term, ...]) -> bool:
    return any(_is_listed(term, "professions") for term in left)


def _feelings(terms: tuple[Term, ...]) -> list[Term]:
    return [term for term in terms if any(pole.startswith("feeling") for pole in term.opposites)]


def _is_year(number: Term) -> bool:
    key = min(number.keys, default="")
    return key.isdigit() and len(key) == 4 and 1900 <= int(key) <= 2100


def _is_amount(statement: Statement, number: Term) -> bool:
    """Whether a number counts or measures something, rather than telling one thing from another."""
    return not is_ordinal(number.text) and statement.word_before(number) not in ("a", "an", "the")
