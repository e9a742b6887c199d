"""Reader of ChatGPT's export, `conversations.json`.

Each conversation is a tree of messages, of which the import takes one branch. The export has the newest
conversation first. The import takes the oldest first, so that the newest becomes the user's current
conversation and its facts are learned last; until then the conversations are kept in a temporary file.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Final

import ijson

from mnemon.operations.imports.json_stream import parse_json
from mnemon.operations.imports.records import (
    ImportRecord,
    IncomingEvent,
    LeftOutRecord,
    NotReadable,
    RefusedRecord,
    Speaker,
    create_import_id,
    parse_unix_time,
)

_ROLES: Final = {"user", "assistant", "tool", "system"}
_OMITTED: Final = {
    "thoughts": "thoughts of the model",
    "reasoning_recap": "thoughts of the model",
    "user_editable_context": "instructions of the user",
    "model_editable_context": "memory that the model was given",
}


def read_conversations(file: BinaryIO, user: str) -> Iterator[ImportRecord]:
    """Yield the messages of an export, conversation by conversation, the oldest first.

    In place of a message or a conversation that is not imported, yield a record with the reason.

    Raises:
        NotReadable: the file is not an export of ChatGPT, is incomplete, or is nested too deeply.
    """
    with TemporaryFile("w+b") as aside:
        begins: list[tuple[float, int]] = []
        for conversation in ijson.items(parse_json(file, "conversations.json"), "item"):
            if not isinstance(conversation, dict):
                raise NotReadable(
                    "an item of the list is not a conversation; give the file conversations.json"
                )
            begins.append((_parse_begin_seconds(conversation), aside.tell()))
            aside.write(json.dumps(conversation).encode() + b"\n")
        if not begins:
            raise NotReadable("no conversations found; give the file conversations.json of the export")
        for _, position in sorted(begins):
            aside.seek(position)
            yield from read_conversation(json.loads(aside.readline()), user)


def read_conversation(conversation: dict[str, Any], user: str) -> Iterator[ImportRecord]:
    """Yield the messages of a conversation's current branch, without those that edits have replaced.

    In place of a message that is not imported, or of an invalid conversation, yield a record with the reason.
    """
    name = str(conversation.get("conversation_id") or conversation.get("id") or "")
    title = conversation.get("title")
    place = f"conversation {name or title!r}"
    mapping = conversation.get("mapping")
    if not name or not isinstance(mapping, dict):
        field, problem = ("mapping", "is missing or not a JSON object") if name else ("id", "is missing")
        yield RefusedRecord(place, field, problem, {"id": name, "title": title})
        return
    speaker = Speaker(user, f"openai-{name}")
    said_at: datetime | None = None
    try:
        branch = _find_current_branch(mapping, conversation.get("current_node"))
    except ValueError as error:
        yield RefusedRecord(place, "mapping", str(error), {"id": name, "title": title})
        return
    for node in branch:
        message = node.get("message")
        if not isinstance(message, dict):
            continue  # the root of the tree has no message
        message = {"id": node.get("id"), **message}
        where = f"{place}, message {message.get('id')}"
        try:
            # A message without a time gets the time of the message before it.
            said_at = parse_unix_time(message.get("create_time")) or said_at or _parse_begin(conversation)
            record = _read_message(speaker, where, name, title, message, said_at)
        except ValueError as error:
            record = RefusedRecord(where, "create_time", str(error), message)
        if isinstance(record, IncomingEvent):
            title = None  # only the first imported message has the title in its metadata
        yield record


def _find_current_branch(mapping: dict[str, Any], leaf: object) -> list[dict[str, Any]]:
    """Return the nodes from the root to the current node, or to the last leaf if no node is current.

    Raises:
        ValueError: an entry on the way is not a node.
    """
    if not isinstance(leaf, str) or leaf not in mapping:
        leaves = [key for key in mapping if not _get_node(mapping, key).get("children")]
        leaf = leaves[-1] if leaves else None
    branch: list[dict[str, Any]] = []
    seen: set[object] = set()
    while isinstance(leaf, str) and leaf in mapping and leaf not in seen:
        seen.add(leaf)
        branch.append(_get_node(mapping, leaf))
        leaf = branch[-1].get("parent")
    return branch[::-1]


def _get_node(mapping: dict[str, Any], key: str) -> dict[str, Any]:
    node = mapping[key]
    if not isinstance(node, dict):
        raise ValueError(f"the entry {key!r} must be a JSON object")
    return node


def _read_message(
    speaker: Speaker,
    place: str,
    conversation: str,
    title: str | None,
    message: dict[str, Any],
    said_at: datetime | None,
) -> ImportRecord:
    content = message.get("content")
    author = message.get("author")
    role = author.get("role") if isinstance(author, dict) else None
    if str(role) not in _ROLES:
        return RefusedRecord(
            place, "author.role", f"{role!r} is not one of {', '.join(sorted(_ROLES))}", message
        )
    if not isinstance(content, dict):
        return RefusedRecord(place, "content", "is missing or not a JSON object", message)
    about = message.get("metadata")
    about = about if isinstance(about, dict) else {}
    kind = str(content.get("content_type"))
    if kind in _OMITTED:
        return LeftOutRecord(place, _OMITTED[kind])
    if about.get("is_visually_hidden_from_conversation") or message.get("weight") == 0:
        return LeftOutRecord(place, "hidden in the conversation")
    text = _get_text(content)
    if not text.strip():
        return LeftOutRecord(place, "no text")
    recipient = message.get("recipient")
    is_call = role == "assistant" and recipient not in (None, "all")
    named = {"title": title, "model": about.get("model_slug")}
    metadata = {name: value for name, value in named.items() if value}
    return speaker.create_message(
        place,
        message,
        id=create_import_id("openai", conversation, message.get("id")),
        role=role,
        content="" if is_call else text,
        tool_calls=({"name": str(recipient), "arguments": text},) if is_call else None,
        name=(author or {}).get("name") or None,
        sent_at=said_at,
        metadata={"openai": metadata} if metadata else None,
    )


def _get_text(content: dict[str, Any]) -> str:
    """Return the text of a message, with a note such as `[image]` for each part that is not text."""
    parts = content.get("parts")
    if not isinstance(parts, list):
        return str(content.get("text") or content.get("result") or "")
    return "\n".join(filter(None, map(_format_part, parts)))


def _format_part(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    kind = str(part.get("content_type", "attachment")).removesuffix("_asset_pointer").replace("_", " ")
    return str(part.get("text") or "") or f"[{kind}]"


def _parse_begin_seconds(conversation: dict[str, Any]) -> float:
    """Return the time at which a conversation began, in seconds since 1970; 0 if it is unknown."""
    try:
        return float(conversation.get("create_time") or 0)
    except (TypeError, ValueError):
        return 0.0


def _parse_begin(conversation: dict[str, Any]) -> datetime | None:
    begun = _parse_begin_seconds(conversation)
    return parse_unix_time(begun) if begun else None
