"""Corrections of earlier statements: "sorry, July, not June", «не в августе, а в июле» (in July, not August).

A correction names the new value and, usually, the wrong value that it replaces. The sentence to correct is
the only recent one of the same person that has the wrong value; if the correction names no wrong value ("I
meant Tuesday"), it is the person's last sentence. A sentence may also correct itself: "in June, sorry, July".
In doubt, no sentence is changed.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from mnemon_infra.models.language.offline.changes import (
    find_stems,
    is_about_user,
    is_denial_or_end,
)
from mnemon_infra.models.language.offline.correction_forms import (
    ENGLISH,
    RUSSIAN,
    CorrectionForms,
    ValueKind,
)
from mnemon_infra.models.language.offline.sentences import Sentence, straighten_quotes
from mnemon_infra.models.words.bm25 import YO

LONGEST: Final = 160
"""Maximum number of characters of a sentence that is read as a correction."""

LONGEST_READ: Final = 1_000
"""Maximum number of characters of a text in which the wrong value is looked for word by word."""

STEM: Final = 2
"""Number of first letters of each word of the wrong value that a text over `LONGEST_READ` must have."""

MOST_WORDS: Final = 3
"""Maximum number of words of a value, without prepositions and articles before them."""

_WORD: Final = re.compile(r"[^\W_]+(?:['.:-][^\W_]+)*")
_TIMES: Final = frozenset(("month", "weekday", "day"))


class _PlacedWord(NamedTuple):
    """A word of a sentence in lower case, its offsets in the text, and whether it begins with a capital."""

    word: str
    start: int
    end: int
    is_capital: bool


class _Value(NamedTuple):
    """A value in a sentence: its words, and the prepositions and articles before them."""

    lead: Sequence[_PlacedWord]
    core: Sequence[_PlacedWord]

    @property
    def words(self) -> list[str]:
        return [token.word for token in self.core]


class ValueCorrection(NamedTuple):
    """A correction in a sentence.

    Attributes:
        text: the sentence.
        old: the wrong value; None if the sentence only has the new value, as in "I meant Tuesday".
        new: the value to put in its place.
        kinds: kinds of the words of the new value.
        rest: the other words of the sentence, except fillers; the sentence to correct must have all of them.
        is_marked: True if words such as "sorry" or "I mean" say that the sentence corrects something.
        forms: words of the language of the sentence.
    """

    text: str
    old: _Value | None
    new: _Value
    kinds: tuple[ValueKind, ...]
    rest: frozenset[str]
    is_marked: bool
    forms: CorrectionForms

    @property
    def names_a_day(self) -> bool:
        """True if a value depends on the day of the message: "tomorrow"."""
        return "day" in (*self.kinds, *(_find_kinds(self.old, self.forms) if self.old else ()))

    @property
    def names_a_weekday(self) -> bool:
        """True if the new value is a weekday."""
        return "weekday" in self.kinds

    @property
    def is_bare(self) -> bool:
        """True if the sentence has only values and fillers, so that it could answer a question."""
        return not self.rest

    def may_answer(self, said: Sequence[Sentence]) -> bool:
        """Return whether the sentence may be an answer to the assistant, whose sentences are `said`.

        A sentence that repeats the topic is no answer. A sentence with both values, which is marked and whose
        new value is a time or a name, can answer only a question that has the wrong value. Any other sentence
        without a topic can answer any question, and can correct any sentence of the assistant that has the
        wrong value. If the sentence does not name the wrong value, each value of the kind of the new one
        counts as wrong, and a number can correct any sentence.
        """
        if not self.is_bare:
            return False
        questions = [sentence for sentence in said if sentence.is_question]
        is_distinct = self.is_marked and set(self.kinds) <= _TIMES | {"name"}
        if self.old is None:
            is_number = bool(said) and "number" in self.kinds
            return bool(questions) or is_number or any(self.has_value(sentence.text) for sentence in said)
        if questions and not is_distinct:
            return True
        return any(self.may_concern(sentence.text) for sentence in (questions if is_distinct else said))

    def has_value(self, text: str) -> bool:
        """Return whether a text has the wrong value or, if that is unknown, a value of the new one's kind."""
        return bool(self._find_uses(_read_tokens(text)))

    def may_concern(self, text: str) -> bool:
        """Return whether a text has the wrong value, or all stems of the wrong value.

        Without a wrong value, the correction may concern any text. In a text of more than `LONGEST_READ`
        characters, only the first `STEM` letters of each word of the wrong value are looked for, since
        hundreds of corrections may follow the text.
        """
        if self.old is None:
            return True
        if len(text) > LONGEST_READ:
            plain = text.lower().translate(YO)
            return all(word[:STEM] in plain for word in self.old.words)
        if self.has_value(text):
            return True
        stems = find_stems(self.text[self.old.core[0].start : self.old.core[-1].end])
        return bool(stems) and stems <= find_stems(text)

    def apply(self, text: str) -> str | None:
        """Return a text with the new value in place of the wrong one; None in doubt.

        A text that denies something, or says that something has ended, is not corrected: "I like coffee, not
        tea" is no correction of "I don't like tea". If the correction repeats the topic, only a text of one
        clause with the same subject is corrected.
        """
        if is_denial_or_end(text) or not (self.is_bare or self._has_subject_of(text)):
            return None
        tokens = _read_tokens(text)
        uses = self._find_uses(tokens)
        return self._replace_use(text, tokens, uses[0]) if len(uses) == 1 else None

    def apply_to_beginning(self, text: str) -> str | None:
        """Return the beginning of a sentence, up to this correction, with the new value; None in doubt.

        The wrong value is of the same kind as the new value: the value at the end of the text, else the only
        value of that kind.
        """
        if is_denial_or_end(text):
            return None
        tokens = _read_tokens(text)
        uses = self._find_last_words(tokens) if self.kinds == ("word",) else self._find_uses(tokens)
        last = [use for use in uses if use[1] == len(tokens)] or uses
        return self._replace_use(text, tokens, last[0]) if len(last) == 1 else None

    def _replace_use(self, text: str, tokens: Sequence[_PlacedWord], use: tuple[int, int]) -> str | None:
        """Return a text with the new value in place of the words between two indices; None in doubt."""
        begin, end = use
        used = _Value(_read_lead(tokens, begin, self.forms), tokens[begin:end])
        words = {token.word for token in tokens}
        said = set(self.new.words) - set(used.words) - set(self.old.words if self.old else ())
        if self.rest - words or said & words:
            return None
        replacement = self._write_value(used)
        following = tokens[end] if end < len(tokens) and tokens[end].start == used.core[-1].end + 1 else None
        after = self._agree_noun(used, following)
        if replacement is None or after is None:
            return None
        shown, replaced = replacement
        start = used.lead[-replaced].start if replaced else used.core[0].start
        shown = f"{shown}{after}" if text[:start].strip() else f"{shown[:1].upper()}{shown[1:]}{after}"
        stop = following.end if following and after else used.core[-1].end
        return f"{text[:start]}{shown}{text[stop:]}"

    def _has_subject_of(self, text: str) -> bool:
        """Return whether a text has one clause, and the subject of this correction.

        A text about the speaker also counts if it has the subject as a thing of the speaker.
        """
        if self.forms.joint.search(text):
            return False
        subject, own = self.forms.find_subject(text), self.forms.find_subject(self.text)
        # "The exam is on Tuesday, not Monday" is about a thing of the speaker: "I have an exam on Monday".
        is_thing = not subject and any(
            token.word == own and not token.is_capital for token in _read_tokens(text)
        )
        return own == subject or (is_thing and is_about_user(self.text))

    def _find_uses(self, tokens: Sequence[_PlacedWord]) -> list[tuple[int, int]]:
        """Return each use of the wrong value, as the index of its first word and the index after its last.

        If the wrong value is unknown, each value of the kind of the new value counts.
        """
        if self.old is None:
            return list(self._find_uses_of_kind(tokens))
        size = len(self.old.core)
        return [
            (begin, begin + size)
            for begin in range(len(tokens) - size + 1)
            if self._is_old_value(tokens, begin, begin + size)
        ]

    def _find_uses_of_kind(self, tokens: Sequence[_PlacedWord]) -> Iterator[tuple[int, int]]:
        for begin, end, kinds in _find_runs(tokens, self.forms):
            if _are_alike(kinds, self.kinds):
                if self.forms.no_values.isdisjoint(token.word for token in tokens[begin:end]):
                    yield begin, end
            elif len(self.kinds) == 1 and kinds != ("name",):
                # "I meant July" replaces a part of "5 June".
                parts = enumerate(kinds, begin)
                yield from ((place, place + 1) for place, kind in parts if _are_alike((kind,), self.kinds))

    def _find_last_words(self, tokens: Sequence[_PlacedWord]) -> list[tuple[int, int]]:
        """Return the words after the last preposition or article as a use of a value; see `_find_uses`.

        The list is empty if these words cannot be a value, or are a time, a number or a name.
        """
        begin = len(tokens)
        while begin > 0 and tokens[begin - 1].word not in self.forms.lead:
            begin -= 1
        value = _Value((), tokens[begin:])
        is_value = begin > 0 and _is_sound(value, self.forms) and _find_kinds(value, self.forms) == ("word",)
        return [(begin, len(tokens))] if is_value else []

    def _is_old_value(self, tokens: Sequence[_PlacedWord], begin: int, end: int) -> bool:
        """Return whether words are the wrong value, perhaps in another grammatical case."""
        if self.old is None:
            return False
        lead = [token.word for token in _read_lead(tokens, begin, self.forms)]
        return all(
            self.forms.fold_form(token.word) == self.forms.fold_form(old)
            or (not self.old.lead and self.forms.find_cases(old, token.word, lead))
            for token, old in zip(tokens[begin:end], self.old.words, strict=True)
        )

    def _agree_noun(self, used: _Value, following: _PlacedWord | None) -> str | None:
        """Return the text in place of the word after a number: empty if the word stays, None in doubt.

        A noun keeps its form in «три кошки» and «две кошки» (three cats, two cats), but not in «пять кошек»
        (five cats).
        """
        if set(self.kinds) != {"number"} or following is None or following.word in self.forms.months:
            return ""
        agreement = self.forms.find_agreement(self.new.words[-1])
        if agreement and following.word in self.forms.years.values():
            return f" {self.forms.years[agreement]}" if agreement in self.forms.years else None
        is_same = agreement is not None and agreement == self.forms.find_agreement(used.words[-1])
        return "" if is_same else None

    def _write_value(self, used: _Value) -> tuple[str, int] | None:
        """Return the text of the new value, and how many words of `used.lead` it replaces; None in doubt."""
        had = [token.word for token in used.lead]
        old_lead = [token.word for token in self.old.lead] if self.old else []
        new_lead = [token.word for token in self.new.lead]
        if old_lead and had[-len(old_lead) :] != old_lead:
            return None
        core = self._write_core(used)
        if core is None:
            return None
        replaces_day = "day" in _find_kinds(used, self.forms)
        if new_lead:
            count = len(old_lead or new_lead)
            if replaces_day:
                if had and not old_lead:
                    return None
                count = len(old_lead)
            elif not old_lead and self.forms.fold_lead(had[-count:]) != self.forms.fold_lead(new_lead):
                return None
            return f"{' '.join(new_lead)} {core}", count
        if "day" in self.kinds:
            count = int(bool(had) and had[-1] in self.forms.of_time)
            return (core, count) if count or replaces_day else None
        if replaces_day:
            weekday = self.forms.before_weekday
            return (f"{weekday} {core}", 0) if weekday and not had else None
        if had and (other := self.forms.adapt_lead(had[-1], core)):
            return f"{other} {core}", 1
        return core, 0

    def _write_core(self, used: _Value) -> str | None:
        """Return the words of the new value, in the form of the wrong one; None in doubt."""
        text = self.text[self.new.core[0].start : self.new.core[-1].end]
        if len(used.core) == len(self.new.core) and not self.new.lead:
            shown = [self._inflect_word(used, place) for place in range(len(used.core))]
            text = " ".join(filter(None, shown))
            if None in shown:
                return None
        elif self.old and not self.new.lead and not self._is_used_as_said(used):
            return None
        if set(self.kinds) & _TIMES and self.forms.has_capital_times:
            return text[:1].upper() + text[1:] if "day" not in self.kinds else text[:1].lower() + text[1:]
        if not used.core[0].is_capital or used.core[0].start == 0:
            is_name = self.old is None or self.old.core[0].is_capital
            return text if is_name else text[:1].lower() + text[1:]
        return text[:1].upper() + text[1:]

    def _is_used_as_said(self, used: _Value) -> bool:
        """Return whether a use of the wrong value has the form that the value has in this correction."""
        fold = self.forms.fold_form
        return self.old is None or list(map(fold, used.words)) == list(map(fold, self.old.words))

    def _inflect_word(self, used: _Value, place: int) -> str | None:
        """Return a word of the new value in the form of the word that it replaces; None in doubt."""
        new, word = self.new.core[place], used.words[place]
        shown = self.text[new.start : new.end]
        if inflected := self.forms.inflect(new.word, word):
            return inflected
        if self.old is None or self.old.lead:
            return shown
        declined = self.forms.decline(
            new.word, self.old.words[place], word, [each.word for each in used.lead]
        )
        if declined is None:
            return shown if self._is_used_as_said(used) else None
        stem = shown[:-2]  # of an ending, one letter or two differ
        return f"{stem}{declined[len(stem) :]}"


