"""Replacement of values: decides whether a newer value of an attribute replaces an older value."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from typing import Final

from mnemon_consumers.domain.alignment.lexicon import is_in_table, list_lookup_forms, list_words, load_lexicon
from mnemon_consumers.domain.alignment.matching import Alignment, is_kind_of
from mnemon_consumers.domain.alignment.morphology import (
    is_cyrillic,
    is_ordinal,
    is_verb,
    list_grammemes,
    list_lemmas,
)
from mnemon_consumers.domain.alignment.statement import EXACT_KINDS, NUMERIC_KINDS, ParsedFact, Term, TermKind
from mnemon_consumers.domain.alignment.tokenizer import parse_number_key

_NAMED_SLOTS: Final = ("employer", "vehicle", "provider", "device", "school")
"""Slots whose value is a name."""

_HOURS: Final = ("wake", "bedtime", "breakfast", "lunch", "dinner")
"""Slots whose value is a time of the day."""

_NUMBER_SLOTS: Final[Sequence[str]] = (*_HOURS, "weight", "salary")
"""Slots whose value is a number."""

WORD_SLOTS: Final = ("workplace", "proficiency", "study_year")
"""Slots whose value is one of the words that the lexicon lists for the slot."""

_LANGUAGE_LEVEL: Final = re.compile("[abc][12]")
"""A level of the Common European Framework of Reference for Languages, in lower case."""

_FREQUENCIES: Final = frozenset(("dates daily", "dates weekly", "dates monthly", "dates yearly"))
"""Keys of terms for a frequency, such as "every day"."""

_WORKING: Final = ("work as", "works as", "working as")
"""Phrases before a person's occupation."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """Rules on whether a newer fact replaces a value that an older fact gives.

    Attributes:
        old, new: the facts.
        alignment: their alignment.
    """

    old: ParsedFact
    new: ParsedFact
    alignment: Alignment

    @property
    def is_current(self) -> bool:
        """Return whether the newer fact reports a change, or neither fact is about a past event."""
        return self.new.is_changed or not (_is_event_past(self.old) or _is_event_past(self.new))

    @property
    def left(self) -> tuple[Term, ...]:
        """Return the terms of both facts that have no counterpart."""
        return (*self.alignment.old, *self.alignment.new)

    @property
    def values(self) -> list[Term]:
        """Return the numbers and dates that have no counterpart."""
        return [term for term in self.left if term.kind in NUMERIC_KINDS]

    def find_changed_slot(self) -> str | None:
        """Return the slot, such as `residence`, that has another value in the newer fact.

        Returns:
            None if no slot clearly has another value.
        """
        left, slots = self.alignment, self.old.slots & self.new.slots
        shared = list_kinds(left.old) & list_kinds(left.new)
        if self.old.is_planned:
            return None
        if not (self.new.is_planned or self.old.is_negated or self.new.is_negated):
            if self._has_reached_level():
                return "language level"
            if self._tells_age(self.old) and self._tells_age(self.new) and self._has_only_ages():
                return "age"
            number_slots = (slot for slot in _NUMBER_SLOTS if slot in slots)
            if slot := next(filter(self._is_amount_of, number_slots), None):
                return slot
        is_other_head = _has_own_head(self.old) != _has_own_head(self.new)
        if not (left.old and left.new) or self.new.is_planned or not self.is_current or is_other_head:
            return None
        if (
            self.new.is_negated
            and not (self.old.is_negated or self.new.is_ended)
            and slots.isdisjoint(("marital", "diet"))
        ):
            return None  # the newer fact denies a value, and names none
        if _is_event_past(self.old) and _is_event_past(self.new) and shared & NUMERIC_KINDS:
            return None  # two events, each with its date
        if (
            "residence" in slots
            and not (self._names_only_origin() or self.swaps_other_thing() or self.keeps_home())
            and (TermKind.NAME in shared or (self.new.is_changed and not self.old.is_changed))
        ):
            return "residence"
        is_number = shared == {TermKind.NUMBER} and not any(map(is_year, self.left))
        is_age_only = consists_of([t for t in self.left if t.kind is not TermKind.NUMBER], "age")
        if "age" in slots and is_number and (is_age_only or self.new.is_english):
            return "age"
        if "marital" in slots and not self._qualifies_noun("marital"):
            return "marital"
        if "diet" in slots and consists_of([term for term in left.new if term.kind is TermKind.WORD], "diet"):
            return "diet"
        if slot := self._find_word_slot(slots):
            return slot
        if "favourite" in slots and len(left.pairs) >= 2 and len(left.old) == len(left.new) == 1:
            return "favourite"
        if self._has_other_job():
            return "job"
        if "transport" in slots and consists_of(self.left, "means"):
            return "transport"
        return self._find_name_slot(slots)

    def find_lost_part(self, slot: str) -> str | None:
        """Return what the older fact says beside the replaced value, if the newer fact says nothing on it.

        For example, "Works at Lidl" says nothing on the occupation in "Works at Aldi as a vet".

        Args:
            slot: the slot that has another value; empty for an amount.

        Returns:
            None if the newer fact replaces all that the older fact says.
        """
        old = self.alignment.old
        if any(_tells_role(self.old, term) for term in old) and not any(
            _tells_role(self.new, term) for term in self.new.terms
        ):
            return "names an occupation"
        if slot in ("employer", "job") and any(map(_is_way_of_work, old)):
            return "says how the person works"
        if slot == "employer" and any(_is_exact_thing(term) for term in old):
            return "says what the person works with"
        if slot == "job" and not (self.new.is_ended or TermKind.NAME in list_kinds(self.new.terms)):
            is_named = any(t.kind is TermKind.NAME and _is_after_preposition(self.old, t) for t in old)
            return "says where the person works" if is_named else None
        rest = [term for term in old if not (term.kind is TermKind.NUMBER or _is_of_age(term))]
        is_of_age = slot != "age" or consists_of(rest, "age")
        if not is_of_age or (not slot and any(map(self._is_beside_amount, old))):
            return "says something else"
        return None

    def _is_beside_amount(self, term: Term) -> bool:
        """Return whether a term of the older fact names something that does not belong to an amount.

        If the number is a label, as in "school 5", this is true of every noun. It is false of a meeting that
        was moved: "with Ann" belongs to the meeting.
        """
        verbs = list_words("object_move_verbs")
        is_moved = any(not ({word} | list_lookup_forms(word)).isdisjoint(verbs) for word in self.new.raw)
        if is_moved or any(value.kind is TermKind.DATE for value in self.values):
            return False
        if term.is_someone or term.role == "with":
            return True
        is_noun = term.kind is TermKind.WORD and not is_verb(term.text)
        return is_noun and any(
            each in self.values and _is_label(self.old, each) for each in self.alignment.old
        )

    def _names_only_origin(self) -> bool:
        """Return whether the newer fact names only the place from which a person came: "moved from York"."""
        names = [term for term in self.alignment.new if term.kind is TermKind.NAME]
        return bool(names) and all(term.role == "from" for term in names)

    def _qualifies_noun(self, slot: str) -> bool:
        """Return whether a value of a slot qualifies a noun in the newer fact: "near a married couple"."""
        words = _list_slot_words(slot)
        return any(
            term.kind in (TermKind.WORD, TermKind.NUMBER)
            and not list_lookup_forms(self.new.find_word_before(term)).isdisjoint(words)
            and not (consists_of((term,), slot) or _is_naming(term))
            for term in self.alignment.new
        )

    def keeps_home(self) -> bool:
        """Return whether the newer fact may not be about a home for good.

        For example, "moved to the second floor", "moved to the Leeds office" and "moved to Leeds for the
        summer" may not.
        """
        left, raw = self.alignment, self.new.raw
        if self.new.is_changed and any(
            word in ("for", "на")
            and any(is_in_table(each, "units") or is_in_table(each, "dates") for each in rest)
            for word, rest in ((raw[at], raw[at + 1 : at + 3]) for at in range(len(raw)))
        ):
            return True
        names = [term.place for term in self.new.words if term.kind is TermKind.NAME]
        others = [term for term in left.new if term.kind is TermKind.WORD and not _is_place(term)]
        first = next((at for at, word in enumerate(raw) if word in list_words("home_prepositions")), len(raw))
        if self.new.is_english:
            # "The" or "another" precedes a thing such as a floor, and no town.
            is_thing = not list_words("before_thing").isdisjoint(raw[first + 1 : first + 2])
            begin = names[0] if names else len(raw)
            return any(
                ((is_thing or term.text in list_words("groups")) and first < term.place < begin)
                or (names and term.place == begin + 1 and term.place + 1 not in names)
                for term in others
            )
        if not names:
            return bool(left.new) and not any(_is_place(term) or _is_town(term) for term in left.new)
        return any(
            "ADJF" not in list_grammemes(term.text) and first < term.place < names[0] for term in others
        )

    def _find_word_slot(self, slots: frozenset[str]) -> str | None:
        for slot in WORD_SLOTS:
            is_whole = slot != "study_year" or all(map(self._ends_phrase, self.left))
            if slot in slots and consists_of(self.left, slot) and is_whole:
                return slot
        return None

    def _ends_phrase(self, term: Term) -> bool:
        """Return whether an English word qualifies no other word: "is a junior", not "a junior colleague".

        The result is True for every Russian word.
        """
        statement = self._find_statement(term)
        last = statement.find_word_after(term._replace(place=term.place + len(term.text.split()) - 1))
        is_end = not last or last in list_words("after_value")
        return is_end or is_cyrillic(term.text) or is_listed(term, "changed")

    def _has_other_job(self) -> bool:
        """Return whether the facts tell different occupations of a person, and neither adds a second job."""
        if self.new.has_word_of("second_job_words") or self.old.has_word_of("second_job_words"):
            return False
        sides = ((self.old, self.alignment.old), (self.new, self.alignment.new))
        return self._differs_in_occupation() or all(self._has_occupation(*side) for side in sides)

    def _differs_in_occupation(self) -> bool:
        """Return whether the facts differ only in a person's occupation, such as after "works as"."""
        kinds = list_kinds(self.left)
        if "job" in self.old.slots & self.new.slots and self.new.is_changed and not self.old.is_changed:
            return kinds <= {TermKind.WORD, TermKind.PERSON} and not any(term.is_head for term in self.left)
        is_short = max(len(self.alignment.old), len(self.alignment.new)) <= 2 and kinds <= {
            TermKind.WORD,
            TermKind.PERSON,
        }
        return is_short and any(a.text in _WORKING and b.text in _WORKING for a, b in self.alignment.pairs)

    def is_variant(self) -> bool:
        """Return whether a person now uses another kind of a thing: "a diesel van", "an electric van"."""
        left = self.alignment
        pairs = [(a, b) for a, b in left.pairs if a.kind is TermKind.WORD]
        is_switched = not list_words("variant_verbs").isdisjoint(self.new.raw[:3]) and not (
            self.old.is_past or self.new.is_planned
        )
        if not (
            is_switched
            and len(pairs) == 1
            and len(left.new) == 1
            and list_kinds(self.left) == {TermKind.WORD}
        ):
            return False
        before, after = pairs[0]
        is_qualified = before.place - left.old[-1].place == 1 and after.place - left.new[0].place == 1
        return is_qualified and len(left.old) <= 2 and not any(term.is_head for term in self.left)

    def _has_occupation(self, statement: ParsedFact, left: Sequence[Term]) -> bool:
        """Return whether terms without a counterpart tell a person's job, not whom the person meets."""
        is_working = "employer" in statement.slots
        return any(
            not term.role
            and (is_listed(term, "professions") or (is_working and _is_person_in_role(term)))
            and _is_occupation(statement, term)
            for term in left
        )

    def _tells_age(self, statement: ParsedFact) -> bool:
        """Return whether a Russian fact tells only an age: "Сыну 10 месяцев", "Сыну исполнился год"."""
        words = [
            term for term in statement.words if term.kind is not TermKind.NUMBER and not _is_of_age(term)
        ]
        is_amount = TermKind.NUMBER in list_kinds(statement.words) or statement.has_word_of("age_words")
        is_period = any(_is_period(word) for word in statement.raw)
        return (
            is_amount and is_period and bool(words) and all("datv" in list_grammemes(t.text) for t in words)
        )

    def _has_only_ages(self) -> bool:
        return bool(self.left) and all(term.kind is TermKind.NUMBER or _is_of_age(term) for term in self.left)

    def _is_amount_of(self, slot: str) -> bool:
        """Return whether the facts differ only in the number that is the value of a slot."""
        if self.old.is_past and not self.old.is_changed:
            return False  # a past state is not replaced
        return all(self._is_one_amount_of(side, slot) for side in (self.alignment.old, self.alignment.new))

    def _is_one_amount_of(self, left: Sequence[Term], slot: str) -> bool:
        numbers = [term for term in left if term.kind is TermKind.NUMBER]
        rest = [
            term
            for term in left
            if term.kind is not TermKind.NUMBER
            and not (slot in _HOURS and _is_part_of_day(term))
            and not (is_listed(term, "units") and term.text != "час")
        ]
        if slot in _HOURS:
            hours = [
                t for t in rest if t.text == "час" or not t.keys.isdisjoint(("dates noon", "dates midnight"))
            ]
            numbers, rest = [*numbers, *hours], [term for term in rest if term not in hours]
        return len(numbers) == 1 and not any(map(is_year, numbers)) and consists_of(rest, slot)

    def _has_reached_level(self) -> bool:
        """Return whether the newer fact names a higher level of the same language: "B1", "passed C1"."""
        sides = (self.alignment.old, self.alignment.new)
        levels = [[t.text for t in side if _LANGUAGE_LEVEL.fullmatch(t.text)] for side in sides]
        rest = [t for t in chain(*sides) if not (_LANGUAGE_LEVEL.fullmatch(t.text) or is_listed(t, "levels"))]
        has_topic = any(a.kind not in (TermKind.LIGHT, TermKind.NUMBER) for a, _ in self.alignment.pairs)
        is_other = any(t.kind is not TermKind.WORD or not _is_reaching(t) for t in rest)
        return all(len(each) == 1 for each in levels) and levels[0] < levels[1] and has_topic and not is_other

    def _find_name_slot(self, slots: frozenset[str]) -> str | None:
        left = self.alignment
        if any(term.role == "with" for term in self.left):
            return None
        if "employer" in slots and TermKind.NAME in list_kinds(left.old) & list_kinds(left.new):
            return "employer"
        if "device" in slots and list_kinds(left.old) == list_kinds(left.new) == {TermKind.NUMBER}:
            return "device"
        if list_kinds(left.old) == list_kinds(left.new) == {TermKind.NAME}:
            return next((slot for slot in _NAMED_SLOTS if slot in slots), None)
        return None

    def is_value(self) -> bool:
        """Return whether both facts give a value to the same thing, which has one value at a time."""
        is_elected = self.new.has_word_of("election_verbs") and not self.old.is_past
        if is_elected and self._is_in_one_role():
            return True
        return self.is_current and (
            self._is_attribute_value()
            or self._is_level()
            or self._is_rank()
            or self._is_recoloured()
            or self._is_in_one_role()
            or self._is_used_for()
            or self._is_address()
        )

    def is_left_for_another(self) -> bool:
        """Return whether the newer fact leaves the thing in the older fact for another: "left A for B"."""
        left = self.alignment
        slots = {"employer", *_NAMED_SLOTS} & self.old.slots
        names = [term for term in left.new if term.kind is TermKind.NAME]
        places = [a.place for a, _ in left.pairs if a.kind is TermKind.NAME]
        is_whole = all(
            (t.kind is TermKind.NAME and any(abs(t.place - p) == 1 for p in places))
            or t.kind is TermKind.WORD
            for t in left.old
        )
        is_next = bool(names) and self.new.find_word_before(names[0]) in list_words("before_next_name")
        is_other = any(t.kind in (TermKind.PERSON, TermKind.DATE) for t in left.new)
        return bool(slots and places) and is_whole and is_next and not (self.new.is_planned or is_other)

    def is_quantity(self) -> bool:
        """Return whether the facts differ only in a number or date that measures, counts or schedules."""
        if self._is_next_model() or (self.is_current and self._is_frequency()):
            return True
        if self.new.is_changed and self.new.is_english and self._is_attribute_value():
            return True
        if self._counts_progress() and not self.new.has_word_of("present_result_verbs"):
            is_amount = all(_is_amount(self._find_statement(term), term) for term in self.values)
            return is_amount and self._has_grown() and not self._has_label_or_year()
        if not self.values or not self.is_current:
            return False
        if TermKind.NUMBER in list_kinds(self.left) and any(map(_is_part_of_day, self.left)):
            return False  # one amount in the morning, another one in the evening
        if self._is_measure() or self._is_position() or self._has_been_changed():
            return True
        return self._is_scheduled() and not self._has_label_or_year()

    def has_advanced(self) -> bool:
        """Return whether the newer fact says that a number has grown: "уже в 4 классе", "started year 7"."""
        is_begun = self.new.has_word_of("next_stage_verbs") and all(
            self._is_next_to_listed(term, "positions") for term in self.values
        )
        if not (is_begun or "уже" in self.new.raw) or any(map(is_year, self.values)):
            return False
        sides = (self.alignment.old, self.alignment.new)
        numbers = [tuple(term for term in side if term.kind is TermKind.NUMBER) for side in sides]
        rest = [[t for t in side if t.kind is not TermKind.NUMBER and not is_verb(t.text)] for side in sides]
        rest = [[t for t in side if t.text not in list_words("next_stage_verbs")] for side in rest]
        is_of_other = all(rest) or any(term.kind is not TermKind.WORD for term in chain(*rest))
        is_event = self.new.is_past and not (self.old.is_past or is_begun)
        return not (is_of_other or is_event) and _is_growth(*numbers)

    def is_more_exact(self) -> bool:
        """Return whether the newer fact names a profession more exactly: "врач", "детский кардиолог"."""
        return all(is_verb(term.text) for term in self.alignment.old) and any(
            a.kinds and is_kind_of(b, a) and is_listed(a, "professions") for a, b in self.alignment.pairs
        )

    def has_only_values(self) -> bool:
        """Return whether only numbers and dates differ, or the newer fact says that they have changed."""
        result_verbs = list_words("present_result_verbs")
        rest = [
            term
            for term in self.left
            if term not in self.values
            and not (self._names_changed_thing(term) or self._tells_cause(term) or term.text in result_verbs)
        ]
        is_of_other = sum(term.is_someone for term in rest) > 1
        is_narrower = any(term.is_head and self._find_statement(term) is self.old for term in rest)
        is_other_topic = self._has_other_words() and (not self._has_topic() or self._has_other_complement())
        is_of_other = is_of_other or is_narrower or is_other_topic
        has_changed = self.new.is_changed and not _is_event_past(self.old)
        is_small = has_changed and len(rest) <= 2 and not is_of_other
        return bool(self.values) and (not rest or is_small)

    def _tells_cause(self, term: Term) -> bool:
        """Return whether a word of the newer fact tells the cause of a change: "после рефинансирования"."""
        return term.text == "после" or (term.role == "after" and self._find_statement(term) is self.new)

    def _names_changed_thing(self, term: Term) -> bool:
        """Return whether a word of the newer fact only names what changed: "подняла плату за комнату"."""
        is_told = is_listed(term, "attributes") or is_listed(term, "changed")
        return (
            self.new.is_changed and is_told and self._find_statement(term) is self.new and self._has_topic()
        )

    def _has_other_words(self) -> bool:
        """Return whether each fact has a word that the other lacks, besides units and words like "moved"."""
        return bool(_list_content_words(self.alignment.old) and _list_content_words(self.alignment.new))

    def _has_topic(self) -> bool:
        """Return whether both facts have a word in common, besides units and words such as "moved"."""
        bare = ("units", "changed")
        return any(
            a.kind is TermKind.WORD and not any(is_listed(term, table) for table in bare for term in (a, b))
            for a, b in self.alignment.pairs
        )

    def _has_other_complement(self) -> bool:
        """Return whether different words follow the same preposition: "pays for water", "pays for gas"."""
        old, new = (
            {statement.find_word_before(term) for term in side if term.kind is TermKind.WORD}
            for statement, side in ((self.old, self.alignment.old), (self.new, self.alignment.new))
        )
        return not (old & new).isdisjoint(("for", "on", "за", *list_words("noun_complements")))

    def _is_measure(self) -> bool:
        """Return whether numbers are amounts, not years, room numbers or other labels."""
        return not self._has_label_or_year() and all(
            term.kind is TermKind.NUMBER and _is_amount(self._find_statement(term), term)
            for term in self.values
        )

    def _has_been_changed(self) -> bool:
        """Return whether a Russian fact says that the only value of a thing has changed."""
        is_marked = self.new.is_changed and not (self.old.is_changed or self.old.is_past)
        has_topic = any(a.kind is not TermKind.LIGHT for a, _ in self.alignment.pairs)
        is_value = (
            bool(self.alignment.old) and bool(self.alignment.new) and not any(map(is_year, self.values))
        )
        is_of_other = any(term.is_someone for term in self.left)
        return is_marked and has_topic and is_value and not (is_of_other or self.new.is_english)

    def _is_position(self) -> bool:
        """Return whether a number tells a person's progress, and has grown: page 3, page 90."""
        if not self._has_grown() or self.old.is_past or self.new.is_past:
            return False
        feelings = (pole for term in self.new.terms for pole in term.opposites)
        return not any(pole.startswith("feeling") for pole in feelings) and all(
            self._is_next_to_listed(term, "positions") and not term.is_head for term in self.values
        )

    def _counts_progress(self) -> bool:
        """Return whether both facts count the progress of one activity, as "has read 9 books" does.

        A newer fact in English must have "has", "have" or "I've": "Read 9 books" may be about one event.
        """
        is_total = not self.new.is_english or not {"has", "have", "i've"}.isdisjoint(self.new.raw)
        return is_total and any(
            is_listed(a, "progress") and is_listed(b, "progress") for a, b in self.alignment.pairs
        )

    def _has_grown(self) -> bool:
        return list_kinds(self.left) == {TermKind.NUMBER} and _is_growth(
            self.alignment.old, self.alignment.new
        )

    def _find_statement(self, term: Term) -> ParsedFact:
        """Return the fact to which a term without a counterpart belongs."""
        return self.old if any(term is each for each in self.alignment.old) else self.new

    def _is_next_to_listed(self, term: Term, table: str) -> bool:
        """Return whether the word before or after a term is in a table of the lexicon."""
        statement = self._find_statement(term)
        beside = (statement.find_word_before(term), statement.find_word_after(term))
        return any(word and is_in_table(word, table) for word in beside)

    def _has_label_or_year(self) -> bool:
        """Return whether a value without a counterpart is a label, as in "bus 14", or a year."""
        return any(_is_label(self._find_statement(term), term) or is_year(term) for term in self.values)

    def _is_scheduled(self) -> bool:
        """Return whether both facts tell the date or number of one thing, such as a deadline or a rent."""
        if not self.new.is_changed and any(map(is_habitual, self.left)):
            return False
        is_due = all(term.kind is TermKind.DATE and term.role in ("to", "before") for term in self.left)
        return is_due or any(
            is_listed(a, table) and is_listed(b, table)
            for a, b in self.alignment.pairs
            for table in ("attributes", "scheduled")
        )

    def _is_attribute_value(self) -> bool:
        """Return whether both facts identify the same thing or person, as in "The manager is Ann"."""
        old, new = self.alignment.old, self.alignment.new
        pairs = [(a, b) for a, b in self.alignment.pairs if a.kind is not TermKind.LIGHT]
        if not all(a.is_head and b.is_head for a, b in pairs) or any(term.is_head for term in self.left):
            return False
        kinds = list_kinds(self.left)
        is_event = TermKind.NAME in kinds and bool(kinds & NUMERIC_KINDS)
        is_model = (
            bool({"device", "vehicle"} & self.old.slots & self.new.slots) and TermKind.DATE not in kinds
        )
        is_code = all(len(term.text) == 1 for term in self.left if term.kind is TermKind.NAME)
        if self._is_complemented():
            return False
        if (is_event and not (is_model or is_code)) or not (self.old.is_copular and self.new.is_copular):
            return False
        is_of_person = any(a.is_someone for a, _ in pairs)
        if self._has_other_words() and list_kinds(old) & list_kinds(new) & NUMERIC_KINDS:
            return False  # another thing of the same kind at another time
        is_value = list_kinds(old) == list_kinds(new) and list_kinds(old) <= EXACT_KINDS
        return any(is_listed(a, "attributes") for a, _ in pairs) or (is_value and not is_of_person)

    def _is_complemented(self) -> bool:
        """Return whether a Russian preposition adds another complement to a noun: "подписка на «Окко»"."""
        if self.new.is_changed:
            return False
        behind = [
            [t for t in side if self._find_statement(t).find_word_before(t) in list_words("noun_complements")]
            for side in (self.alignment.old, self.alignment.new)
        ]
        is_name = any(term.kind is TermKind.NAME for term in chain(*behind))
        return is_name or all(
            any(term.kind is TermKind.WORD and not is_listed(term, "units") for term in side)
            for side in behind
        )

    def _is_rank(self) -> bool:
        """Return whether a person has another rank in the same profession: "старший бухгалтер"."""
        left = self.alignment
        old, new = _drop_slot_words(left.old, "job"), _drop_slot_words(left.new, "job")
        return (
            len(old) == len(new) == 1
            and all(is_listed(term, "ranks") and not term.is_head for term in (*old, *new))
            and any(is_listed(a, "professions") and a.place - old[0].place == 1 for a, _ in left.pairs)
        )

    def _is_level(self) -> bool:
        """Return whether the same thing is at another level: "at A2 level", "a brown belt"."""
        old, new = self.alignment.old, self.alignment.new
        return len(old) == len(new) == 1 and all(
            not term.is_head and self._is_next_to_listed(term, "levels") for term in self.left
        )

    def _is_recoloured(self) -> bool:
        """Return whether the same thing has another colour."""
        left = self.alignment
        return (
            all(any(is_listed(term, "colours") for term in side) for side in (left.old, left.new))
            and max(len(left.old), len(left.new)) <= 2
            and list_kinds(self.left) == {TermKind.WORD}
            and any(a.is_head and b.is_head for a, b in left.pairs)
        )

    def _is_address(self) -> bool:
        """Return whether both facts tell the address of one thing."""
        is_hard = bool(self.left) and list_kinds(self.left) <= {TermKind.NAME, TermKind.NUMBER}
        return "address" in self.old.slots & self.new.slots and is_hard

    def _is_frequency(self) -> bool:
        """Return whether the same thing happens at another frequency: "раз в месяц", "каждую неделю"."""
        sides = (self.alignment.old, self.alignment.new)
        return self._has_topic() and all(
            len(side) == 1 and not side[0].keys.isdisjoint(_FREQUENCIES) for side in sides
        )

    def swaps_other_thing(self) -> bool:
        """Return whether the newer fact swaps a thing that the older fact does not mention."""
        raw = self.new.raw
        verbs = list_words("object_swap_verbs") | list_words("object_move_verbs")
        starts = [
            at for at, word in enumerate(raw) if not ({word} | list_lookup_forms(word)).isdisjoint(verbs)
        ]
        if not starts:
            return False
        behind = (at for at in range(starts[0] + 1, len(raw)) if raw[at] in list_words("object_ends"))
        end = next(behind, len(raw))
        return any(t.kind is TermKind.WORD and starts[0] < t.place < end for t in self.alignment.new)

    def swaps_old_thing(self) -> bool:
        """Return whether the newer fact swaps the thing in the older fact: "Сменил телефон на Poco"."""
        left = self.alignment
        topics = [b for a, b in left.pairs if a.kind is TermKind.WORD and not is_listed(a, "changed")]
        is_swap = any(
            not ({word} | list_lookup_forms(word)).isdisjoint(list_words("object_swap_verbs"))
            and 1 <= topic.place - at <= 2
            for at, word in enumerate(self.new.raw)
            for topic in topics
        )
        is_value = all(t.kind in (TermKind.NAME, TermKind.NUMBER) or _is_naming(t) for t in left.old)
        is_next = all(t.kind in (TermKind.NAME, TermKind.NUMBER) or is_listed(t, "changed") for t in left.new)
        is_both = bool(left.old and left.new) and not (self.old.is_past or self.old.is_planned)
        return (
            is_swap and is_value and is_next and is_both and not (self.new.is_planned or self.new.is_negated)
        )

    def _is_next_model(self) -> bool:
        """Return whether the number after the same name has changed: "Pixel 6", "Pixel 8"."""
        left = self.alignment
        is_same = self.old.is_copular and self.new.is_copular and not any(t.is_head for t in self.left)
        if not (
            (self.new.is_changed or is_same)
            and list_kinds(left.old) == list_kinds(left.new) == {TermKind.NUMBER}
        ):
            return False
        is_alone = len(left.old) == len(left.new) == 1
        return is_alone and any(
            a.kind is TermKind.NAME and left.old[0].place - a.place == 1 and left.new[0].place - b.place == 1
            for a, b in left.pairs
        )

    def _is_in_one_role(self) -> bool:
        """Return whether another person now has a role that one person can have: "a manager called Ann"."""
        left = self.alignment
        old, new = _drop_naming_words(left.old), _drop_naming_words(left.new)
        if not list_kinds(old) == list_kinds(new) == {TermKind.NAME}:
            return False
        roles = [(a, b) for a, b in left.pairs if is_listed(a, "roles_of_one")]
        return any(_is_name_of(self.old, a, old[0]) and _is_name_of(self.new, b, new[0]) for a, b in roles)

    def _is_used_for(self) -> bool:
        """Return whether another thing is used for the same purpose: "uses Todoist for shopping lists"."""
        left = self.alignment
        return (
            list_kinds(left.old) == list_kinds(left.new) == {TermKind.NAME}
            and any(a.role == b.role == "for" and a.kind is TermKind.WORD for a, b in left.pairs)
            and all(each.has_word_of("tool_use_verbs") for each in (self.old, self.new))
        )


