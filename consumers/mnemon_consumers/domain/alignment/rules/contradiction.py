"""Contradictions: contrary words and feelings, and persons or things that have changed places."""

from mnemon_consumers.domain.alignment.comparison import FactComparison
from mnemon_consumers.domain.alignment.matching import are_opposite, have_contrary_roles
from mnemon_consumers.domain.alignment.morphology import is_cyrillic, is_verb, list_grammemes
from mnemon_consumers.domain.alignment.rules.decision import decide_different, decide_update
from mnemon_consumers.domain.alignment.statement import ParsedFact
from mnemon_consumers.domain.alignment.term import Term, TermKind
from mnemon_consumers.domain.alignment.verdict import RelationVerdict


def find_contradiction(facts: FactComparison) -> str | None:
    """Return why the facts contradict each other; None if they do not."""
    matched = {id(term) for pair in facts.alignment.pairs for term in pair}
    is_ignored = facts.new.is_ended or facts.new.is_changed or facts.old.is_ended
    sides = (facts.alignment.old, facts.alignment.new) if is_ignored else (facts.old.terms, facts.new.terms)
    old, new = ([term for term in side if term.opposites] for side in sides)
    for a in old:
        for b in new:
            if (
                {id(a), id(b)}.isdisjoint(matched)
                and are_opposite(a, b)
                and not (_list_feelings((a,)) or {"marital", "diet"} & facts.old.slots & facts.new.slots)
                and not _reports_change(facts)
            ):
                return "a word of one is the contrary of a word of the other"
    for a, b in facts.alignment.pairs:
        if facts.new.is_ended or facts.new.is_changed:
            break
        if have_contrary_roles(a, b) and a.kind is not TermKind.LIGHT:
            return "the directions are contrary, such as from and to"
    is_swapped = _has_swapped_roles(facts) or _has_reversed_order(facts)
    return "the two persons or things have changed places" if is_swapped else None


def decide_feeling(facts: FactComparison) -> RelationVerdict | None:
    """Decide the relation if one fact expresses liking and the other dislike; None otherwise."""
    old, new = (_list_feelings(terms) for terms in (facts.alignment.old, facts.alignment.new))
    if not has_opposite_feeling(facts):
        return None
    if len(facts.alignment.old) == len(old) and len(facts.alignment.new) == len(new):
        return decide_update(facts, "the feeling about the same thing has changed")
    return decide_different(facts, "the feelings are about different things")


def has_opposite_feeling(facts: FactComparison) -> bool:
    """Return whether one fact expresses liking, and the other dislike."""
    old, new = (_list_feelings(terms) for terms in (facts.alignment.old, facts.alignment.new))
    return any(are_opposite(a, b) for a in old for b in new)


def _list_feelings(terms: tuple[Term, ...]) -> list[Term]:
    return [term for term in terms if any(pole.startswith("feeling") for pole in term.opposites)]


def _reports_change(facts: FactComparison) -> bool:
    """Return whether the newer fact reports a change, which explains a contrary word.

    An English fact must have a verb such as "prefers": "now prefers light mode". The result is False if the
    older fact reports a change, too.
    """
    is_told = not facts.new.is_english or facts.new.has_word_of("preference_verbs")
    return facts.new.is_changed and not facts.old.is_changed and is_told


def _has_swapped_roles(facts: FactComparison) -> bool:
    """Return whether a person does in one fact what the user does to that person in the other.

    The result is False if the newer fact reports a change, or is Russian and tells an end, or if a fact has
    the word "by", as in the passive.
    """
    verb, other = _find_predicate(facts.old), _find_predicate(facts.new)
    if verb is None or other is None or verb.text[:4] != other.text[:4] or _is_passive(facts):
        return False
    is_over = facts.new.is_ended and not facts.new.is_english
    if (
        facts.new.is_changed
        or is_over
        or any(is_cyrillic(each.text) and not _is_predicate(each.text) for each in (verb, other))
    ):
        return False
    is_told = facts.old.has_word_of("objects") or facts.new.has_word_of("objects")
    return any(
        (a.is_someone or (a.kind is TermKind.WORD and is_told))
        and a.is_head != b.is_head
        and not (facts.new if a.is_head else facts.old).has_head
        for a, b in facts.alignment.pairs
    )


def _find_predicate(statement: ParsedFact) -> Term | None:
    return next(
        (
            term
            for term in statement.terms
            if not term.is_head and term.kind in (TermKind.WORD, TermKind.LIGHT)
        ),
        None,
    )


def _is_predicate(word: str) -> bool:
    return is_verb(word) or "ADJS" in list_grammemes(word)


def _has_reversed_order(facts: FactComparison) -> bool:
    """Return whether two things or people of both facts are in the opposite order: "tea over coffee".

    Other than in comparisons, only people and names count. The result is False if a fact has the word "by".
    """
    if _is_passive(facts):
        return False
    is_comparison = facts.old.has_word_of("order_comparisons") and facts.new.has_word_of("order_comparisons")
    pairs = [
        (a, b)
        for a, b in facts.alignment.pairs
        if a.kind not in (TermKind.LIGHT, TermKind.DATE, TermKind.NUMBER)
    ]
    return any(
        is_comparison or _have_changed_places(facts, first, second)
        for first in pairs
        for second in pairs
        if first[0].place < second[0].place and first[1].place > second[1].place
    )


def _have_changed_places(facts: FactComparison, first: tuple[Term, Term], second: tuple[Term, Term]) -> bool:
    """Return whether two people or names have exchanged their places before and after the verb.

    `first` and `second` are pairs of matched terms. The result is False for Russian names in the same forms,
    because their forms tell subject from object.
    """
    (a, b), (c, d) = first, second
    if is_cyrillic(a.text) and a.text == b.text and c.text == d.text:
        return False
    are_names = all(x.is_someone or y.is_someone for x, y in (first, second))
    return are_names and _has_word_between(facts.old, a, c) and _has_word_between(facts.new, d, b)


def _has_word_between(statement: ParsedFact, first: Term, second: Term) -> bool:
    return any(
        term.kind is TermKind.WORD and first.place < term.place < second.place for term in statement.terms
    )


def _is_passive(facts: FactComparison) -> bool:
    return "by" in facts.old.raw or "by" in facts.new.raw
