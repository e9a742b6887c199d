"""Detection of bank account numbers: IBANs, Russian accounts, and numbers with a name such as "sort code"."""

import re
from typing import Final

from mnemon_consumers.domain.policy.wording import compile_pattern

_IBAN: Final = re.compile(
    r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,4})?", re.IGNORECASE
)
_NAMED_IBAN: Final = compile_pattern(r"\biban\b[^.;!?\n\d]{0,30}?\b[a-z]{2}\d{2}(?:[ -]?[a-z0-9]{2,4}){2,8}")
_RUSSIAN: Final = compile_pattern(
    r"""(?<!\d)(?:40[5-8]\d{2}|423\d{2}|40[78]\d{2})[ .-]?\d{3}[ .-]?(?:\d[ .-]?)(?:\d[ .-]?){10}\d(?!\d)|
    (?<!\w)(?:сч[её]т\w*|р/с[чч]?|л/с|расч[её]тн\w+ сч[её]т\w*)(?!\w)[^.;!?\n\d]{0,40}?\d{20}(?!\d)"""
)
_NAMED: Final = compile_pattern(
    r"""\b(?:(?:bank|checking|savings|current|deposit|payroll)\s(?:account|acct)|account\s(?:number|no\.?|
    num|\#)|acct\.?)(?:\s(?:number|no\.?|num))?
    (?![^\W_])[^.;!?\n\d]{0,40}?(?<![\w$€£+])\d[\d -]{5,20}\d(?!\w|[.,]\d)(?!\s?(?:€|\$|£|dollars|euros))|
    \bsort\scode\b[^.;!?\n\d]{0,20}?\d{2}[ -]?\d{2}[ -]?\d{2}(?!\d)|
    \b(?:routing|aba)\s(?:number|no\.?)\b[^.;!?\n\d]{0,20}?\d{9}(?!\d)"""
)
_NOT_A_BANK: Final = compile_pattern(
    r"\b(?:customer|gym|library|game|steam|twitter|instagram|utility|electricity|loyalty|"
    r"github|netflix)\s(?:account|acct)"
)


def contains_account(text: str) -> bool:
    """Return whether a text holds the number of a bank account."""
    if any(_is_iban(found[0]) for found in _IBAN.finditer(text)) or _NAMED_IBAN.search(text):
        return True
    if _RUSSIAN.search(text):
        return True
    return _NAMED.search(text) is not None and _NOT_A_BANK.search(text) is None


def _is_iban(text: str) -> bool:
    from stdnum import iban

    characters = re.sub(r"[ -]", "", text)
    # The next words of the sentence may look like one more group.
    return any(iban.is_valid(characters[:length]) for length in range(min(len(characters), 34), 14, -1))
