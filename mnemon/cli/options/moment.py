"""Parsing of moments in options: a log position, or a time."""

from datetime import UTC, datetime

from mnemon.cli.terminal.exit_code import ExitCode, refuse


def parse_moment(option: str, text: str) -> int | datetime:
    """Parse a log position or a time; a time without an offset is UTC.

    End the command with code 2 if the value is neither, or is a time in the future.
    """
    if text.isdecimal():
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        refuse(
            ExitCode.USAGE_ERROR,
            f"{option} {text!r} is neither a log position nor a time",
            "Write a time such as 2026-11-21T10:00:00Z",
        )
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    if time > datetime.now(UTC):
        refuse(ExitCode.USAGE_ERROR, f"{option} {text} is in the future", "Give a time in the past")
    return time
