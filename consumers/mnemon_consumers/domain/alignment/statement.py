"""Parsed fact: its terms, and the properties of its sentence such as negation and tense."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from mnemon_consumers.domain.alignment.lexicon import list_words
from mnemon_consumers.domain.alignment.term import Term, TermKind


@dataclass(frozen=True, slots=True)
class ParsedFact:
    """A fact, split into terms, with the properties of its sentence.

    Attributes:
        text: the text of the fact.
        terms: all terms, in the order of the text.
        words: the terms except those of kind `LIGHT`.
        keys: keys of all terms.
        tokens: the text in order: each term as its index in `terms`, each negation as `not`, and each other
            word or phrase as its first word; words for the user are left out.
        slots: attributes to which the fact gives a value, such as `residence`.
        is_negated: whether it denies something.
        is_ended: whether it says that a state is over.
        is_changed: whether it reports a change.
        is_planned: whether it is about a plan, a wish, or a change or an end that a person only thinks of.
        is_end_planned: whether it is about an end that a person only thinks of, and about no other end.
        is_resumed: whether it says that a state holds again.
        is_quit: whether it says that a person has given up a habit.
        is_foreign: whether it seems to be in a language other than English and Russian.
        is_clearly_foreign: whether its words tell that even without a comparison with another fact.
        is_past: whether it is about a past event or state.
        is_english: whether it has no Cyrillic letter.
        reason_at: index in `raw` of the word that begins a reason; the length of `raw` if there is none.
        clause_starts: indexes in `raw` of the words that begin a clause, in order; the first is 0.
        raw: all words, numbers and signs of the text, in lower case.
        concepts: groups of the thesaurus that its words and phrases belong to; not the concepts of search.
        compounds: those of `concepts` that belong to a phrase whose words each have a meaning of their own.
        is_copular: whether it identifies a thing, as in "The rent is 900".
    """

    text: str
    terms: tuple[Term, ...]
    words: tuple[Term, ...]
    keys: frozenset[str]
    tokens: tuple[int | str, ...]
    slots: frozenset[str]
    is_negated: bool
    is_ended: bool
    is_changed: bool
    is_planned: bool
    is_end_planned: bool
    is_past: bool
    is_english: bool
    reason_at: int
    clause_starts: tuple[int, ...]
    raw: tuple[str, ...]
    concepts: frozenset[str] = frozenset()
    compounds: frozenset[str] = frozenset()
    is_copular: bool = False
    is_resumed: bool = False
    is_quit: bool = False
    is_foreign: bool = False
    is_clearly_foreign: bool = False

    @property
    def denies_or_ends(self) -> bool:
        """Return whether the fact denies something, or says that a state or a habit is over."""
        return self.is_negated or self.is_ended or self.is_quit

    def has_word_of(self, list_name: str) -> bool:
        """Return whether the fact has a word of the list with this name."""
        return not list_words(list_name).isdisjoint(self.raw)

    def has_listed_word_before(self, term: Term, list_name: str, within: int) -> bool:
        """Return whether one of the last `within` words before a term is in the list with this name."""
        return not list_words(list_name).isdisjoint(self.raw[max(0, term.place - within) : term.place])

    def find_word_before(self, term: Term) -> str:
        """Return the word before the place of a term, in lower case; empty at the beginning.

        For a number in several words, this is one of them.
        """
        return self.raw[term.place - 1] if term.place else ""

    def find_word_after(self, term: Term) -> str:
        """Return the word after the place of a term, in lower case; empty at the end.

        For a phrase of the lexicon, this is the phrase's second word.
        """
        return self.raw[term.place + 1] if term.place + 1 < len(self.raw) else ""

    @property
    def clauses(self) -> list[range]:
        """Return the indexes in `raw` of the words of each clause, in order."""
        return [range(*bounds) for bounds in pairwise((*self.clause_starts, len(self.raw)))]

    @property
    def kinds(self) -> frozenset[str]:
        """Return the poles, such as `instrument-`, of the things that the fact names exactly."""
        return frozenset(
            pole for term in self.words for pole in term.kinds | term.sorts if pole.endswith("-")
        )

    @property
    def has_head(self) -> bool:
        """Return whether the subject of the fact is something other than the user."""
        return any(term.is_head and term.kind is not TermKind.LIGHT for term in self.terms)

    @property
    def is_event_past(self) -> bool:
        """Return whether the fact is about a past event or state, and not about a result that remains."""
        is_rest = self.has_word_of("present_result_verbs") or any(
            word == "left" and following in ("", "on", "of", "to", "until", "before")
            for word, following in pairwise((*self.raw, ""))
        )
        return self.is_past and not is_rest


def tells_past_state(statement: ParsedFact) -> bool:
    """Return whether a fact is about a past state, such as "was married", not about an event: "was sold"."""
    state_verbs, participles = list_words("past_state_verbs"), list_words("participles")
    return any(
        word in state_verbs
        and not (following == "born" or (following.endswith("ed") and following not in participles))
        for word, following in pairwise((*statement.raw, ""))
    )


def leaves_place(statement: ParsedFact, place: Term) -> bool:
    """Return whether a Russian preposition before a word says that a person leaves the place."""
    return statement.find_word_before(place) in ("из", "изо", "с", "со")


def is_part_of_phrase(statement: ParsedFact, left: Sequence[Term]) -> bool:
    """Return whether a word in both facts only qualifies another, as "piano" does in "piano lessons".

    The other word is one of `left`, the terms without a counterpart. The result is False for a Russian fact.
    """
    places = {term.place for term in statement.terms if term.kind is TermKind.WORD} - {t.place for t in left}
    return statement.is_english and any(
        term.kind is TermKind.WORD
        and term.place - 1 in places
        and not term.stages
        and term.text not in list_words("participles")
        and not term.text.endswith(("ly", "ing"))
        for term in left
    )
