"""Names of generations, the same for rows and vectors."""

from typing import Final, Literal

GenerationKind = Literal["live", "former", "next", "as of"]

OTHERS: Final = r"_(before|next|until_\d+)"
"""Pattern of the suffixes that mark generations other than the live one."""

LONGEST_NAME: Final = 63
"""Maximum bytes of a name in PostgreSQL, which cuts off longer names."""


class NameTooLong(ValueError):
    """The name of a generation is longer than PostgreSQL allows."""


def name_generation(live: str, kind: GenerationKind, up_to: int | None = None) -> str:
    """Return the name of a generation's schema and of its folder of vectors.

    `up_to` is the last log position of a generation of the kind `as of`.

    Raises:
        NameTooLong: the name is longer than `LONGEST_NAME` bytes.
    """
    name = {
        "live": live,
        "former": f"{live}_before",
        "next": f"{live}_next",
        "as of": f"{live}_until_{up_to}",
    }
    if len(name[kind].encode()) > LONGEST_NAME:
        raise NameTooLong(
            f"the name {name[kind]} is longer than {LONGEST_NAME} bytes: "
            "shorten MNEMON_DATABASE_SCHEMA, or the name of the vectors folder"
        )
    return name[kind]
