"""Qualifications, such as "almost" and "if": words with which a fact says less than without them."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from mnemon_consumers.domain.alignment.lexicon import (
    is_date_or_unit,
    is_in_table,
    is_in_word_list,
    list_words,
)
from mnemon_consumers.domain.alignment.matching import Alignment
from mnemon_consumers.domain.alignment.morphology import is_symbol, is_verb, list_grammemes
from mnemon_consumers.domain.alignment.rules.revision import list_denied_values
from mnemon_consumers.domain.alignment.statement import ParsedFact
from mnemon_consumers.domain.alignment.term import (
    NUMERIC_KINDS,
    Term,
    TermKind,
    is_habitual,
    is_part_of_day,
    is_year,
)
from mnemon_consumers.domain.alignment.tokenizer import list_number_keys

_FREQUENCIES: Final = ("always", "often", "sometimes")
"""Names of lists of adverbs, each for another frequency."""

_TIMES: Final = ("morning", "afternoon", "evening", "night", "weekend", "workday")
_SEASONS: Final = ("spring", "summer", "autumn", "winter")
_LIMITING_DATES: Final = frozenset(f"dates {time}" for time in (*_TIMES, *_SEASONS))
"""Keys of dates that come again and again, and take up a part of the time only."""

_NEGATIVE_NUMBER: Final = re.compile(r"(?<![\w.,:)-])[-−–](\d+)")

_HOURS: Final = frozenset(("hours", "час", "часа", "часов"))
"""Units after an hour: "after 16 hours", «после 16 часов»."""

_MINUS: Final = frozenset(("minus", "минус"))

_PLAIN_SIGNS: Final = frozenset("№°℃℉™®©")
"""Signs of the Unicode category So, which also has the emoji, that tell no facts apart."""

_LONGEST_PHRASE: Final = 3
"""Number of words before a term in which a preposition of the list `limit_prepositions` limits the term."""


def find_other_qualification(alignment: Alignment) -> str | None:
    """Return the reason why two facts with matching words do not say the same.

    Returns:
        None if the qualifications of the facts match.
    """
    old, new = alignment.statements
    if old.raw == new.raw:
        return None
    if says_almost(old) != says_almost(new):
        return "only one of the facts says that something almost happened"
    if _is_hypothetical(old) != _is_hypothetical(new):
        return "only one of the facts is about an imagined case"
    if _has_other_condition(alignment):
        return "only one of the facts has a condition"
    frequencies = _list_frequencies(old), _list_frequencies(new)
    if all(frequencies) and frequencies[0].isdisjoint(frequencies[1]):
        return "the facts tell different frequencies"
    return None


def find_other_symbol(alignment: Alignment) -> str | None:
    """Return the reason why two facts with the same words differ in their symbols.

    For example, "Favourite food is 🍕" and "Favourite food is 🍔" differ, "500 €" and "500 $", and "-18" and
    "18". A symbol that only one of the facts has counts for nothing, except a minus.

    Returns:
        None if no symbol tells the facts apart.
    """
    old, new = (statement.text for statement in alignment.statements)
    symbols = _list_symbols(old), _list_symbols(new)
    if not (_is_subsequence(*symbols) or _is_subsequence(*reversed(symbols))):
        return "the facts have different emoji or currency signs"
    is_spelled_out = any(not _MINUS.isdisjoint(each.raw) for each in alignment.statements)
    if not is_spelled_out and _NEGATIVE_NUMBER.findall(old) != _NEGATIVE_NUMBER.findall(new):
        return "only one of the facts has the negative number"
    return None


def _list_symbols(text: str) -> list[str]:
    """Return the emoji, other pictographs and currency signs of a text, in order."""
    return [each for each in text if is_symbol(each) and each not in _PLAIN_SIGNS]


def _is_subsequence(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Return whether `whole` has the items of `part` in their order."""
    rest = iter(whole)
    return all(each in rest for each in part)


