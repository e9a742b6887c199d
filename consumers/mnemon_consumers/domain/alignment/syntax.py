"""Structure of a sentence: its head, tense and prepositions, as far as short facts need them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from mnemon_consumers.domain.alignment.lexicon import is_date_or_unit, is_in_table, list_words, load_lexicon
from mnemon_consumers.domain.alignment.morphology import (
    is_cyrillic,
    is_nominative,
    is_past_verb,
    is_proper_name,
    list_grammemes,
)
from mnemon_consumers.domain.alignment.tokenizer import Token, list_number_keys

_CONTRARY_ROLES: Final = {
    frozenset(pair)
    for pair in pairwise(["to", "from", "", "before", "after", "", "with", "without", "", "for", "against"])
    if "" not in pair
} | {frozenset(("above", "below"))}

_BETWEEN: Final = 3
"""Maximum number of words between a verb and its particle, or between the two sides of a contrast."""

_PREDICATES: Final = ("VERB", "PRTS", "ADJS", "PRED")
"""OpenCorpora's grammemes of Russian predicates."""

_LOOKED_AT: Final = 6
"""Number of tokens, from the beginning, that are searched for the verb of a short fact."""


def are_contrary(role: str, other: str) -> bool:
    """Return whether two roles of prepositions, such as `with` and `without`, are contrary."""
    return frozenset((role, other)) in _CONTRARY_ROLES


def find_role(tokens: Sequence[Token], at: int) -> str:
    """Return the meaning, such as `from`, of a preposition that has a contrary one; empty for other words."""
    word = tokens[at].word
    if word in ("с", "со") and at + 1 < len(tokens):
        return "with" if "ablt" in list_grammemes(tokens[at + 1].word) else "from"
    return load_lexicon().roles.get(word, "")


def measure_head(tokens: Sequence[Token]) -> int:
    """Return the number of tokens at the beginning that are the subject.

    Returns:
        0 if the subject is the user or a pronoun such as "she", or if there is none. If an English
        fact has no verb near its beginning, the number of determiners before the subject, such as "the".
    """
    if not tokens or _is_user_after_time(tokens):
        return 0
    if is_cyrillic(tokens[0].word):
        return _measure_russian_head(tokens)
    start = 0
    while start < len(tokens) and tokens[start].word in list_words("determiners"):
        start += 1
    if start < len(tokens) and _is_subject(tokens[start]):
        return 0
    for at, token in enumerate(tokens[start : start + _LOOKED_AT], start):
        if token.word in list_words("auxiliaries") or token.is_denied:
            return at
        if at == start:
            is_verb_form = _is_verb_form(token.word) or token.word.endswith("ing")
            if start == 0 and (token.word in list_words("past_verbs") or is_verb_form):
                return 0  # a verb without a subject
        elif token.surface.islower() and (
            token.word in list_words("past_verbs") or _is_verb_form(token.word)
        ):
            following = tokens[at + 1].word if at + 1 < len(tokens) else ""
            return at + 1 if following in list_words("auxiliaries") else at
        elif start and at == start + 1 and _is_plural_of_people(tokens[start].word):
            return at
    return start


def _is_plural_of_people(word: str) -> bool:
    """Return whether an English word stands for several people, and so has a verb without an ending."""
    return word in list_words("irregular_plurals") or (
        word.endswith("s") and not word.endswith("ss") and is_in_table(word, "people")
    )


def _is_user_after_time(tokens: Sequence[Token]) -> bool:
    """Return whether a fact begins with the user or a pronoun, perhaps after a date: "Last week I moved"."""
    for token in tokens[:_LOOKED_AT]:
        if _is_subject(token):
            return True
        if list_number_keys(token.word) is None and not any(
            is_in_table(token.word, table) for table in ("dates", "units", "stop", "light")
        ):
            return False
    return False


def _is_subject(token: Token) -> bool:
    """Return whether a word is the user or a pronoun as a subject, also with a verb: "I'm", "he's"."""
    is_possessive = token.word in list_words("determiners")
    return not is_possessive and token.word.partition("'")[0] in list_words("subjects")


