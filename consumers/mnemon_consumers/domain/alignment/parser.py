"""Parser of facts: splits a text into terms, and marks properties of the sentence such as negation."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from mnemon_consumers.domain.alignment.lexicon import AXES, Entry, find_word_entries, list_words, load_lexicon
from mnemon_consumers.domain.alignment.morphology import (
    is_cyrillic,
    is_of_other_alphabet,
    is_proper_name,
    list_forms,
)
from mnemon_consumers.domain.alignment.statement import ParsedFact
from mnemon_consumers.domain.alignment.syntax import (
    find_reason_start,
    find_role,
    is_contrast,
    is_copular,
    is_intended,
    is_past,
    is_time,
    join_particles,
    list_clause_starts,
    measure_head,
)
from mnemon_consumers.domain.alignment.term import Term, TermKind, is_habitual
from mnemon_consumers.domain.alignment.tokenizer import list_number_keys, parse_number_key, tokenize

CACHED_FACTS: Final = 5_000
"""Maximum number of parsed facts that a process caches, in about 45 MB of memory."""

LONGEST_PHRASE: Final = 6
"""Number of words in the longest phrase of the lexicon."""

FOREIGN_WORDS: Final = 2
"""Minimum number of words, none of them in the lexicon, that make a text in Latin script count as another
language."""

TELLING_WORDS: Final = 3
"""Minimum number of words besides homographs that tell the language of a text alone. With fewer, such as
"Juggles knives", the text counts as another language only beside a fact of another language.
"""

FOREIGN_CYRILLIC_WORDS: Final = 3
"""`FOREIGN_WORDS` for Cyrillic script: the lexicon lacks more words of Russian than of English."""

_SETTLED_SLOTS: Final = frozenset(("residence", "job", "employer", "marital", "vehicle", "school"))
"""Slots whose words may be about a value that a person only thinks of: "is afraid of moving to York"."""

_MARKS: Final = ("negation", "ended", "changed", "plan", "resumed", "quit")
_ENDS: Final = frozenset(("ended", "quit"))
_POLES: Final = ("opposites", *AXES)
_CURRENCIES: Final = {"€": "euro", "$": "dollar", "£": "pound", "₽": "рубль"}
_SCALES: Final = (100.0, 1000.0, 1_000_000.0)
_SIGNS: Final = ("—", "–", "%", "№")


@lru_cache(maxsize=CACHED_FACTS)
def parse_fact(text: str, compounds: frozenset[str] = frozenset()) -> ParsedFact:
    """Parse a fact and cache the result; see `parse_text`."""
    return parse_text(text, compounds)


def parse_text(text: str, compounds: frozenset[str] = frozenset()) -> ParsedFact:
    """Split a text into terms, and find properties of its sentence. A fact with cached words takes 0.1 ms.

    Args:
        text: a fact, or a longer text; only `parse_fact` caches the result.
        compounds: concepts whose compound phrases are one term each; other compound phrases are parsed word
            by word.
    """
    return _Parser(text, compounds).parse()


def parse_pair(old: str, new: str) -> tuple[ParsedFact, ParsedFact]:
    """Parse two facts.

    A compound phrase is one term if the other fact has a word or phrase with the same concept.
    """
    a, b = parse_fact(old), parse_fact(new)
    common = (a.compounds & b.concepts) | (b.compounds & a.concepts)
    return (parse_fact(old, common), parse_fact(new, common)) if common else (a, b)


class _Parser:
    def __init__(self, text: str, compounds: frozenset[str]) -> None:
        self._text = text
        self._allowed = compounds
        self._concepts: set[str] = set()
        self._compounds: set[str] = set()
        self._tokens = join_particles(list(tokenize(text)))
        self._words = tuple(token.word for token in self._tokens)
        self._head = measure_head(self._tokens)
        self._terms: list[Term] = []
        self._order: list[int | str] = []
        self._marks: set[str] = set()
        self._slots: set[str] = set()
        self._is_end_intended = False
        self._are_intended: list[bool] = []
        """For each word of a slot in `_SETTLED_SLOTS`, whether its value is only intended."""

    def parse(self) -> ParsedFact:
        at, role = 0, ""
        lookups = [token.lookup for token in self._tokens]
        find_entries = load_lexicon().find_entries
        while at < len(self._tokens):
            entries = self._select_entries(at, find_entries(lookups[at : at + LONGEST_PHRASE]))
            length = len(entries[0].words) if entries else 1
            known = len(self._terms)
            self._add_token(at, length, [entry for entry in entries if len(entry.words) == length], role)
            if len(self._terms) > known and self._terms[-1].kind is not TermKind.LIGHT:
                role = ""
            role = find_role(self._tokens, at) or role
            at += length
        is_foreign = self._is_foreign(lookups)
        return ParsedFact(
            text=self._text,
            terms=tuple(self._terms),
            words=tuple(term for term in self._terms if term.kind is not TermKind.LIGHT),
            keys=frozenset().union(*(term.keys for term in self._terms)),
            tokens=tuple(self._order),
            slots=frozenset(self._slots),
            is_negated="negation" in self._marks,
            is_ended="ended" in self._marks,
            is_changed="changed" in self._marks,
            is_planned="plan" in self._marks
            or (bool(self._are_intended) and all(self._are_intended))
            or self._is_scheduled(),
            is_end_planned=self._is_end_intended and _ENDS.isdisjoint(self._marks),
            is_past=is_past(self._tokens),
            is_english=not any(is_cyrillic(token.word) for token in self._tokens),
            reason_at=find_reason_start(self._tokens),
            clause_starts=list_clause_starts(self._tokens, self._head),
            raw=self._words,
            concepts=frozenset(self._concepts),
            compounds=frozenset(self._compounds),
            is_copular=is_copular(self._tokens, self._head),
            is_resumed="resumed" in self._marks,
            is_quit="quit" in self._marks,
            is_foreign=is_foreign,
            is_clearly_foreign=is_foreign and self._shows_language(),
        )

    def _is_scheduled(self) -> bool:
        """Return whether a present tense and a date tell of a later value, such as a home: "moves in May"."""
        return (
            not _SETTLED_SLOTS.isdisjoint(self._slots)
            and not list_words("schedule_verbs").isdisjoint(self._words)
            and any(term.kind is TermKind.DATE and not is_habitual(term) for term in self._terms)
        )

    def _is_foreign(self, lookups: Sequence[frozenset[str]]) -> bool:
        """Return whether the text seems to be in a language other than English and Russian.

        One of these is enough: a letter of another alphabet; a word such as "nicht", which denies something
        in another language, while the lexicon has less than half of the other words; or at least
        `FOREIGN_WORDS` words (`FOREIGN_CYRILLIC_WORDS` if one is Cyrillic), none of them in the lexicon.
        Homographs such as "in", and words with a capital after the first word, do not count. `lookups` has
        the lookup forms of each token.
        """
        if any(is_of_other_alphabet(token.word) for token in self._tokens):
            return True
        words = {
            token.word: each
            for token, each in zip(self._tokens, lookups, strict=True)
            if token.word.replace("'", "").isalpha() and (token.is_first or token.surface.islower())
        }
        denies = not list_words("foreign_negations").isdisjoint(words)
        for word in (*list_words("homographs"), *list_words("foreign_negations")):
            words.pop(word, None)
        known = sum(bool(find_word_entries(each)) for each in words.values())
        if denies:
            return not words or 2 * known < len(words)
        least = FOREIGN_CYRILLIC_WORDS if any(map(is_cyrillic, words)) else FOREIGN_WORDS
        return len(words) >= least and not known

    def _shows_language(self) -> bool:
        """Return whether the text has enough words to tell its language alone, or a word that tells it."""
        words = {token.word for token in self._tokens}
        is_told = any(map(is_of_other_alphabet, words)) or words & list_words("foreign_negations")
        return bool(is_told) or len(words - list_words("homographs")) >= TELLING_WORDS

    def _select_entries(self, at: int, entries: Sequence[Entry]) -> list[Entry]:
        """Record the concepts and slots of entries; return the entries that may become a term."""
        usable = []
        for entry in entries:
            if entry.table == "slots":
                if not self._has_other_meaning(at, entry.concept):
                    self._slots.add(entry.concept)
                if entry.concept in _SETTLED_SLOTS:
                    self._are_intended.append(is_intended(self._tokens, at))
                continue
            if entry.table == "same":
                self._concepts.add(entry.concept)
                if entry.is_compound:
                    self._compounds.add(entry.concept)
            if not entry.is_compound or entry.concept in self._allowed:
                usable.append(entry)
        return usable

    def _has_other_meaning(self, at: int, slot: str) -> bool:
        """Return whether a word of a slot gives no value to the slot.

        "Living" is such a word in "living room", "joined" in "joined a choir", «живёт» in «у меня живёт кот»
        (I have a cat), and «год» after a year or without a number, as in «через год» (in a year).
        """
        words = self._words
        if slot == "residence":
            is_lodger = at == 2 and words[0] == "у" and words[1] in list_words("user")
            return is_lodger or words[at : at + 2] == ("living", "room")
        if slot == "employer" and words[at] == "joined":
            following = self._tokens[at + 1 : at + 2]
            return any(token.surface[0].islower() for token in following)
        if slot == "age" and words[at] in ("год", "года", "лет"):
            return at == 0 or self._is_after_year(at) or list_number_keys(words[at - 1]) is None
        return False

    def _is_after_year(self, at: int) -> bool:
        """Return whether a year stands before a token.

        For example, «2020 года» (of 2020) has a year before «года», and so is no age. «45 лет» (45 years)
        is an age.
        """
        before = self._tokens[at - 1].word if at else ""
        return before.isdecimal() and 1900 <= int(before) <= 2100

    def _add_token(self, at: int, length: int, entries: Sequence[Entry], role: str) -> None:
        """Add a token, or a phrase of `length` tokens, to the terms, the token order and the marks."""
        token = self._tokens[at]
        tables = {entry.table for entry in entries}
        if self._means_side(at) or self._is_time_off(at):
            tables.discard("ended")
        if length == 1 and token.is_denied:
            tables = {"negation"}
        if "negation" in tables and is_contrast(self._tokens, at):
            tables = {"changed", "stop"}
        if self._is_may_the_month(at, length):
            tables = {"dates"}
        self._add_marks(at, tables)
        is_user = token.word in list_words("user")
        number = list_number_keys(token.word) if length == 1 else None
        if number is not None:
            self._add_number(at, number, role)
        elif token.word in _CURRENCIES:
            self._add_term(at, token.word, TermKind.LIGHT, list_forms(_CURRENCIES[token.word]), role)
        elif length == 1 and self._is_name(at, tables):
            keys = token.forms | _list_concepts(entries, "same")
            self._add_term(at, token.word, TermKind.NAME, keys, role, _list_poles(entries))
        elif "people" in tables:
            self._add_term(at, token.word, TermKind.PERSON, _list_concepts(entries, "people"), role)
        elif at == self._head - 1 and token.word in list_words("former_partners"):
            self._add_term(at, token.word, TermKind.PERSON, token.forms, role)
        elif "dates" in tables and not self._is_ambiguous_date(at, length):
            self._add_term(
                at, token.word, TermKind.DATE, _list_concepts(entries, "dates"), role, _list_poles(entries)
            )
        elif "negation" in tables:
            self._order.append("not")
        elif "stop" in tables or token.word in _SIGNS or is_user:
            self._order.extend(() if is_user else (token.word,))
        else:
            self._add_word(at, length, entries, tables, role)

    def _add_marks(self, at: int, tables: set[str]) -> None:
        """Add the properties of the sentence that a token shows; an end that is only intended is a plan."""
        marks = tables.intersection(_MARKS)
        if marks & _ENDS and is_intended(self._tokens, at):
            marks = (marks - _ENDS) | {"plan"}
            self._is_end_intended = True
        self._marks |= marks

    def _add_word(self, at: int, length: int, entries: Sequence[Entry], tables: set[str], role: str) -> None:
        is_light = (
            not tables.isdisjoint(("light", "plan", "ended", "resumed", "quit"))
            or ("changed" in tables and "same" not in tables)
            or (length > 1 and tables == {"same"} and self._is_light_phrase(at, length))
        )
        keys = _list_concepts(entries, "same") | self._list_content_forms(at, length, entries)
        text = " ".join(token.word for token in self._tokens[at : at + length])
        self._add_term(
            at, text, TermKind.LIGHT if is_light else TermKind.WORD, keys, role, _list_poles(entries)
        )

    def _is_light_phrase(self, at: int, length: int) -> bool:
        """Return whether a Russian phrase such as "ходить в" (go to) has no word with content."""
        tokens = self._tokens[at : at + length]
        bare = ("stop", "light")
        return is_cyrillic(tokens[0].word) and all(
            any(entry.table in bare for entry in find_word_entries(token.lookup)) for token in tokens
        )

    def _list_content_forms(self, at: int, length: int, entries: Sequence[Entry]) -> frozenset[str]:
        """Return the forms of a word, or of a phrase's words with content.

        Returns:
            An empty set for a phrase that denies something, says that a state is over, or is compound.
        """
        tokens = self._tokens[at : at + length]
        if length == 1:
            return tokens[0].forms
        if any(entry.is_compound for entry in entries):
            return frozenset()
        found: set[str] = set()
        for token in tokens:
            words = find_word_entries(token.lookup)
            tables = {entry.table for entry in words}
            if token.is_denied or not tables.isdisjoint(("negation", "ended")):
                return frozenset()
            if tables.isdisjoint(("stop", "light")):
                found |= token.forms | _list_concepts(words, "same")
        return frozenset(found)

    def _add_number(self, at: int, keys: Sequence[str], role: str) -> None:
        before = self._terms[-1] if self._terms else None
        if before and before.kind is TermKind.NUMBER and before.place == at - 1 and len(keys) == 1:
            combined = _combine_numbers(parse_number_key(min(before.keys)), parse_number_key(keys[0]))
            if combined is not None:
                self._terms[-1] = before._replace(keys=frozenset((f"{combined:g}",)), place=at)
                return
        following = self._tokens[at + 1].word if at + 1 < len(self._tokens) else ""
        for each in keys:
            is_afternoon = following in ("pm", "p.m.") and each.isdigit() and int(each) < 12
            key = f"{int(each) + 12}" if is_afternoon else each
            kind = TermKind.DATE if key.startswith("dates ") else TermKind.NUMBER
            self._add_term(at, self._tokens[at].word, kind, frozenset((key,)), role)

    def _add_term(
        self,
        at: int,
        text: str,
        kind: TermKind,
        keys: frozenset[str],
        role: str,
        poles: Mapping[str, frozenset[str]] = MappingProxyType({}),
    ) -> None:
        self._order.append(len(self._terms))
        self._terms.append(Term(text, kind, keys, role=role, is_head=at < self._head, place=at, **poles))

    def _is_time_off(self, at: int) -> bool:
        """Return whether a token is the last word of a phrase such as "a week off"."""
        return self._tokens[at].word == "off" and at > 0 and is_time(self._tokens[at - 1])

    def _means_side(self, at: int) -> bool:
        """Return whether a token is the word "left" and means the side, as in "on the left"."""
        before = self._tokens[at - 1].word if at else ""
        determiners = list_words("determiners")
        return self._tokens[at].word == "left" and (before in determiners or before in ("on", "to", "is"))

    def _is_ambiguous_date(self, at: int, length: int) -> bool:
        """Return whether a short English word only looks like a date or time: "may", "sat", "I am"."""
        token = self._tokens[at]
        following = self._tokens[at + 1].word if at + 1 < len(self._tokens) else ""
        if token.word == "am":
            return not (at and self._tokens[at - 1].word[0].isdigit())
        if token.word == "may" and token.is_first:
            return not following[:1].isdigit()
        return length == 1 and token.surface.islower() and token.word in list_words("ambiguous_words")

    def _is_may_the_month(self, at: int, length: int) -> bool:
        """Return whether `May` is the month and not the verb."""
        token = self._tokens[at]
        return length == 1 and token.word == "may" and token.surface == "May" and not token.is_first

    def _is_name(self, at: int, tables: set[str]) -> bool:
        token = self._tokens[at]
        if "@" in token.word or any(map(str.isdigit, token.word)):
            return True  # an address, or a code such as B2 or COVID-19
        is_word = token.word in list_words("user") or not tables.isdisjoint(("dates", "people"))
        if is_word or not token.surface[:1].isupper():
            return False
        if not token.is_first:
            return True
        if is_cyrillic(token.word):
            return is_proper_name(token.word) and tables.isdisjoint(("stop", "light", "same"))
        following = self._tokens[at + 1] if at + 1 < len(self._tokens) else None
        return (
            following is not None
            and tables.isdisjoint(("stop", "light", "same", "attributes", *_MARKS))
            and not token.word.endswith(("s", "ing", "ed"))
            and (self._head == at + 1 or following.surface[:1].isupper())
        )


def _list_concepts(entries: Sequence[Entry], table: str) -> frozenset[str]:
    return frozenset(f"{table} {entry.concept}" for entry in entries if entry.table == table)


def _list_poles(entries: Sequence[Entry]) -> Mapping[str, frozenset[str]]:
    """Return the poles that entries stand for, such as `search+`, by table of axes."""
    poles: defaultdict[str, set[str]] = defaultdict(set)
    for entry in entries:
        if entry.table in _POLES:
            poles[entry.table].add(entry.concept)
    return {table: frozenset(concepts) for table, concepts in poles.items()}


def _combine_numbers(former: float | None, value: float | None) -> float | None:
    """Return the number that two consecutive words make, such as "three thousand"; None if they make none."""
    if former is None or value is None:
        return None
    if value in _SCALES and former < value:
        return former * value
    return former + value if 0 < value < former and former % 10 ** len(f"{value:g}") == 0 else None
