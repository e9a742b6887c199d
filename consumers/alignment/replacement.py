"""Values of which a fact has one at a time: whether a newer one takes the place of an older one."""

from dataclasses import dataclass
from itertools import chain
from typing import Final

from consumers.alignment.lexicon import is_in_table
from consumers.alignment.matching import Alignment, is_kind_of
from consumers.alignment.morphology import grammemes, is_cyrillic, is_ordinal, is_verb
from consumers.alignment.statement import Kind, Statement, Term
from consumers.alignment.tokenizer import as_number

_NUMBER_SIGNS: Final = ("№", "no", "#")

_NAMED_SLOTS: Final = ("employer", "vehicle", "provider", "device", "school")
"""Slots whose value is a name."""

_NAMING: Final = frozenset(("called", "named", "is", "mr", "mrs", "ms", "dr", "—", "–")) | frozenset(
    ("по", "имени", "зовут", "теперь", "стал", "стала", "выбрали", "назначили")
)
"""Words between a role and the name of the person who has it."""

_USING: Final = frozenset(("use", "uses", "using", "пользуется", "пользуюсь", "использует", "использую"))


@dataclass(frozen=True, slots=True)
class Replacement:
    """Two facts, each of which has something that the other one has not.

    Attributes:
        old, new: the facts.
        alignment: of both.
    """

    old: Statement
    new: Statement
    alignment: Alignment

    @property
    def is_current(self) -> bool:
        """Whether the newer fact tells how it is now, rather than of an event that stays true."""
        return self.new.is_changed or not (self.old.is_past or self.new.is_past)

    @property
    def left(self) -> tuple[Term, ...]:
        """The terms of both facts without a counterpart."""
        return (*self.alignment.old, *self.alignment.new)

    @property
    def values(self) -> list[Term]:
        """The numbers and dates without a counterpart."""
        return [term for term in self.left if term.kind in (Kind.NUMBER, Kind.DATE)]

    def slot(self) -> str | None:
        """Name the attribute of a person to which the newer fact gives another value."""
        left, slots = self.alignment, self.old.slots & self.new.slots
        shared = kinds_of(left.old) & kinds_of(left.new)
        is_other_head = self.old.has_head != self.new.has_head
        if not (left.old and left.new) or self.new.is_planned or not self.is_current or is_other_head:
            return None
        if self.old.is_past and self.new.is_past and shared & {Kind.NUMBER, Kind.DATE}:
            return None  # two events, each of which has its date
        if "residence" in slots and (
            Kind.NAME in shared or (self.new.is_changed and not self.old.is_changed) or self._has_moved_out()
        ):
            return "residence"
        if "age" in slots and shared == {Kind.NUMBER} and not any(map(_is_year, self.left)):
            return "age"
        for slot in ("marital", "diet"):
            if slot in slots:
                return slot
        for slot in ("wake", "bedtime"):
            if slot in slots and kinds_of(left.old) == kinds_of(left.new) == {Kind.NUMBER}:
                return slot
        if "favourite" in slots and len(left.pairs) >= 2 and len(left.old) == len(left.new) == 1:
            return "favourite"
        if _has_profession(left.old) and _has_profession(left.new):
            return "job"
        return self._named_slot(slots)

    def _has_moved_out(self) -> bool:
        """Whether the newer fact says that a place has ended, and names the next one."""
        is_left = self.new.is_ended and not self.old.is_ended
        return is_left and Kind.NAME in kinds_of(self.alignment.new) and "residence" in self.new.slots

    def _named_slot(self, slots: frozenset[str]) -> str | None:
        left = self.alignment
        if any(term.role == "with" for term in self.left):
            return None
        if "employer" in slots and Kind.NAME in kinds_of(left.old) & kinds_of(left.new):
            return "employer"
        if "device" in slots and kinds_of(left.old) == kinds_of(left.new) == {Kind.NUMBER}:
            return "device"
        if kinds_of(left.old) == kinds_of(left.new) == {Kind.NAME}:
            return next((slot for slot in _NAMED_SLOTS if slot in slots), None)
        return None

    def is_value(self) -> bool:
        """Whether both facts give a value to the same thing, which has one at a time."""
        return self.is_current and (
            self._is_attribute_value()
            or self._is_level()
            or self._is_rank()
            or self._is_recoloured()
            or self._is_in_one_role()
            or self._is_used_for()
        )

    def is_quantity(self) -> bool:
        """Whether only a number or date differs, of what is measured, counted or due."""
        if self._adds_up():
            is_amount = all(_is_amount(self._statement_of(term), term) for term in self.values)
            return is_amount and self._has_grown() and not self._is_numbered()
        if not self.values or not self.is_current:
            return False
        if Kind.NUMBER in kinds_of(self.left) and any(map(_is_part_of_day, self.left)):
            return False  # an amount in the morning, another one in the evening
        if self._is_measure() or self._is_position() or self._has_been_changed():
            return True
        return self._is_scheduled() and not self._is_numbered()

    def has_advanced(self) -> bool:
        """Whether a Russian fact says that a number has grown already: "уже в четвёртом классе"."""
        if "уже" not in self.new.raw or any(map(_is_year, self.values)):
            return False
        sides = (self.alignment.old, self.alignment.new)
        numbers = [tuple(term for term in side if term.kind is Kind.NUMBER) for side in sides]
        rest = [[t for t in side if t.kind is not Kind.NUMBER and not is_verb(t.text)] for side in sides]
        is_of_other = all(rest) or any(term.kind is not Kind.WORD for term in chain(*rest))
        is_event = self.new.is_past and not self.old.is_past
        return not (is_of_other or is_event) and _is_growth(*numbers)

    def is_more_exact(self) -> bool:
        """Whether the newer fact names a profession more exactly: "врач", "детский кардиолог"."""
        return all(is_verb(term.text) for term in self.alignment.old) and any(
            a.kinds and is_kind_of(b, a) and is_listed(a, "professions") for a, b in self.alignment.pairs
        )

    def has_only_values(self) -> bool:
        """Whether nothing but numbers and dates differs, or the newer fact says that they have changed."""
        rest = [term for term in self.left if term not in self.values]
        is_of_other = sum(term.kind in (Kind.NAME, Kind.PERSON) for term in rest) > 1
        is_small = self.new.is_changed and len(rest) <= 2 and not is_of_other
        return bool(self.values) and (not rest or is_small)

    def _is_measure(self) -> bool:
        """Whether numbers are amounts, not years, numbers of rooms or what tells one thing from another."""
        return not self._is_numbered() and all(
            term.kind is Kind.NUMBER and _is_amount(self._statement_of(term), term) for term in self.values
        )

    def _has_been_changed(self) -> bool:
        """Whether a Russian fact says that the one value of something is another now."""
        is_marked = self.new.is_changed and not (self.old.is_changed or self.old.is_past)
        has_topic = any(a.kind is not Kind.LIGHT for a, _ in self.alignment.pairs)
        is_value = (
            bool(self.alignment.old) and bool(self.alignment.new) and not any(map(_is_year, self.values))
        )
        is_of_other = bool(kinds_of(self.left) & {Kind.NAME, Kind.PERSON})
        return is_marked and has_topic and is_value and not (is_of_other or self.new.is_english)

    def _is_position(self) -> bool:
        """Whether a number tells how far somebody has come, and the newer one is greater: page 3, page 90."""
        if not self._has_grown() or self.old.is_past or self.new.is_past:
            return False
        feelings = (pole for term in self.new.terms for pole in term.opposites)
        return not any(pole.startswith("feeling") for pole in feelings) and all(
            self._is_beside(term, "positions") and not term.is_head for term in self.values
        )

    def _adds_up(self) -> bool:
        """Whether a number only grows, as in "has read 9 books"; "read 9 books" may tell of one event."""
        is_total = not self.new.is_english or not {"has", "have", "i've"}.isdisjoint(self.new.raw)
        return is_total and any(
            is_listed(a, "progress") and is_listed(b, "progress") for a, b in self.alignment.pairs
        )

    def _has_grown(self) -> bool:
        return kinds_of(self.left) == {Kind.NUMBER} and _is_growth(self.alignment.old, self.alignment.new)

    def _statement_of(self, term: Term) -> Statement:
        """The fact that a term without a counterpart stands in."""
        return self.old if any(term is each for each in self.alignment.old) else self.new

    def _is_beside(self, term: Term, table: str) -> bool:
        statement = self._statement_of(term)
        beside = (statement.word_before(term), statement.word_after(term))
        return any(word and is_in_table(word, table) for word in beside)

    def _is_numbered(self) -> bool:
        """Whether a number tells which of many it is, as in "bus 14", or a year when it happened."""
        return any(_tells_which(self._statement_of(term), term) or _is_year(term) for term in self.values)

    def _is_scheduled(self) -> bool:
        """Whether both facts tell the date or the number of one thing, such as a deadline or a rent."""
        if not self.new.is_changed and any(map(_is_habitual, self.left)):
            return False
        is_due = all(term.kind is Kind.DATE and term.role in ("to", "before") for term in self.left)
        return is_due or any(
            (_is_attribute(a) and _is_attribute(b)) or (_is_event(a) and _is_event(b))
            for a, b in self.alignment.pairs
        )

    def _is_attribute_value(self) -> bool:
        """Whether both facts say of the same thing what it is, as in "The manager is Ann"."""
        old, new = self.alignment.old, self.alignment.new
        pairs = [(a, b) for a, b in self.alignment.pairs if a.kind is not Kind.LIGHT]
        if not all(a.is_head and b.is_head for a, b in pairs) or any(term.is_head for term in self.left):
            return False
        kinds = kinds_of(self.left)
        is_event = Kind.NAME in kinds and bool(kinds & {Kind.NUMBER, Kind.DATE})
        if is_event or not (self.old.is_copular and self.new.is_copular):
            return False
        is_of_person = any(a.kind in (Kind.PERSON, Kind.NAME) for a, _ in pairs)
        is_value = kinds_of(old) == kinds_of(new) and kinds_of(old) <= {Kind.NAME, Kind.NUMBER, Kind.DATE}
        return any(_is_attribute(a) for a, _ in pairs) or (is_value and not is_of_person)

    def _is_rank(self) -> bool:
        """Whether somebody has another rank in the same profession: "старший бухгалтер"."""
        left = self.alignment
        return (
            len(left.old) == len(left.new) == 1
            and all(is_listed(term, "ranks") and not term.is_head for term in self.left)
            and any(is_listed(a, "professions") and a.place - left.old[0].place == 1 for a, _ in left.pairs)
        )

    def _is_level(self) -> bool:
        """Whether the same thing is at another level: "at A2 level", "a brown belt"."""
        old, new = self.alignment.old, self.alignment.new
        return len(old) == len(new) == 1 and all(
            not term.is_head and self._is_beside(term, "levels") for term in self.left
        )

    def _is_recoloured(self) -> bool:
        """Whether the same thing has another colour."""
        left = self.alignment
        return (
            all(any(is_listed(term, "colours") for term in side) for side in (left.old, left.new))
            and max(len(left.old), len(left.new)) <= 2
            and kinds_of(self.left) == {Kind.WORD}
            and any(a.is_head and b.is_head for a, b in left.pairs)
        )

    def _is_in_one_role(self) -> bool:
        """Whether another person has the role that one person has at a time: "a manager called Ann"."""
        left = self.alignment
        old, new = _without_naming(left.old), _without_naming(left.new)
        if not kinds_of(old) == kinds_of(new) == {Kind.NAME}:
            return False
        roles = [(a, b) for a, b in left.pairs if is_listed(a, "roles_of_one")]
        return any(_is_name_of(self.old, a, old[0]) and _is_name_of(self.new, b, new[0]) for a, b in roles)

    def _is_used_for(self) -> bool:
        """Whether another thing is used for the same purpose: "uses Todoist for shopping lists"."""
        left = self.alignment
        return (
            kinds_of(left.old) == kinds_of(left.new) == {Kind.NAME}
            and any(a.role == b.role == "for" and a.kind is Kind.WORD for a, b in left.pairs)
            and all(not _USING.isdisjoint(each.raw) for each in (self.old, self.new))
        )


