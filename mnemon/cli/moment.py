"""Parsing of moments in options: a log position, or a time."""

from datetime import UTC, datetime

from mnemon.cli.terminal.exit_code import Ending, refuse


def parse_moment(option: str, spelled: str) -> int | datetime:
    """Parse a log position or a time; a time without an offset is UTC.

    End the command with 2 if the value is neither, or a time in the future.
    """
    if spelled.isdecimal():
        return int(spelled)
    try:
        time = datetime.fromisoformat(spelled)
    except ValueError:
        refuse(
            Ending.WRONG_USE,
            f"{option} {spelled!r} is neither a log position nor a time",
            "Write a time such as 2026-11-21T10:00:00Z",
        )
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    if time > datetime.now(UTC):
        refuse(Ending.WRONG_USE, f"{option} {spelled} is in the future", "Give a time in the past")
    return time
