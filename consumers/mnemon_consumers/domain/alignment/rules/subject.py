"""Subjects of the facts: whether only one of them is about a person, a thing or a name."""

from itertools import pairwise
from typing import Final

from mnemon_consumers.domain.alignment.comparison import FactComparison
from mnemon_consumers.domain.alignment.lexicon import is_in_word_list, list_words, names_people
from mnemon_consumers.domain.alignment.morphology import (
    fold_characters,
    is_cyrillic,
    is_nominative,
    is_ordinal,
    list_forms,
    list_grammemes,
    list_name_lemmas,
)
from mnemon_consumers.domain.alignment.statement import ParsedFact
from mnemon_consumers.domain.alignment.term import Term, TermKind, is_habitual, is_listed

_PARTNERS: Final = frozenset(
    f"people {each}"
    for each in ("wife", "husband", "spouse", "partner", "girlfriend", "boyfriend", "fiance", "fiancee")
)
"""Keys of people whose mention tells the marital status."""

_GENERAL_PEOPLE: Final = frozenset(
    ("people child", "people friend", "people friend_female", "people parents")
)
"""Keys of general words for people, for which the other fact may have a more exact word."""

_GENERAL_RELATIVES: Final = frozenset(("people child", "people parents"))
"""Those of `_GENERAL_PEOPLE` that stand for a relative."""


def find_other_subject(facts: FactComparison) -> str | None:
    """Return why the facts differ in the person, thing or name that they are about; None if they do not."""
    for statement, left in ((facts.old, facts.alignment.old), (facts.new, facts.alignment.new)):
        has_common_name = any(a.kind is TermKind.NAME for a, _ in facts.alignment.pairs)
        is_ended_name = statement is facts.old and facts.new.is_ended and has_common_name
        if is_ended_name and (
            any(_belongs_to_name(statement, term) for term in left) or _is_about_person_alone(facts)
        ):
            return "only one of the facts is about that person"
        if is_ended_name and not any(_is_owner(statement, term) for term in left):
            continue
        for term in left:
            if term.kind is TermKind.PERSON and not (
                (not term.is_head and term.role in ("with", "for"))
                or _is_job(facts, term)
                or (statement is facts.new and is_receiver(facts, term))
                or is_spouse(facts, term)
                or _is_named_in_both(facts, statement, term)
                or _is_in_both(facts, term)
            ):
                return "only one of the facts is about that person"
    if _has_other_names(facts) or _is_of_other_relatives(facts) or _is_another_of_a_kind(facts):
        return "one of the facts is about another person or thing of the same kind"
    old, new = _list_subjects(facts.alignment.old), _list_subjects(facts.alignment.new)
    if old and new and (facts.alignment.is_substituted or old[0].kind is new[0].kind is TermKind.NAME):
        return "they are about different people or things"
    names = [term for term in (*old, *new) if term.kind is TermKind.NAME]
    return "only one of the facts is about that name" if names else None


def _is_about_person_alone(facts: FactComparison) -> bool:
    """Return whether only the older fact is about a person, and says what that person does.

    For example, the result is True for "Brother works at Acme" beside "Left Acme", and False for "Brother Tom
    works at Acme" beside "Tom left".
    """
    pairs = [(a, b) for a, b in facts.alignment.pairs if a.kind is TermKind.NAME]
    has_named_subject = any(a.is_head or b.is_head for a, b in pairs)
    return not (has_named_subject or facts.old.is_copular) and any(
        term.kind is TermKind.PERSON and term.is_head for term in facts.alignment.old
    )


def _has_other_names(facts: FactComparison) -> bool:
    """Return whether two people of one kind have different names: "sister Kate", "sister Mary".

    A role of the table `roles_of_one`, such as "boss", does not count: another person may have it now.
    """
    sides = (facts.alignment.old, facts.alignment.new)
    return any(
        a.kind is TermKind.PERSON
        and not is_listed(a, "roles_of_one")
        and all(
            any(term.kind is TermKind.NAME and term.place - person.place == 1 for term in side)
            for person, side in zip((a, b), sides, strict=True)
        )
        for a, b in facts.alignment.pairs
    )


def may_be_about_others(facts: FactComparison) -> bool:
    """Return whether one fact is in the first person, and the other has a subject such as "she".

    For example, "She moved to York" may be about another person than "I live in Leeds". The result is also
    True if one fact mentions the user where the other has a name: "my roommate", "Tom's roommate".
    """
    both = facts.old, facts.new
    is_pronoun = any(map(_is_in_first_person, both)) and any(map(_has_other_pronoun, both))
    return is_pronoun or any(
        term.kind is TermKind.NAME
        and (
            _mentions_user_before(other, statement.find_word_after(term))
            or _mentions_user_before(other, _find_person_before(statement, term))
        )
        for statement, left, other in (
            (facts.old, facts.alignment.old, facts.new),
            (facts.new, facts.alignment.new, facts.old),
        )
        for term in left
    )


def _find_person_before(statement: ParsedFact, name: Term) -> str:
    """Return the word for a person before a name, as in «сестра Пети» (Petya's sister); empty if none."""
    word = statement.find_word_before(name)
    return word if word and names_people(word) else ""


