"""Detection of answers to security questions, and of maiden names that a bank asks for."""

from typing import Final

from mnemon_consumers.domain.policy.secrets.values import has_word, list_beginnings
from mnemon_consumers.domain.policy.wording import compile_pattern

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
_ANSWERED: Final = compile_pattern(
    rf"""(?<!\w){_QUESTION}(?!\w)[^.;!?]{{0,60}}?[\s,](?:answers?|answered|ответ\w*|отвеча\w+)(?:\s(?:with|
    as))?
    {_SIGN}{_NAME}|
    (?<!\w)(?:answers?|answered|ответ\w*|отвеча\w+)\s[^.;!?]{{0,30}}?{_QUESTION}(?:\s(?:with|as|is)|
    \s?[:—–-])\s?{_NAME}"""
)
_MAIDEN_NAME: Final = compile_pattern(
    rf"""(?<!\w)(?:{_MAIDEN})(?!\w)[^.;!?:]{{0,30}}?\s{_BANK}(?:\s\w+){{0,2}}?,?(?:\s?[:=—–-]\s?|\s)
    (?:(?:is|was|это)\s)?{_NAME}|
    (?<!\w){_BANK}(?!\w)[^.;!?]{{0,50}}?(?:{_MAIDEN})(?:\s?[:,=—–-]\s?|\s(?:is|was|as|как)\s){_NAME}"""
)
_SUBJECT: Final = (
    r"(?:first\s(?:pet|school|car|teacher|job|kiss|concert|dog|cat|boss|street)|childhood|(?:favou?rite|"
    r"best)\s(?:teacher|friend|"
    r"book|film|movie|team)|(?:pet|school|teacher|street|city|car|birthplace)\squestion|maiden|middle\sname|"
    r"where\s(?:he|she|they|i)\s\w+|перв\w+\s(?:питом\w+|школ\w+|учител\w+|машин\w+|собак\w+|кошк\w+|"
    r"работ\w+)|"
    r"любим\w+\s(?:учител\w+|книг\w+|фильм\w*)|девичь\w+|друг\w*\sдетства|кличк\w+)"
)
_ANSWER: Final = (
    r"(?:,|\s(?:is|was|expects|wants|says|это|был[аои]?)|\s?[:=—–])\s(?:an?\s|"
    r"the\s)?(?:(?-i:[A-ZА-ЯЁ])[^\W\d_]{2,}|[\"«“])"
)
_SUBJECT_ANSWERED: Final = compile_pattern(
    rf"""\banswers?\s(?:to|for)\s["«“][^"»”]{{3,80}}["»”](?:\sis|\swas|\s?[:=—–])\s{_NAME}|
    {_NAME}\W{{1,3}}(?:это\s)?ответ\s(?:[\w-]+\s)?на\s(?:[\w-]+\s)?(?:секретн|контрольн)\w+\sвопрос|
    {_NAME}\s(?:is|was)\s(?:the|his|her|their|my)\s(?:answer\sto\s[^.;!?]{{0,20}}?{_QUESTION}|(?:security|
    recovery|secret)\sanswer)|
    (?:{_MAIDEN})(?:{_ANSWER}|\s{_NAME})[^.;!?]{{0,20}}?\s(?:uses?|answers?|gives?|says?|tells?|называ\w+|
    указыва\w+|говор\w+)\s
    [^.;!?]{{0,20}}?(?:bank|банк|hotline|security)\w*|
    \banswers?\s[^.;!?]{{0,40}}?{_SUBJECT}[^.;!?]{{0,20}}?(?:\s(?:with|as)|\s?[:—–]|
    question\sis)\s{_NAME}|
    (?<!\w)вопрос\w*\s[^.;!?]{{0,30}}?{_SUBJECT}[^.;!?]{{0,40}}?(?:ответ\w*|
    отвеча\w+)\s?(?:[:—–-]\s?)?{_NAME}|
    (?:security|recovery|secret|reset)\s(?:answer|hint)\b[^.;!?]{{0,50}}?(?:\sis|,|\s?[:=—–])\s{_NAME}|
    {_QUESTION}[^.;!?]{{0,60}}?\s(?:put|gave|wrote|entered|typed|chose|uses|used|says|said|указал\w?|
    вписал\w?|написал\w?)\s(?:a\s)?{_NAME}|
    (?<!\w)(?:банк\w*|bank)\s[^.;!?]{{0,30}}?(?:спрашива\w+|
    asks)\s[^.;!?]{{0,30}}?{_SUBJECT}[^.;!?]{{0,20}}?(?:,|\s?[:—–]|\()\s?
    (?:у\sне[её]\s|у\sнего\s|it\sis\s|it['’]s\s|which\sis\s|это\s)?{_NAME}\W*$|
    {_SUBJECT}[^.;!?]{{0,30}}?(?:\sis)\s{_NAME}[^.;!?]{{0,30}}?(?:security|recovery|secret|
    reset)\s(?:answer|question)"""
)
_RECOVERY: Final = (
    r"(?:recover\w*|resets?|security|verif\w+|(?:bank|support|hotline)\sasks|call\scent(?:er|re)|"
    r"восстан\w+|сброс\w*|контрольн\w+|секретн\w+|колл-центр\w*|спрашива\w+\sбанк|банк\w*\sспрашива\w+)"
)
_RECOVERED: Final = compile_pattern(
    rf"""(?<!\w)(?:{_SUBJECT}|city\sof\sbirth|birth\s?place|nickname|maiden|девичь\w+|
    город\w?\sрождени\w)(?!\w)
    (?:[^.;!?]{{0,60}}?{_RECOVERY}[^.;!?]{{0,30}}?{_ANSWER}|
    [^.;!?]{{0,30}}?{_ANSWER}[^.;!?]{{0,30}}?\s{_RECOVERY}|
    [^.;!?]{{0,40}}?\b(?:bank|support|hotline|банк)\s(?:expects|wants|hears|жд[её]т|слышит)\s{_NAME})"""
)
_MENTIONED: Final = list_beginnings(
    """question answer maiden recover reset security expects verify вопрос девичья восстан сброс банк"""
)
"""Beginnings of words. The rules about answers run only on a text that has one of them."""


def says_answer(text: str) -> bool:
    """Return whether a text gives the answer to a security question."""
    if not has_word(text, _MENTIONED):
        return False
    return any(
        rule.search(text) is not None for rule in (_ANSWERED, _SUBJECT_ANSWERED, _MAIDEN_NAME, _RECOVERED)
    )
