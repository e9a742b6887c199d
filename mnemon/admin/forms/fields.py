"""Fields of query strings and forms, checked before a page uses them."""

from collections.abc import Mapping
from typing import Final, Self

from starlette.requests import Request

from mnemon_contracts.base import InvalidBody, check_text

_DIGITS: Final = 18
"""Maximum number of digits of a number: no log reaches a position with more."""


class Fields(dict[str, str]):
    """Fields of a query string or a form, each name once.

    Raises:
        InvalidBody: on access by `fields[name]`, if the field is missing.
    """

    @classmethod
    def from_values(cls, given: Mapping[str, object]) -> Self:
        """Return the fields whose values are texts, without uploaded files.

        Raises:
            InvalidBody: a text has characters that are not allowed.
        """
        fields = cls()
        for name, text in given.items():
            if isinstance(text, str):
                fields[check_text("field", name)] = check_text(name, text)
        return fields

    def __missing__(self, name: str) -> str:
        raise InvalidBody(name, "is missing; reload the page and send the form again")

    def get_number(self, name: str) -> int | None:
        """Return the whole number in a field; None if the field is missing or empty.

        Raises:
            InvalidBody: the text is not a whole number without a sign, of at most 18 digits.
        """
        if not (text := self.get(name, "").strip()):
            return None
        if (number := parse_whole_number(text)) is None:
            raise InvalidBody(name, f"must be a whole number without a sign, of at most {_DIGITS} digits")
        return number


async def read_form(request: Request) -> Fields:
    """Read the fields of a submitted form.

    Raises:
        InvalidBody: a field has characters that are not allowed.
    """
    async with request.form() as sent:
        return Fields.from_values(sent)


def parse_whole_number(text: str) -> int | None:
    """Parse a whole number of at most 18 ASCII digits; return None for any other text."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _DIGITS else None