def kinds_of(terms: tuple[Term, ...]) -> set[Kind]:
    """The kinds of some terms."""
    return {term.kind for term in terms}


def _is_growth(old: tuple[Term, ...], new: tuple[Term, ...]) -> bool:
    """Whether the one number of each side is greater on the newer one."""
    if len(old) != 1 or len(new) != 1:
        return False
    before, after = (as_number(min(term.keys)) for term in (old[0], new[0]))
    return before is not None and after is not None and before < after


def is_listed(term: Term, table: str) -> bool:
    """Whether a term, or the last word of a phrase, stands in a table of the lexicon."""
    return bool(term.text) and is_in_table(term.text.split()[-1], table)


def _is_attribute(term: Term) -> bool:
    return is_listed(term, "attributes")


def _is_event(term: Term) -> bool:
    return is_listed(term, "scheduled")


def _is_habitual(term: Term) -> bool:
    """Whether a date is that of a habit: "on Mondays", "по понедельникам"."""
    return term.kind is Kind.DATE and (term.text.endswith("days") or "plur" in grammemes(term.text))


def _is_part_of_day(date: Term) -> bool:
    return not date.keys.isdisjoint(("dates morning", "dates afternoon", "dates evening", "dates night"))


def _has_profession(left: tuple[Term, ...]) -> bool:
    return any(is_listed(term, "professions") for term in left)