def find_correction(text: str, *, is_cyrillic: bool) -> ValueCorrection | None:
    """Return the correction that a sentence makes as a whole; None without a correction, or if it is unclear.

    A sentence with `?` or quotation marks, and a sentence of more than `LONGEST` characters, are no
    corrections.
    """
    plain = straighten_quotes(text).translate(YO)
    if len(text) > LONGEST or "?" in plain or '"' in plain:
        return None
    forms = RUSSIAN if is_cyrillic else ENGLISH
    begin, is_marked, is_strong = 0, False, False
    while opening := forms.opening.match(plain, begin):
        begin = opening.end()
        is_marked = is_marked or forms.marker.match(opening[0]) is not None
        is_strong = is_strong or forms.strong_marker.match(opening[0]) is not None
    end = len(plain.rstrip(" .!…)"))
    while closing := forms.closing.search(plain, begin, end):
        end, is_marked = closing.start(), True
    for form in forms.patterns:
        if match := form.fullmatch(plain, begin, end):
            found = _read_correction(text, match, forms, is_marked=is_marked)
            if found:
                return found
    if not is_strong:
        return None
    new_value = _read_new_value(text, _read_tokens(text, begin, end), forms)
    is_clear = new_value is not None and new_value.is_bare and set(new_value.kinds) <= _TIMES | {"number"}
    return new_value if is_clear else None


