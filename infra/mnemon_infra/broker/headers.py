"""Text in headers."""

LIMIT = 2000


def header_value(text: str, limit: int = LIMIT) -> str:
    """A text as one line: white space folded, what cannot be printed replaced, cut at a limit."""
    folded = " ".join(text.split())
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in folded
    )[:limit]
