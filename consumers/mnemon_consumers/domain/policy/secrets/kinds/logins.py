"""Detection of passwords beside a login, after the word "pass", or given to a program."""

import re
from typing import Final

from mnemon_consumers.domain.policy.secrets.values import is_placeholder, is_strong, trim_word
from mnemon_consumers.domain.policy.wording import compile_pattern

_SHORT: Final = compile_pattern(
    r"""(?<![^\W_])(?<!boarding\s)(?<!ski\s)(?<!season\s)(?<!bus\s)(?<!travel\s)(?<!day\s)(?:pass|
    пасс)(?![^\W_])(?:\s+(?:for|to|of|on|от|для|к|на)
    (?:\s+[\w'’-]+){1,4}?)?\s*(?:[:=—–-]|is|это)?\s*(?P<value>\S+)"""
)
_SHORT_IS: Final = compile_pattern(
    r"""(?<![^\W_])(?:pass|пасс)\s(?:for|to|of|on|от|для|к|на)(?:\s[\w'’-]+){1,4}?\s?(?:[:=—–-]|is|это)\s?
    (?P<value>\S+)"""
)
"""Short words for a password that also mean other things: only an unmistakable value counts."""

_QUOTED_PASS: Final = compile_pattern(
    r"""(?<!\w)(?:pass|пасс?)(?:\s?[:=—–-]|\sis|\sэто)?\s["«“„'‘][^"»”'’]{3,40}["»”'’]"""
)
_ACCESS: Final = compile_pattern(
    r"""(?:\b(?:login|log-?in|credentials|creds|signs?\sin(?:to)?|logs?\sin(?:to)?|logged\sin(?:to)?|
    account|admin\spanel|access)|
    (?<!\w)(?:логин\w*|уч[её]тк\w+|доступ\w*|вход\w*|заход\w+|кабинет\w*))(?![^\W_])"""
)
_PHONE_DIGITS: Final = 10
"""Minimum number of digits of a phone number that is used as a login."""

_PAIR: Final = re.compile(
    r"(?<![\w/.:@-])(?=(?P<user>[\w.@+-]{3,40})\s?[/:]\s?(?P<value>[^\s/:]{4,40})(?![/\w]))"
)
_COMMA_PAIR: Final = re.compile(r"[:—–]\s(?P<user>[\w.@+-]{3,40})[,;]\s(?P<value>[^\W\d]\S{3,40})\W*$")
_ASSIGNED: Final = re.compile(
    r"(?i)(?:^|[\s\"'{,;_-])[\w-]{0,30}(?:password|passwd|pwd|"
    r"passphrase)[\"']?\s*(?:[=:]\s*)[\"']?(?P<value>[^\s\"',;&]{3,})"
    r"|\s--?p(?:ass(?:word|wd)?)?[ =](?P<option>\S{4,})|"
    r"\s-p(?P<short>(?=\S*[\d!@#$%^&*])\S{5,})|\bcurl\b.{0,200}?\s-u\s*\S+?:(?P<curl>\S{3,})"
)


def says_login(text: str) -> bool:
    """Return whether a text gives a password beside a login, after "pass", or to a program.

    For example, "login: anna / qwerty123", "pass: qwerty123" and "--password=qwerty" give one.
    """
    return (
        any(is_strong(found["value"]) for rule in (_SHORT, _SHORT_IS) for found in rule.finditer(text))
        or (_ACCESS.search(text) is not None and _QUOTED_PASS.search(text) is not None)
        or _says_pair(text)
        or any(_is_assigned(found) for found in _ASSIGNED.finditer(text))
    )


def _says_pair(text: str) -> bool:
    """Return whether a pair such as "anna / qwerty123" or "admin/admin" follows a word such as "login"."""
    access = _ACCESS.search(text)
    return access is not None and any(
        is_strong(found["value"]) or found["user"].lower() == trim_word(found["value"]).lower()
        for rule in (_PAIR, _COMMA_PAIR)
        for found in rule.finditer(text, access.end())
        if not found["user"].isdigit() or len(found["user"]) >= _PHONE_DIGITS
    )


def _is_assigned(match: re.Match[str]) -> bool:
    value = match["value"] or match["option"] or match["short"] or match["curl"]
    if is_placeholder(value):
        return False
    if match["value"] is None:
        return True
    return "=" in match[0] or is_strong(value)
