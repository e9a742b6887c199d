"""Distinction of things of one kind, by words such as "second" and "old" before a noun of both facts."""

from collections.abc import Set as AbstractSet

from mnemon_consumers.domain.alignment.lexicon import list_words
from mnemon_consumers.domain.alignment.matching import Alignment
from mnemon_consumers.domain.alignment.morphology import is_cyrillic, is_ordinal, list_grammemes, list_lemmas
from mnemon_consumers.domain.alignment.replacement import is_listed
from mnemon_consumers.domain.alignment.statement import ParsedFact, Term, TermKind


def is_about_another_thing(alignment: Alignment) -> bool:
    """Return whether a word before a shared noun says that the facts may be about two things of a kind.

    For example, "second" says so in "Has a second rabbit" beside "Has a rabbit". If only one of the facts
    says that something has ended, two other words say so, too: "old" in "Sold the old piano" beside "Owns a
    piano", and the indefinite article in "Had a cat that died" beside "Has a cat". The article does not count
    if both facts have another word in common after the noun, as in "a cat from York".
    """
    old, new = alignment.statements
    things = [(a, b) for a, b in alignment.pairs if _may_be_thing(a) and _may_be_thing(b)]
    are_denied = old.is_negated and new.is_negated
    if not are_denied and any(
        _are_counted_apart(_list_qualifiers(old, a), _list_qualifiers(new, b))
        for a, b in things
        if not (is_listed(a, "positions") or is_listed(a, "levels"))
    ):
        return True
    if _tells_end(old) == _tells_end(new) or old.is_quit or new.is_quit:
        return False
    ended, current = (0, 1) if _tells_end(old) else (1, 0)
    statements = alignment.statements
    return any(
        (_is_introduced(statements[ended], pair[ended]) and not _is_told_further(alignment, pair))
        or _has_other_age(*(_list_qualifiers(statements[side], pair[side]) for side in (ended, current)))
        for pair in things
    )


def _may_be_thing(term: Term) -> bool:
    """Return whether a term may name a thing: before a Russian verb, «ещё» means "still"."""
    is_noun = not is_cyrillic(term.text) or "NOUN" in list_grammemes(term.text)
    return is_noun and term.kind in (TermKind.WORD, TermKind.NAME, TermKind.PERSON)


def _is_told_further(alignment: Alignment, thing: tuple[Term, Term]) -> bool:
    """Return whether both facts have another word in common after the thing: "a book about Rome"."""
    return any(
        a.weight > 0 and a.place > thing[0].place and b.place > thing[1].place for a, b in alignment.pairs
    )


def _tells_end(statement: ParsedFact) -> bool:
    return statement.is_ended and statement.is_past and not statement.is_negated


def _are_counted_apart(old: AbstractSet[str], new: AbstractSet[str]) -> bool:
    """Return whether one set has a word such as "another", and the other set has no such word or ordinal."""
    has_other = [not words.isdisjoint(list_words("others")) for words in (old, new)]
    return has_other[0] != has_other[1] and not all(
        has or any(map(is_ordinal, words)) for has, words in zip(has_other, (old, new), strict=True)
    )


def _has_other_age(ended: AbstractSet[str], current: AbstractSet[str]) -> bool:
    """Return whether the thing of the ended fact has a word such as "old" that the other thing lacks."""
    return bool((ended & list_words("age_adjectives")) - current)


def _is_introduced(statement: ParsedFact, thing: Term) -> bool:
    """Return whether a fact introduces a thing, as "a cat" and «был кот» do; a profession is no thing."""
    is_subject = not is_cyrillic(thing.text) or "nomn" in list_grammemes(thing.text)
    if is_listed(thing, "professions") or not is_subject:
        return False
    return statement.find_word_before(thing) in list_words("introduction_words")


def _list_qualifiers(statement: ParsedFact, thing: Term) -> frozenset[str]:
    """Return the words before a noun that tell which one or what number is meant, in every form."""
    known = (
        list_words("others")
        | list_words("age_adjectives")
        | list_words("introduction_words")
        | list_words("determiners")
    )
    found: set[str] = set()
    for word in reversed(statement.raw[: thing.place]):
        forms = {word, *list_lemmas(word)}
        if known.isdisjoint(forms) and not is_ordinal(word) and "ADJF" not in list_grammemes(word):
            break
        found |= forms
    return frozenset(found)