def list_kinds(terms: Iterable[Term]) -> set[TermKind]:
    """Return the distinct kinds of some terms."""
    return {term.kind for term in terms}


@cache
def _list_slot_words(slot: str) -> frozenset[str]:
    """Return the forms of all words in the phrases of a slot."""
    known = load_lexicon()
    longer = (entries for seconds in known.longer.values() for entries in seconds.values())
    return frozenset(
        form
        for entries in chain(known.words.values(), longer)
        for entry in entries
        if entry.table == "slots" and entry.concept == slot
        for word in entry.words
        for form in word
    )


def consists_of(terms: Sequence[Term], slot: str) -> bool:
    """Return whether all terms are words of a slot, or words for a change or a beginning."""
    return not _drop_slot_words(terms, slot)


def _drop_slot_words(terms: Sequence[Term], slot: str) -> list[Term]:
    """Return the terms that are neither words of a slot nor words for a change or a beginning."""
    words = _list_slot_words(slot)
    return [
        term
        for term in terms
        if not (term.kind is TermKind.WORD or (term.kind is TermKind.NAME and not term.place))
        or not (
            is_listed(term, "changed")
            or (slot == "proficiency" and is_listed(term, "levels"))
            or (slot == "proficiency" and term.text in list_words("skill_verbs"))
            or term.text in list_words("beginning_verbs")
            or all(not list_lookup_forms(word).isdisjoint(words) for word in term.text.split())
        )
    ]


