"""Stored text as it stands in a prompt: it is data, and stays within its line."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from mnemon_consumers.retrieve.context.wording import ENGLISH, Wording
from mnemon_contracts.settings.groups import TimeStamps
from mnemon_infra.database.memory.user_memory import StoredRow
from mnemon_infra.database.messages.lookup import VisibleMessage


def folded(text: str) -> str:
    """On one line, so that it cannot begin another."""
    return " ".join(text.split())


def indented(text: str) -> str:
    """With every line but the first set in, so that none passes for the beginning of a message."""
    return "\n  ".join(text.splitlines())


def plain(value: Any, wording: Wording) -> str:
    """Any JSON value, in words; a field without a value is left out."""
    match value:
        case list():
            return ", ".join(plain(item, wording) for item in value)
        case dict():
            return "; ".join(
                f"{key}: {plain(item, wording)}" for key, item in value.items() if item is not None
            )
        case bool():
            return wording.yes if value else wording.no
        case None:
            return wording.none
    return str(value)


def stamped(message: StoredRow | VisibleMessage, stamps: TimeStamps) -> str:
    """What was said; by the user, with the local time at which it was, unless no stamps are wanted."""
    if message.role != "user" or not stamps.enabled:
        return message.content
    return time_stamp(message.sent_at, message.content, stamps)


def time_stamp(moment: datetime, text: str, stamps: TimeStamps) -> str:
    """Add the local time of a moment to a text."""
    local = moment.astimezone(ZoneInfo(stamps.zone))
    return stamps.template.format(time=local.strftime(stamps.time_format), text=text)


def tools_used(tool_calls: Iterable[Mapping[str, Any]], wording: Wording = ENGLISH) -> str:
    """The line that tells a model which tools an answer was made with, each named once."""
    names = dict.fromkeys(str(call["name"]) for call in tool_calls)
    return f"{wording.tools_used}: {', '.join(names)}"
