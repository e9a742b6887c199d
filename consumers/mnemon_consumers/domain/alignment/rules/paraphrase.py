"""Paraphrase: whether facts with matching words say the same, more or less."""

from collections.abc import Sequence
from typing import Final

from mnemon_consumers.domain.alignment.comparison import SUBSET_SHARE, FactComparison
from mnemon_consumers.domain.alignment.lexicon import list_lookup_forms, list_words
from mnemon_consumers.domain.alignment.matching import differ_in_tense, is_kind_of
from mnemon_consumers.domain.alignment.morphology import is_verb, list_forms, list_grammemes
from mnemon_consumers.domain.alignment.rules.clauses import has_unmatched_clause
from mnemon_consumers.domain.alignment.rules.decision import (
    choose_doubtful_relation,
    decide_doubtful,
    decide_open,
    decide_same,
    decide_undecided,
    decide_update,
)
from mnemon_consumers.domain.alignment.rules.noun_phrase import (
    find_preposition,
    is_preposition,
    may_be_noun,
    qualifies_noun,
)
from mnemon_consumers.domain.alignment.rules.stage import is_carried_out
from mnemon_consumers.domain.alignment.statement import (
    ParsedFact,
    is_part_of_phrase,
    leaves_place,
    tells_past_state,
)
from mnemon_consumers.domain.alignment.term import WISH_STAGES, Term, TermKind, list_kinds
from mnemon_consumers.domain.alignment.verdict import RelationVerdict

_SAME_SHARE: Final = 0.5
"""Minimum share of each fact that must have a counterpart for differently worded facts to be the same."""


def decide_paraphrase(facts: FactComparison) -> RelationVerdict:
    """Decide the relation of facts that differ in their wording only, as far as the other rules can tell."""
    return (
        _decide_circumstances(facts)
        or _decide_place(facts)
        or _decide_predicate(facts)
        or _decide_equal_words(facts)
        or _decide_heads(facts)
        or _decide_more_said(facts)
        or _decide_less_said(facts)
        or _decide_common_words(facts)
    )


def _decide_circumstances(facts: FactComparison) -> RelationVerdict | None:
    """Decide the relation of facts that differ in circumstances; None for other facts.

    Circumstances are an amount, the object or place of a verb, the time, a change or a switch that only the
    newer fact reports, and a description of a thing of which the older fact only says that it exists.
    """
    old, new = facts.share_old, facts.share_new
    if (new >= SUBSET_SHARE and _drops_amount(facts)) or _describes_known_thing(facts):
        return decide_update(facts, "the newer fact says the same with another amount, or more exactly")
    if _names_other_object(facts):
        return decide_undecided(facts, "one of the facts names another object or place of the verb")
    if _changes_count_to_once(facts):
        return decide_update(facts, "the newer fact says the same of another amount")
    if _is_of_another_time(facts):
        return decide_undecided(facts, "one of the facts is about another time")
    if new >= SUBSET_SHARE > old and facts.new.is_changed and not facts.old.is_changed:
        return decide_undecided(facts, "the newer fact says that something has changed")
    if facts.new.has_word_of("switch_verbs") and not facts.old.has_word_of("switch_verbs"):
        return decide_undecided(
            facts, "the newer fact says that a person has switched, perhaps something else"
        )
    return None


def _decide_place(facts: FactComparison) -> RelationVerdict | None:
    """Decide if the newer fact says that a person has left a place in the older fact; None otherwise."""
    if not any(
        a.role == "to" and leaves_place(facts.new, b) and not leaves_place(facts.old, a)
        for a, b in facts.alignment.pairs
    ):
        return None
    evidence = "the newer fact says that a person has left the place in the older fact"
    if facts.new.is_changed and facts.share_old >= SUBSET_SHARE and not facts.old.is_past:
        return decide_update(facts, evidence)
    return decide_undecided(facts, evidence)


def _decide_predicate(facts: FactComparison) -> RelationVerdict | None:
    """Decide if the facts have an object in common and say different things about it; None otherwise."""
    if max(facts.share_old, facts.share_new) < SUBSET_SHARE or facts.new.denies_or_ends:
        return None
    if _is_only_one_a_wish(facts):
        return decide_undecided(facts, "only one of the facts is a wish")
    if _is_only_one_about_possession(facts):
        return decide_undecided(facts, "one of the facts only says that a person has the thing in the other")
    return None