def _list_content_words(terms: Sequence[Term]) -> list[Term]:
    """Return the words that are neither units nor words for a change."""
    bare = ("changed", "units")
    return [t for t in terms if t.kind is TermKind.WORD and not any(is_listed(t, table) for table in bare)]


def _is_reaching(term: Term) -> bool:
    """Return whether a word may stand beside a level that is reached: a verb, or a word such as "passed"."""
    return is_verb(term.text) or term.text in list_words("attainment_words") or is_listed(term, "changed")


def _is_growth(old: tuple[Term, ...], new: tuple[Term, ...]) -> bool:
    """Return whether each fact has one number, and the number of the newer fact is greater."""
    if len(old) != 1 or len(new) != 1:
        return False
    before, after = (parse_number_key(min(term.keys)) for term in (old[0], new[0]))
    return before is not None and after is not None and before < after


def is_listed(term: Term, table: str) -> bool:
    """Return whether a term, or the last word of a phrase, is in a table of the lexicon."""
    return bool(term.text) and is_in_table(term.text.split()[-1], table)


def is_beginning(term: Term) -> bool:
    """Return whether a word says only that something has begun: "started", «начал»."""
    return term.text in list_words("beginning_verbs") or is_listed(term, "changed")


def is_habitual(term: Term) -> bool:
    """Return whether a date belongs to a habit: "on Mondays", "по понедельникам"."""
    return term.kind is TermKind.DATE and (term.text.endswith("days") or "plur" in list_grammemes(term.text))