def _mentions_user_before(statement: ParsedFact, word: str) -> bool:
    """Return whether a word for the user, other than the first word, stands right before another word."""
    pairs = pairwise(statement.raw[1:])
    return any(before in list_words("user") and following == word for before, following in pairs)


def _is_in_first_person(statement: ParsedFact) -> bool:
    subject = _find_subject_pronoun(statement)
    return subject in list_words("own_pronouns") or (
        not subject and any("1per" in list_grammemes(word) for word in statement.raw)
    )


def _has_other_pronoun(statement: ParsedFact) -> bool:
    return _find_subject_pronoun(statement) in list_words("other_pronouns")


def _find_subject_pronoun(statement: ParsedFact) -> str:
    """Return the first pronoun that may be a subject; empty if there is none. For "she's", this is "she"."""
    words = (word.partition("'")[0] for word in statement.raw)
    return next((word for word in words if word in list_words("subjects")), "")


def is_about_namesake(facts: FactComparison) -> bool:
    """Return whether different words for people stand beside a name of both facts: "aunt Ann", "boss Ann".

    A general word such as "child", or a word for a partner, may be about the same person.
    """
    sides = ((facts.old, facts.alignment.old), (facts.new, facts.alignment.new))
    beside = [
        {
            key
            for term in left
            if term.kind is TermKind.PERSON
            for pair in facts.alignment.pairs
            if pair[side].kind is TermKind.NAME and _is_name_beside(statement, term, pair[side])
            for key in term.keys
        }
        for side, (statement, left) in enumerate(sides)
    ]
    return all(beside) and not any(
        keys <= _PARTNERS or not keys.isdisjoint(_GENERAL_RELATIVES) for keys in beside
    )


def is_about_companion(facts: FactComparison) -> bool:
    """Return whether the newer fact tells an end or a change of the user's companion, not of the user.

    A companion is a person with whom the user does something, or whose role the older fact tells. The older
    fact must say more than that the user is with this person. For example, the result is True for "Tom left
    Acme" beside "Works at Acme with Tom" or "Boss at Acme is Tom", and False for "Tom moved out" beside
    "Lives with Tom". It is False if the newer fact cancels an appointment of the older one.
    """
    old, new, left = facts.old, facts.new, facts.alignment
    is_moved = new.is_changed and facts.shares_slot()
    if old.denies_or_ends or not (new.denies_or_ends or is_moved) or _cancels_appointment(facts):
        return False
    actors = [
        a for a, b in left.pairs if a.is_someone and (b.is_head or not b.place) and not _includes_user(new, b)
    ]
    # At the beginning, a name such as «Том» is no term, because it also is a form of another word.
    actors += [term for term in left.old if term.is_someone and term.keys & list_forms(new.raw[0])]
    has_other_role = old.is_copular and any(a.is_head and not b.is_head for a, b in left.pairs)
    is_role_left = has_other_role and any(term.is_head for term in left.old)
    return any(
        _says_more_than_company(facts, actor)
        if _is_company(old, actor)
        else is_role_left and not actor.is_head
        for actor in actors
    )


def _includes_user(statement: ParsedFact, person: Term) -> bool:
    """Return whether a person is named together with the subject: "User and Tom", «они с Томом»."""
    raw, at = statement.raw, person.place
    beside = (raw[max(0, at - 2) : at], raw[at + 1 : at + 3][::-1])
    users = list_words("user") - list_words("possessives")
    return _is_company(statement, person) or any(
        len(words) == 2 and words[0] in users and words[1] in ("and", "и") for words in beside
    )


def _is_company(statement: ParsedFact, person: Term) -> bool:
    """Return whether a person is mentioned after "with": "with Tom", "with his brother Tom"."""
    is_with = person.role == "with" or statement.find_word_before(person) in ("with", "с", "со")
    return is_with or any(
        term.end == person.place and _is_company(statement, term) for term in statement.terms
    )


def _cancels_appointment(facts: FactComparison) -> bool:
    """Return whether the newer fact cancels something, and the older fact has a date that is no habit."""
    is_cancelled = any(is_in_word_list(word, "cancellation_verbs") for word in facts.new.raw)
    return is_cancelled and any(t.kind is TermKind.DATE and not is_habitual(t) for t in facts.old.terms)


def _says_more_than_company(facts: FactComparison, companion: Term) -> bool:
    """Return whether the older fact has more than a verb besides a companion: "Lives in Porto with Anna"."""
    others = [
        term
        for term in facts.old.words
        if not term.is_head and term is not companion and not _is_beside(term, companion)
    ]
    return len(others) > 1 or any(term not in facts.alignment.old for term in others)


def _is_beside(term: Term, companion: Term) -> bool:
    """Return whether a term belongs to a companion, as «вместе с» (together with) and "brother" do."""
    return term.end == companion.place or (term.is_someone and term.place - companion.place == 1)


