"""Text in headers of messages."""

LIMIT = 2000


def fold_header(text: str, limit: int = LIMIT) -> str:
    """Return a text as one line: white space folded, unprintable characters replaced, cut at a limit."""
    folded = " ".join(text.split())
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in folded
    )[:limit]