def _is_part_of_day(date: Term) -> bool:
    return not date.keys.isdisjoint(("dates morning", "dates afternoon", "dates evening", "dates night"))


def _has_own_head(statement: ParsedFact) -> bool:
    """Return whether the subject of a fact is neither the user nor the user together with another person."""
    return any(t.is_head and t.kind is not TermKind.LIGHT and t.role != "with" for t in statement.terms)


def _is_event_past(statement: ParsedFact) -> bool:
    """Return whether a fact is about a past event, and not about a result that remains."""
    is_rest = statement.has_word_of("present_result_verbs") or any(
        word == "left" and following in ("", "on", "of", "to", "until", "before")
        for word, following in pairwise((*statement.raw, ""))
    )
    return statement.is_past and not is_rest


def _is_place(term: Term) -> bool:
    """Return whether a term names a home, its surroundings or a country: "flat", "village", "UK"."""
    forms = term.text, *list_lemmas(term.text)
    return term.text in list_words("countries") or not list_words("places").isdisjoint(forms)


def _is_town(term: Term) -> bool:
    """Return whether a Russian word is a geographical name, also in lower case: «казань»."""
    return "Geox" in list_grammemes(term.text)


def _is_naming(term: Term) -> bool:
    return not list_words("role_name_words").isdisjoint(term.text.split())