def join_particles(tokens: list[Token]) -> list[Token]:
    """Return the tokens with the particle of an English verb right after the verb.

    "Gave the chickens away" becomes "gave away the chickens". A time is no object of such a verb, so "took
    this week off" stays. Only the first particle moves.
    """
    phrasal_verbs = list_words("phrasal_verbs")
    for at, verb in enumerate(tokens):
        for other in range(at + 2, min(at + 2 + _BETWEEN, len(tokens))):
            between = tokens[at + 1 : other]
            if f"{verb.word}_{tokens[other].word}" in phrasal_verbs and not any(map(is_time, between)):
                return [*tokens[: at + 1], tokens[other], *tokens[at + 1 : other], *tokens[other + 1 :]]
    return tokens


def is_time(token: Token) -> bool:
    """Return whether an English word names a date, or a unit of time such as "week"."""
    return is_in_table(token.word, "dates") or token.word.removesuffix("s") in list_words("time_units")


def is_contrast(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a word denies only one of two things, as in "not tea but coffee" and "at 4, not 3"."""
    contrary = {"not": "but", "не": "а"}.get(tokens[at].word)
    if any(token.word == contrary for token in tokens[at + 2 : at + 2 + _BETWEEN]):
        return True
    if tokens[at].word != "not" or not tokens[at].is_clause_start:
        return False
    skipped = list_words("determiners") | list_words("time_prepositions")
    denied = next(
        (_find_numeric_kind(token) for token in tokens[at + 1 :] if token.word not in skipped), None
    )
    said = map(_find_numeric_kind, tokens[max(0, at - _BETWEEN) : at])
    return denied is not None and denied in said


def _find_numeric_kind(token: Token) -> str | None:
    """Return "number" or "date" for a token of that kind; None for any other token."""
    if list_number_keys(token.word) is not None:
        return "number"
    return "date" if is_in_table(token.word, "dates") else None


def is_intended(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a verb, or a noun for its action, names what a person only thinks of.

    For example, "moving" is such a verb in "is afraid of moving".

    An intended verb is an infinitive, has an auxiliary such as "will", is a gerund after a word such as "of",
    an English verb of moving in the progressive, or a Russian verb in the future. An intended noun follows a
    word such as "a" or "my". After a verb such as "managed", the action has happened, and is not intended.
    """
    word, before = tokens[at].word, [token.word for token in tokens[:at]]
    realising = list_words("realising_verbs")
    if is_cyrillic(word):
        tags = list_grammemes(word)
        near = before[-_BETWEEN:]
        is_denied = "не" in near
        return "futr" in tags or ("INFN" in tags and (is_denied or realising.isdisjoint(near)))
    before = [each for each in before if each not in list_words("adverbs")]
    last = before[-1] if before else ""
    if word.endswith("ing"):
        is_progressive = last in list_words("auxiliaries") or "'" in last
        is_moving = word in list_words("moving_verbs") and is_progressive
        return is_moving or last in list_words("before_gerund")
    is_noun = last in list_words("determiners") and word in list_words("slot_actions")
    return (is_noun or last in list_words("before_verbs")) and realising.isdisjoint(before[-2:-1])


def _is_verb_form(word: str) -> bool:
    return word.endswith(("s", "ed")) and not word.endswith("ss")


def is_copular(tokens: Sequence[Token], head: int) -> bool:
    """Return whether a fact says what a thing is, as in "The rent is 900".

    In Russian, a dash may stand for the verb: «Любимый цвет — синий» (the favourite colour is blue).

    `head` is the number of tokens of the subject, see `measure_head`.
    """
    if not 0 < head < len(tokens):
        return False
    if tokens[head].word in ("—", "–"):
        return True
    if is_cyrillic(tokens[0].word):
        is_verbless = all(list_grammemes(token.word).isdisjoint(_PREDICATES) for token in tokens)
        return is_verbless and any(is_in_table(token.word, "attributes") for token in tokens[:head])
    rest = [token.word for token in tokens[head:] if token.word not in list_words("adverbs")]
    following = rest[1] if len(rest) > 1 else ""
    return bool(rest) and rest[0] in list_words("copulas") and not following.endswith("ing")


def list_clause_starts(tokens: Sequence[Token], head: int) -> tuple[int, ...]:
    """Return the indexes of the tokens that begin a clause, in order; the first is 0.

    A dash begins a clause if a predicate stands before it. A dash right after the subject begins none,
    because it identifies a thing, as in «Основной телефон — Samsung» (the main phone is a Samsung). `head` is
    the number of tokens of the subject.
    """
    starts = [0]
    has_predicate = False
    for at, token in enumerate(tokens):
        is_after_dash = at > 1 and tokens[at - 1].word in ("—", "–") and at - 1 != head
        if at and (token.is_clause_start or (is_after_dash and has_predicate)):
            starts.append(at)
        has_predicate = has_predicate or _is_predicate(token)
    return tuple(starts)


def _is_predicate(token: Token) -> bool:
    if is_cyrillic(token.word):
        return not list_grammemes(token.word).isdisjoint(_PREDICATES)
    is_auxiliary = token.word in list_words("auxiliaries")
    return is_auxiliary or token.word in list_words("past_verbs") or token.word.endswith(("s", "ed", "ing"))


def _measure_russian_head(tokens: Sequence[Token]) -> int:
    if tokens[0].word == "у" and len(tokens) > 1:
        return 2
    words = [token.word for token in tokens]
    for at, word in enumerate(words[:_LOOKED_AT]):
        if word in "—–" or not list_grammemes(word).isdisjoint(_PREDICATES):
            return at if _has_subject(words[:at]) else 0
    nouns = (at + 1 for at, word in enumerate(words[:3]) if {"NOUN", "nomn"} <= list_grammemes(word))
    head = next(nouns, 0)
    if head and is_in_table(words[head - 1], "attributes"):
        head = _find_complement_end(words, head)
    return head if head < len(tokens) else 0


def _find_complement_end(words: Sequence[str], at: int) -> int:
    """Return the index of the word after the complement of a Russian attribute.

    For example, the complement is «обуви» in «размер обуви» (shoe size).
    """
    while at < len(words):
        is_linked = words[at] in list_words("complements")
        noun = at + 1 if is_linked else at
        if noun >= len(words) or not _is_complement(words[noun], is_linked=is_linked):
            break
        at = noun + 1
    return at


def _is_complement(word: str, *, is_linked: bool) -> bool:
    tags = list_grammemes(word)
    return bool(tags & {"NOUN", "ADJF"}) and (is_linked or "gent" in tags) and not is_date_or_unit(word)


def _has_subject(words: Sequence[str]) -> bool:
    """Return whether one of the words before a Russian verb may be its subject.

    For example, the result is False for «каждую неделю» (every week).
    """
    return any(
        (not is_cyrillic(word) and list_number_keys(word) is None)
        or (is_nominative(word) and "PREP" not in list_grammemes(before) | list_grammemes(word))
        or is_proper_name(word)
        or is_in_table(word, "people")
        for before, word in pairwise(("", *words))
    )


def is_past_form(word: str) -> bool:
    """Return whether a word is a verb in the past tense; English verbs are found by ending or in a list."""
    if is_cyrillic(word):
        return is_past_verb(word)
    return word.endswith("ed") or word in list_words("past_verbs")


def is_past(tokens: Sequence[Token]) -> bool:
    """Return whether a fact is about a past event or state, as far as its first `_LOOKED_AT` tokens tell."""
    before = ""
    for token in tokens[:_LOOKED_AT]:
        word, tags = token.word, list_grammemes(token.word)
        if is_past_verb(word) or (
            word in list_words("past_verbs") and before not in list_words("determiners")
        ):
            return True
        is_participle = before in list_words("auxiliaries") or word in list_words("participles")
        if not tags and len(word) > 4 and word.endswith("ed") and not is_participle:
            return True
        if word not in list_words("adverbs"):
            before = word
    return False


def find_reason_start(tokens: Sequence[Token]) -> int:
    """Return the index of the first token that begins a reason, such as "because".

    Returns:
        The number of tokens if none of them begins a reason.
    """
    return next((at for at, token in enumerate(tokens) if token.word in list_words("reasons")), len(tokens))