def correct_own_values(text: str, *, is_cyrillic: bool) -> str:
    """Return a sentence with its values corrected where it corrects itself: "in June, sorry, July".

    A sentence of more than `LONGEST` characters is returned unchanged.
    """
    if len(text) > LONGEST:
        return text
    forms = RUSSIAN if is_cyrillic else ENGLISH
    begin = 0
    while retraction := forms.retraction.search(straighten_quotes(text), begin):
        begin = retraction.end()
        joint = forms.joint.search(text, begin)
        tokens = _read_tokens(text, begin, joint.start() if joint else None)
        correction = _read_new_value(text, tokens, forms)
        corrected = correction.apply_to_beginning(text[: retraction.start()]) if correction else None
        if corrected is not None:
            begin = len(corrected)
            text = corrected + text[tokens[-1].end :].removeprefix(")" if "(" in retraction[0] else "")
    return text


def _read_correction(
    text: str, match: re.Match[str], forms: CorrectionForms, *, is_marked: bool
) -> ValueCorrection | None:
    old = _read_value(_read_tokens(text, *match.span("old")), forms)
    said = _read_tokens(text, *match.span("new"))
    before = _read_tokens(text, *match.span("before")) if "before" in match.groupdict() else []
    if old is None or not said:
        return None
    kinds = _find_kinds(old, forms)
    found = _find_new_value(said, kinds, forms, is_last=match.start("new") < match.start("old"))
    # Without a comma, "I could not live in Leeds" denies a statement.
    is_denial = kinds == ("word",) and match.group("separator") == ""
    if found is None or is_denial:
        return None
    new, rest = found
    words = frozenset(token.word for token in (*before, *rest)) - forms.fillers
    correction = ValueCorrection(text, old, new, _find_kinds(new, forms), words, is_marked, forms)
    # The first word of a sentence is capitalised, so it may be no name: "Poems by Ann, not Anna".
    has_other_size = "name" in kinds and len(new.core) != len(old.core) and new.core[0].start == 0
    if new.words == old.words or has_other_size:
        return None
    return correction if is_marked or words or kinds != ("word",) else None


