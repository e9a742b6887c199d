"""Revision of an older fact by plain words of a newer one: a denied value, "only", a switch, a permission."""

from collections.abc import Sequence
from typing import Final

from mnemon_consumers.domain.alignment.lexicon import list_words
from mnemon_consumers.domain.alignment.matching import Alignment, is_kind_of
from mnemon_consumers.domain.alignment.morphology import (
    is_cyrillic,
    is_verb,
    list_grammemes,
    list_lemmas,
)
from mnemon_consumers.domain.alignment.statement import ParsedFact
from mnemon_consumers.domain.alignment.syntax import is_past_form
from mnemon_consumers.domain.alignment.term import Term, TermKind

_WORDS_BEFORE_VALUE: Final = 3
"""Number of words before a value in which a word such as "only" restricts the value."""


def find_revision(alignment: Alignment) -> str | None:
    """Return how the newer fact revises the older fact in plain words; None if it does not."""
    old, new = alignment.statements
    if _is_permitted(alignment):
        return "the newer fact permits what the older one forbids"
    is_wish = new.is_planned or new.has_word_of("hypothetical_words")
    if old.is_past != new.is_past or (is_wish and not old.is_planned):
        return None
    if _is_corrected(alignment):
        return "the newer fact denies the value of the older one, and names another"
    if _is_narrowed(alignment):
        return "the newer fact restricts the older one to a part"
    return None


def find_other_restriction(alignment: Alignment, *, is_update: bool) -> str | None:
    """Return why facts with matching words are not the same; None if they may be.

    The reasons are "not only" in one of the facts, "only" in the newer fact alone, and words such as "old"
    and "new" that differ, or that only one of the facts has. In an update (`is_update`) of an attribute such
    as the residence, an old thing and a new one are values of the attribute.
    """
    old, new = alignment.statements
    if _says_not_only(old) != _says_not_only(new):
        return "only one of the facts says that there is more"
    has_only = [each.has_word_of("only") for each in (old, new)]
    if (alignment.old or alignment.kind_pairs) and has_only[1] and not has_only[0]:
        return "the newer fact restricts the older one to a part"
    ages = [_list_ages(each) for each in (old, new)]
    is_value = is_update and not old.slots.isdisjoint(new.slots)
    if not is_value and ages[0] and ages[1] and ages[0].isdisjoint(ages[1]):
        return "one of the facts is about an old thing, the other about a new one"
    left = (alignment.old, alignment.new)
    if any(ages[1 - at] - {"new", "новый"} and left[at] and not age for at, age in enumerate(ages)):
        return "one of the facts is about an old thing, and the other says something else of it"
    return None


def _list_ages(statement: ParsedFact) -> set[str]:
    """Return the words such as "old" and "new" before a noun; «новой» is found as «новый» (new).

    Words in names do not count, as in "Old Navy" and "New York".
    """
    begins = {term.place for term in statement.words}
    words = [word for at, word in enumerate(statement.raw) if at not in begins and at + 1 in begins]
    forms = {form for word in words for form in (word, *list_lemmas(word))}
    return forms & list_words("age_adjectives")


def replaces_other_value(alignment: Alignment) -> bool:
    """Return whether the newer fact denies a value that the older fact does not give.

    For example, the result is True for "Likes cycling instead of driving" beside "Likes hiking", and for
    "Works in York, not in Leeds" beside "Lives in Leeds".
    """
    denied = list_denied_values(alignment.statements[1])
    return bool(denied) and not _has_denied_value(alignment, denied)


def is_switch_of_kind(alignment: Alignment) -> bool:
    """Return whether a person switches from the thing in the older fact to another thing of its kind.

    For example, the result is True for "Switched to tea" beside "Drinks coffee".
    """
    old, new = alignment.statements
    if not new.has_word_of("switch_verbs") or len(old.clauses) != 1 or alignment.pairs:
        return False
    if old.is_past or old.is_planned or new.is_planned or old.denies_or_ends or new.is_negated:
        return False
    if old.has_head or len(alignment.new) != 1:
        return False
    things = [term for term in alignment.old if _are_of_one_kind(term, alignment.new[0])]
    use_verbs = list_words("use_verbs")
    return len(things) == 1 and all(term.text in use_verbs for term in alignment.old if term not in things)


def list_denied_values(statement: ParsedFact) -> list[Term]:
    """Return the values that a fact denies beside another value.

    For example, these are Leeds in "in York, not Leeds" and «чая» in «вместо чая» (instead of tea).
    """
    return [
        term
        for term in statement.terms
        if term.weight and term.text not in list_words("remainder") and _is_denied_value(statement, term)
    ]


