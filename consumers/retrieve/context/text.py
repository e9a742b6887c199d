"""Stored text as it stands in a prompt: it is data, and stays within its line."""

from collections.abc import Iterable, Mapping
from typing import Any
from zoneinfo import ZoneInfo

from contracts.settings import TimeStamps
from infra.database.found import VisibleMessage
from infra.database.reading import StoredRow


def folded(text: str) -> str:
    """On one line, so that it cannot begin another."""
    return " ".join(text.split())


def indented(text: str) -> str:
    """With every line but the first set in, so that none passes for the beginning of a message."""
    return "\n  ".join(text.splitlines())


def plain(value: Any) -> str:
    """Any JSON value, in words; a field without a value is left out."""
    match value:
        case list():
            return ", ".join(plain(item) for item in value)
        case dict():
            return "; ".join(f"{key}: {plain(item)}" for key, item in value.items() if item is not None)
        case bool():
            return "yes" if value else "no"
        case None:
            return "none"
    return str(value)


def stamped(message: StoredRow | VisibleMessage, stamps: TimeStamps) -> str:
    """What was said; by the user, with the local time at which it was, unless no stamps are wanted."""
    if message.role != "user" or not stamps.enabled:
        return message.content
    local = message.sent_at.astimezone(ZoneInfo(stamps.zone))
    return stamps.template.format(time=local.strftime(stamps.time_format), text=message.content)


def tools_used(tool_calls: Iterable[Mapping[str, Any]]) -> str:
    """The line that tells a model which tools an answer was made with, each named once."""
    names = dict.fromkeys(str(call["name"]) for call in tool_calls)
    return f"Tools used: {', '.join(names)}"
