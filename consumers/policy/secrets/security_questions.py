"""Answers to security questions, and maiden names that a bank asks for."""

import re
from typing import Final

from consumers.policy.wording import pattern

_NAME: Final = r"(?:[\"«“„'‘]\S|(?-i:[A-ZА-ЯЁ][^\W\d_]{2,}))"
_BANK: Final = (
    r"(?:bank\w*|security|verification|банк\w*|безопасност\w+|контрольн\w+|секретн\w+|восстановлен\w+)"
)
_QUESTION: Final = (
    r"(?:(?:security|secret|recovery)\squestions?|"
    r"вопрос\w*\s(?:безопасности|восстановления)|(?:контрольн|секретн)\w+\sвопрос\w*)"
)
_MAIDEN: Final = (
    r"(?:mother|mum|mom)(?:['’]?s)?\smaiden\sname|девичь\w+\sфамили\w+\s(?:е[её]\s|его\s)?(?:матери|мамы)"
)
_SIGN: Final = r"(?:\s?[:,=—–-]\s?|\s)(?:(?:is|was|это)\s)?"
_ANSWERED: Final = pattern(
    rf"""(?<!\w){_QUESTION}(?!\w)[^.;!?]{{0,60}}?[\s,](?:answers?|answered|ответ\w*|отвеча\w+)(?:\s(?:with|as))?
    {_SIGN}{_NAME}|
    (?<!\w)(?:answers?|answered|ответ\w*|отвеча\w+)\s[^.;!?]{{0,30}}?{_QUESTION}(?:\s(?:with|as|is)|\s?[:—–-])\s?{_NAME}"""
)
_MAIDEN_NAME: Final = pattern(
    rf"""(?<!\w)(?:{_MAIDEN})(?!\w)[^.;!?:,]{{0,30}}?\s{_BANK}(?:\s\w+){{0,2}}?(?:\s?[:=—–-]\s?|\s)
    (?:(?:is|was|это)\s)?{_NAME}|
    (?<!\w){_BANK}(?!\w)[^.;!?]{{0,50}}?(?:{_MAIDEN})(?:\s?[:,=—–-]\s?|\s(?:is|was|as|как)\s){_NAME}"""
)
_MENTIONED: Final = re.compile(r"question|вопрос|maiden|девич", re.IGNORECASE)


def says_answer(text: str) -> bool:
    """Whether a text gives the answer to a security question."""
    if not _MENTIONED.search(text):
        return False
    return _ANSWERED.search(text) is not None or _MAIDEN_NAME.search(text) is not None