def _is_denied_value(statement: ParsedFact, term: Term) -> bool:
    raw = statement.raw
    at = term.place - 1
    while at >= 0 and (raw[at] in list_words("value_prepositions") or raw[at] in list_words("determiners")):
        at -= 1
    if at < 0:
        return False
    if raw[at - 1 : at + 1] in (("instead", "of"), ("rather", "than")) or raw[at] in ("вместо", "instead"):
        return True
    following = raw[term.place + 1 : term.place + 2]
    preposition = raw[at + 1]
    is_repeated = raw[term.place + 1 : term.place + 3] == ("but", preposition)
    is_repeated = is_repeated and preposition in list_words("value_prepositions")
    if is_repeated and any(word.endswith("n't") or word == "not" for word in raw[:at]):
        return True
    if raw[at] == "not":
        return at in statement.clause_starts or following == ("but",)
    return raw[at] == "не" and (raw[at - 1] == "а" or following == ("а",))


def _has_denied_value(alignment: Alignment, denied: Sequence[Term]) -> bool:
    """Return whether the newer fact denies the value of the older fact, and both are about the same thing.

    `denied` has the values that the newer fact denies. The newer fact may lack the verb of the older fact, if
    both facts have another word in common.
    """
    old, new = alignment.statements
    values = [a for a, b in alignment.pairs if any(b is term for term in denied)]
    has_verb = any(map(_may_be_verb, new.words))
    has_topic = sum(a.weight > 0 for a, _ in alignment.pairs) > len(values)
    is_same = all(
        not has_verb and has_topic
        if _may_be_verb(term)
        else any(abs(term.place - value.place) == 1 for value in values)
        for term in alignment.old
    )
    is_other_time = (old.is_past and not new.is_past) or any(_is_told_later(a, b) for a, b in alignment.pairs)
    return len(values) == len(denied) and is_same and not is_other_time


def _is_told_later(a: Term, b: Term) -> bool:
    """Return whether only the second of two matching verbs is in the past tense: "lives", "lived"."""
    return is_past_form(b.text) and not is_past_form(a.text)


def _is_verb_of_both(a: Term, b: Term) -> bool:
    return _may_be_verb(a) or _may_be_verb(b) or a.is_head or b.is_head


def _is_corrected(alignment: Alignment) -> bool:
    """Return whether the newer fact says "X, not Y", and otherwise says what the older fact says of Y."""
    old, new = alignment.statements
    denied = list_denied_values(new)
    kinds = {term.kind for term in denied}
    values = list(alignment.new) or [
        b
        for a, b in alignment.pairs
        if b.kind in kinds and not any(b is term for term in denied) and not _is_verb_of_both(a, b)
    ]
    if old.denies_or_ends or new.is_ended or not (denied and values) or alignment.old:
        return False
    is_value = all(term.kind in kinds and not term.is_head for term in values)
    is_whole = all(" " not in a.text for a, b in alignment.pairs if any(b is term for term in denied))
    return is_value and is_whole and len(values) <= len(denied) and _has_denied_value(alignment, denied)


def _is_narrowed(alignment: Alignment) -> bool:
    """Return whether the newer fact says that only a kind of the thing is meant: "only to peanuts"."""
    old, new = alignment.statements
    if old.is_negated or _says_not_only(new) or old.has_word_of("only"):
        return False
    restricted = [term for term in alignment.new if _is_restricted(new, term)]
    kinds = [b for a, b in alignment.pairs if is_kind_of(b, a) and _is_restricted(new, b)]
    sorts = [a for a in alignment.old if restricted and all(_is_sort_of(b, a) for b in restricted)]
    others = [b for _, b in alignment.pairs if _is_remainder(new, b)]
    rest = [
        term
        for term in alignment.new
        if term not in restricted and term.text not in list_words("remainder") and not is_permission(term)
    ]
    is_whole = len(sorts) == len(alignment.old) <= 1 and not rest
    # "Only eats apples" may be one of several habits.
    is_about_all = _tells_allergy_or_feeling(old)
    return is_whole and bool(
        (others and restricted) or (is_about_all and (sorts or (kinds and not restricted)))
    )


def _tells_allergy_or_feeling(statement: ParsedFact) -> bool:
    is_feeling = any(pole.startswith("feeling") for term in statement.terms for pole in term.opposites)
    return is_feeling or statement.has_word_of("allergies")


