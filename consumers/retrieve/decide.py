"""What a bot is shown of what is stored. No I/O, no clock."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo

from consumers.retrieve.fast_history import FastMessage
from contracts.ask import RenderedMessage
from contracts.chat import Role
from contracts.settings import TimeStamps
from infra.database.reading import StoredRow


def history(rows: Sequence[StoredRow], limit: int) -> list[FastMessage]:
    """The last `limit` messages as they were said, with a line after each answer that used tools."""
    shown: list[FastMessage] = []
    for row in rows[-limit:]:
        shown.append(_stored(row, row.role, row.content, row.name))
        if row.tool_calls:
            shown.append(_stored(row, "system", tools_used(row.tool_calls), None))
    return shown[-limit:]


def context(
    rows: Sequence[StoredRow], profile: Mapping[str, Any], limit: int, stamps: TimeStamps
) -> tuple[RenderedMessage, ...]:
    """What goes before a model: the user's data, then the last `limit` messages."""
    recent: list[RenderedMessage] = []
    for row in rows[-limit:]:
        content = stamped(row, stamps) if row.role == "user" and stamps.enabled else row.content
        recent.append(_rendered(row.role, content, row.name))
        if row.tool_calls:
            recent.append(_rendered("system", tools_used(row.tool_calls), None))
    about = [_rendered("system", user_data(profile), None)] if profile else []
    return (*about, *recent[-limit:])


def stamped(row: StoredRow, stamps: TimeStamps) -> str:
    """A message with the local time at which it was said."""
    local = row.sent_at.astimezone(ZoneInfo(stamps.zone))
    return stamps.template.format(time=local.strftime(stamps.time_format), text=row.content)


def tools_used(tool_calls: Iterable[Mapping[str, Any]]) -> str:
    """The line that tells a model which tools an answer was made with, each named once."""
    names = dict.fromkeys(str(call["name"]) for call in tool_calls)
    return f"Tools used: {', '.join(names)}"


def user_data(profile: Mapping[str, Any]) -> str:
    """The user's data as a model reads them, a line each."""
    lines = (f"- {name}: {_plain(value)}" for name, value in profile.items())
    return "\n".join(("User data:", *lines))


def _plain(value: Any) -> str:
    match value:
        case list():
            return ", ".join(_plain(item) for item in value)
        case dict():
            return "; ".join(f"{key}: {_plain(item)}" for key, item in value.items())
        case bool():
            return "yes" if value else "no"
    return str(value)


def _stored(row: StoredRow, role: Role, content: str, name: str | None) -> FastMessage:
    return FastMessage(
        role=role,
        content=content,
        name=name,
        seq=row.seq,
        id=row.event_id,
        sent_at=row.sent_at,
        task_id=row.task_id,
    )


def _rendered(role: Role, content: str, name: str | None) -> RenderedMessage:
    return RenderedMessage(role=role, content=content, name=name)
