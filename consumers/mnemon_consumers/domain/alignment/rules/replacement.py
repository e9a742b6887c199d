"""Replacement: whether the newer fact names something in place of what the older fact says."""

from collections.abc import Sequence
from itertools import pairwise

from mnemon_consumers.domain.alignment.comparison import SUBSTITUTED_SHARE, FactComparison
from mnemon_consumers.domain.alignment.lexicon import is_in_table, list_words
from mnemon_consumers.domain.alignment.morphology import is_cyrillic, is_verb, list_grammemes
from mnemon_consumers.domain.alignment.rules.decision import (
    decide_different,
    decide_new_value,
    decide_open,
    decide_undecided,
    decide_update,
)
from mnemon_consumers.domain.alignment.rules.noun_phrase import is_preposition
from mnemon_consumers.domain.alignment.rules.qualification import is_limited
from mnemon_consumers.domain.alignment.rules.revision import list_denied_values
from mnemon_consumers.domain.alignment.rules.stage import is_carried_out
from mnemon_consumers.domain.alignment.rules.values.attribute import differs_in_attribute, is_more_exact
from mnemon_consumers.domain.alignment.rules.values.quantity import (
    differs_in_quantity,
    differs_only_in_numbers,
    has_advanced,
    qualifies_topic,
)
from mnemon_consumers.domain.alignment.rules.values.residence import keeps_home
from mnemon_consumers.domain.alignment.rules.values.slot import find_changed_slot
from mnemon_consumers.domain.alignment.rules.values.swap import swaps_other_thing, uses_other_variant
from mnemon_consumers.domain.alignment.statement import ParsedFact, is_part_of_phrase
from mnemon_consumers.domain.alignment.term import (
    EXACT_KINDS,
    NUMERIC_KINDS,
    Term,
    TermKind,
    has_exact_term,
    is_habitual,
    is_listed,
    list_kinds,
    list_nouns,
)
from mnemon_consumers.domain.alignment.verdict import FactRelation, RelationVerdict


def decide_slot(facts: FactComparison) -> RelationVerdict | None:
    """Decide if the newer fact gives another value to an attribute such as `residence`; None otherwise."""
    slot = find_changed_slot(facts)
    if slot is None:
        return None
    if slot == "residence" and _says_alone(facts.new) and not _has_companion_phrase(facts.alignment.old):
        return decide_undecided(facts, "only the newer fact says that a person lives alone")
    is_replaced = _says_alone(facts.new) or _has_companion_phrase(facts.alignment.new)
    if _has_companion_phrase(facts.alignment.old) and not is_replaced:
        return decide_undecided(
            facts,
            f"a new value: {slot}; the older fact also says with whom or with what, and the newer "
            "one does not",
        )
    return decide_new_value(facts, f"a new value: {slot}", slot)


def decide_replacement(facts: FactComparison) -> RelationVerdict | None:
    """Decide the relation by the terms that each fact lacks; None if other rules must decide."""
    left = facts.alignment
    if left.new and _names_replacement(facts):
        return decide_update(facts, "the newer fact names something else instead")
    if _switches_from_old(facts):
        return decide_update(facts, "a person switched from the thing in the older fact to another one")
    if not (left.old and left.new):
        return None
    return (
        _decide_progress(facts) or _decide_value(facts) or _decide_change(facts) or _decide_other_terms(facts)
    )


def _decide_progress(facts: FactComparison) -> RelationVerdict | None:
    """Decide if a plan is carried out, or a number has grown; None otherwise."""
    is_done = is_carried_out(facts) and facts.new.is_past
    if is_done and all(term.kind is TermKind.DATE for term in facts.left):
        return decide_update(facts, "the newer fact says that the plan is carried out")
    if has_advanced(facts):
        return decide_update(facts, "the number has grown since")
    return None


def _decide_value(facts: FactComparison) -> RelationVerdict | None:
    """Decide if the newer fact gives a thing another value, or names it more exactly; None otherwise."""
    if is_more_exact(facts):
        return decide_update(facts, "the newer fact names the same thing more exactly")
    if _is_rescheduled(facts):
        return decide_update(facts, "the newer fact says that the time of the same thing has changed")
    if differs_only_in_numbers(facts):
        if differs_in_quantity(facts):
            if facts.alignment.kind_pairs or qualifies_topic(facts):
                return decide_undecided(
                    facts, "one of the facts may be about a narrower thing, with another number or date"
                )
            return decide_new_value(facts, "a new value of the same amount or date")
        if facts.is_current:
            return decide_undecided(facts, "the numbers or dates differ, and both facts may be true")
    if uses_other_variant(facts):
        return decide_update(facts, "the newer fact says that the thing is of another kind now")
    if differs_in_attribute(facts):
        return decide_update(facts, "a new value of the same thing")
    return None


