"""Text in headers."""

LIMIT = 2000


def header_value(text: str) -> str:
    """A text as one header line: white space folded, what cannot be printed replaced, cut at `LIMIT`."""
    folded = " ".join(text.split())
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in folded
    )[:LIMIT]
