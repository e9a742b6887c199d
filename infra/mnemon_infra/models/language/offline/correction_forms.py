"""Words of corrections in English and Russian, from the table `corrections` in the file of each language."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal

from mnemon_infra.models.language.offline.rules import compile_forms, join_alternatives, load_forms
from mnemon_infra.models.language.offline.sentences import straighten_quotes

ValueKind = Literal["month", "weekday", "day", "number", "name", "word"]
"""Kind of a word of a value; `day` is a word such as "tomorrow"."""


class CorrectionForms:
    """The words of one language in which people correct themselves.

    Attributes:
        opening: words at the beginning of a correction that are not part of its values.
        marker: openings that say that the sentence is a correction.
        strong_marker: markers after which the new value may stand alone.
        closing: words at the end of a sentence that say that the sentence is a correction.
        patterns: patterns of a whole correction, with the groups `old`, `new` and `separator` (the mark or
            word between them), and some with `before`.
        lead: prepositions and articles before a value.
        of_time: prepositions before a time.
        fillers: words of a correction that the sentence to correct need not have.
        no_values: words that are no part of a value, such as pronouns and prepositions.
        unclear_months: months that are other words, too, unless they are capitalised.
        before_weekday: preposition of a weekday in the place of a word such as "tomorrow"; empty if unknown.
        has_capital_times: True if months and weekdays are capitalised.
        years: forms of the noun for years of age, by the agreement of the number before it; empty in
            English.
        retraction: words after which a sentence replaces a value that it has named.
        joint: pattern of commas and words between clauses, or between subjects.
    """

    def __init__(self, language: str) -> None:
        forms: Mapping[str, Any] = load_forms(language)["corrections"]
        self.opening = re.compile(
            rf"{join_alternatives(forms['opening'])}(?!\w)[\s,.:;!…—–-]*", re.IGNORECASE
        )
        self.marker = compile_forms(forms["marker"])
        self.strong_marker = compile_forms(forms["strong_marker"])
        self.closing = re.compile(rf"[\s,.]+{join_alternatives(forms['closing'])}[\s.!]*$", re.IGNORECASE)
        self.retraction = re.compile(
            rf"[\s,;.…(–—-]+(?:{join_alternatives(forms['retraction'])}(?!\w)[\s,:.…–—-]*)+", re.IGNORECASE
        )
        self.patterns = tuple(re.compile(pattern, re.IGNORECASE) for pattern in forms["patterns"])
        self.lead = frozenset(forms["lead"].split())
        self.of_time = frozenset(forms["of_time"].split())
        self.fillers = frozenset(forms["fillers"].split())
        self.no_values = frozenset(forms["no_values"].split()) | self.lead
        self.unclear_months = frozenset(forms["unclear_months"].split())
        self.before_weekday: str = forms["before_weekday"]
        self.has_capital_times: bool = forms["has_capital_times"]
        self.years: Mapping[str, str] = forms["years"]
        self.joint = re.compile(forms["joint"], re.IGNORECASE)
        self._subject = compile_forms(forms["subject"])
        self._of_user = compile_forms(forms["of_user"])
        self._variants: Mapping[str, str] = forms["variants"]
        self._days = frozenset(forms["days"])
        self._numbers: Mapping[str, str] = {
            word: agreement for agreement, words in forms["numbers"].items() for word in words.split()
        }
        self._undeclined = re.compile(forms["undeclined"])
        self._declensions: Sequence[Sequence[str]] = forms["declensions"]
        self._cases: Sequence[frozenset[str]] = [frozenset(words.split()) for words in forms["cases"]]
        self._months: Sequence[Sequence[str]] = [words.split() for words in forms["months"]]
        self._weekdays: Sequence[Sequence[str]] = [words.split() for words in forms["weekdays"]]

    def find_subject(self, text: str) -> str:
        """Return the word in the place of the subject, in lower case; empty for the speaker or no word."""
        plain, begin = straighten_quotes(text), 0
        while opening := self.opening.match(plain, begin):
            begin = opening.end()
        found = self._subject.match(plain, begin)
        if found is None or self._of_user.match(found[1]):
            return ""
        return found[1].lower()

    @cached_property
    def months(self) -> frozenset[str]:
        """The names of months, in all forms."""
        return frozenset(word for words in self._months for word in words)

    @cached_property
    def _declined(self) -> Mapping[str, Sequence[str]]:
        return {word: words for words in (*self._months, *self._weekdays) for word in words}

    def find_kind(self, word: str) -> ValueKind | None:
        """Return the kind of a word in lower case; None if it may be a name or another word."""
        if word in self.months:
            return "month"
        if word in self._declined:
            return "weekday"
        if word in self._days:
            return "day"
        return "number" if word[0].isdigit() or word in self._numbers else None

    def fold_form(self, word: str) -> str:
        """Return the first form of a month or weekday; return any other word unchanged."""
        return self._declined[word][0] if word in self._declined else word

    def fold_lead(self, words: Sequence[str]) -> list[str]:
        """Return prepositions and articles with one form for «в» and «во» (in), and one for "a" and "an"."""
        return [self._variants.get(word, word) for word in words]

    def inflect(self, new: str, old: str) -> str | None:
        """Return the month or weekday `new` in the form of `old`; None unless both are such words."""
        if new not in self._declined or old not in self._declined:
            return None
        return self._declined[new][self._declined[old].index(old)]

    def decline(self, new: str, old: str, used: str, lead: Sequence[str]) -> str | None:
        """Return a noun in the grammatical case in which a text uses another noun; None in doubt.

        Args:
            new: the noun to decline.
            old: the other noun, in the nominative.
            used: the form of `old` in the text.
            lead: the words before `used`, such as a preposition.
        """
        declined = self._decline(new)
        found = {declined[case] for case in self.find_cases(old, used, lead)} if declined else set()
        return found.pop() if len(found) == 1 else None

    def find_cases(self, noun: str, used: str, lead: Sequence[str]) -> list[int]:
        """Return the cases in which a noun has the form `used`, and which the preposition in `lead` allows.

        A case is an index in `cases` and in an entry of `declensions` in the file of the language.
        """
        return [
            case
            for case, form in enumerate(self._decline(noun))
            if form == used and (not lead or lead[-1] in self._cases[case])
        ]

    def _decline(self, noun: str) -> Sequence[str]:
        """Return a noun in all cases, the nominative first; an empty list if its declension is unknown."""
        if self._undeclined.search(noun):
            return []
        for endings in self._declensions:
            if noun.endswith(endings[0]):
                stem = noun.removesuffix(endings[0])
                after_velar = stem[-1:] in _WITHOUT_Y
                return [stem + ("и" if ending == "ы" and after_velar else ending) for ending in endings]
        return []

    def adapt_lead(self, lead: str, value: str) -> str | None:
        """Return the variant of a preposition or article to put before a value.

        Return None if `lead` has no other variant, or is the right variant already.
        """
        if self.fold_lead([lead])[0] not in self._variants.values():
            return None
        for variant, base in self._variants.items():
            needed = variant if _LONG_LEAD[variant].match(value) else base
            if base == self.fold_lead([lead])[0]:
                return needed if needed != lead else None
        return None

    def find_agreement(self, number: str) -> str | None:
        """Return the form that a noun has after a number, such as `one` or `many`; None if it is unknown."""
        if number in self._numbers:
            return self._numbers[number]
        if not number.isdecimal():
            return None
        if self.years:
            tens, ones = int(number) % 100 // 10, int(number) % 10
            return "many" if tens == 1 or not 1 <= ones <= 4 else "one" if ones == 1 else "few"
        return "one" if int(number) == 1 else "many"


_WITHOUT_Y: Final = frozenset("гкхжшчщ")
"""Russian consonants after which an ending has «и» in place of «ы»."""

_LONG_LEAD: Final[Mapping[str, re.Pattern[str]]] = {
    "an": re.compile("[aeio]|u(?!ni|se)", re.IGNORECASE),
    "во": re.compile("вт|вл|вс|фр", re.IGNORECASE),
}
"""Beginnings of values that follow the longer variant of a word, such as "an" or «во» (in)."""

ENGLISH: Final = CorrectionForms("english")
RUSSIAN: Final = CorrectionForms("russian")
