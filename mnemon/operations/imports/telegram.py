"""Reader of Telegram Desktop's JSON export: `result.json` of one chat, or of all of them.

A chat becomes a conversation. In a chat with a bot, the person is the user and the bot is the assistant.
`bot` names the assistant. Without `bot`, in a chat with one other person, the reader treats that person as
the assistant, and reports a doubt. In a group, messages keep the names of their senders. The reader streams
the file: such files have hundreds of megabytes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Any, BinaryIO, Final

from ijson.common import ObjectBuilder

from mnemon.operations.imports.json_stream import parse_json
from mnemon.operations.imports.records import (
    ImportDoubt,
    ImportRecord,
    IncomingEvent,
    LeftOutRecord,
    NotReadable,
    Reassignment,
    RefusedRecord,
    Speaker,
    create_import_id,
    parse_unix_time,
    set_zone,
)
from mnemon_contracts.events.chat import MessageV1

_SINGLE_USER_CHATS: Final = {"bot_chat", "personal_chat", "saved_messages"}
_MEDIA: Final = ("media_type", "photo", "file", "location_information", "contact_information", "poll")
_MAX_HELD_BACK: Final = 50
"""Maximum number of messages that the reader holds back until user and assistant have spoken."""


@dataclass(slots=True)
class _Chat:
    """Fields of a chat that precede its messages, and the messages held back until its speakers are known."""

    about: dict[str, Any] = field(default_factory=dict)
    waiting: list[dict[str, Any]] = field(default_factory=list)
    speaker: Speaker | None = None
    assistant: dict[str, Any] | None = None

    @property
    def id(self) -> str:
        return str(self.about.get("id", ""))

    @property
    def place(self) -> str:
        return f"chat {self.id}"

    @property
    def has_two_sides(self) -> bool:
        """True if the chat is with one bot or one person, whose id is also the id of the chat."""
        return self.about.get("type") in ("bot_chat", "personal_chat")


@dataclass(frozen=True, slots=True)
class TelegramReader:
    """Reader of a JSON export of Telegram Desktop.

    Attributes:
        bot: the sender who is the assistant: an id such as `user123456`, or the displayed name; None
            means the other side of each chat with one bot or one person.
        user: the user that gets all messages; None means the user of each chat.
        zone: time zone of times that name no time zone, as in old exports.
    """

    bot: str | None = None
    user: str | None = None
    zone: tzinfo = UTC

    def read(self, file: BinaryIO) -> Iterator[ImportRecord]:
        """Yield the messages of an export, in its order, with reassignments and doubts before or after them.

        In place of a message that is not imported, yield a record with the reason.

        Raises:
            NotReadable: the file is not an export of Telegram, is incomplete, or is nested too deeply.
        """
        chat, seen = _Chat(), False
        builder: ObjectBuilder | None = None
        inside = skipped = ""
        for prefix, event, value in parse_json(file, "result.json"):
            if skipped:
                skipped = "" if event == "end_array" and prefix == skipped else skipped
                continue
            if builder is not None:
                if event == "map_key" and value == "text_entities" and prefix == inside:
                    skipped = f"{inside}.text_entities"  # repeats the text in parts
                    continue
                builder.event(event, value)
                if event == "end_map" and prefix == inside:
                    yield from self._take_message(chat, builder.value)
                    builder = None
                continue
            parent, _, name = prefix.rpartition(".")
            if event == "start_map" and (parent == "messages" or parent.endswith(".messages")):
                seen, inside, builder = True, prefix, ObjectBuilder()
                builder.event(event, value)
            elif event == "start_map" and prefix in ("", "chats.list.item", "left_chats.list.item"):
                chat = _Chat()
            elif event == "end_array" and name == "messages":
                yield from self._end_chat(chat)
                seen = True
            elif event in ("string", "number") and name in ("id", "name", "type") and _is_chat_field(prefix):
                chat.about[name] = value
        if not seen:
            raise NotReadable(
                "no messages found; give the file result.json of a Telegram export in the JSON format"
            )

    def _take_message(self, chat: _Chat, message: dict[str, Any]) -> Iterator[ImportRecord]:
        if chat.assistant is None and self._is_bot(chat, message):
            chat.assistant = message
        if chat.speaker is not None:
            yield self._read_message(chat, chat.speaker, message)
            return
        chat.waiting.append(message)
        user = self._find_user(chat)
        have_spoken = user is not None and (chat.assistant is not None or not chat.has_two_sides)
        if have_spoken or len(chat.waiting) >= _MAX_HELD_BACK:
            yield from self._begin_chat(chat, user)

    def _end_chat(self, chat: _Chat) -> Iterator[ImportRecord]:
        if chat.waiting:
            yield from self._begin_chat(chat, self._find_user(chat))
        if self.bot is not None and chat.speaker is not None and chat.assistant is None:
            yield ImportDoubt(
                chat.place,
                f"no sender is {self.bot!r}, so no message is imported as the assistant's: check --bot",
            )

    def _begin_chat(self, chat: _Chat, user: str | None) -> Iterator[ImportRecord]:
        """Set the user of the chat, by default named after the chat; yield the messages held back."""
        chat.speaker = speaker = Speaker(user or f"chat{chat.id}", f"telegram-{chat.id}")
        if chat.assistant is not None:
            yield from self._assign_speakers(chat, speaker, chat.assistant)
        for message in chat.waiting:
            yield self._read_message(chat, speaker, message)
        chat.waiting = []

    def _assign_speakers(
        self, chat: _Chat, speaker: Speaker, assistant: dict[str, Any]
    ) -> Iterator[ImportRecord]:
        """Yield a `Reassignment` if `bot` names the assistant; a doubt if the assistant is a guess."""
        sender = str(assistant["from_id"])
        if self.bot is not None:
            people = {
                _parse_person(each["from_id"]) for each in chat.waiting if each.get("from_id") is not None
            }
            users = frozenset({speaker.user, f"chat{chat.id}", *people})
            ids = create_import_id("telegram", chat.id, "")
            yield Reassignment(chat.place, speaker.user, f"telegram-{chat.id}", sender, users, ids)
        elif chat.about.get("type") == "personal_chat":
            yield ImportDoubt(
                chat.place,
                f"--bot is not given; {assistant.get('from')!r} ({sender}) is imported as the assistant. "
                "If this is wrong, import again with --bot, which corrects the speakers",
            )

    def _find_user(self, chat: _Chat) -> str | None:
        users = (self._get_user(chat, message) for message in chat.waiting)
        return next((user for user in users if user is not None), None)

    def _get_user(self, chat: _Chat, message: dict[str, Any]) -> str | None:
        if self.user is not None:
            return self.user
        if chat.about.get("type") not in _SINGLE_USER_CHATS:
            return f"chat{chat.id}"
        sender = message.get("from_id")
        is_said = message.get("type") == "message" and sender is not None
        if not is_said or self._is_bot(chat, message):
            return None
        return _parse_person(sender)

    def _is_bot(self, chat: _Chat, message: dict[str, Any]) -> bool:
        sender = str(message.get("from_id", ""))
        if self.bot is not None:
            return self.bot in (sender, _parse_person(sender), message.get("from"))
        return chat.has_two_sides and _parse_person(sender) == chat.id

    def _read_message(self, chat: _Chat, speaker: Speaker, message: dict[str, Any]) -> ImportRecord:
        place = f"{chat.place}, message {message.get('id')}"
        if message.get("type") != "message":
            return LeftOutRecord(place, f"a service message: {message.get('action', message.get('type'))}")
        if "id" not in message:
            return RefusedRecord(place, "id", "is missing", message)
        try:
            sent_at = self._parse_sent_at(message)
            content = _get_text(message.get("text", ""))
        except ValueError as error:
            name, _, reason = str(error).partition(": ")
            return RefusedRecord(place, name, reason, message)
        kind = _describe_media(message)
        if kind:
            content = f"{content}\n[{kind}]".strip()
        if not content.strip():
            return LeftOutRecord(place, "no text")
        return speaker.create_message(
            place,
            message,
            id=create_import_id("telegram", chat.id, message["id"]),
            role="assistant" if self._is_bot(chat, message) else "user",
            content=content,
            name=message.get("from") or None,
            sent_at=sent_at,
            metadata=_build_metadata(chat, message),
        )

    def _parse_sent_at(self, message: dict[str, Any]) -> datetime:
        try:
            if (moment := parse_unix_time(message.get("date_unixtime"))) is not None:
                return moment
        except ValueError as error:
            raise ValueError(f"date_unixtime: {error}") from error
        try:
            return set_zone(datetime.fromisoformat(str(message["date"])), self.zone)
        except KeyError as error:
            raise ValueError("date: is missing; must be a time such as 2026-03-01T10:00:00") from error
        except ValueError as error:
            raise ValueError(
                f"date: must be a time such as 2026-03-01T10:00:00, not {message['date']!r}"
            ) from error


def list_senders(records: Iterable[ImportRecord]) -> Iterator[tuple[str, str, str]]:
    """Yield the role, the id and the name of the sender of each message that can be imported."""
    for each in records:
        if isinstance(each, IncomingEvent) and isinstance(each.event, MessageV1):
            yield each.event.role, str(each.source.get("from_id", "")), each.event.name or ""


def _parse_person(sender: object) -> str:
    """Return the user id of a sender, without the prefix `user`; old exports have the id as a number."""
    return str(sender).removeprefix("user")


def _is_chat_field(prefix: str) -> bool:
    """Return whether a field belongs to a chat itself, not to an object in the chat."""
    place, _, _ = prefix.rpartition(".")
    return place in ("", "chats.list.item", "left_chats.list.item")


def _get_text(written: Any) -> str:
    """Return the text of a message; an export has a list if parts of the text are bold, or links."""
    if isinstance(written, str):
        return written
    if not isinstance(written, list):
        raise ValueError("text: must be a string or a list of parts")
    parts = [part.get("text") if isinstance(part, dict) else part for part in written]
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) < len(parts):
        raise ValueError("text: each part must have a text")
    return "".join(texts)


def _describe_media(message: dict[str, Any]) -> str | None:
    """Return a short description of the media in a message; None without media."""
    for name in _MEDIA:
        if name not in message:
            continue
        kind = str(message[name]) if name == "media_type" else name.removesuffix("_information")
        shown = message.get("sticker_emoji") or message.get("file_name") or message.get("title")
        return f"{kind.replace('_', ' ')}: {shown}" if shown else kind.replace("_", " ")
    return None


def _build_metadata(chat: _Chat, message: dict[str, Any]) -> dict[str, Any]:
    wanted = {
        "chat": chat.about.get("name"),
        "message_id": message["id"],
        "from_id": message.get("from_id"),
        "reply_to": message.get("reply_to_message_id"),
        "edited": message.get("edited_unixtime") or message.get("edited"),
        "forwarded_from": message.get("forwarded_from"),
        "via_bot": message.get("via_bot"),
    }
    return {"telegram": {name: value for name, value in wanted.items() if value is not None}}
