"""Detection of payment card numbers."""

import re
from collections.abc import Iterator
from typing import Final

from mnemon_consumers.domain.policy.wording import compile_pattern

_DIGITS: Final = re.compile(r"(?<![\w+.])\d+(?:[ -]\d+)*(?!\w)")
_FOURS: Final = re.compile(r"(?<![\w+.])\d{4}([ ./_,·*|:-]{1,3})\d{4}\1\d{4}\1\d{4}(?:\1\d{1,3})?(?!\w)")
_CARD: Final = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2[2-7]\d{14}|220[0-4]\d{12,15}|3[47]\d{13}|3[0568]\d{12,17}"
    r"|6\d{15,18}|(?:50|5[6-9]|6\d)\d{11,17}"
)
"""Numbers in the ranges of card issuers. Other numbers, such as order numbers, pass the check digit by
chance."""

_NAMED: Final = compile_pattern(
    r"""(?:\b(?:(?:credit|debit|bank|payment|visa|mastercard|amex|maestro)\s?cards?|card\s(?:number|no\.?|
    num)|cards?|visa|mastercard|amex|pan)|
    (?<!\w)(?:карт(?:а|ы|у|е|ой|очк\w+)|виза|мир|мастеркард\w*))(?![^\W_])[^.;!?\n\d]{0,40}?
    (?:\d{4}[ -]?){3}\d{4}(?!\w)"""
)
_LOYALTY: Final = compile_pattern(
    r"""(?:loyalty|library|membership|member|gift|discount|bonus|store|travel|transport|oyster|student|
    museum|sim|club|frequent|reward\w*|
    лояльности|бонусн\w+|скидочн\w+|дисконтн\w+|подарочн\w+|читательск\w+|транспортн\w+|клубн\w+|
    библиотечн\w+|сим|
    тройка|подорожник|пят[её]рочк\w+|магнит\w*|ленты)"""
)
_EXPIRY_AND_CODE: Final = compile_pattern(
    r"(?:exp\w*|valid (?:thru|till|until)|срок\w*|действ\w+|до)[^.;!?\n\d]{0,20}(?:0[1-9]|"
    r"1[0-2])\s?/\s?\d{2,4}.{0,30}?(?:cvv|cvc|цвв|код)\D{0,12}\d{3,4}"
)


def contains_card(text: str) -> bool:
    """Return whether a text has a valid card number, a number named as one, or an expiry date with a code."""
    if any(_find_card_numbers(text)) or _EXPIRY_AND_CODE.search(text):
        return True
    return _NAMED.search(text) is not None and _LOYALTY.search(text) is None


def _find_card_numbers(text: str) -> Iterator[str]:
    """Yield possible card numbers: in one piece, in groups, or in groups of four with other separators."""
    from stdnum import luhn

    for run in _FOURS.finditer(text):
        number = re.sub(r"\D", "", run[0])
        if _CARD.fullmatch(number) and luhn.is_valid(number):
            yield number
    for run in _DIGITS.finditer(text):
        groups = re.split("[ -]", run[0])
        for start in range(len(groups)):
            for end in range(start + 1, min(len(groups), start + 19) + 1):
                number = "".join(groups[start:end])
                if len(number) > 19:
                    break
                if _CARD.fullmatch(number) and luhn.is_valid(number):
                    yield number
