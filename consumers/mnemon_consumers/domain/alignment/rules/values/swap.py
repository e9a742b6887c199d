"""Swaps: whether the newer fact says that a person has exchanged one thing for another."""

from mnemon_consumers.domain.alignment.comparison import FactComparison
from mnemon_consumers.domain.alignment.lexicon import is_in_word_list, list_words
from mnemon_consumers.domain.alignment.rules.values.slot_words import NAMED_SLOTS
from mnemon_consumers.domain.alignment.term import TermKind, is_listed, is_naming, list_kinds


def swaps_old_thing(facts: FactComparison) -> bool:
    """Return whether a person swapped the thing in the older fact: "swapped the phone for a Poco"."""
    left = facts.alignment
    topics = [b for a, b in left.pairs if a.kind is TermKind.WORD and not is_listed(a, "changed")]
    is_swap = any(
        is_in_word_list(word, "object_swap_verbs") and 1 <= topic.place - at <= 2
        for at, word in enumerate(facts.new.raw)
        for topic in topics
    )
    is_value = all(t.kind in (TermKind.NAME, TermKind.NUMBER) or is_naming(t) for t in left.old)
    is_next = all(t.kind in (TermKind.NAME, TermKind.NUMBER) or is_listed(t, "changed") for t in left.new)
    is_both = bool(left.old and left.new) and not (facts.old.is_past or facts.old.is_planned)
    return is_swap and is_value and is_next and is_both and not (facts.new.is_planned or facts.new.is_negated)


def swaps_other_thing(facts: FactComparison) -> bool:
    """Return whether, in the newer fact, a person swapped a thing that is not in the older fact."""
    raw, lists = facts.new.raw, ("object_swap_verbs", "object_move_verbs")
    starts = [at for at, word in enumerate(raw) if any(is_in_word_list(word, each) for each in lists)]
    if not starts:
        return False
    behind = (at for at in range(starts[0] + 1, len(raw)) if raw[at] in list_words("object_ends"))
    end = next(behind, len(raw))
    return any(t.kind is TermKind.WORD and starts[0] < t.place < end for t in facts.alignment.new)


def leaves_for_another(facts: FactComparison) -> bool:
    """Return whether a person left the thing in the older fact for another thing: "left Acme for Bolt".

    The caller has checked that the newer fact tells an end.
    """
    left = facts.alignment
    slots = facts.old.slots.intersection(NAMED_SLOTS)
    names = [term for term in left.new if term.kind is TermKind.NAME]
    places = [a.place for a, _ in left.pairs if a.kind is TermKind.NAME]
    is_whole = all(
        (t.kind is TermKind.NAME and any(abs(t.place - p) == 1 for p in places)) or t.kind is TermKind.WORD
        for t in left.old
    )
    is_next = bool(names) and facts.new.find_word_before(names[0]) in list_words("before_next_name")
    is_other = any(t.kind in (TermKind.PERSON, TermKind.DATE) for t in left.new)
    return bool(slots and places) and is_whole and is_next and not (facts.new.is_planned or is_other)


def uses_other_variant(facts: FactComparison) -> bool:
    """Return whether a person now uses another kind of a thing: "a diesel van", "an electric van"."""
    left = facts.alignment
    pairs = [(a, b) for a, b in left.pairs if a.kind is TermKind.WORD]
    is_switched = not list_words("variant_verbs").isdisjoint(facts.new.raw[:3]) and not (
        facts.old.is_past or facts.new.is_planned
    )
    if not (
        is_switched and len(pairs) == 1 and len(left.new) == 1 and list_kinds(facts.left) == {TermKind.WORD}
    ):
        return False
    before, after = pairs[0]
    is_qualified = before.place - left.old[-1].place == 1 and after.place - left.new[0].place == 1
    return is_qualified and len(left.old) <= 2 and not any(term.is_head for term in facts.left)
