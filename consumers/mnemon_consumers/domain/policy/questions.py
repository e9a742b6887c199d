"""Detection of questions, in English and Russian."""

import re
from typing import Final

from mnemon_consumers.domain.policy.wording import compile_pattern

_MARK: Final = re.compile(r"[?？؟][\s!?.…)\]}\"'»”]*$")

_ENGLISH: Final = compile_pattern(
    r"""(?:so|and|but|well|ok|okay|hey|hi)?,?\s*(?:
    (?:what|who|whom|whose|where|when|why|how|which)(?:'s|’s|'re|’re|s)?\s+
    (?:is|are|was|were|am|do|does|did|can|could|will|would|should|shall|has|have|had|might|to|much|many|old|long|
    far|often|soon|about|come|the|a|i|you)\b|
    (?:why|how come)\b(?!\s*:)|
    (?:is|are|was|were|am|do|does|did|can|could|will|would|should|shall|may|might|has|have|had)(?:n't|n’t)?\s+
    (?:i|you|he|she|it|we|they|there|this|that|these|those|anyone|anybody|someone|somebody|(?:the\s+)?user)\b)"""
)

_RUSSIAN: Final = compile_pattern(
    r"""(?:(?:а|и|ну|так|или|скажи|слушай),?\s+)?(?:
    (?:почему|зачем|отчего|куда|откуда|сколько|где|кто|кого|кому|кем|ч[её]м|чему|чей|чья|чь[её]|чьи|
    как(?:ой|ая|ое|ие|ую|им|ими|ого|ому|их|ов|ова|овы)|котор(?:ый|ая|ое|ые|ую|ом))(?![\w-])(?!\s+себя)|
    что(?![\w-])(?!\s+(?:касается|до)\b)|
    когда(?![\w-])(?!.*,)|
    как\s+(?:дела|зовут|меня|нас|их|мне|нам|ему|ей|им|тебя|вас|его|е[её]|ты|вы|я|он|она|они|мы|это|бы|
    называется|
    называют|лучше|правильно|часто|долго|много|далеко|давно|быстро|можно|нужно|надо|
    (?!(?:мать|дочь|гость|часть|путь|речь|сеть)\b|\w+ость\b)\w{2,}(?:ть|ти|чь)(?:ся)?)\b(?!\s*,)|
    (?!(?:вряд|едва|чуть|мало|так|то)\s)[\w-]+\s+ли(?![\w-])|
    (?:разве|неужели)\b)"""
)
"""Beginnings of Russian questions. A clause with «когда» (when) or «как» (how) before a comma is none."""

_NO_QUESTION: Final = compile_pattern(r"[\w-]+\s+(?:бы\s+)?(?:то\s+)?ни(?![\w-])|\w+(?:\s+\w+){0,3}:\s*\S")
"""Beginnings that only look like a question: "How I work: mornings", «Где бы ни был» (wherever he is)."""


def is_question(text: str) -> bool:
    """Return whether a text, on one line, ends or begins like a question."""
    if _MARK.search(text):
        return True
    asks = _ENGLISH.match(text) or _RUSSIAN.match(text)
    return asks is not None and not _NO_QUESTION.match(text)