def _is_only_one_a_wish(facts: FactComparison) -> bool:
    """Return whether one fact is a wish for a thing, and the other is no wish: "Needs a car", "Owns a car".

    False if the newer fact says that a person now has what the older fact plans to have.
    """
    old, new = facts.old, facts.new
    if _wishes_for_thing(old, facts.alignment.old):
        is_carried_out = old.is_planned and new.has_word_of("possession_words")
        return not (_is_wish(new) or new.is_planned or is_carried_out)
    return _wishes_for_thing(new, facts.alignment.new) and not (_is_wish(old) or old.is_planned)


def _wishes_for_thing(statement: ParsedFact, left: Sequence[Term]) -> bool:
    """Return whether a fact only says that the user needs or wants a thing that the other fact names."""
    verbs = [term for term in statement.terms if term.kind is TermKind.LIGHT]
    is_wish = any(not verb.stages.isdisjoint(WISH_STAGES) for verb in verbs)
    return is_wish and not (statement.has_head or any(term.kind is not TermKind.LIGHT for term in left))


def _is_only_one_about_possession(facts: FactComparison) -> bool:
    """Return whether only one fact says that a person has a thing: "Has a cat", "Is allergic to cats"."""
    old, new, left = facts.old, facts.new, facts.alignment
    things = [(a, b) for a, b in left.pairs if a.kind is not TermKind.LIGHT and not (a.is_head or b.is_head)]
    if not things or any(each.is_past or each.is_planned for each in (old, new)):
        return False
    a, b = things[0]
    return (_only_tells_possession(old, left.old) and _is_in_predicate(new, b, left.new)) or (
        _only_tells_possession(new, left.new) and _is_in_predicate(old, a, left.old)
    )


def _only_tells_possession(statement: ParsedFact, left: Sequence[Term]) -> bool:
    return statement.has_word_of("possession_words") and all(term.kind is TermKind.LIGHT for term in left)


def _is_in_predicate(statement: ParsedFact, thing: Term, left: Sequence[Term]) -> bool:
    """Return whether a thing belongs to a predicate such as "allergic to", and no word says who has it."""
    before = statement.raw[max(0, thing.place - 2) : thing.place]
    is_owned = statement.has_word_of("possession_words") or statement.has_word_of("possessives")
    is_companion = "with" in (thing.role, *before)
    is_governed = (
        bool(thing.role)
        or any(is_preposition(word) or word.endswith("ing") for word in before)
        or any(term.kind is TermKind.WORD and not (term.place or term.is_head) for term in left)
    )
    return is_governed and not (is_owned or is_companion)


def _decide_equal_words(facts: FactComparison) -> RelationVerdict | None:
    """Decide if all words of each fact have a counterpart in the other; None otherwise."""
    if facts.score < SUBSET_SHARE:
        return None
    if is_carried_out(facts):
        return decide_update(facts, "the newer fact says that the plan is carried out")
    if _has_other_denials(facts):
        return decide_update(facts, "the newer fact denies more, less or something else")
    if any(a.role != b.role and "from" in (a.role, b.role) for a, b in facts.alignment.pairs):
        return decide_undecided(facts, "one of the facts has the same words in other roles")
    if _tell_other_losses(facts):
        return decide_undecided(facts, "the facts tell different ways in which a person lost the thing")
    is_repeated = all(_have_one_form(a, b) or is_kind_of(a, b) for a, b in facts.alignment.pairs)
    return decide_same(facts, "all words of one have a counterpart in the other", is_covered=is_repeated)


def _decide_heads(facts: FactComparison) -> RelationVerdict | None:
    """Decide if the facts may be about two subjects, or say different things about one; None otherwise."""
    if any(term.is_head for term in facts.left) and (facts.score < 0.75 or _is_person_narrowed(facts)):
        return decide_doubtful(facts, "one of the facts may be about something else")
    left = facts.alignment
    objects = [a for a, _ in left.pairs if a.kind is not TermKind.LIGHT and not a.is_head]
    has_other_verb = _has_own_verb(facts.new, left.new) or _has_own_verb(facts.old, left.old)
    is_open = facts.score < SUBSET_SHARE and not is_carried_out(facts)
    if len(objects) <= 1 and has_other_verb and is_open:
        return decide_undecided(facts, "the facts say different things about one subject")
    return None