def _is_rescheduled(facts: FactComparison) -> bool:
    """Return whether the newer fact says that something takes place at another time: "has moved to May".

    A word such as "now" alone says so only of a habit, as in "is on Saturdays now". Except for times and
    people, the newer fact must have all words of the older fact, at least two, and no others.
    """
    left, now = facts.alignment, list_words("now")
    times = [[term for term in side if term.kind is TermKind.DATE] for side in (left.old, left.new)]
    words = [a for a, _ in left.pairs if a.kind in (TermKind.WORD, TermKind.NAME)]
    is_moved = any(is_in_table(word, "changed") and word not in now for word in facts.new.raw)
    is_habit = facts.new.has_word_of("now") and all(any(map(is_habitual, side)) for side in times)
    is_current = not (facts.old.is_past or facts.new.is_planned or facts.new.denies_or_ends)
    return (
        all(times)
        and (is_moved or is_habit)
        and is_current
        and len(words) >= 2
        and list_kinds(left.old) <= {TermKind.DATE, TermKind.NUMBER, TermKind.PERSON}
        and all(term.kind in NUMERIC_KINDS or is_listed(term, "changed") for term in left.new)
        and ("as", "well") not in pairwise(facts.new.raw)
    )


def _decide_change(facts: FactComparison) -> RelationVerdict | None:
    """Decide if the newer fact reports that a value of the older fact has changed; None otherwise."""
    old, new, left = facts.old, facts.new, facts.alignment
    has_changed = new.is_changed and not (old.is_changed and old.is_past)
    has_changed = has_changed and (old.is_planned or not new.is_planned)
    if not has_changed:
        return None
    replaced = list_nouns(left.old)
    is_other = _has_kept_value(facts) or _is_narrower(facts)
    is_other = is_other or (bool(replaced) and swaps_other_thing(facts))
    is_other = is_other or (new.has_word_of("switch_verbs") and old.has_word_of("knowledge_words"))
    is_other = is_other or (not old.has_head and any(term.is_head for term in left.new))
    is_short = len(replaced) <= 2 and len(left.new) <= 2
    is_part = new.has_word_of("switch_verbs") and is_part_of_phrase(new, left.new)
    score = min(left.compute_share(replaced), facts.share_new)
    if is_other or is_part or not is_short or score < 0.35:
        return None
    if not (_has_changed_topic(facts) and _has_one_value(facts)):
        return None
    if any(term.kind in NUMERIC_KINDS for term in left.old) and qualifies_topic(facts):
        return decide_undecided(
            facts, "the newer fact may be about a narrower thing, with another number or date"
        )
    evidence = "the newer fact says that the value has changed"
    if "employer" in old.slots & new.slots:
        return decide_new_value(facts, evidence, "employer")
    return decide_update(facts, evidence)


def _decide_other_terms(facts: FactComparison) -> RelationVerdict | None:
    """Decide if another name, number, date or word stands in place of an older one; None otherwise."""
    left = facts.alignment
    hard = list_kinds(left.old) & list_kinds(left.new) & EXACT_KINDS
    if hard:
        return decide_different(facts, "another name, number or date")
    if not (left.is_substituted and facts.score >= SUBSTITUTED_SHARE):
        return None
    if not list_nouns(left.old) and not list_nouns(left.new):
        return decide_open(facts, FactRelation.UNDECIDED, "their verbs may say the same")
    return decide_different(facts, "another word stands in the same place", is_contradicted=False)


def _says_alone(statement: ParsedFact) -> bool:
    """Return whether a fact says that someone is alone; before a noun, «один» means "one"."""
    alone = list_words("alone")
    following = zip(statement.raw, (*statement.raw[1:], ""), strict=True)
    return any(word in alone and "NOUN" not in list_grammemes(after) for word, after in following)


def _has_companion_phrase(terms: Sequence[Term]) -> bool:
    """Return whether one of the terms has the role "with", as in "with Bob" and "with a nut allergy"."""
    return any(term.role == "with" for term in terms)


def _names_replacement(facts: FactComparison) -> bool:
    """Return whether the newer fact names something «вместо» (instead of) a name of the older fact."""
    is_current = not (facts.old.is_past or facts.old.is_ended or facts.old.is_planned or facts.new.is_planned)
    return (
        is_current
        and not has_exact_term(facts.alignment.old)
        and not any(term.is_head and "nomn" in list_grammemes(term.text) for term in facts.alignment.new)
        and any(
            b.kind is TermKind.NAME and facts.new.find_word_before(b) == "вместо"
            for _, b in facts.alignment.pairs
        )
    )


def _switches_from_old(facts: FactComparison) -> bool:
    """Return whether a person switched from the thing in the older fact: "switched from tea to coffee"."""
    return (
        facts.new.has_word_of("switch_verbs")
        and not facts.old.has_word_of("knowledge_words")
        and facts.share_old >= 0.35
        and list_kinds(facts.alignment.old) <= {TermKind.WORD, TermKind.DATE}
        and not (facts.new.is_planned or facts.old.is_past)
        and all(term.role == "to" or term.kind is TermKind.NAME for term in facts.alignment.new)
        and any(
            b.role == "from" and not a.is_head and a.role != "from" and _ends_phrase(facts.new, b)
            for a, b in facts.alignment.pairs
        )
    )


