"""Fields of addresses and forms, checked before any page uses them."""

from collections.abc import Mapping
from typing import Final, Self

from starlette.requests import Request

from mnemon_contracts.base import InvalidBody, check_text

_DIGITS: Final = 18
"""Digits of a number: with more it could be no position of the log."""


class Fields(dict[str, str]):
    """What an address or a form says, each name once.

    Raises:
        InvalidBody: a field that is asked for is missing.
    """

    @classmethod
    def of(cls, given: Mapping[str, object]) -> Self:
        """Take the texts among some values.

        Raises:
            InvalidBody: one holds what no text can.
        """
        fields = cls()
        for name, text in given.items():
            if isinstance(text, str):
                fields[check_text("field", name)] = check_text(name, text)
        return fields

    def __missing__(self, name: str) -> str:
        raise InvalidBody(name, "is missing")

    def number(self, name: str) -> int | None:
        """A whole number; None where the field is empty.

        Raises:
            InvalidBody: it is none.
        """
        if not (text := self.get(name, "").strip()):
            return None
        if (number := whole_number(text)) is None:
            raise InvalidBody(name, f"must be a whole number of at most {_DIGITS} digits")
        return number


async def read_form(request: Request) -> Fields:
    """Read what a form sent.

    Raises:
        InvalidBody: a field holds what no text can.
    """
    async with request.form() as sent:
        return Fields.of(sent)


def whole_number(text: str) -> int | None:
    """The number that a text writes in ASCII digits; None where it writes none, or too long a one."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _DIGITS else None
