"""Lost part: what the older fact says beside a value that the newer fact replaces."""

from mnemon_consumers.domain.alignment.comparison import FactComparison
from mnemon_consumers.domain.alignment.lexicon import is_in_word_list, list_words
from mnemon_consumers.domain.alignment.morphology import is_verb, list_grammemes
from mnemon_consumers.domain.alignment.rules.qualification import is_part_of_time
from mnemon_consumers.domain.alignment.rules.values.occupation import tells_role
from mnemon_consumers.domain.alignment.rules.values.quantity import is_label
from mnemon_consumers.domain.alignment.rules.values.slot import is_of_age
from mnemon_consumers.domain.alignment.rules.values.slot_words import are_slot_words
from mnemon_consumers.domain.alignment.statement import ParsedFact
from mnemon_consumers.domain.alignment.term import Term, TermKind, list_kinds


def find_lost_part(facts: FactComparison, slot: str) -> str | None:
    """Return what the older fact says beside the replaced value, if the newer fact says nothing on it.

    For example, "Works at Lidl" says nothing on the occupation in "Works at Aldi as a vet".

    Args:
        facts: the facts.
        slot: the slot that has another value; empty for an amount or a date without a slot.

    Returns:
        A predicate such as "names an occupation"; None if the newer fact replaces all that the older fact
        says.
    """
    old = facts.alignment.old
    if any(tells_role(facts.old, term) for term in old) and not any(
        tells_role(facts.new, term) for term in facts.new.terms
    ):
        return "names an occupation"
    if slot in ("employer", "job") and any(map(_is_way_of_work, old)):
        return "says how the person works"
    if slot == "employer" and any(_is_exact_thing(term) for term in old):
        return "says what the person works with"
    if slot == "job" and not (facts.new.is_ended or TermKind.NAME in list_kinds(facts.new.terms)):
        is_named = any(t.kind is TermKind.NAME and _is_after_preposition(facts.old, t) for t in old)
        return "says where the person works" if is_named else None
    rest = [term for term in old if not (term.kind is TermKind.NUMBER or is_of_age(term))]
    is_whole_age = slot != "age" or are_slot_words(rest, "age")
    if not is_whole_age or (not slot and any(_is_beside_amount(facts, term) for term in old)):
        return "says something else"
    return None


def _is_way_of_work(term: Term) -> bool:
    """Return whether a word tells how a person works, such as "remotely"."""
    return are_slot_words((term,), "workplace") and not are_slot_words((term,), "employer")


def _is_exact_thing(term: Term) -> bool:
    """Return whether a term names a thing exactly, such as "Python"."""
    return term.kind is not TermKind.DATE and any(pole.endswith("-") for pole in term.kinds)


def _is_after_preposition(statement: ParsedFact, term: Term) -> bool:
    """Return whether a preposition is among the words before a term, as in "at the Aldi in Leeds".

    The other words of the list `after_value`, such as "and" and "now", count, too.
    """
    before = statement.raw[: term.place]
    return any(word in list_words("after_value") or "PREP" in list_grammemes(word) for word in before)


def _is_beside_amount(facts: FactComparison, term: Term) -> bool:
    """Return whether a term of the older fact names something that does not belong to an amount.

    The result is True for a person, a name and the role `with`; if the number is a label, as in "school 5",
    also for every noun. It is False if a date differs, or if a thing was moved: "with Ann" belongs to a moved
    meeting. A date of some days only does not count: "runs with Ann on Mondays".
    """
    is_moved = any(is_in_word_list(word, "object_move_verbs") for word in facts.new.raw)
    dates = [value for value in facts.numeric_terms if value.kind is TermKind.DATE]
    if is_moved or not all(is_part_of_time(facts.find_statement(date), date) for date in dates):
        return False
    if term.is_someone or term.role == "with":
        return True
    is_noun = term.kind is TermKind.WORD and not is_verb(term.text)
    return is_noun and any(
        each in facts.numeric_terms and is_label(facts.old, each) for each in facts.alignment.old
    )
