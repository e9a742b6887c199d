"""Conversion of texts to values of message headers."""

LIMIT = 2000
"""Default maximum number of characters of a value."""


def fold_header(text: str, limit: int = LIMIT) -> str:
    """Return a text as one line of at most `limit` characters, with unprintable characters replaced."""
    folded = " ".join(text.split())
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in folded
    )[:limit]
