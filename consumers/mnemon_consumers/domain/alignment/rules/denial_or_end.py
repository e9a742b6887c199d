"""Ends and denials: whether one fact denies what the other fact says, ends it, or says that it holds again.

The parameter `left_new` has the terms that `_list_unmatched_of_end` returns.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from mnemon_consumers.domain.alignment.comparison import (
    SUBSET_SHARE,
    SUBSTITUTED_SHARE,
    UNDECIDED_SHARE,
    FactComparison,
)
from mnemon_consumers.domain.alignment.lexicon import (
    is_in_table,
    is_in_word_list,
    list_lookup_forms,
    list_words,
)
from mnemon_consumers.domain.alignment.matching import differ_in_tense
from mnemon_consumers.domain.alignment.morphology import is_cyrillic, is_verb, list_grammemes
from mnemon_consumers.domain.alignment.rules.decision import (
    decide_different,
    decide_new_value,
    decide_undecided,
    decide_update,
)
from mnemon_consumers.domain.alignment.rules.noun_phrase import is_genitive_of_noun
from mnemon_consumers.domain.alignment.rules.qualification import is_limited
from mnemon_consumers.domain.alignment.rules.revision import (
    has_other_adjective,
    is_permission,
    permits_something_else,
)
from mnemon_consumers.domain.alignment.rules.stage import tells_illness
from mnemon_consumers.domain.alignment.rules.subject import is_receiver, is_spouse
from mnemon_consumers.domain.alignment.rules.values.slot_words import are_slot_words
from mnemon_consumers.domain.alignment.rules.values.swap import leaves_for_another
from mnemon_consumers.domain.alignment.statement import ParsedFact, leaves_place, tells_past_state
from mnemon_consumers.domain.alignment.term import (
    NUMERIC_KINDS,
    WISH_STAGES,
    Term,
    TermKind,
    begins_with_verb,
    has_exact_term,
    is_beginning,
    is_habitual,
    is_listed,
    list_kinds,
    list_nouns,
)
from mnemon_consumers.domain.alignment.verdict import RelationVerdict

_TIES: Final = frozenset(("friendship", "romance", "quarrel"))
"""Names of axes, of the table `stages`, for relationships between people."""


def decide_denial_or_end(facts: FactComparison) -> RelationVerdict | None:
    """Decide the relation if only one fact is a denial, or only one tells an end.

    Returns:
        The verdict. None if other rules must decide.
    """
    old, new = facts.old, facts.new
    if old.is_negated == new.is_negated and old.is_ended == new.is_ended:
        return None
    if new.is_ended and not old.has_head and any(map(_is_other_actor, facts.alignment.new)):
        return decide_undecided(facts, "the newer fact may be about an end for someone else")
    if old.is_ended and not new.denies_or_ends and _is_plan_or_wish(new):
        return decide_undecided(facts, "the newer fact is only a wish for what has ended")
    if new.is_ended and not old.denies_or_ends and _tells_former_end(new):
        return decide_undecided(facts, "the newer fact may be about a former end")
    verdict = _decide_plain_end(facts) or _decide_dates(facts)
    if verdict:
        return verdict
    if _names_other_number(facts):
        return decide_undecided(facts, "a number after a common word differs")
    if _ends_only_part(facts):
        return decide_undecided(facts, "one of the facts is about a part of the topic of the other")
    left_new = _list_unmatched_of_end(facts)
    if _ends_only_alcohol(facts, left_new):
        return decide_undecided(facts, "the newer fact ends the drinking of alcohol alone")
    if verdict := _decide_state(facts, left_new):
        return verdict
    if _differs_besides_denial(facts, left_new):
        if facts.score >= SUBSTITUTED_SHARE or has_exact_term(facts.alignment.old):
            return decide_different(facts, "they differ in more than the denial")
        return None
    return (
        _decide_plan(facts, left_new)
        or _decide_other_end(facts, left_new)
        or _decide_whole_end(facts, left_new)
        or _decide_dated_plan(facts, left_new)
        or _decide_end_by_score(facts)
    )


def _is_plan_or_wish(statement: ParsedFact) -> bool:
    """Return whether a fact is a plan or a wish: "wants a new dog", "dreams of a new dog"."""
    if statement.has_word_of("permission_words"):
        return False
    return statement.is_planned or any(not term.stages.isdisjoint(WISH_STAGES) for term in statement.terms)


def _tells_former_end(statement: ParsedFact) -> bool:
    """Return whether a Russian fact tells an end only by imperfective verbs in the past.

    For example, «бросал курить три раза» means "tried three times to quit smoking".
    """
    ends = [
        list_grammemes(word)
        for word in statement.raw
        if is_cyrillic(word) and (is_in_table(word, "ended") or is_in_table(word, "quit"))
    ]
    return bool(ends) and all({"impf", "past"} <= tags for tags in ends)


def _decide_plain_end(facts: FactComparison) -> RelationVerdict | None:
    """Decide if the words themselves tell what the newer fact ends or reverses; None if they do not."""
    old, new = facts.old, facts.new
    is_unmarried = "marital" in old.slots & new.slots and (old.is_ended or old.is_negated)
    if (is_unmarried and new.is_changed and not new.denies_or_ends) or _tells_divorce_or_marriage(facts):
        return decide_update(facts, "a new value: marital")
    if old.is_negated and not new.denies_or_ends and (problem := _find_limit_of_reversal(facts)):
        return decide_undecided(facts, problem)
    if _is_denied_in_clause(facts):
        return decide_update(facts, "one of the facts denies the statement of the other")
    if new.is_ended and leaves_for_another(facts):
        return decide_new_value(facts, "a person left one thing for another", "employer")
    if _is_departure(facts):
        return decide_update(facts, "the newer fact says that the older one has ended")
    return None


def _tells_divorce_or_marriage(facts: FactComparison) -> bool:
    """Return whether one fact says only that the user is married, and the other only that this has ended."""
    both = (facts.old, facts.new)
    if "marital" not in facts.old.slots & facts.new.slots or any(each.has_head for each in both):
        return False
    if any(each.is_planned or each.is_negated for each in both):
        return False
    # "Was married" is no new status, and "is getting married" a plan.
    if tells_past_state(facts.new) or "getting" in facts.old.raw:
        return False
    words = [term for each in both for term in each.words if not _is_partner(facts, term)]
    is_about_marriage = any("married+" in term.opposites for each in both for term in each.terms)
    # "Moved out after the divorce" tells no new status.
    is_alone = are_slot_words(words, "marital") and not any(term.role for term in words)
    return is_about_marriage and is_alone


def _is_partner(facts: FactComparison, term: Term) -> bool:
    """Return whether a word names the partner: "his wife", or a name as in "married to Anna".

    A name that only the newer fact has does not count.
    """
    is_named = term.kind is TermKind.NAME and term.role == "to" and term not in facts.alignment.new
    return is_named or is_spouse(facts, term)


def _decide_dates(facts: FactComparison) -> RelationVerdict | None:
    """Decide if the facts are about different days or dates; None otherwise."""
    left = facts.alignment
    if _list_weekdays(left.old) and _list_weekdays(left.new) and not facts.new.is_changed:
        return decide_different(facts, "they are about different days of the week")
    if TermKind.DATE in list_kinds(left.old) and any(t.kind is TermKind.DATE and t.is_head for t in left.new):
        return decide_different(facts, "they are about different dates")
    if _is_other_event(facts):
        return decide_undecided(facts, "the facts tell the dates of two events")
    return None


def _list_unmatched_of_end(facts: FactComparison) -> tuple[Term, ...]:
    """Return the terms without a counterpart that name what the newer fact ends or denies.

    Terms of a reason, and of a clause after the end, are left out. If something has ended or stopped,
    numbers, times and the person who receives a thing are left out, too.
    """
    new = facts.new
    left_new = tuple(term for term in facts.alignment.new if term.place < new.reason_at)
    clause = _find_clause_end(facts)
    left_new = tuple(term for term in left_new if term.place < clause)
    if new.is_ended:
        bare = ("после", "going", "going to")
        left_new = tuple(term for term in left_new if term.role != "after" and term.text not in bare)
    is_stopped = _is_stopped(facts)
    if new.is_ended or is_stopped:
        left_new = tuple(
            term
            for term in left_new
            if term.kind not in NUMERIC_KINDS
            and not (is_listed(term, "units") and (is_stopped or _is_dated_unit(new, term)))
        )
        left_new = tuple(term for term in left_new if not is_receiver(facts, term))
    return left_new


def _is_dated_unit(statement: ParsedFact, unit: Term) -> bool:
    """Return whether a unit belongs to a date: "last month"."""
    return is_in_table(statement.find_word_before(unit), "dates")


def _decide_state(facts: FactComparison, left_new: tuple[Term, ...]) -> RelationVerdict | None:
    """Decide if a person has learned an ability, has retired, or has ended or resumed a habit; else None."""
    if _is_learned(facts):
        return decide_update(facts, "the person has learned an ability that the older fact denies")
    if _is_retired(facts, left_new):
        return decide_update(facts, "a retired person no longer has the job")
    if _is_given_up(facts, left_new) or _is_resumed(facts):
        return decide_update(facts, "the newer fact says that the older one has ended or holds again")
    return None


def _differs_besides_denial(facts: FactComparison, left_new: tuple[Term, ...]) -> bool:
    """Return whether each fact has a noun, or a name, number or date, that the other fact lacks."""
    left = facts.alignment
    nouns_differ = left.is_substituted and list_nouns(left.old) and list_nouns(left_new)
    return bool(nouns_differ) or (has_exact_term(left.old) and has_exact_term(left_new))


def _decide_plan(facts: FactComparison, left_new: tuple[Term, ...]) -> RelationVerdict | None:
    """Decide whether a sale carries out a plan of the older fact; None if the facts do not tell it."""
    old, new = facts.old, facts.new
    is_wanted = old.is_planned and not old.is_past
    is_sale = any("trade-" in term.opposites for term in old.terms)
    if (
        is_wanted
        and is_sale
        and new.is_past
        and not has_exact_term(facts.alignment.old)
        and not has_exact_term(left_new)
    ):
        return decide_update(facts, "the newer fact says that the plan is carried out")
    if is_wanted and new.is_past and any("trade-" in term.opposites for term in new.terms):
        return decide_undecided(facts, "a sale does not end the older fact's plan to have a thing")
    return None


def _decide_other_end(facts: FactComparison, left_new: tuple[Term, ...]) -> RelationVerdict | None:
    """Decide if the newer fact may end something that the older fact does not say; None otherwise."""
    if _ends_something_else(facts, left_new):
        return decide_undecided(facts, "the newer fact may end something else")
    if any(a.kind is TermKind.PERSON and a.is_head and b.role == "with" for a, b in facts.alignment.pairs):
        return decide_undecided(facts, "the newer fact ends what someone else did with the person")
    is_marriage = "marital" in facts.new.slots - facts.old.slots
    if is_marriage and any(a.kind in (TermKind.NAME, TermKind.PERSON) for a, _ in facts.alignment.pairs):
        return decide_undecided(facts, "the end of a marriage ends nothing else")
    return None


def _decide_whole_end(facts: FactComparison, left_new: tuple[Term, ...]) -> RelationVerdict | None:
    """Decide if the newer fact ends what the older fact says, and names enough of it; None otherwise."""
    old, new, left = facts.old, facts.new, facts.alignment
    if not new.is_ended or old.is_ended or _shares_only_person(facts):
        return None
    pairs = sum(a.kind is not TermKind.LIGHT for a, _ in left.pairs)
    share_new = left.compute_share(left_new)
    is_term = any(t.role == "before" for t in left.old) and not any(map(is_habitual, left.old))
    is_deadline = is_term and new.has_head and not left_new and list_kinds(left.old) <= NUMERIC_KINDS
    is_most = facts.share_old >= 0.45 and (share_new >= 0.7 or (share_new >= 0.6 and pairs >= 2))
    is_named = share_new >= 0.95 and TermKind.NAME in list_kinds(a for a, _ in left.pairs)
    if is_deadline or is_most or is_named:
        return decide_update(facts, "the newer fact says that the older one has ended")
    return None


def _decide_dated_plan(facts: FactComparison, left_new: tuple[Term, ...]) -> RelationVerdict | None:
    """Let a proposal that names the older fact end it, if that is a plan with a date; None otherwise.

    For example, "My exam was cancelled" may be about "I have an exam on Monday" or about another exam.
    """
    old, new, left = facts.old, facts.new, facts.alignment
    has_topic = any(a.kind in (TermKind.WORD, TermKind.NAME) for a, _ in left.pairs)
    is_dated = TermKind.DATE in list_kinds(left.old) and list_kinds(left.old) <= NUMERIC_KINDS
    if (
        old.denies_or_ends
        or old.is_past
        or not new.denies_or_ends
        or left_new
        or not (has_topic and is_dated)
    ):
        return None
    undecided = decide_undecided(facts, "the newer fact may end the plan of the older one, which has a date")
    return replace(undecided, is_related=True)


def _decide_end_by_score(facts: FactComparison) -> RelationVerdict | None:
    """Decide by the shares of words with a counterpart; None if they are small."""
    if facts.old.is_negated != facts.new.is_negated and facts.score >= 0.75:
        return decide_update(facts, "one of the facts denies the statement of the other")
    if facts.old.is_ended and not facts.new.is_ended and facts.score >= 0.75:
        return decide_update(facts, "the newer fact says that the older one holds again")
    if facts.score >= 0.3:
        return decide_undecided(facts, "one of the facts denies something, or says that something has ended")
    return None


def _find_limit_of_reversal(facts: FactComparison) -> str | None:
    """Return why the denial in the older fact may hold beside the newer fact; None if it may not.

    For example, "Doesn't eat meat" may hold beside "Eats meat again abroad".
    """
    left = facts.alignment
    # A phrase such as "has no" denies, although the fact is not marked as a denial.
    is_denial = any(is_in_table(word, "negation") for word in facts.new.raw)
    if is_denial or _is_learned(facts) or (list_nouns(left.old) and list_nouns(left.new)):
        return None
    if permits_something_else(left):
        return "only the newer fact gives a permission"
    if any(a.kind is TermKind.NAME and b.is_head and not a.is_head for a, b in left.pairs):
        return "only the newer fact is about what a name stands for"
    is_event = facts.new.is_past and not facts.old.is_past and not facts.old.has_word_of("past_auxiliaries")
    if is_event and any(differ_in_tense(a, b) for a, b in left.pairs):
        return "the newer fact may be about one event"
    extra = [
        term
        for term in left.new
        if term.kind in (TermKind.WORD, TermKind.NAME, TermKind.PERSON)
        and term.place < facts.new.reason_at
        and not (is_permission(term) or is_beginning(term) or term.text in list_words("learning_verbs"))
    ]
    if extra or is_limited(left, 1) or has_other_adjective(left):
        return "the newer fact may say when, where or for whom the denial does not hold"
    return None


def _is_other_event(facts: FactComparison) -> bool:
    """Return whether the facts tell different dates of two coming events: "arrives", "leaves"."""
    left = facts.alignment
    is_dated = has_exact_term(left.old) and has_exact_term(left.new)
    is_coming = not (facts.old.is_past or facts.new.is_past or facts.new.is_changed)
    has_date = TermKind.DATE in list_kinds(facts.old.terms) & list_kinds(facts.new.terms)
    return is_dated and is_coming and has_date and begins_with_verb(left.old)


def _list_weekdays(terms: tuple[Term, ...]) -> list[Term]:
    return [term for term in terms if any(key.startswith("dates weekday") for key in term.keys)]


def _shares_only_person(facts: FactComparison) -> bool:
    """Return whether the facts have only their subject, a person, in common."""
    return (
        not facts.shares_slot()
        and bool(list_nouns(facts.alignment.old))
        and all(a.kind in (TermKind.PERSON, TermKind.LIGHT) and a.is_head for a, _ in facts.alignment.pairs)
    )


def _find_clause_end(facts: FactComparison) -> int:
    """Return the index of "and" after the clause that ends a state: "sold the car and bought a bike".

    Returns:
        The number of words of the newer fact if it ends no state, if the older fact has ended already, or
        if no clause follows.
    """
    raw = facts.new.raw
    if not facts.new.is_ended or facts.old.is_ended:
        return len(raw)
    for at, word in enumerate(raw[:-1]):
        following = raw[at + 1]
        is_clause = is_verb(following) or following in list_words("past_verbs") or following.endswith("ed")
        if word in ("и", "and") and is_clause and any(is_in_table(w, "ended") for w in raw[:at]):
            return at
    return len(raw)


def _is_denied_in_clause(facts: FactComparison) -> bool:
    """Return whether only one fact denies a Russian verb, and the newer fact has all words of the older fact.

    The result is also True if the newer fact reports what the older fact plans not to do.
    """
    old, new, left = facts.old, facts.new, facts.alignment
    if old.is_english or has_exact_term(left.old) or list_nouns(left.old):
        return False
    if old.is_negated and old.is_planned and new.is_past and not new.is_negated:
        return not left.old
    is_verb_denied = any(is_verb(a.text) and _is_denied(old, a) != _is_denied(new, b) for a, b in left.pairs)
    is_about_same = any(a.kind is not TermKind.LIGHT and not is_verb(a.text) for a, _ in left.pairs)
    is_other = any(term.is_someone for term in left.new)
    if not (_is_stopped(facts) or old.is_negated):
        is_other = is_other or any(
            term.role in ("with", "after", "before", "without") and term.place < new.reason_at
            for term in left.new
        )
    return is_verb_denied and is_about_same and not is_other and facts.share_old >= SUBSET_SHARE


def _is_denied(statement: ParsedFact, verb: Term) -> bool:
    return statement.find_word_before(verb) == "не"


def _ends_only_part(facts: FactComparison) -> bool:
    """Return whether the newer, Russian fact is about what only qualifies the topic of the older fact.

    For example, the car in "the car is broken" only qualifies the loan in "car loan". The result is also True
    if the newer, Russian fact ends a part of the topic: «вышел из правления клуба» (left the club's board).
    """
    left, pairs = (
        facts.alignment.old,
        [(a, b) for a, b in facts.alignment.pairs if a.kind is not TermKind.LIGHT],
    )
    is_part = bool(pairs) and all(a.kind is TermKind.WORD and b.is_head and not a.is_head for a, b in pairs)
    is_noun_first = bool(left) and left[0] is facts.old.words[0] and bool(list_nouns(left[:1]))
    is_end_of_part = facts.new.is_ended and any(
        is_genitive_of_noun(facts.new, facts.alignment.new, b) for _, b in pairs
    )
    return (is_noun_first and is_part and not facts.new.is_english) or is_end_of_part


def _names_other_number(facts: FactComparison) -> bool:
    """Return whether facts have different numbers, of no unit, after a word: "iPhone 13", "iPhone 15"."""
    sides = ((facts.old, facts.alignment.old), (facts.new, facts.alignment.new))
    left = [{term.place for term in side if _is_bare_number(statement, term)} for statement, side in sides]
    return any(a.place + 1 in left[0] and b.place + 1 in left[1] for a, b in facts.alignment.pairs)


def _is_bare_number(statement: ParsedFact, term: Term) -> bool:
    has_unit = is_in_table(statement.find_word_after(term), "units")
    return term.kind is TermKind.NUMBER and not term.role and not has_unit


def _ends_only_alcohol(facts: FactComparison, left_new: Sequence[Term]) -> bool:
    """Return whether the newer fact says "quit drinking", and the older fact may not be about alcohol.

    "Drinks" and «пьёт» mean alcohol if they have no object: "quit drinking" does not end "drinks coffee", nor
    does «бросил пить» (quit drinking) end «пьёт таблетки» (takes pills).
    """
    verbs = list_words("drinking_verbs")
    pairs = [(a, b) for a, b in facts.alignment.pairs if a.kind is not TermKind.LIGHT and not b.is_head]
    is_bare = not left_new and not any(list_lookup_forms(b.text).isdisjoint(verbs) for _, b in pairs)
    return (
        bool(pairs)
        and is_bare
        and facts.new.denies_or_ends
        and any(
            term.kind in (TermKind.WORD, TermKind.NAME)
            and not (term.role == "with" or is_listed(term, "units"))
            and not (term.text.endswith("ly") or _is_adverb(term.text))
            and term.sorts.isdisjoint(("alcohol+", "alcohol-"))
            for term in facts.alignment.old
        )
    )


def _is_departure(facts: FactComparison) -> bool:
    """Return whether the newer fact says that someone has left the place or state in the older fact.

    For example, the result is True for «вышла из отпуска» (is back from leave) beside «в отпуске» (on leave).
    It is False for English facts.
    """
    old, new, left = facts.old, facts.new, facts.alignment
    if new.is_english or not new.is_ended or new.is_negated or old.is_ended:
        return False
    if new.has_word_of("moving_out_verbs") and "residence" not in old.slots:
        return False
    if all(any(term.is_someone for term in side) for side in (left.old, left.new)):
        return False
    return any(
        a.role == "to"
        and (b.role == "from" or leaves_place(new, b))
        and facts.share_old >= UNDECIDED_SHARE + 0.05
        and not a.is_head
        and a.kind is not TermKind.LIGHT
        for a, b in left.pairs
    )


def _is_given_up(facts: FactComparison, left_new: tuple[Term, ...]) -> bool:
    """Return whether the newer fact says that a habit or a possession of the older fact has ended.

    The older fact must have at most four words besides light words, and exactly one of them must be matched.
    """
    left = facts.alignment
    pairs = [(a, b) for a, b in left.pairs if a.kind is TermKind.WORD]
    is_given_up = facts.new.is_quit or (_is_stopped(facts) and _says_amount(facts, left.old))
    return (
        is_given_up
        and not (facts.old.is_quit or facts.old.is_negated or left_new)
        and len(pairs) == 1
        and (not pairs[0][0].role or pairs[0][0].role == pairs[0][1].role == "to")
        and TermKind.NAME not in list_kinds(left.old)
        and len(facts.old.words) <= 4
        # "Loves smoked mackerel" says nothing about smoking.
        and not (pairs[0][0].text.endswith("ed") and any(t.place == pairs[0][0].end for t in left.old))
    )


def _says_amount(facts: FactComparison, left: Sequence[Term]) -> bool:
    """Return whether terms of the older fact only tell how much or how often."""
    return all(
        term.kind in NUMERIC_KINDS or is_listed(term, "units") or facts.old.find_word_before(term) == "по"
        for term in left
    )


def _ends_something_else(facts: FactComparison, left_new: tuple[Term, ...]) -> bool:
    """Return whether the newer fact ends a tie, job, home, study or activity that the older fact lacks."""
    old, new = facts.old, facts.new
    poles = {pole[:-1] for term in old.terms for pole in term.stages} & _TIES
    is_tied = bool(poles) or not old.slots.isdisjoint(("marital", "residence"))
    if any(pole in ("friendship-", "quarrel+") for term in new.terms for pole in term.stages):
        return not is_tied and any(a.kind is TermKind.NAME for a, _ in facts.alignment.pairs)
    if _is_recovery_from_other_thing(facts) or _spares_trait_of_person(facts):
        return True
    is_employed = not old.slots.isdisjoint(("job", "employer")) or any(
        is_listed(term, "professions") or "people colleague" in term.keys for term in old.terms
    )
    if new.has_word_of("job_end_verbs"):
        is_named = any(a.kind is TermKind.WORD and not a.is_head for a, _ in facts.alignment.pairs)
        return not (is_employed or is_named)
    if new.has_word_of("moving_out_verbs"):
        return "residence" not in old.slots
    if old.has_word_of("allergies") and not new.has_word_of("allergies"):
        return True
    if new.has_word_of("graduation_verbs"):
        return "school" not in old.slots and not any(is_in_word_list(word, "study_words") for word in old.raw)
    if new.is_quit and any(_is_adverb(term.text) for term in left_new):
        return True  # only the manner has ended
    has_own_verb = any(is_verb(word) for word in old.raw)
    return has_own_verb and any(is_verb(t.text) and _is_denied(new, t) for t in left_new)


def _is_recovery_from_other_thing(facts: FactComparison) -> bool:
    """Return whether someone has recovered, and the older fact about them names no illness.

    For example, "Kate has recovered" says nothing about "Kate wants to dance".
    """
    poles = {pole for term in facts.new.terms for pole in term.stages}
    pairs = [a for a, _ in facts.alignment.pairs if a.kind is not TermKind.LIGHT]
    return (
        "illness-" in poles
        and not tells_illness(facts.old)
        and all(term.kind in (TermKind.NAME, TermKind.PERSON) for term in pairs)
    )


def _spares_trait_of_person(facts: FactComparison) -> bool:
    """Return whether the facts share only a person, and the older one is about no tie of that person.

    For example, "Kate has left" says nothing about "Kate loves chess" and "Kate has a cat", but may end "Kate
    works at Acme", "Kate lives with us" and "Kate is our trainer".
    """
    old, left = facts.old, facts.alignment
    is_feeling = any(pole.startswith("feeling") for term in old.terms for pole in term.opposites)
    is_tie = not old.slots.isdisjoint(("job", "employer", "school", "residence", "marital")) or any(
        term.kind is TermKind.PERSON or is_listed(term, "professions") for term in left.old
    )
    is_trait = not is_tie and any(a.is_someone and a.is_head for a, _ in left.pairs)
    return (
        (is_feeling or is_trait or _is_plan_or_wish(old))
        and (bool(list_nouns(left.old)) or TermKind.NAME in list_kinds(left.old))
        and all(a.kind is TermKind.LIGHT or (a.is_head and b.is_head) for a, b in left.pairs)
    )


def _is_other_actor(term: Term) -> bool:
    """Return whether a term may be another subject than the user: «ушёл барабанщик» (the drummer left)."""
    is_actor = {"NOUN", "anim", "nomn"} <= list_grammemes(term.text)
    return term.kind is TermKind.WORD and (is_actor or (term.is_head and is_listed(term, "professions")))


def _is_adverb(word: str) -> bool:
    """Return whether a Russian word tells the manner: «сверхурочно» (overtime). False for English words."""
    tags = list_grammemes(word)
    return "ADVB" in tags or {"ADJS", "neut"} <= tags


def _is_learned(facts: FactComparison) -> bool:
    """Return whether a person has learned an ability that the older fact denies."""
    is_unable = facts.old.is_negated and facts.old.has_word_of("ability_words")
    is_able = facts.new.has_word_of("learning_verbs") and not (facts.new.is_negated or facts.new.is_planned)
    is_whole = (
        not has_exact_term(facts.alignment.old)
        and len(list_nouns(facts.alignment.old)) <= facts.old.is_english
    )
    has_topic = any(a.kind is not TermKind.LIGHT and not a.is_head for a, _ in facts.alignment.pairs)
    return is_unable and is_able and is_whole and has_topic


def _is_retired(facts: FactComparison, left_new: tuple[Term, ...]) -> bool:
    """Return whether a person has a job in the older fact, and has retired in the newer fact."""
    is_retired = not {"пенсию", "пенсии", "retired"}.isdisjoint(facts.new.raw)
    is_job = not facts.old.slots.isdisjoint(("job", "employer")) or any(
        is_listed(term, "professions") for term in facts.alignment.old if not term.role
    )
    is_same = facts.old.has_head == facts.new.has_head and not facts.old.is_past
    return is_retired and is_job and is_same and not left_new


def _is_stopped(facts: FactComparison) -> bool:
    """Return whether the newer, Russian fact says that an activity has stopped.

    For example, the result is True for «больше не курит» (no longer smokes) beside «курит» (smokes).
    """
    is_over = not {"уже", "больше"}.isdisjoint(facts.new.raw) and not facts.old.is_negated
    return is_over and any(
        is_verb(b.text) and _is_denied(facts.new, b) and not _is_denied(facts.old, a)
        for a, b in facts.alignment.pairs
    )


def _is_resumed(facts: FactComparison) -> bool:
    """Return whether the newer fact says that an ended or denied state holds again."""
    pairs = [a for a, _ in facts.alignment.pairs if a.kind is not TermKind.LIGHT]
    return (
        facts.new.is_resumed
        and (facts.old.is_ended or facts.old.is_negated)
        and not facts.new.is_negated
        and facts.share_old >= 0.45
        and bool(pairs)
        and not (
            has_exact_term(facts.alignment.old)
            or (list_nouns(facts.alignment.old) and list_nouns(facts.alignment.new))
        )
    )


def decide_hidden_denial(facts: FactComparison) -> RelationVerdict | None:
    """Decide the relation if only one fact has a denial, of a word of the other fact; None otherwise.

    The verdict is an update. It is undecided if the older fact has a term that the newer fact lacks and that
    the older fact does not deny.

    This finds denials that are hidden in a phrase of the lexicon, such as "doesn't work" (is broken) and
    «не получил» (did not get), and a denial of a verb that itself counts as an end: "drops" in "No longer
    drops Leo off at school".
    """
    denied = [_list_denied_places(statement) for statement in (facts.old, facts.new)]
    if bool(denied[0]) == bool(denied[1]):
        return None
    denial, other = (facts.old, facts.new) if denied[0] else (facts.new, facts.old)
    affirmed = frozenset().union(*map(list_lookup_forms, other.raw))
    if all(list_lookup_forms(denial.raw[at]).isdisjoint(affirmed) for at in denied[0] or denied[1]):
        return None
    if any(denied[0].isdisjoint(range(term.place, term.end)) for term in facts.alignment.old):
        return decide_undecided(facts, "the older fact may say when, where or for whom its statement holds")
    return decide_update(facts, "one of the facts denies the statement of the other")


def _list_denied_places(statement: ParsedFact) -> set[int]:
    """Return the indexes of the words after a negation, such as that of "work" in "doesn't work".

    "Longer" and adverbs are skipped.
    """
    raw, found = statement.raw, set()
    for at, word in enumerate(raw):
        if is_in_table(word, "negation"):
            following = raw[at + 1 : at + 2]
            is_skipped = following == ("longer",) or not list_words("adverbs").isdisjoint(following)
            found.add(at + 1 + is_skipped)
    return {at for at in found if at < len(raw)}