def _is_of_other_relatives(facts: FactComparison) -> bool:
    """Return whether the facts are about people in different relations, such as a brother and a son.

    General words such as "child" and "friend" do not count.
    """
    sides = (facts.alignment.old, facts.alignment.new)
    return all(
        any(
            term.kind is TermKind.PERSON and term.is_head and term.keys.isdisjoint(_GENERAL_PEOPLE)
            for term in side
        )
        for side in sides
    )


def _is_another_of_a_kind(facts: FactComparison) -> bool:
    """Return whether only one fact has a word such as "other" before its subject, or the ordinals differ."""
    others = list_words("others")
    return _has_other_ordinals(facts) or any(
        a.is_head
        and b.is_head
        and a.kind is not TermKind.LIGHT
        and (facts.old.find_word_before(a) in others) != (facts.new.find_word_before(b) in others)
        for a, b in facts.alignment.pairs
    )


def _has_other_ordinals(facts: FactComparison) -> bool:
    """Return whether the facts begin with different ordinals: "first exam", "second exam"."""
    first = [next(iter(statement.terms), None) for statement in (facts.old, facts.new)]
    sides = zip(first, (facts.alignment.old, facts.alignment.new), strict=True)
    if not all(term in left and is_ordinal(term.text) for term, left in sides if term is not None):
        return False
    return None not in first and any(
        a.kind in (TermKind.WORD, TermKind.PERSON)
        and not (is_listed(a, "positions") or is_listed(a, "levels"))
        and a.place == facts.old.terms[0].place + 1
        and b.place == facts.new.terms[0].place + 1
        for a, b in facts.alignment.pairs
    )


def is_receiver(facts: FactComparison, person: Term) -> bool:
    """Return whether a person is the receiver in a newer fact about an end or a change: "sold it to Mum"."""
    if person.kind is not TermKind.PERSON:
        return False
    is_given = person.role == "to" or "datv" in list_grammemes(person.text)
    return is_given and not person.is_head and (facts.new.is_ended or facts.new.is_changed)


def is_spouse(facts: FactComparison, person: Term) -> bool:
    """Return whether both facts tell the marital status, and a person is mentioned only as the partner."""
    is_partner = not person.keys.isdisjoint(_PARTNERS)
    return is_partner and not person.is_head and "marital" in facts.old.slots & facts.new.slots


def _is_job(facts: FactComparison, person: Term) -> bool:
    """Return whether both facts tell a job, and a word for a person names it: "works as a store manager"."""
    is_told = "job" in facts.old.slots & facts.new.slots and not person.is_head
    return is_told and is_listed(person, "professions")


def _is_in_both(facts: FactComparison, person: Term) -> bool:
    return any(person.keys & (a.keys | b.keys) for a, b in facts.alignment.pairs)


def _is_named_in_both(facts: FactComparison, statement: ParsedFact, person: Term) -> bool:
    """Return whether a name beside a word such as `brother` is in the other fact too."""
    side = 0 if statement is facts.old else 1
    return not _is_owner(statement, person) and any(
        pair[side].kind is TermKind.NAME and _is_name_beside(statement, person, pair[side])
        for pair in facts.alignment.pairs
    )


def _is_owner(statement: ParsedFact, person: Term) -> bool:
    """Return whether a person owns something: "the neighbour's dog", «собака друга» (a friend's dog)."""
    if person.kind is not TermKind.PERSON:
        return False
    if is_cyrillic(person.text):
        return "gent" in list_grammemes(person.text) and "NOUN" in list_grammemes(
            statement.find_word_before(person)
        )
    is_possessive = f"{person.text}'s" in fold_characters(statement.text).casefold()
    return person.is_head and any(
        term.is_head and (is_possessive or term.kind is TermKind.WORD) and term.place - person.place == 1
        for term in statement.terms
    )


def _belongs_to_name(statement: ParsedFact, person: Term) -> bool:
    """Return whether a Russian word for a person stands before a name in the genitive: «с братом Жанны»."""
    name = statement.find_word_after(person)
    is_apposition = "gent" in list_grammemes(person.text)
    is_name = any(term.kind is TermKind.NAME and term.place - person.place == 1 for term in statement.terms)
    return person.kind is TermKind.PERSON and is_name and not is_apposition and "gent" in list_grammemes(name)


def _is_name_beside(statement: ParsedFact, person: Term, name: Term) -> bool:
    """Return whether a name stands beside a word for a person, and so names this person.

    It does in "brother Tom" and "a friend called Tom", but not in "friend uses Linux", "Tom's brother" and
    «брат Оли» (Olya's brother).
    """
    lemmas = list_name_lemmas(name.text)
    if lemmas and name.text not in lemmas and is_nominative(person.text):
        return False
    if name.place < person.place and f"{name.text}'s" in fold_characters(statement.text).casefold():
        return False
    first, last = sorted((person.place, name.place))
    between = statement.raw[first + 1 : last]
    said = {term.place for term in statement.terms if term.text not in list_words("person_name_words")}
    is_said = any(place in said for place in range(first + 1, last))
    return len(between) <= 1 and not is_said and between not in (("—",), ("–",))


def _list_subjects(left: tuple[Term, ...]) -> list[Term]:
    return [term for term in left if term.is_head and term.kind in (TermKind.WORD, TermKind.NAME)]
