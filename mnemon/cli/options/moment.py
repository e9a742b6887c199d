"""Parsing of options: a time, or a moment, which is a log position or a time."""

from datetime import UTC, datetime

from mnemon.cli.terminal.exit_code import ExitCode, refuse


def parse_moment(option: str, text: str) -> int | datetime:
    """Parse a log position or a time; a time without an offset is UTC.

    End the command with code 2 if the value is neither, or is a time in the future.
    """
    if text.isdecimal():
        return int(text)
    time = parse_time(option, text, "neither a log position nor a time")
    if time > datetime.now(UTC):
        refuse(ExitCode.USAGE_ERROR, f"{option} {text} is in the future", "Give a time in the past")
    return time


def parse_time(option: str, text: str, problem: str = "not a time") -> datetime:
    """Parse a time; one without an offset is UTC.

    End the command with code 2 if the value is not a time; `problem` completes the error "OPTION VALUE is".
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        refuse(
            ExitCode.USAGE_ERROR,
            f"{option} {text!r} is {problem}",
            "Write a time such as 2026-11-21T10:00:00Z",
        )
    return time if time.tzinfo else time.replace(tzinfo=UTC)