def _read_new_value(
    text: str, tokens: Sequence[_PlacedWord], forms: CorrectionForms
) -> ValueCorrection | None:
    """Return a correction without a wrong value; None if the words are no value.

    A value that is no time, number or name has a preposition or an article: "to nuts, sorry, to milk".
    """
    while tokens and tokens[0].word in forms.fillers - forms.lead:
        tokens = tokens[1:]
    new, rest = _read_value(tokens, forms), frozenset[str]()
    if new is None:
        return None
    kinds = _find_kinds(new, forms)
    if kinds == ("word",) and not new.lead:
        runs = list(_find_runs(tokens, forms))
        if len(runs) != 1:
            return None
        begin, end, kinds = runs[0]
        new = _Value((), tokens[begin:end])
        rest = frozenset(token.word for token in (*tokens[:begin], *tokens[end:]))
    return ValueCorrection(text, None, new, kinds, rest, is_marked=True, forms=forms)


def _find_new_value(
    tokens: Sequence[_PlacedWord], kinds: tuple[ValueKind, ...], forms: CorrectionForms, *, is_last: bool
) -> tuple[_Value, Sequence[_PlacedWord]] | None:
    """Return the only value among words that can replace a value of `kinds`, and the other words.

    Return None in doubt. A value that is no number must be the last of the words if `is_last` is true, else
    the first.
    """
    begin = 0
    while begin < len(tokens) and tokens[begin].word in forms.fillers - forms.lead:
        begin += 1
    alone = _read_value(tokens[begin:], forms)
    if alone and (
        len(alone.core) == 1 if kinds == ("word",) else _are_alike(_find_kinds(alone, forms), kinds)
    ):
        return alone, ()
    if kinds == ("word",):
        runs = [(len(tokens) - 1, len(tokens))]
    else:
        runs = [(start, end) for start, end, found in _find_runs(tokens, forms) if _are_alike(found, kinds)]
    if len(runs) != 1:
        return None
    start, end = runs[0]
    lead = _read_lead(tokens, start, forms)
    value = _Value(lead, tokens[start:end])
    before, after = tokens[: start - len(lead)], tokens[end:]
    if kinds != ("number",) and (after if is_last else before):
        return None
    return (value, [*before, *after]) if _is_sound(value, forms) else None


