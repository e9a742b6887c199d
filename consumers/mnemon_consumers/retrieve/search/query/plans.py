"""Questions about plans and the future: "What am I doing on Friday?", «Куда мы идём в субботу?»

No I/O, no clock.
"""

import re
from typing import Final

from mnemon_consumers.domain.alignment.morphology import list_grammemes

_PLANS: Final = """
will shall should must plan plans planned planning going gonna doing upcoming tomorrow next ll
будет будут буду будем будешь будете план планы планов планам планах предстоит предстоят надо нужно
планирую планируем планируешь планируете планирует планируют планировал планировала планировали
собираюсь собираемся собираешься собираетесь собирается собираются собирался собиралась собирались
завтра послезавтра следующий следующая следующее следующие следующего следующей следующем следующую
следующим следующих
"""
PLANS: Final = frozenset(_PLANS.split())
"""Words of questions about plans and the future."""

PAST_AUXILIARIES: Final = frozenset(("was", "were", "been"))
"""Words beside which "going" and "doing" speak of the past."""

LONGEST_QUESTION: Final = 500
"""Number of characters from which a text is not read as a question about the future."""

_WORD: Final = re.compile(r"[^\W_]+")

_PAST: Final = re.compile(
    r"""\b(?:did|was|were|been|had|(?:should|must)(?:\ \w+)?\ have|said|told|wrote|spoke|went|got|gave|made
    |saw|met|bought|came|took|sent|left|ate|won|(?!planned\b|scheduled\b|supposed\b|invited\b)\w{3,}ed)\b""",
    re.VERBOSE | re.IGNORECASE,
)

_SUBJECT: Final = r"(?:(?i:i|we|you|he|she|it|they)|[A-Z]\w+)"
_ARRANGEMENT: Final = re.compile(
    rf"""(?:\b(?i:am|are|is)|(?i:\b(?:what|who|where|when|how|he|she|it|that|there)['’]s|['’](?:m|re)))
    \ (?:{_SUBJECT}(?:\ and\ {_SUBJECT})?\ )?(?:\w+ing|free|busy|available)\b
    |\b(?i:do|does)\ {_SUBJECT}\ (?:have|need)\b
    |(?i:\bу\ (?:меня|нас)\b)""",
    re.VERBOSE,
)
"""Arrangements in the present tense: "Who is coming?", "Do I have anything?", «Что у меня?»"""

_MENTAL_VERBS: Final = frozenset(str.split("знаю помню думаю знаем помним думаем"))
"""Verbs in the present tense that tell no plan."""


def mentions_plans(text: str) -> bool:
    """Return whether a text has a word of plans or of the future."""
    words = _WORD.findall(text)
    plain = {word.lower() for word in words}
    # Will is also a name within a sentence, and "was going on" is past.
    others = {"will"} if "Will" in words[1:] else set()
    if not PAST_AUXILIARIES.isdisjoint(plain):
        others |= {"going", "doing"}
    return not (PLANS - others).isdisjoint(plain)


def asks_about_future(text: str) -> bool:
    """Return whether a question has words or verbs of the future, and no verb of the past."""
    if len(text) >= LONGEST_QUESTION or _PAST.search(text):
        return False
    words = set(map(str.lower, _WORD.findall(text))) - _MENTAL_VERBS
    grammemes = [list_grammemes(word) for word in words]
    if any("past" in each for each in grammemes):
        return False
    is_future = any("futr" in each or {"pres", "1per"} <= each for each in grammemes)
    return is_future or mentions_plans(text) or _ARRANGEMENT.search(text) is not None