def _decide_more_said(facts: FactComparison) -> RelationVerdict | None:
    """Decide if the newer fact seems to say all of the older fact, and more; None otherwise.

    It may also say only a part of a comparison, complete a plan, or apply to every day.
    """
    if max(facts.share_old, facts.share_new) >= SUBSET_SHARE and _shares_only_word_in_other_role(facts):
        return decide_undecided(facts, "the only common word has another role or meaning in each fact")
    is_whole = facts.share_old >= SUBSET_SHARE and not _shares_only_part_of_phrase(facts)
    if is_whole and _is_before_or_after(facts):
        return decide_undecided(facts, "only the newer fact is about the time before or after the thing")
    if is_whole and (
        _count_content_pairs(facts) >= 2 or len(facts.alignment.new) <= 2 or _is_continued(facts)
    ):
        return decide_update(facts, "the newer fact says the same, and more")
    if _is_part_of_comparison(facts):
        return decide_undecided(facts, "only one of the facts compares things, or they compare others")
    if facts.share_new >= SUBSET_SHARE and is_carried_out(facts):
        return decide_update(facts, "the newer fact says that the plan is carried out")
    if list_kinds(facts.alignment.old) == {TermKind.DATE} and facts.new.has_word_of("totality_words"):
        return decide_update(facts, "the newer fact applies to every day")
    return None


def _is_before_or_after(facts: FactComparison) -> bool:
    """Return whether a thing of both facts only limits a time in the newer one: "After school she swims"."""
    is_continued = facts.new.is_changed or facts.new.is_resumed or facts.new.has_word_of("return_words")
    return not is_continued and any(
        a.kind is TermKind.WORD
        and facts.new.has_listed_word_before(b, "time_limits", within=2)
        and not facts.old.has_listed_word_before(a, "time_limits", within=2)
        for a, b in facts.alignment.pairs
    )


def _decide_less_said(facts: FactComparison) -> RelationVerdict | None:
    """Decide if the newer fact says a part of the older fact, or is about a past event; None otherwise."""
    left, is_part = facts.alignment, facts.share_new >= SUBSET_SHARE
    if is_part and left.old and any(is_kind_of(b, a) for a, b in left.kind_pairs):
        return decide_undecided(facts, "the newer fact says a part of the older one, and more exactly")
    is_event = facts.new.is_past and not (facts.new.is_changed or facts.old.is_past or facts.old.is_planned)
    if is_event and facts.score >= _SAME_SHARE:
        return decide_undecided(facts, "only the newer fact is about the past")
    if is_part and any(a.role == "from" and b.role != "from" for a, b in left.pairs):
        return decide_undecided(facts, "only the older fact says that something comes from what both name")
    if is_part and facts.new.denies_or_ends and not facts.old.denies_or_ends:
        return decide_undecided(
            facts, "only the newer fact denies something, or says that something has ended"
        )
    is_long_or_short = _count_content_pairs(facts) >= 2 or len(left.old) <= 2
    if is_part and is_long_or_short and not _shares_only_part_of_phrase(facts):
        return decide_same(facts, "the older fact says the same, and more", is_covered=True)
    return None


def _decide_common_words(facts: FactComparison) -> RelationVerdict:
    """Decide by the share of words that have a counterpart."""
    pairs, says_same, left = _count_content_pairs(facts), facts.says_same_of_subject(), facts.alignment
    evidence = f"{facts.score:.0%} of the words have a counterpart"
    if facts.score >= _SAME_SHARE and pairs >= 2 and says_same:
        if facts.new.is_planned and has_unmatched_clause(facts):
            return decide_undecided(facts, "the newer fact is a plan for a part of what the older one says")
        if all(any(map(_is_addition, side)) for side in (left.old, left.new)) or _has_other_additions(facts):
            return decide_undecided(facts, "each fact has an addition that the other lacks")
        if _differs_in_clause(facts):
            return decide_undecided(facts, "two clauses begin with the same word and differ after it")
        return decide_same(facts, evidence)
    if pairs and not says_same:
        return decide_undecided(
            facts, "both facts may be about one subject, and say different things about it"
        )
    if pairs and facts.share_new >= SUBSET_SHARE > facts.share_old:
        return decide_undecided(facts, "the older fact may say the same, and more")
    return decide_open(facts, choose_doubtful_relation(facts), evidence)


