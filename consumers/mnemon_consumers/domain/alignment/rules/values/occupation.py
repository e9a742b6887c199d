"""Occupation: whether the facts tell what a person works as, or for whom."""

from collections.abc import Sequence
from typing import Final

from mnemon_consumers.domain.alignment.comparison import FactComparison
from mnemon_consumers.domain.alignment.lexicon import list_words
from mnemon_consumers.domain.alignment.morphology import is_cyrillic, is_verb, list_grammemes
from mnemon_consumers.domain.alignment.rules.values.residence import is_town
from mnemon_consumers.domain.alignment.statement import ParsedFact
from mnemon_consumers.domain.alignment.term import Term, TermKind, is_listed, list_kinds

_WORKING: Final = ("work as", "works as", "working as")
"""Phrases before a person's occupation."""


def has_other_job(facts: FactComparison) -> bool:
    """Return whether the facts tell different occupations of a person, and neither adds a second job."""
    if _tells_second_job(facts):
        return False
    sides = ((facts.old, facts.alignment.old), (facts.new, facts.alignment.new))
    return _differs_in_occupation(facts) or all(_has_occupation(*side) for side in sides)


def names_other_employer(facts: FactComparison) -> bool:
    """Return whether each fact has a name that may be an employer, and neither tells of a second job.

    If one of the facts names a town and no employer, the other fact has to do so, too.
    """
    if _tells_second_job(facts):
        return False
    sides = ((facts.old, facts.alignment.old), (facts.new, facts.alignment.new))
    in_towns = [_works_in_town(*side) for side in sides]
    return in_towns[0] == in_towns[1] and all(_has_employer(*side) for side in sides)


def _tells_second_job(facts: FactComparison) -> bool:
    """Return whether one of the facts is about work that a person may do beside a job: "part-time"."""
    return facts.new.has_word_of("second_job_words") or facts.old.has_word_of("second_job_words")


def _has_employer(statement: ParsedFact, terms: Sequence[Term]) -> bool:
    """Return whether one of some terms is a name that may be an employer.

    In Russian, a preposition such as «в» has to precede the name. «Работает над „Зевсом“» (works on Zeus) and
    «из Лиссабона» (from Lisbon) name no employer.
    """
    names = [term for term in terms if term.kind is TermKind.NAME]
    prepositions = list_words("before_employer")
    return any(statement.is_english or _find_preposition(statement, term) in prepositions for term in names)


def _works_in_town(statement: ParsedFact, terms: Sequence[Term]) -> bool:
    """Return whether a Russian fact about a job names a town and no employer: «в Самаре» (in Samara)."""
    named = [term for term in terms if _find_preposition(statement, term) in ("в", "во")]
    is_employed = any(term.kind is TermKind.NAME and not is_town(term) for term in named)
    return any(map(is_town, named)) and not is_employed


def _find_preposition(statement: ParsedFact, term: Term) -> str:
    """Return the last Russian preposition before a term; empty without one."""
    before = reversed(statement.raw[: term.place])
    return next((word for word in before if "PREP" in list_grammemes(word)), "")


def _differs_in_occupation(facts: FactComparison) -> bool:
    """Return whether the facts differ only in a person's occupation, such as after "works as"."""
    kinds = list_kinds(facts.left)
    if "job" in facts.old.slots & facts.new.slots and facts.new.is_changed and not facts.old.is_changed:
        return kinds <= {TermKind.WORD, TermKind.PERSON} and not any(term.is_head for term in facts.left)
    is_short = max(len(facts.alignment.old), len(facts.alignment.new)) <= 2 and kinds <= {
        TermKind.WORD,
        TermKind.PERSON,
    }
    return is_short and any(a.text in _WORKING and b.text in _WORKING for a, b in facts.alignment.pairs)


def _has_occupation(statement: ParsedFact, left: Sequence[Term]) -> bool:
    """Return whether terms without a counterpart tell a person's job, not whom the person meets."""
    is_working = "employer" in statement.slots
    return any(
        not term.role
        and (is_listed(term, "professions") or (is_working and _is_person_in_role(term)))
        and _is_occupation(statement, term)
        for term in left
    )


def tells_role(statement: ParsedFact, term: Term) -> bool:
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


def _is_person_in_role(term: Term) -> bool:
    """Return whether a Russian word may tell an occupation: «дальнобойщиком» (as a trucker)."""
    return term.kind is TermKind.WORD and {"NOUN", "anim", "ablt"} <= list_grammemes(term.text)