def find_partial_change(alignment: Alignment) -> str | None:
    """Return why the older fact may hold beside another value in the newer fact; None if it may not.

    For example, "Drinks coffee" may hold beside "Also drinks tea now", "Drinks tea at weekends now" and
    "Might drink tea again". A newer fact that only says more than the older fact gives no other value.
    """
    old, new = alignment.statements
    is_revised = old.denies_or_ends != new.denies_or_ends or bool(list_denied_values(new))
    says_more = not (alignment.old or is_revised)
    if _adds_value(alignment) and (not says_more or _adds_to_verb(alignment)):
        return "the newer fact says that it adds something"
    if says_more:
        return None
    if _is_uncertain(new) and not _is_uncertain(old):
        return "the newer fact says only that something is possible"
    if new.has_word_of("sometimes") and not old.has_word_of("sometimes"):
        return "only the newer fact says that something happens sometimes"
    is_timed = any(term.kind in NUMERIC_KINDS for term in old.terms)
    if not is_timed and any(is_part_of_time(new, term) for term in alignment.new):
        return "the newer fact is about a part of the time"
    if new.denies_or_ends and any(_is_time_of_day(new, term) for term in alignment.new):
        return "the newer fact denies or ends something at a time of day only"
    if _loses_only_thing(alignment):
        return "the loss of a thing may end no feeling, study or pastime"
    if _ends_activity_partly(alignment):
        return "the newer fact may end a part of the activity"
    return None


def _loses_only_thing(alignment: Alignment) -> bool:
    """Return whether a person lost a thing, and the older fact tells a feeling, search, study or pastime.

    "Misses her dog" holds beside "Lost her dog", and "Plays the guitar" beside "Sold the guitar". "Lost
    interest in chess" ends a feeling.
    """
    old, new = alignment.statements
    is_lost = any(is_in_word_list(word, "loss_verbs") for word in new.raw)
    is_attitude = any(is_in_word_list(word, "attitude_verbs") for word in old.raw)
    return is_lost and is_attitude and not (new.is_quit or new.has_word_of("interests"))


def _ends_activity_partly(alignment: Alignment) -> bool:
    """Return whether a person stopped an activity perhaps only at a place or in company.

    For example, "Stopped eating sugar at work" may leave the sugar at home of "Eats sugar".
    """
    new = alignment.statements[1]
    return any(_is_stopped_activity(new, term) for term in new.terms) and any(
        term.kind in (TermKind.WORD, TermKind.NAME) and follows_limit(new, term)
        for term in alignment.new
        if term.place < new.reason_at
    )


def _is_stopped_activity(statement: ParsedFact, term: Term) -> bool:
    """Return whether a term is a gerund or an infinitive after a word such as "stopped": «перестал пить»."""
    word = term.text.split()[0]
    is_stopped = is_in_table(statement.find_word_before(term), "quit")
    return is_stopped and (word.endswith("ing") or "INFN" in list_grammemes(word))


def _is_time_of_day(statement: ParsedFact, term: Term) -> bool:
    """Return whether a term tells an hour or a part of the day: "after 3 pm", «после обеда» (after lunch)."""
    if term.kind is TermKind.NUMBER:
        following = statement.find_word_after(term)
        is_duration = is_in_table(following, "units") and following not in _HOURS
        return term.role in ("after", "before") and not (is_year(term) or is_duration)
    if is_in_word_list(term.text, "meals"):
        return term.role in ("after", "before")
    is_one_day = statement.find_word_before(term) in ("this", "last", "next", "yesterday")
    return is_part_of_day(term) and not is_one_day


def is_limited(alignment: Alignment, side: int) -> bool:
    """Return whether one fact holds only at a place, for a purpose or with a companion, unlike the other.

    For example, the result is True for "Eats meat again at weddings" beside "Doesn't eat meat".

    Args:
        alignment: the facts.
        side: 0 for the older fact, 1 for the newer fact.
    """
    statement, left = alignment.statements[side], (alignment.old, alignment.new)[side]
    return any(follows_limit(statement, term) for term in left)


def follows_limit(statement: ParsedFact, term: Term) -> bool:
    """Return whether a preposition of the list `limit_prepositions` stands shortly before a term."""
    return statement.has_listed_word_before(term, "limit_prepositions", within=_LONGEST_PHRASE)


def _adds_to_verb(alignment: Alignment) -> bool:
    """Return whether "also" stands before a word of both facts, and other words match as synonyms only."""
    new, adverbs = alignment.statements[1], list_words("value_addition_adverbs")
    pairs = [(a.keys & b.keys, b) for a, b in alignment.pairs if a.weight]
    repeated = [b for keys, b in pairs if any(" " not in key for key in keys)]
    return len(repeated) < len(pairs) and any(new.find_word_before(term) in adverbs for term in repeated)


def _is_uncertain(statement: ParsedFact) -> bool:
    raw = statement.raw
    if statement.has_word_of("uncertainty_words"):
        return True
    if "может" in raw:
        following = raw[raw.index("может") + 1 :]
        # «Может плавать» tells an ability, «может, перееду» a doubt.
        return following[:1] == ("быть",) or not any("INFN" in list_grammemes(word) for word in following)
    # "You may" gives a permission.
    return any(word == "may" and before in ("i", "he", "she", "we", "they") for before, word in pairwise(raw))