def _count_content_pairs(facts: FactComparison) -> int:
    return sum(a.kind is not TermKind.LIGHT for a, _ in facts.alignment.pairs)


def _shares_only_part_of_phrase(facts: FactComparison) -> bool:
    """Return whether the only common word qualifies another in one of the facts: "piano", "piano lessons"."""
    left = facts.alignment
    return _count_content_pairs(facts) == 1 and (
        is_part_of_phrase(facts.new, left.new)
        or is_part_of_phrase(facts.old, left.old)
        or any(_is_complement(b, left.new) for _, b in left.pairs)
        or any(_is_complement(a, left.old) for a, _ in left.pairs)
    )


def _is_complement(term: Term, left: Sequence[Term]) -> bool:
    """Return whether a term is a Russian noun in the genitive, right after a noun of `left`.

    For example, «бухгалтеров» is one in «курсы бухгалтеров» (courses for accountants).
    """
    is_after_noun = any(
        other.place + 1 == term.place and "NOUN" in list_grammemes(other.text) for other in left
    )
    return is_after_noun and {"NOUN", "gent"} <= list_grammemes(term.text)


def _shares_only_word_in_other_role(facts: FactComparison) -> bool:
    """Return whether the facts share only a name in two roles, or two similar words, one of them in a denial.

    For example, "Alex is vegetarian" and "Use they/them for Alex" have a name in two roles, and "Saves for a
    tablet" and "Don't use tables" have two words of one root.
    """
    pairs = [(a, b) for a, b in facts.alignment.pairs if a.kind is not TermKind.LIGHT]
    if len(pairs) != 1 or facts.score >= SUBSET_SHARE or is_carried_out(facts):
        return False
    ((a, b),) = pairs
    is_in_other_role = (a.role, a.is_head) != (b.role, b.is_head) and b.role != "from"
    is_denied_in_one = ("not" in facts.old.tokens) != ("not" in facts.new.tokens)
    return (a.kind is TermKind.NAME and is_in_other_role) or (a.keys.isdisjoint(b.keys) and is_denied_in_one)


def _is_addition(term: Term) -> bool:
    """Return whether a term belongs to a phrase such as "with milk" or «без сахара» (without sugar)."""
    return term.role in ("with", "without") or term.text.split()[0] in ("без", "without")


def _has_other_additions(facts: FactComparison) -> bool:
    """Return whether a word of both facts belongs to another phrase in each: "strong tea", "tea at noon"."""
    old, new = facts.alignment.old, facts.alignment.new
    return any(
        a.kind is TermKind.WORD
        and (_is_qualified(facts.old, a, old) or qualifies_noun(facts.old, old, a))
        and (_is_qualified(facts.new, b, new) or qualifies_noun(facts.new, new, b))
        for a, b in facts.alignment.pairs
    )


def _is_qualified(statement: ParsedFact, thing: Term, left: Sequence[Term]) -> bool:
    """Return whether a term of `left` stands right before a thing, or follows it as a date or complement."""
    return any(
        (term.kind is TermKind.WORD and thing.place - term.place == 1 and not is_verb(term.text))
        or (term.kind is TermKind.DATE and term.place == thing.place + 1)
        or (term.kind is not TermKind.PERSON and find_preposition(statement, term) == thing.place + 1)
        for term in left
    )


def _tell_other_losses(facts: FactComparison) -> bool:
    """Return whether the facts tell different ways of losing a thing: "sold the car", "crashed the car"."""
    old, new = (
        {form for word in statement.raw for form in (word, *list_lookup_forms(word))}
        & list_words("loss_verbs")
        for statement in (facts.old, facts.new)
    )
    return bool(old and new) and old.isdisjoint(new)


def _have_one_form(a: Term, b: Term) -> bool:
    """Return whether two terms are the same word, not only synonyms."""
    return any(not key.startswith("same ") for key in a.keys & b.keys)


