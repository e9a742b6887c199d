"""Names of generations, the same for rows and vectors."""

from typing import Final, Literal

GenerationKind = Literal["live", "former", "next", "as of"]

OTHERS: Final = r"_(before|next|until_\d+)"
"""How the name of a generation ends that is not live."""

LONGEST_NAME: Final = 63
"""Bytes that PostgreSQL keeps of a name."""


class NameTooLong(ValueError):
    """PostgreSQL would cut the name of a generation off."""


def name_of(live: str, kind: GenerationKind, up_to: int | None = None) -> str:
    """What a generation is called.

    Raises:
        NameTooLong: the name of the live one leaves no room.
    """
    name = {
        "live": live,
        "former": f"{live}_before",
        "next": f"{live}_next",
        "as of": f"{live}_until_{up_to}",
    }
    if len(name[kind]) > LONGEST_NAME:
        raise NameTooLong(f"{name[kind]} is longer than {LONGEST_NAME} bytes")
    return name[kind]
