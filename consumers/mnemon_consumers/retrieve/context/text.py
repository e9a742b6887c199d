"""Format of stored texts and values in a context: indented lines, values in words, timestamps, tools."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from mnemon_consumers.retrieve.context.wording import ENGLISH, Wording
from mnemon_contracts.settings.groups import TimeStamps
from mnemon_infra.database.memory.user_memory import StoredRow
from mnemon_infra.database.messages.lookup import VisibleMessage


def indent_lines(text: str) -> str:
    """Indent every line except the first, so that no line looks like the beginning of a message."""
    return "\n  ".join(text.splitlines())


def format_value(value: Any, wording: Wording) -> str:
    """Return any JSON value in words; fields without a value are left out."""
    match value:
        case list():
            return ", ".join(format_value(item, wording) for item in value)
        case dict():
            return "; ".join(
                f"{key}: {format_value(item, wording)}" for key, item in value.items() if item is not None
            )
        case bool():
            return wording.yes if value else wording.no
        case None:
            return wording.none
    return str(value)


def stamp_message(message: StoredRow | VisibleMessage, stamps: TimeStamps) -> str:
    """Return the content of a message; a user's message gets its local time if timestamps are enabled."""
    if message.role != "user" or not stamps.enabled:
        return message.content
    return add_time_stamp(message.sent_at, message.content, stamps)


def add_time_stamp(moment: datetime, text: str, stamps: TimeStamps) -> str:
    """Return a text with the local time of a moment, in the form that `stamps` give."""
    local = moment.astimezone(ZoneInfo(stamps.zone))
    return stamps.template.format(time=local.strftime(stamps.time_format), text=text)


def format_tools_used(tool_calls: Iterable[Mapping[str, Any]], wording: Wording = ENGLISH) -> str:
    """Return the line that names the tools of an answer, each once."""
    names = dict.fromkeys(str(call["name"]) for call in tool_calls)
    return f"{wording.tools_used}: {', '.join(names)}"