def _drops_amount(facts: FactComparison) -> bool:
    """Return whether the newer, Russian fact reports a change, and lacks only the older fact's amount."""
    is_marked = facts.new.is_changed and not (facts.old.is_changed or facts.new.is_english)
    return is_marked and list_kinds(facts.alignment.old) == {TermKind.NUMBER}


def _names_other_object(facts: FactComparison) -> bool:
    """Return whether a verb of a phrase in one fact has another object or place in the other fact.

    For example, "found work" and "found a ring" have other objects, and "runs in Leeds" has none beside "runs
    a bakery in Leeds".
    """
    sides = (facts.old, facts.new)
    left = (facts.alignment.old, facts.alignment.new)
    return any(_have_other_last_words(a, b) for a, b in facts.alignment.pairs) or any(
        (
            _begins_phrase(pair[1 - at], pair[at])
            or _lacks_object(sides[at], pair[at], sides[1 - at], pair[1 - at])
        )
        and any(_is_object(sides[1 - at], term, pair[1 - at]) for term in left[1 - at])
        for at in range(len(sides))
        for pair in facts.alignment.pairs
    )


def _have_other_last_words(a: Term, b: Term) -> bool:
    """Return whether two phrases end in different words and are no synonyms of the thesaurus.

    For example, the result is True for «держит пчёл» (keeps bees) and «держит пост» (fasts).
    """
    is_phrase = " " in a.text and " " in b.text and a.kind is b.kind is TermKind.WORD
    words = [list_forms(term.text.split()[-1]) for term in (a, b)]
    is_same = any(key.startswith("same ") for key in a.keys & b.keys)
    return is_phrase and words[0].isdisjoint(words[1]) and not is_same


def _lacks_object(statement: ParsedFact, verb: Term, other: ParsedFact, other_verb: Term) -> bool:
    """Return whether an English verb has an object only in the other fact: "runs a bakery"."""
    is_before_preposition = is_preposition(statement.find_word_after(verb))
    is_object_said = other.find_word_after(other_verb) in list_words("determiners")
    return (
        statement.is_english and is_before_preposition and is_object_said and not may_be_noun(statement, verb)
    )


def _begins_phrase(verb: Term, phrase: Term) -> bool:
    return phrase.text.startswith(f"{verb.text} ")


def _is_object(statement: ParsedFact, term: Term, verb: Term) -> bool:
    """Return whether a term is the object of a verb right before it, or the place to which a person goes."""
    is_noun = may_be_noun(statement, term) and find_preposition(statement, term) < verb.end
    return 0 <= term.place - verb.end <= 1 and (is_noun or term.role == "to")


def _changes_count_to_once(facts: FactComparison) -> bool:
    """Return whether the older fact names a number of times, and the newer fact says "раз" (once)."""
    left = facts.alignment
    is_single = "раз" in facts.new.raw and not any(term.kind is TermKind.NUMBER for term in facts.new.terms)
    is_amount = list_kinds(left.old) == {TermKind.NUMBER} and facts.old.find_word_after(left.old[0]) in (
        "раз",
        "раза",
    )
    return is_amount and is_single and not left.new


def _describes_known_thing(facts: FactComparison) -> bool:
    """Return whether the newer fact describes a thing of which the older fact says «есть» (there is)."""
    old, new, left = facts.old, facts.new, facts.alignment
    if "есть" not in old.raw or new.is_negated or new.is_ended or left.old:
        return False
    is_told = new.is_copular or "name" in new.slots
    return is_told and any((b.is_head or not b.place) and b.kind is TermKind.WORD for _, b in left.pairs)


def _is_of_another_time(facts: FactComparison) -> bool:
    """Return whether only the newer fact is about a past state or a plan, or a verb has different tenses.

    False if the newer fact reports an end, a change, a resumption, or that a plan is carried out.
    """
    if facts.new.is_ended or facts.new.is_changed or facts.new.is_resumed or is_carried_out(facts):
        return False
    is_over = (
        facts.new.is_past and not (facts.old.is_past or facts.old.is_planned) and tells_past_state(facts.new)
    )
    is_to_come = facts.new.is_planned and not (facts.old.is_planned or _is_wish(facts.old))
    if (is_over or is_to_come) and max(facts.share_old, facts.share_new) >= SUBSET_SHARE:
        return True
    return facts.new.is_past != facts.old.is_past and any(
        differ_in_tense(a, b) for a, b in facts.alignment.pairs
    )


