"""Values in sentences: decides whether a sentence gives the value of a credential or describes it."""

import re
from typing import Final

from mnemon_consumers.domain.policy.secrets import english, russian
from mnemon_consumers.domain.policy.secrets.values import (
    SERVICES,
    UNIT,
    find_first_token,
    find_quoted_value,
    is_ordinary,
    is_placeholder,
    is_strong,
    trim_word,
)
from mnemon_consumers.domain.policy.wording import compile_pattern

_FILLER: Final = compile_pattern(
    r"""(?:(?:now|still|currently|always|just|simply|actually|also|again|the following|set to|called|this|
    as follows|literally|
    the word|the words|the phrase|today|
    in\s(?:english|spanish|french|german|italian|latin|russian|polish|finnish|dutch|japanese|
    lowercase|uppercase|lower\scase|
    upper\scase|capitals)(?=\s?[:,—–-])|
    теперь|сейчас|пока|вс[её] ещ[её]|по-прежнему|всегда|просто|такой|следующий|слово|
    фраза|такое|
    это)\s*(?:[:,—–-]\s*|(?=\s)))\s*"""
)


def is_value(text: str, *, is_russian: bool, follows_colon: bool) -> bool:
    """Return whether the text after a connector such as "is" or ":" begins with a value.

    Args:
        text: the text after the connector.
        is_russian: whether the noun before the connector, such as "пароль" (password), is Russian.
        follows_colon: whether the connector has ":", "=" or "→".
    """
    text = text.strip()
    while filler := _FILLER.match(text):
        text = text[filler.end() :]
    if is_placeholder(text) or not text:
        return False
    quoted = find_quoted_value(text)
    if quoted is not None:
        return not all(english.is_description(word) for word in quoted.split())
    token = find_first_token(text)
    bare = trim_word(token)
    if is_strong(token):
        return not UNIT.match(text[len(token) :])
    if bare.isdigit():
        return len(bare) >= 4 and not UNIT.match(text[len(token.rstrip(".,;")) :])
    if is_ordinary(bare):
        return bool(re.fullmatch(r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}", bare))
    if is_certain_value(text):
        return True
    if is_russian or not bare.isascii():
        return russian.is_plain_value(text, follows_colon=follows_colon)
    return english.is_plain_value(text, follows_colon=follows_colon)


def is_certain_value(text: str) -> bool:
    """Return whether a text certainly gives the value of a credential.

    The first of these decides: a token after punctuation such as a colon, which has to be strong
    (`is_strong`) and no placeholder; or a quoted text of 3 to 40 characters after a space, which always is a
    value. Without either, the first token of the text has to be strong, and no unit may follow it, as in
    "a1b2c3d4 users".
    """
    found = re.search(r"[:(—–=]\s*(\S+)|\s([\"«“„`'‘][^\"»”“`'’]{3,40}[\"»”“`'’])", text[:120])
    if found is None:
        return is_strong(find_first_token(text)) and not UNIT.match(
            text.strip()[len(find_first_token(text.strip())) :]
        )
    return bool(found[2]) or (is_strong(found[1]) and not is_placeholder(found[1]))


def is_named_value(value: str) -> bool:
    """Return whether the words after "changed the password to" or "stores it as" are a value."""
    token = find_first_token(value)
    if is_strong(token) or find_quoted_value(value):
        return not UNIT.match(value[len(token) :])
    bare = trim_word(token)
    if bare.isdigit():
        return len(bare) >= 4 and not UNIT.match(value[len(token) :])
    if bare.isascii():
        return bare.lower() not in SERVICES and english.is_plain_value(value)
    return russian.is_plain_value(value)


def is_used_value(value: str) -> bool:
    """Return whether words used "as the password" are a value, rather than a thing such as a birthday."""
    tokens = value.split()
    if any(map(is_strong, tokens)) or find_quoted_value(value):
        return True
    if len(tokens) != 1:
        return False
    bare = trim_word(tokens[0])
    if bare.isascii():
        return english.is_plain_value(bare) or (bare.isdigit() and len(bare) >= 4)
    return russian.is_value_like(bare)