def _find_runs(
    tokens: Sequence[_PlacedWord], forms: CorrectionForms
) -> Iterator[tuple[int, int, tuple[ValueKind, ...]]]:
    """Yield the longest runs of words that are times, numbers or names, with their kinds."""
    begin = 0
    while begin < len(tokens):
        kind = _find_kind(tokens[begin], forms, is_first=begin == 0)
        end = begin + 1
        if kind != "word":
            is_name = kind == "name"
            while end < len(tokens) and (following := _find_kind(tokens[end], forms)) != "word":
                if is_name != (following == "name") or tokens[end].start != tokens[end - 1].end + 1:
                    break
                end += 1
            yield begin, end, _find_kinds(_Value((), tokens[begin:end]), forms)
        begin = end


def _read_tokens(text: str, begin: int = 0, end: int | None = None) -> list[_PlacedWord]:
    plain = straighten_quotes(text).translate(YO)
    return [
        _PlacedWord(match[0].lower(), match.start(), match.end(), match[0][0].isupper())
        for match in _WORD.finditer(plain, begin, len(plain) if end is None else end)
    ]


def _read_value(tokens: Sequence[_PlacedWord], forms: CorrectionForms) -> _Value | None:
    """Return words as a value, perhaps after prepositions and articles; None if they are no value."""
    begin = 0
    while begin < len(tokens) and tokens[begin].word in forms.lead:
        begin += 1
    value = _Value(tokens[:begin], tokens[begin:])
    return value if _is_sound(value, forms) else None


def _is_sound(value: _Value, forms: CorrectionForms) -> bool:
    """Return whether words can be a value: at most `MOST_WORDS`, and none of `no_values` of the language."""
    return 0 < len(value.core) <= MOST_WORDS and forms.no_values.isdisjoint(value.words)


def _read_lead(tokens: Sequence[_PlacedWord], begin: int, forms: CorrectionForms) -> Sequence[_PlacedWord]:
    start = begin
    while start > 0 and tokens[start - 1].word in forms.lead:
        start -= 1
    return tokens[start:begin]


def _find_kinds(value: _Value, forms: CorrectionForms) -> tuple[ValueKind, ...]:
    kinds = tuple(_find_kind(token, forms) for token in value.core)
    if "word" in kinds:
        return ("word",)
    return ("name",) if set(kinds) == {"name"} else kinds


def _find_kind(token: _PlacedWord, forms: CorrectionForms, *, is_first: bool = False) -> ValueKind:
    kind = forms.find_kind(token.word)
    if kind == "month" and token.word in forms.unclear_months and not token.is_capital:
        return "word"
    if kind:
        return kind
    return "name" if token.is_capital and not is_first and token.word not in forms.fillers else "word"


def _are_alike(one: tuple[ValueKind, ...], other: tuple[ValueKind, ...]) -> bool:
    """Return whether values of these kinds can replace each other, such as a weekday and "tomorrow"."""
    days = {"weekday", "day"}
    return one == other or (len(one) == len(other) == 1 and {*one, *other} <= days)