def _adds_value(alignment: Alignment) -> bool:
    """Return whether only one fact has a word such as "also", or the newer fact has words that add something.

    Such words are "the side" in "on the side", and «и» (also) after a verb or after «теперь» (now). In the
    older fact, «ещё» does not count, because it may mean "still". The result is False if the newer fact is a
    denial or tells an end.
    """
    old, new = alignment.statements
    if new.denies_or_ends:
        return False
    adverbs = list_words("value_addition_adverbs")
    words = adverbs.intersection(old.raw), adverbs.intersection(new.raw)
    if bool(words[0]) != bool(words[1]):
        return bool(words[1]) or words[0] != {"еще"}
    joined = (before for before, word in pairwise(new.raw) if word == "и")
    return ("the", "side") in pairwise(new.raw) or any(is_verb(word) or word == "теперь" for word in joined)


def is_part_of_time(statement: ParsedFact, date: Term) -> bool:
    """Return whether a date, such as "on Mondays" or "in winter", leaves other times out."""
    if date.kind is not TermKind.DATE:
        return False
    if is_habitual(date) or date.text == "по":
        return True
    is_event = statement.is_past or statement.find_word_before(date) in ("this", "last", "next")
    is_plural = date.text.endswith("s")
    return not date.keys.isdisjoint(_LIMITING_DATES) and (is_plural or not is_event)


def says_almost(statement: ParsedFact) -> bool:
    """Return whether a fact says that something almost happened, such as "almost moved".

    Before an amount such a word only says how large the amount is: "almost 30 years old", "nearly every day".
    """
    raw = statement.raw
    if any(
        word in list_words("near_miss_adverbs") and "не" in raw[at + 1 : at + 3]
        for at, word in enumerate(raw)
    ):
        return True
    kinds = {term.place: term.kind for term in statement.terms}
    said = [(at, word) for at, word in enumerate(raw) if word not in list_words("determiners")]
    return any(
        word in list_words("almost") and kinds.get(at) is not TermKind.NAME and not _is_amount_word(following)
        for (at, word), (_, following) in pairwise(said)
    )


def _is_amount_word(word: str) -> bool:
    is_number = list_number_keys(word) is not None
    return (
        is_number
        or is_date_or_unit(word)
        or word in list_words("quantifiers")
        or word in list_words("always")
    )


def _is_hypothetical(statement: ParsedFact) -> bool:
    """Return whether a fact imagines something; "would like to" and «хотел бы» tell a wish."""
    return statement.has_word_of("hypothetical_words") and not statement.has_word_of("wish_words")


def _has_other_condition(alignment: Alignment) -> bool:
    """Return whether a condition in one fact, such as "if it rains", has no word of the other fact.

    A newer fact that ends or denies the whole also ends what the older fact says on a condition.
    """
    old, new = alignment.statements
    ends_old = new.denies_or_ends and not old.is_negated
    return any(
        not _is_shared(condition, alignment, side)
        for side, statement in enumerate(alignment.statements)
        if not (ends_old and side == 0)
        for condition in _list_conditions(statement)
    )


def _is_shared(condition: range, alignment: Alignment, side: int) -> bool:
    """Return whether the other fact has a term of a condition.

    If the condition has no terms, the other fact must have all words of the condition. `side` is 0 if the
    condition is in the older fact, and 1 if it is in the newer fact.
    """
    statement, other = alignment.statements[side], alignment.statements[1 - side]
    if any(term.place in condition for term in statement.terms):
        return any(pair[side].place in condition for pair in alignment.pairs)
    return all(statement.raw[at] in other.raw for at in condition)


def _list_conditions(statement: ParsedFact) -> list[range]:
    """Return the indexes of the words of each condition.

    In a past fact, "when" tells the time of an event, and begins no condition.
    """
    words = list_words("conditions")
    if not statement.is_past:
        words |= list_words("whenever")
    starts = [at for at, word in enumerate(statement.raw) if word in words]
    ends = (*statement.clause_starts, len(statement.raw))
    return [range(start + 1, min(end for end in ends if end > start)) for start in starts]


def _list_frequencies(statement: ParsedFact) -> set[str]:
    return {frequency for frequency in _FREQUENCIES if statement.has_word_of(frequency)}