def _is_period(word: str) -> bool:
    return word in list_words("age_words") or not list_lookup_forms(word).isdisjoint(list_words("age_units"))


def _is_of_age(term: Term) -> bool:
    """Return whether a word only belongs to an age: "месяцев", "исполнилось"."""
    return _is_period(term.text) or not list_lookup_forms(term.text).isdisjoint(list_words("age_verbs"))


def _is_person_in_role(term: Term) -> bool:
    """Return whether a Russian word may tell an occupation: "дальнобойщиком"."""
    return term.kind is TermKind.WORD and {"NOUN", "anim", "ablt"} <= list_grammemes(term.text)


def _is_occupation(statement: ParsedFact, profession: Term) -> bool:
    """Return whether a person has the occupation that a word names, rather than meets a person who has it."""
    words = profession.text.split()
    if is_cyrillic(words[-1]):
        tags, before = list_grammemes(words[-1]), statement.find_word_before(profession)
        return "PREP" not in list_grammemes(before) and (
            "ablt" in tags or ("nomn" in tags and not any(map(is_verb, statement.raw)))
        )
    if not profession.place or "job" in statement.slots:
        return True
    preceding = statement.raw[: profession.place]
    told = [at for at, word in enumerate(preceding) if word in list_words("before_occupation")]
    between = statement.raw[told[-1] + 1 : profession.place] if told else ("for",)
    return not any(word in list_words("after_value") or word.endswith("ing") for word in between)