def _is_year(number: Term) -> bool:
    key = min(number.keys, default="")
    return key.isdigit() and len(key) == 4 and 1900 <= int(key) <= 2100


def _is_amount(statement: Statement, number: Term) -> bool:
    """Whether a number counts or measures something, rather than telling one thing from another."""
    return not is_ordinal(number.text) and statement.word_before(number) not in ("a", "an", "the")


def _tells_which(statement: Statement, number: Term) -> bool:
    before, after = statement.word_before(number), statement.word_after(number)
    if number.is_head and after and is_ordinal(number.text):
        return True
    kinds = {term.place - number.place: term.kind for term in statement.terms}
    if kinds.get(-1) is Kind.NAME and 1 not in kinds:
        return True
    if before in _NUMBER_SIGNS or (before and is_in_table(before, "numbered")):
        return True
    if not after or not is_in_table(after, "numbered"):
        return False
    return is_ordinal(number.text) or not _is_counted(after)


def _is_counted(noun: str) -> bool:
    """Whether a noun has the form that it has behind an amount: "90 days", "90 дней"."""
    if is_cyrillic(noun):
        return not grammemes(noun).isdisjoint(("gent", "plur"))
    return noun.endswith("s")


def _without_naming(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    return tuple(term for term in terms if term.text not in _NAMING)


def _is_name_of(statement: Statement, role: Term, name: Term) -> bool:
    """Whether a name stands behind a role and ends the fact."""
    between = statement.raw[role.place + len(role.text.split()) : name.place]
    is_named = any(word in _NAMING for word in between)
    return role.place < name.place and all(
        word in _NAMING or (is_named and "gent" in grammemes(word)) for word in between
    )