def _is_sort_of(particular: Term, general: Term) -> bool:
    return any(f"{pole[:-1]}+" in general.sorts for pole in particular.sorts if pole.endswith("-"))


def _is_restricted(statement: ParsedFact, term: Term) -> bool:
    """Return whether "only" or a synonym is among the words right before a term, or "only" right after it."""
    only, raw = list_words("only"), statement.raw
    before = raw[max(0, term.place - _WORDS_BEFORE_VALUE) : term.place]
    return not only.isdisjoint(before) or raw[term.place + 1 : term.place + 2] == ("only",)


def _is_remainder(statement: ParsedFact, term: Term) -> bool:
    """Return whether a fact excludes the rest of what a term means: "not all nuts", "other nuts are fine"."""
    before = statement.raw[max(0, term.place - _WORDS_BEFORE_VALUE) : term.place]
    is_part = any(word in list_words("quantifiers") or word in list_words("remainder") for word in before)
    is_other = not list_words("remainder").isdisjoint(before)
    is_allowed = not list_words("permission_words").isdisjoint(statement.raw[term.place :])
    return (("not" in before or "не" in before) and is_part) or (is_other and is_allowed)


def _is_permitted(alignment: Alignment) -> bool:
    """Return whether the newer fact permits again what the older one forbids: "emojis are okay now"."""
    old, new = alignment.statements
    if not (new.is_changed or new.is_resumed) or new.denies_or_ends or not _forbids(old):
        return False
    rest = [term for term in alignment.new if not is_permission(term)]
    lost = [term for term in alignment.old if not _may_be_verb(term)]
    is_said = any(a.weight and not _may_be_verb(a) for a, _ in alignment.pairs)
    is_new_subject = any(
        b.is_head and not a.is_head and a.kind is not TermKind.WORD for a, b in alignment.pairs
    )
    has_permission = new.has_word_of("permission_words")
    has_other_verb = any(map(_may_be_verb, alignment.old)) and any(map(_may_be_verb, alignment.new))
    is_other = is_new_subject or has_other_verb or has_other_adjective(alignment)
    return has_permission and is_said and not (rest or lost or is_other)


def has_other_adjective(alignment: Alignment) -> bool:
    """Return whether the facts differ in an age word, or the older one has one more light word before a noun.

    "The old server" has such a word beside "the server".
    """
    old, new = alignment.statements
    if _list_ages(old) != _list_ages(new):
        return True
    matched = [a.place for a, _ in alignment.pairs]
    light = [term for term in old.terms if term.kind is TermKind.LIGHT and term.place not in matched]
    return any(term.place > 1 and term.place + 1 in matched for term in light)


def permits_something_else(alignment: Alignment) -> bool:
    """Return whether the newer fact permits something, and the older fact does not forbid it."""
    old, new = alignment.statements
    is_said = any(word.startswith(("can't", "cannot", "нельзя")) for word in old.raw)
    is_permission = new.has_word_of("permission_words") and not old.has_word_of("permission_words")
    return is_permission and not (is_said or _forbids(old))


def _forbids(statement: ParsedFact) -> bool:
    """Return whether a fact forbids something: "never use emojis", «без эмодзи» (without emojis)."""
    first = statement.raw[0]
    if first == "не":
        return any("impr" in list_grammemes(word) for word in statement.raw[1:3])
    return first in list_words("prohibition_words") or statement.raw[:2] == ("do", "not")


def is_permission(term: Term) -> bool:
    """Return whether a term gives a permission, such as "allowed" and «можно» (may)."""
    return not list_words("permission_words").isdisjoint(term.text.split())


def _says_not_only(statement: ParsedFact) -> bool:
    return any(
        word in ("not", "не") and following in list_words("only")
        for word, following in zip(statement.raw, statement.raw[1:], strict=False)
    )


def _are_of_one_kind(a: Term, b: Term) -> bool:
    """Return whether two different terms name kinds of one thing, such as tea and coffee."""
    shared = (a.kinds | a.sorts) & (b.kinds | b.sorts)
    return a.keys.isdisjoint(b.keys) and any(pole.endswith("-") for pole in shared)


def _may_be_verb(term: Term) -> bool:
    """Return whether a term may be the verb of its fact; in English, the first word counts as the verb."""
    return is_verb(term.text) if is_cyrillic(term.text) else not term.place or term.text.startswith("never ")