def _tells_role(statement: ParsedFact, term: Term) -> bool:
    """Return whether a term names the role in which a person works or lives: "as a vet", «ветеринаром»."""
    if term.role or term.kind not in (TermKind.WORD, TermKind.NAME, TermKind.PERSON):
        return False
    if is_listed(term, "professions") or _is_person_in_role(term):
        return _is_occupation(statement, term)
    before = statement.raw[: term.place]
    if statement.is_english:
        return "as" in before[-2:]
    verb = next((at for at, word in enumerate(before) if is_verb(word)), None)
    if verb is None or "employer" not in statement.slots or is_listed(term, "units"):
        return False
    tags = (list_grammemes(word) for word in (*before[verb + 1 :], *term.text.split()))
    return all(each.isdisjoint(("PREP", "ADVB", "ADJS", "CONJ")) for each in tags)


def _is_way_of_work(term: Term) -> bool:
    """Return whether a word tells how a person works, such as "remotely"."""
    return consists_of((term,), "workplace") and not consists_of((term,), "employer")


def _is_exact_thing(term: Term) -> bool:
    """Return whether a term names a thing exactly, such as "Python"."""
    return term.kind is not TermKind.DATE and any(pole.endswith("-") for pole in term.kinds)


def _is_after_preposition(statement: ParsedFact, term: Term) -> bool:
    """Return whether a preposition is among the words before a term, as in "at the Aldi in Leeds"."""
    before = statement.raw[: term.place]
    return any(word in list_words("after_value") or "PREP" in list_grammemes(word) for word in before)


