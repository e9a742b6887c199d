"""Comparison of a new statement with known facts, which the statement may repeat or replace."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mnemon_infra.models.language.offline.rules import (
    ENGLISH,
    RUSSIAN,
    Slot,
    compile_forms,
    join_alternatives,
)
from mnemon_infra.models.language.offline.sentences import straighten_quotes
from mnemon_infra.models.language.offline.statements import UserStatement
from mnemon_infra.models.language.port import PromptFact
from mnemon_infra.models.words import bm25

_NOT_OF_THE_USER: Final = compile_forms(
    rf"""{ENGLISH.words["KIN"]}(?:s (?:birthday|b-?day))?\b(?! (?:is|was) born)|
    {ENGLISH.words["HEALTH_OF_OTHERS"]}|{RUSSIAN.words["HEALTH_OF_OTHERS"]}|
    (?:{"|".join(RUSSIAN.words[name] for name in ("HE_OR_SHE", "OF_KIN", "OF_WHOM", "THEY"))})(?!\w)"""
)
_DENIAL: Final = compile_forms(
    r"""(?:not|no|never|no longer|any ?more|stopped|quit|gave up|given up|left|lost)\b|
    (?:don|doesn|isn|aren|can|won|didn|wasn)'?t\b|cannot\b|
    (?:не|нет|больше не|уже не|бросила?|перестала?|уволил\w*|разлюбила?|нельзя)(?!\w)"""
)
_OF_ENDING: Final = compile_forms(
    r"""(?:no longer|any ?more|stopped|quit|gave up|given up|don't|do not|used to)\b|
    (?:больше|уже|бросила?|перестала?|завязала?|разлюбила?|отказал\w+)(?!\w)"""
)
_OF_CANCELLATION: Final = compile_forms(
    rf"""(?:cancelled|canceled|called off|after all|trip|going|flying|travell?ing|moving|visiting|meeting)\b|
    (?:{RUSSIAN.words["CANCELLED"]}|{RUSSIAN.words["GOING"]}(?!\w)|поездк\w+|уже|вс[её]-таки)"""
)
_PLANS: Final = tuple(rule.pattern for rule in (*ENGLISH.rules, *RUSSIAN.rules) if rule.name == "plans")
_UPCOMING: Final = compile_forms(r"getting (?:married|divorced)\b")
_OF_WORK: Final = compile_forms(r"(?:job|position|work\w*)\b|(?:работ\w+|уволил\w*)")
_A_NEW_ONE: Final = compile_forms(
    r"""(?:now|new|started|switched|promoted|got|landed|accepted|found)\b|
    (?:теперь|нов\w+|сменил\w*|устроил\w*|повысили)(?!\w)"""
)

_WHO: Final = join_alternatives(
    r"""(?:the )?user(?:'s)? (?:now |currently |has )?|I(?:'?m|'?ve)? (?:\w+ )?|we(?:'re|'?ve)? (?:\w+ )?|
    пользовател\w+ (?:\w+ )?|я (?:\w+ )?|мы (?:\w+ )?|сейчас |теперь |недавно |now |recently """
)


_SPEAKER: Final = re.compile(rf"^(?:{ENGLISH.user}|{RUSSIAN.user}): ")


def _compile_slot(lines: str) -> re.Pattern[str]:
    return re.compile(rf"{_WHO}?{join_alternatives(lines)}", re.IGNORECASE)


_SLOTS: Final[Mapping[Slot, re.Pattern[str]]] = {
    "home": _compile_slot(
        r"""(?:(?:is |am )?(?:living|based)|lives?|resides?|moved(?: back)?)(?: from \w+)?
        (?: in| near| to| outside) (?:the )?(?-i:[A-Z])|
        (?:жив[её]т|живу|жив[её]м|проживает|проживаю|переехал[аи]?)(?: из \S+)?(?: жить)?
        (?: в| на| под) (?:городе? )?(?-i:[А-ЯЁA-Z])"""
    ),
    "age": _compile_slot(
        r"""(?:is |am |turned |just turned )?\d{1,2}(?: years old|[.,]|$)|
        (?:мне |исполнилось )*\d{1,2} (?:лет|год)"""
    ),
    "status": _compile_slot(
        r"""(?:is |am |was |got )?(?:married|single|divorced|engaged|widowed)\b|
        (?:не )?(?:женат|замужем|развед[её]н|холост|помолвлен)|
        (?:вышла замуж|женился|женилась|поженились|развелся|развёлся|развелась|развожусь|разводимся)"""
    ),
    "name": _compile_slot(
        r"(?:my |full |first )*name(?:'s| is) |(?:меня |пользователя )?зовут |(?:мо[её] )?имя "
    ),
    "work": _compile_slot(
        r"""(?:(?:is |am )?(?:working|employed)|works?|started working) (?:as|at|for|in)\b|
        (?:got|has|have|found) a (?:\w+ )*job\b|
        (?:работает|работаю|устроил\w*)(?!\w)"""
    ),
}
"""Beginnings of facts that tell the value of a slot, in the first person or in the third ("the user")."""


def find_stems(text: str) -> frozenset[int]:
    """Return the ids of the terms of a text, as BM25 has them: stems of its words, without stop words."""
    return frozenset(bm25.weigh_query(text).indices)


def remove_speaker(text: str) -> str:
    """Return the text of a fact without "User: ", or the same in Russian. The name of a speaker stays."""
    return _SPEAKER.sub("", text)


@dataclass(frozen=True, slots=True)
class KnownStatement:
    """A known fact, with the properties that decide whether a statement repeats or replaces it.

    Attributes:
        is_denial: True if it has a word of denial or ending, such as "not" or "quit".
        is_upcoming: True if it tells of "getting married" or "getting divorced".
        is_plan: True if it tells of a plan, such as a journey or an appointment.
        is_of_the_user: True if it may be about the user.
        slots: the properties of the user to which it gives a value.
    """

    id: str
    stems: frozenset[int]
    is_denial: bool
    is_upcoming: bool
    is_plan: bool
    is_of_the_user: bool
    slots: frozenset[Slot]

    @classmethod
    def from_fact(cls, fact: PromptFact) -> "KnownStatement":
        """Derive the attributes from the text of a known fact."""
        text = straighten_quotes(remove_speaker(fact.text))
        of_the_user = is_about_user(text)
        slots = (slot for slot, pattern in _SLOTS.items() if of_the_user and pattern.match(text))
        return cls(
            id=fact.id,
            stems=find_stems(text),
            is_denial=_is_denial(text),
            is_upcoming=_is_upcoming(text),
            is_plan=any(pattern.search(text) for pattern in _PLANS),
            is_of_the_user=of_the_user,
            slots=frozenset(slots),
        )


def is_known(statement: UserStatement, known: Sequence[KnownStatement]) -> bool:
    """Return whether a known fact has all stems of the statement, and is of the same kind.

    The kind of a text is whether it has a word of denial or ending, whether it tells of "getting married" or
    "getting divorced", and whether it may be about the user: "My mother lives in Riga" does not make "I live
    in Riga" known.
    """
    text = straighten_quotes(statement.text)
    said, kind = find_stems(text), (_is_denial(text), _is_upcoming(text), is_about_user(text))
    return any(
        said <= fact.stems and kind == (fact.is_denial, fact.is_upcoming, fact.is_of_the_user)
        for fact in known
    )


def find_replaced_fact(statement: UserStatement, known: Sequence[KnownStatement]) -> str | None:
    """Return the id of the fact that a statement replaces or ends; None if there is no such fact, or several.

    Only a statement that may be about the user replaces or ends a fact. If its rule says that something has
    ended, `_find_ended_fact` chooses the fact, or `_find_cancelled_plan` for an event. Otherwise the fact has
    the slot of the rule; a statement about work must also say that the work is new.
    """
    text, slot = statement.text, statement.rule.slot
    if not is_about_user(text):
        return None
    if statement.rule.ends and statement.rule.kind == "event":
        return _find_cancelled_plan(statement.undated, known)
    if statement.rule.ends:
        return _find_ended_fact(statement.undated, known)
    if slot is None or (slot == "work" and not _A_NEW_ONE.search(text)):
        return None
    return _require_single([fact for fact in known if slot in fact.slots])


def _find_ended_fact(text: str, known: Sequence[KnownStatement]) -> str | None:
    """Return the id of the only fact that a statement can end; None if there is no such fact, or several.

    It is the fact that shares the most stems with the text, and at least half of the text's stems. Without
    such a fact, a text about the end of a job ends the only fact about work.
    """
    said = find_stems(_OF_ENDING.sub(" ", text))
    standing = [fact for fact in known if fact.is_of_the_user and not fact.is_denial]
    shared = [len(said & fact.stems) for fact in standing]
    most = max(shared, default=0)
    if most and 2 * most >= len(said):
        return _require_single([fact for fact, count in zip(standing, shared, strict=True) if count == most])
    return (
        _require_single([fact for fact in standing if "work" in fact.slots])
        if _OF_WORK.search(text)
        else None
    )


def _find_cancelled_plan(text: str, known: Sequence[KnownStatement]) -> str | None:
    """Return the id of the plan that has all stems of a cancelled event; None if none or several have."""
    said = find_stems(_OF_CANCELLATION.sub(" ", text))
    return _require_single(
        [fact for fact in known if said and fact.is_plan and not fact.is_denial and said <= fact.stems]
    )


def _require_single(facts: Sequence[KnownStatement]) -> str | None:
    return facts[0].id if len(facts) == 1 else None


def is_about_user(text: str) -> bool:
    """Return whether a statement may be about the user.

    Such a statement names no relative, partner, flatmate or best friend, and no other person with an illness
    or a diet. An English statement that a relative is or was born may be about the user.
    """
    return _NOT_OF_THE_USER.search(straighten_quotes(text)) is None


def is_denial_or_end(text: str) -> bool:
    """Return whether a text has a word of denial or ending, such as "not", "left" or "no longer"."""
    plain = straighten_quotes(text)
    return _is_denial(plain) or _OF_ENDING.search(plain) is not None


def _is_denial(text: str) -> bool:
    return _DENIAL.search(text) is not None


def _is_upcoming(text: str) -> bool:
    return _UPCOMING.search(text) is not None