def _ends_phrase(statement: ParsedFact, term: Term) -> bool:
    """Return whether nothing or a preposition follows a term, as it follows "tea" in "from tea to coffee"."""
    return all(map(is_preposition, statement.raw[term.end : term.end + 1]))


def _has_changed_topic(facts: FactComparison) -> bool:
    """Return whether a change in the newer fact concerns the same thing, not only the same person."""
    topics = [
        (a, b)
        for a, b in facts.alignment.pairs
        if a.kind not in (TermKind.LIGHT, TermKind.DATE)
        and not (a.is_head and b.is_head and a.is_someone)
        and not (is_listed(a, "levels") or is_listed(a, "units"))
    ]
    # "Moved to Dublin" says nothing about what else happened there.
    is_move = "residence" in facts.new.slots and ("residence" not in facts.old.slots or keeps_home(facts))
    if is_move and all(a.kind is TermKind.NAME for a, _ in topics):
        return False
    if facts.new.is_english:
        return any(not is_listed(b, "changed") for _, b in topics)
    is_same = any(not is_listed(a, "changed") for a, _ in topics)
    return is_same and not facts.old.is_changed


def _has_one_value(facts: FactComparison) -> bool:
    """Return whether the older value cannot hold beside the newer one.

    A word such as "now" alone does not say so: "Plays the guitar" may hold beside "Plays the piano now". With
    such a word, the older value ends only if both facts have a verb such as "prefers" and no limit (see
    `is_limited`), have a common subject that is no person, are about a favourite, or tell how to answer; or
    if the older fact is copular; or if the newer fact is Russian and has no verb.
    """
    if list_denied_values(facts.new):
        return True
    if not facts.new.has_word_of("now") or any(
        is_in_table(word, "changed") and word not in list_words("now") for word in facts.new.raw
    ):
        return True
    verbs = [a for a, _ in facts.alignment.pairs if a.text.split()[0] in list_words("preference_verbs")]
    if verbs:
        return not any(is_limited(facts.alignment, side) for side in (0, 1))
    if any(a.is_head and b.is_head and not a.is_someone and a.weight for a, b in facts.alignment.pairs):
        return True
    if _is_way_of_answer(facts):
        return True
    return (
        "favourite" in facts.old.slots & facts.new.slots
        or facts.old.is_copular
        or not (facts.new.is_english or any(map(is_verb, facts.new.raw)))
    )


def _is_way_of_answer(facts: FactComparison) -> bool:
    """Return whether both facts tell in what language or form to answer: "Answer in German"."""
    left = facts.alignment
    if not len(left.old) == len(left.new) == 1:
        return False
    is_told = any(a.text in list_words("reply_verbs") for a, _ in left.pairs)
    ways = (_find_way(facts.old, left.old), _find_way(facts.new, left.new))
    return is_told and ways[0] == ways[1] != ""


def _find_way(statement: ParsedFact, left: Sequence[Term]) -> str:
    """Return the form in which the first term of `left` tells how to answer; empty if it tells no manner.

    The form is a Russian grammeme ("loct", "ablt" or "ADVB"), or "in" in English.
    """
    term = left[0]
    if is_cyrillic(term.text):
        if term.text.startswith("по-"):
            return "ADVB"
        tags = list_grammemes(term.text)
        return next((tag for tag in ("loct", "ablt", "ADVB") if tag in tags), "")
    return "in" if statement.find_word_before(term) == "in" else ""


def _is_narrower(facts: FactComparison) -> bool:
    """Return whether a word of the older fact narrows its subject down, as "car" does in "car lease"."""
    is_head_shared = any(a.is_head and a.kind is TermKind.WORD for a, _ in facts.alignment.pairs)
    is_favourite = "favourite" in facts.old.slots & facts.new.slots
    is_other = any(term.is_head for term in facts.alignment.old) and not is_favourite
    return is_other and (is_head_shared or not facts.new.has_head)


def _has_kept_value(facts: FactComparison) -> bool:
    """Return whether the older fact already has the value to which the newer fact reports a change."""
    is_value_new = any(
        t.kind in EXACT_KINDS and t.role != "from" and not t.is_head for t in facts.alignment.new
    )
    last = tuple(term for term in facts.new.words if not is_listed(term, "units"))[-1:]
    if any(b.kind is TermKind.NUMBER and (b,) == last for _, b in facts.alignment.pairs):
        return True
    return not is_value_new and any(
        (b.kind in EXACT_KINDS or is_listed(b, "units"))
        and (facts.new.find_word_before(b) in ("to", "на", "в", "во", "до") or (b,) == last)
        for _, b in facts.alignment.pairs
    )