def is_year(number: Term) -> bool:
    """Return whether a number is a year from 1900 to 2100."""
    key = min(number.keys, default="")
    return key.isdigit() and len(key) == 4 and 1900 <= int(key) <= 2100


def _is_amount(statement: ParsedFact, number: Term) -> bool:
    """Return whether a number is no ordinal and follows no article, and so may count or measure something."""
    return not is_ordinal(number.text) and statement.find_word_before(number) not in ("a", "an", "the")


def _is_label(statement: ParsedFact, number: Term) -> bool:
    """Return whether a number tells which thing is meant, as in "bus 14"."""
    before, after = statement.find_word_before(number), statement.find_word_after(number)
    signs = list_words("number_signs")
    if after and is_in_table(after, "units") and not is_ordinal(number.text):
        return before in signs
    if number.is_head and after and is_ordinal(number.text):
        return True
    kinds = {term.place - number.place: term.kind for term in statement.terms}
    if kinds.get(-1) is TermKind.NAME and 1 not in kinds:
        return True
    if before in signs or (before and is_in_table(before, "numbered")):
        return True
    if not after or not is_in_table(after, "numbered"):
        return False
    return is_ordinal(number.text) or not _is_counted(after)


def _is_counted(noun: str) -> bool:
    """Return whether a noun has the form that follows an amount: "90 days", "90 дней"."""
    if is_cyrillic(noun):
        return not list_grammemes(noun).isdisjoint(("gent", "plur"))
    return noun.endswith("s")


def _drop_naming_words(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    return tuple(term for term in terms if term.text not in list_words("role_name_words"))


def _is_name_of(statement: ParsedFact, role: Term, name: Term) -> bool:
    """Return whether a name comes after a role, with only words of the list `role_name_words` between.

    If there is such a word, words in the genitive may be between, too.
    """
    between = statement.raw[role.place + len(role.text.split()) : name.place]
    name_words = list_words("role_name_words")
    is_named = not name_words.isdisjoint(between)
    return role.place < name.place and all(
        word in name_words or (is_named and "gent" in list_grammemes(word)) for word in between
    )
