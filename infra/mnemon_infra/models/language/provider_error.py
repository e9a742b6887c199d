"""Providers' descriptions of refused requests, without the content of the request."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

LONGEST: Final = 300
"""Maximum length of a provider's message that is shown, in characters."""

LEFT_OUT: Final = "..."

_NAME = re.compile(r"[A-Za-z0-9_.\[\]-]{1,64}")
_WORD = re.compile(r"\w+")
_ENCODED = re.compile(r"\S*(?:[\\%&*]|sk-|AIza|Bearer)\S*|\S{41,}")
"""Sequences that may hide a word or a key: escaped, masked or very long ones."""

_GAPS = re.compile(r"\.\.\.(?:[^\w.]*\.\.\.)+")
_IN_A_ROW: Final = 3
"""Number of consecutive words that, if the user's text has them too, are removed from a message."""

_OF_ERRORS: Final = frozenset(
    _WORD.findall(
        """
        a additional allowed an and are array at be by bytes cannot characters code completion content context
        does error exceed exceeded exceeds expected field for format function have in input instead invalid is
        it json key large least length limit long many max maximum message messages missing model most must
        not object of only or output parameter parameters please policy prompt property provided reduce
        request requested requests required resulted response schema should small string supported than that
        the this to token tokens too type unknown unsupported use value was were when with your
        """
    )
)
"""Words of the providers' own messages.

They are shown even if the user's text has them too, but not `_IN_A_ROW` consecutive ones of that text.
"""


class ProviderError(NamedTuple):
    """An error of a provider. Its fields may repeat a user's text: show only the result of `describe`."""

    code: object = None
    param: object = None
    message: object = None

    @classmethod
    def from_body(cls, body: object) -> "ProviderError":
        """Parse the body of an error of OpenAI or Anthropic, or of a server with their formats."""
        error = body.get("error", body) if isinstance(body, Mapping) else None
        if not isinstance(error, Mapping):
            return cls(message=error)
        code = error.get("code") or error.get("type")
        return cls(code, error.get("param"), error.get("message") or error.get("detail"))

    def describe(self, instructions: str, text: str) -> str:
        """Return code, parameter and message, without words of the message that may come from `text`.

        Return an empty text if the error has none of the three.
        """
        named = [
            f"{what} {name}"
            for what, name in (("code", self.code), ("param", self.param))
            if isinstance(name, str | int) and _NAME.fullmatch(str(name))
        ]
        message = remove_content(self.message, instructions, text) if isinstance(self.message, str) else ""
        return ": ".join(filter(None, [", ".join(named), message]))


UNEXPLAINED: Final = ProviderError()
"""An error without a description."""


def remove_content(message: str, instructions: str, text: str) -> str:
    """Return a message with `...` in place of words that may come from a text or hide a key.

    The result has at most `LONGEST` characters, all of them ASCII.

    Args:
        message: the provider's message.
        instructions: mnemon's instructions, which the message may repeat.
        text: a user's text; words of the message that could come from this text are removed.
    """
    message = _ENCODED.sub(LEFT_OUT, message[: 10 * LONGEST])
    words, asked = (_WORD.findall(each.casefold()) for each in (message, text))
    runs = set(zip(*(asked[place:] for place in range(_IN_A_ROW)), strict=False))
    repeated = {
        place + offset
        for place, run in enumerate(zip(*(words[place:] for place in range(_IN_A_ROW)), strict=False))
        if run in runs
        for offset in range(_IN_A_ROW)
    }
    allowed = _OF_ERRORS.union(_WORD.findall(instructions.casefold()))
    folded = text.casefold()
    places = iter(range(len(words)))

    def mask_word(match: re.Match[str]) -> str:
        word = match[0].casefold()
        is_shown = next(places, 0) not in repeated and (
            word in allowed or (word.isascii() and word not in folded)
        )
        return match[0] if is_shown else LEFT_OUT

    cleaned = _GAPS.sub(LEFT_OUT, " ".join(_WORD.sub(mask_word, message).split()))
    return cleaned[:LONGEST].encode("ascii", errors="replace").decode()
