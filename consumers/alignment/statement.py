"""A fact, taken apart: its terms, and what the sentence says of them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Final

from consumers.alignment.lexicon import Entry, lexicon
from consumers.alignment.morphology import forms, grammemes, is_cyrillic, is_proper_name, normalize


class Kind(Enum):
    """What a term is; its value is how much one without a counterpart speaks against sameness."""

    WORD = 1.0
    NAME = 1.5
    NUMBER = 1.01
    DATE = 0.8
    PERSON = 1.02
    LIGHT = 0.0


@dataclass(frozen=True, slots=True)
class Term:
    """A word or phrase with content.

    Attributes:
        text: as it stands in the fact, in lower case.
        keys: two terms with a key in common say the same.
        opposites: poles such as `trade+`, whose counterpart `trade-` says the contrary.
        role: the preposition before it, of those that have a contrary one.
        is_head: it belongs to what the sentence is about.
        place: number of its first token.
    """

    text: str
    kind: Kind
    keys: frozenset[str]
    opposites: frozenset[str] = frozenset()
    role: str = ""
    is_head: bool = False
    place: int = 0

    @property
    def weight(self) -> float:
        return self.kind.value


@dataclass(frozen=True, slots=True)
class Statement:
    """A fact, taken apart.

    Attributes:
        text: as it was given.
        terms: with content, in the order of the text.
        tokens: for every token its term's place in `terms`, or the token itself where it has no content.
        slots: attributes that it gives a value to, such as `residence`.
        feelings: `for`, `against`.
        is_negated: it denies something.
        is_ended: it says that something is over.
        is_changed: it says that something has changed.
        is_planned: it speaks of a plan or a wish.
        is_past: it tells of something that happened.
        is_english: it has no Cyrillic letter.
    """

    text: str
    terms: tuple[Term, ...]
    tokens: tuple[int | str, ...]
    slots: frozenset[str]
    feelings: frozenset[str]
    is_negated: bool
    is_ended: bool
    is_changed: bool
    is_planned: bool
    is_past: bool
    is_english: bool

    @property
    def words(self) -> list[Term]:
        """The terms whose absence matters."""
        return [term for term in self.terms if term.kind is not Kind.LIGHT]


_TOKEN: Final = re.compile(
    r"\d{4}-\d\d-\d\d|\d{1,2}:\d\d|\d+(?:[ \u00a0]\d{3})+(?!\d)|\d+(?:[.,]\d+)*(?:[kкKК](?!\w)|(?:st|nd|rd|th)(?!\w)|-(?:й|я|е|го|му|м|ая|ое|ой|х|ми)(?!\w))?"
    r"|[ap]\.m\.|[^\W\d_]+(?:['-][^\W\d_]+)*[+#]*|[%€$£₽]"
)
_CURRENCIES: Final = {"€": "euro", "$": "dollar", "£": "pound", "₽": "рубль"}
_SCALES: Final = (100.0, 1000.0, 1_000_000.0)
_ROLES: Final = {
    "from": "from", "to": "to", "into": "to", "before": "before", "after": "after", "with": "with",
    "without": "without", "for": "for", "against": "against", "above": "above", "below": "below",
    "under": "below", "over": "above", "upstairs": "above",
    "из": "from", "от": "from", "с": "with", "со": "with", "в": "to", "на": "to", "к": "to", "до": "before", "после": "after", "без": "without",
    "за": "for", "против": "against", "над": "above", "под": "below", "перед": "before",
}  # fmt: skip
_CONTRARY_ROLES: Final = {
    frozenset(pair)
    for pair in (("from", "to"), ("before", "after"), ("with", "without"), ("for", "against"), ("above", "below"))
}
_ARTICLES: Final = frozenset("the a an my his her their our user's users this that".split())
_BE: Final = frozenset("is are was were has have had will can 's does did".split())
_USER: Final = frozenset(
    "user user's the i i'm i've i'd my me he she his her they their we our пользователь пользователя пользователю "
    "пользовательница пользовательницы я мой моя мое мои у меня мне он она его ее ей него нее нас мы".split()
)
_PAST: Final = frozenset(
    "was were had did got went saw bought sold took gave came broke won lost met flew made wrote ran swam skied fell "
    "began drove ate built caught chose felt fought found grew hid hurt kept knew left lent paid read rode sang sat "
    "sent slept spent stood taught threw told wore".split()
)
LONGEST_PHRASE: Final = 6
"""Words of the longest phrase of the lexicon."""


def contradicts(role: str, other: str) -> bool:
    """Whether two prepositions have contrary meanings."""
    return frozenset((role, other)) in _CONTRARY_ROLES


@lru_cache(maxsize=20_000)
def parse(text: str) -> Statement:
    """Take a fact apart."""
    return _Parser(text).parse()


@dataclass(frozen=True, slots=True)
class _Token:
    surface: str
    word: str
    forms: frozenset[str]
    is_first: bool
    is_denied: bool = False


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokenize(text))
        self._terms: list[Term] = []
        self._order: list[int | str] = []
        self._marks: set[str] = set()
        self._slots: set[str] = set()
        self._feelings: set[str] = set()

    def parse(self) -> Statement:
        head_end = _head_end(self._tokens)
        at, role = 0, ""
        while at < len(self._tokens):
            token = self._tokens[at]
            entries = lexicon().phrases([each.forms for each in self._tokens[at : at + LONGEST_PHRASE]])
            length = max((len(entry.words) for entry in entries), default=1)
            longest = [entry for entry in entries if len(entry.words) == length]
            known = len(self._terms)
            if length > 1 or not self._mark_negation(token):
                self._take(at, length, longest, entries, role, at < head_end)
            if len(self._terms) > known and self._terms[-1].kind is not Kind.LIGHT:
                role = ""
            role = self._role(at) or role
            at += length
        return Statement(
            text=self._text,
            terms=tuple(self._terms),
            tokens=tuple(self._order),
            slots=frozenset(self._slots),
            feelings=frozenset(self._feelings),
            is_negated="negation" in self._marks,
            is_ended="ended" in self._marks,
            is_changed="changed" in self._marks,
            is_planned="plan" in self._marks,
            is_past=_is_past(self._tokens),
            is_english=not any(is_cyrillic(token.word) for token in self._tokens),
        )

    def _role(self, at: int) -> str:
        word = self._tokens[at].word
        if word in ("с", "со") and at + 1 < len(self._tokens):
            return "with" if "ablt" in grammemes(self._tokens[at + 1].word) else "from"
        return _ROLES.get(word, "")

    def _mark_negation(self, token: _Token) -> bool:
        if token.is_denied:
            self._marks.add("negation")
            self._order.append("not")
        return token.is_denied

    def _take(
        self, at: int, length: int, entries: Sequence[Entry], shorter: Sequence[Entry], role: str, is_head: bool
    ) -> None:
        token = self._tokens[at]
        tables = {entry.table for entry in entries}
        self._slots.update(entry.concept for entry in shorter if entry.table == "slots")
        self._feelings.update(entry.concept for entry in entries if entry.table == "feelings")
        for mark in ("negation", "ended", "changed", "plan"):
            if mark in tables and not (mark == "ended" and self._is_side(at)):
                self._marks.add(mark)
        number = _number(token) if length == 1 else None
        name = length == 1 and self._is_name(at, tables)
        if number is not None:
            self._add_number(at, number, role, is_head)
        elif token.word in _CURRENCIES:
            self._add(Term(token.word, Kind.LIGHT, forms(_CURRENCIES[token.word]), place=at))
        elif name:
            self._add(Term(token.word, Kind.NAME, token.forms, role=role, is_head=is_head, place=at))
        elif tables & {"people"}:
            keys = frozenset(f"person {entry.concept}" for entry in entries if entry.table == "people")
            self._add(Term(token.word, Kind.PERSON, keys, role=role, is_head=is_head, place=at))
        elif tables & {"dates"} and not (length == 1 and token.word in ("may", "sat", "sun", "second", "mon", "march") and token.surface.islower()):
            keys = frozenset(f"date {entry.concept}" for entry in entries if entry.table == "dates")
            self._add(Term(token.word, Kind.DATE, keys, role=role, is_head=is_head, place=at))
        elif "negation" in tables:
            self._order.append("not")
        elif "ended" in tables and "ended" in self._marks and not self._is_side(at):
            keys = self._keys(at, length, entries)
            self._add(Term(token.word, Kind.LIGHT, keys, place=at))
        elif "stop" in tables or token.word in _USER:
            if token.word not in _USER:
                self._order.append(token.word)
        else:
            keys = self._keys(at, length, entries)
            is_light = not tables.isdisjoint(("light", "plan")) or (tables & {"changed"} and "same" not in tables)
            kind = Kind.LIGHT if is_light else Kind.WORD
            poles = frozenset(entry.concept for entry in entries if entry.table == "opposites")
            text = " ".join(each.word for each in self._tokens[at : at + length])
            self._add(Term(text, kind, keys, poles, role, is_head, at))

    def _add_number(self, at: int, keys: Sequence[str], role: str, is_head: bool) -> None:
        before = self._terms[-1] if self._terms else None
        if before and before.kind is Kind.NUMBER and before.place == at - 1 and len(keys) == 1:
            former, value = _value(before), float(keys[0])
            combined = None
            if former is not None and value in _SCALES and former < value:
                combined = former * value
            elif former is not None and value < former and former % 10 ** len(f"{value:g}") == 0:
                combined = former + value
            if combined is not None:
                self._terms[-1] = replace(before, keys=frozenset((f"{combined:g}",)), place=at)
                return
        for key in keys:
            kind = Kind.DATE if key.startswith("date ") else Kind.NUMBER
            following = self._tokens[at + 1].word if at + 1 < len(self._tokens) else ""
            if following in ("pm", "p.m.") and key.isdigit() and int(key) < 12:
                key = str(int(key) + 12)
            self._add(Term(self._tokens[at].word, kind, frozenset((key,)), role=role, is_head=is_head, place=at))

    def _keys(self, at: int, length: int, entries: Sequence[Entry]) -> frozenset[str]:
        concepts = {f"same {entry.concept}" for entry in entries if entry.table == "same"}
        return frozenset(concepts | (self._tokens[at].forms if length == 1 else set()))

    def _add(self, term: Term) -> None:
        self._order.append(len(self._terms))
        self._terms.append(term)

    def _is_side(self, at: int) -> bool:
        """Whether `left` says where, as in "on the left"."""
        word = self._tokens[at].word
        before = self._tokens[at - 1].word if at else ""
        return word == "left" and before in ("the", "his", "her", "my", "their", "on", "user's", "to", "is")

    def _is_name(self, at: int, tables: set[str]) -> bool:
        token = self._tokens[at]
        if not token.surface[:1].isupper() or tables & {"dates", "people", "numbers"}:
            return False
        if token.word in _USER or token.surface == "I":
            return False
        if is_cyrillic(token.word):
            return not token.is_first or (is_proper_name(token.word) and not tables & {"stop", "light", "same"})
        if not token.is_first:
            return True
        following = self._tokens[at + 1] if at + 1 < len(self._tokens) else None
        return (
            following is not None
            and not tables & {"stop", "light", "same", "ended", "changed", "plan", "attributes"}
            and not token.word.endswith(("s", "ing", "ed"))
            and (following.word in _BE or following.surface[:1].isupper())
        )


def _tokenize(text: str) -> Iterator[_Token]:
    plain = normalize(text)
    is_first = True
    for found in _TOKEN.finditer(plain):
        surface = found[0]
        word = surface.casefold()
        is_denied = word.endswith("n't") or word == "cannot"
        if word.endswith("'s") and word not in ("it's", "he's", "she's", "that's", "user's"):
            surface, word = surface[:-2], word[:-2]
        elif word.endswith("s'"):
            surface, word = surface[:-1], word[:-1]
        yield _Token(surface, word, forms(word), is_first, is_denied)
        is_first = plain[found.end() : found.end() + 2].startswith((". ", "! ", "? "))


def _head_end(tokens: Sequence[_Token]) -> int:
    """The number of tokens at the beginning that say what the sentence is about; 0: the user."""
    if not tokens:
        return 0
    if is_cyrillic(tokens[0].word):
        return _russian_head_end(tokens)
    start = 0
    while start < len(tokens) and tokens[start].word in _ARTICLES | {"user"}:
        start += 1
    for at in range(start, min(len(tokens), start + 6)):
        word = tokens[at].word
        if word in _BE:
            return at
        if at > start or start > 0:
            if word.endswith("s") and not word.endswith("ss") and at > start and tokens[at].surface.islower():
                return at
        elif word.endswith(("s", "ed", "ing")):
            return 0
    return start


def _russian_head_end(tokens: Sequence[_Token]) -> int:
    if tokens[0].word == "у" and len(tokens) > 1:
        return 2
    for at, token in enumerate(tokens[:5]):
        tags = grammemes(token.word)
        if "VERB" in tags or "PRTS" in tags or "ADJS" in tags or "PRED" in tags:
            return at
    return 1 if "NOUN" in grammemes(tokens[0].word) else 0


def _is_past(tokens: Sequence[_Token]) -> bool:
    for token in tokens[:6]:
        tags = grammemes(token.word)
        if "VERB" in tags and "past" in tags:
            return True
        if not tags and (token.word in _PAST or (len(token.word) > 4 and token.word.endswith("ed"))):
            return True
    return False


def _value(term: Term) -> float | None:
    (key,) = term.keys
    try:
        return float(key)
    except ValueError:
        return None


def _number(token: _Token) -> list[str] | None:
    """Keys of a number: of a date its parts."""
    word = token.word.replace("\u00a0", "").replace(" ", "")
    if not word[0].isdigit():
        number = lexicon().number(token.forms)
        return None if number is None else [f"{number:g}"]
    if re.fullmatch(r"\d{4}-\d\d-\d\d", word):
        year, month, day = (int(part) for part in word.split("-"))
        return [f"{year}", f"date month {month}", f"{day}"]
    if ":" in word:
        hour, minute = word.split(":")
        return [f"{int(hour)}" if minute == "00" else f"{int(hour)}:{minute}"]
    if (plain := re.match(r"[\d.,]+", word)) is None:
        return None
    digits = plain[0].replace(",", "") if re.fullmatch(r"\d{1,3}(,\d{3})+", plain[0]) else plain[0].replace(",", ".")
    scale = 1000 if word[-1] in "kк" else 1
    try:
        return [f"{float(digits) * scale:.10g}"]
    except ValueError:
        return [digits]