def _is_wish(statement: ParsedFact) -> bool:
    """Return whether a fact has a word for a wish that is no plan: "would like", "needs", "prefers"."""
    return statement.has_word_of("preference_verbs") or any(
        "search+" in term.stages for term in statement.terms
    )


def _is_person_narrowed(facts: FactComparison) -> bool:
    """Return whether a word after a person says which person is meant: "the neighbour upstairs"."""
    people = {
        (side, pair[side].place)
        for pair in facts.alignment.pairs
        for side in (0, 1)
        if pair[side].kind is TermKind.PERSON and pair[side].is_head
    }
    return any(
        term.kind is TermKind.WORD and term.is_head and any(s == side and p < term.place for s, p in people)
        for side, left in enumerate((facts.alignment.old, facts.alignment.new))
        for term in left
    )


def _has_own_verb(statement: ParsedFact, left: Sequence[Term]) -> bool:
    """Return whether `left` has a verb with content, such as "rented" where the other fact says "has"."""
    return any(
        term.kind is TermKind.WORD
        and not term.is_head
        and (is_verb(term.text) or (statement.is_english and _is_before_object(statement, term)))
        for term in left
    )


def _is_before_object(statement: ParsedFact, term: Term) -> bool:
    is_first = all(other.is_head or other.place >= term.place for other in statement.terms)
    is_third_person = statement.has_head and term.text.endswith("s") and not term.text.endswith("ss")
    is_followed = statement.find_word_after(term) in list_words("determiners")
    return is_first and (is_followed or is_third_person or term.text in list_words("past_verbs"))


def _is_continued(facts: FactComparison) -> bool:
    """Return whether the newer fact begins like the older fact: "has a dog", "has a dog called Rex"."""
    old, new = _drop_fillers(facts.old), _drop_fillers(facts.new)
    return len(old) >= 2 and new[: len(old)] == old


def _drop_fillers(statement: ParsedFact) -> list[str]:
    """Return the words of a fact except words for the user, determiners, counts and light words."""
    fillers = list_words("user") | list_words("determiners") | {"s"}
    numbers = {term.text for term in statement.terms if term.kind is TermKind.NUMBER}
    light = {term.text for term in statement.terms if term.kind is TermKind.LIGHT}
    return [word for word in statement.raw if word not in fillers | numbers | light]


def _is_part_of_comparison(facts: FactComparison) -> bool:
    """Return whether the newer fact has only a part of what the older fact compares.

    For example, the result is True for "Uses Windows" beside "Thinks Linux is better than Windows", and for
    "Prefers coffee to cocoa" beside "Prefers tea to coffee".
    """
    left = facts.alignment
    if facts.old.has_word_of("degree_comparisons") and not facts.new.has_word_of("degree_comparisons"):
        return bool(left.old) and facts.share_new >= SUBSET_SHARE
    comparisons = list_words("order_comparisons")
    is_compared = facts.old.has_word_of("order_comparisons") and facts.new.has_word_of("order_comparisons")
    verbs = [b.place for _, b in left.pairs if b.text in comparisons]
    has_moved = any(
        facts.old.words.index(a) != facts.new.words.index(b)
        for a, b in left.pairs
        if a.kind is not TermKind.LIGHT and b.place - 1 in verbs
    )
    return is_compared and has_moved and bool(left.old and left.new)


def _has_other_denials(facts: FactComparison) -> bool:
    """Return whether the facts may deny different things: "neither meat nor fish", "fish, but no meat"."""
    denials = facts.old.tokens.count("not"), facts.new.tokens.count("not")
    return denials[0] != denials[1] or (denials[0] > 0 and facts.new.is_changed != facts.old.is_changed)


def _differs_in_clause(facts: FactComparison) -> bool:
    """Return whether later clauses of the facts begin with the same word and differ after it.

    For example, the later clauses of two facts about a job may be "likes tennis" and "likes golf".
    """
    old, new = (
        {
            statement.raw[clause.start]
            for clause in statement.clauses[1:]
            if any(term.place in clause[1:] for term in left)
        }
        for statement, left in ((facts.old, facts.alignment.old), (facts.new, facts.alignment.new))
    )
    return not old.isdisjoint(new)
