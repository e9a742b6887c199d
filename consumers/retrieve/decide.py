"""What a bot is shown of what is stored. No I/O, no clock."""

from collections.abc import Mapping, Sequence
from typing import Any

from consumers.retrieve.context.text import plain, stamped, tools_used
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


def user_data(profile: Mapping[str, Any]) -> str:
    """The user's data as a model reads them, a line each."""
    lines = (f"- {name}: {plain(value)}" for name, value in profile.items())
    return "\n".join(("User data:", *lines))


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
