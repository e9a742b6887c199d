"""Reader of chats that bots kept in PostgreSQL, row by row."""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from hashlib import sha256
from typing import Any, Final

from mnemon.operations.imports.records import (
    ImportRecord,
    IncomingEvent,
    NotReadable,
    RefusedRecord,
    Speaker,
    create_import_id,
    set_zone,
)
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.events.chat import StartedV1
from mnemon_contracts.events.memory import FactProposedV1, Kind, Lineage
from mnemon_infra.database.messages.external_chats import (
    ChatLogs,
    ExternalMessageRow,
    QuestionRow,
    SessionMemoryRow,
)

_STAMP: Final = re.compile(r"\A\[Текущее время: \d{4}-\d\d-\d\d \d\d:\d\d\][ \n]?")
"""Timestamp, `[current time: …]` in Russian, that some bots store before a user's text.

mnemon adds times when it renders a context.
"""

_ANSWER_DELAY: Final = timedelta(milliseconds=1)
"""Time from a question to its answer: both are in one row, which has one time."""

_KINDS: Final[dict[str, Kind]] = {"key_facts": "user_fact", "summaries": "conversation_summary"}


@dataclass(frozen=True, slots=True)
class RowReader:
    """Reader of the rows of a bot's tables.

    Attributes:
        user: the user that gets all events; None means the users of the rows.
        zone: time zone of times that name no time zone.
    """

    user: str | None = None
    zone: tzinfo = UTC

    async def read_conversations(
        self, rows: AsyncGenerator[ExternalMessageRow, None]
    ) -> AsyncIterator[ImportRecord]:
        """Yield for each conversation an event that starts it, and its messages or their refusals.

        Args:
            rows: the rows, with those of one conversation together; a row whose `id` is None stands for a
                conversation without messages.
        """
        last = None
        async with aclosing(rows):
            async for row in rows:
                if row.conversation != last:
                    last = row.conversation
                    started = StartedV1(id=create_import_id("pg", row.conversation, "start"))
                    place = f"conversation {row.conversation}"
                    user = self.user or row.user
                    yield IncomingEvent(place, user, started, row._asdict(), row.conversation)
                if row.id is not None:
                    yield self.read_message(row)

    async def read_chat_logs(self, logs: ChatLogs) -> AsyncIterator[ImportRecord]:
        """Yield questions and answers, then facts from the bot's own memory.

        Raises:
            NotReadable: neither the rows nor the reader names a user.
        """
        if self.user is None and not logs.has_users:
            raise NotReadable(
                "the table chat_logs has no column for the user or the session; name the user of all rows "
                "with --user"
            )
        async with aclosing(logs.stream_questions()) as asked:
            async for row in asked:
                for found in self.read_exchange(row):
                    yield found
        async with aclosing(logs.stream_memories()) as known:
            async for memory in known:
                for found in self.read_session_memory(memory):
                    yield found

    def read_message(self, row: ExternalMessageRow) -> ImportRecord:
        """Return one message as an event, or the refusal of an invalid message."""
        content = row.content or ""
        if row.role == "user":
            content = _STAMP.sub("", content)
        return Speaker(self.user or row.user, row.conversation).create_message(
            f"message {row.id}",
            row._asdict(),
            id=create_import_id("pg", row.conversation, row.id),
            role=row.role,
            content=content,
            sent_at=self._localize_time(row.created_at),
        )

    def read_exchange(self, row: QuestionRow) -> Iterator[ImportRecord]:
        """Yield the question and the answer of a row as messages, each unless it is empty.

        Yield a refusal for each invalid message, and one refusal for a row without a user.
        """
        named = row.id or _digest_parts(row.session, row.created_at, row.question)
        place = f"chat_logs {named}"
        user = self.user or row.user or row.session
        if user is None:
            yield RefusedRecord(place, "user_id", "is missing", row._asdict())
            return
        speaker = Speaker(user, f"session-{row.session}" if row.session else None)
        at = self._localize_time(row.created_at)
        for role, content, later in ("user", row.question, 0), ("assistant", row.response, 1):
            if content:
                yield speaker.create_message(
                    place,
                    row._asdict(),
                    id=create_import_id("pg", "chat_logs", row.session or "", named, role),
                    role=role,
                    content=_STAMP.sub("", content) if role == "user" else content,
                    sent_at=at and at + later * _ANSWER_DELAY,
                )

    def read_session_memory(self, row: SessionMemoryRow) -> Iterator[ImportRecord]:
        """Yield the key facts and the summaries of a session as proposed facts.

        Yield a refusal in place of each part that is invalid: the whole memory, a list or a text. A session
        without a user gives one refusal.
        """
        place = f"chat_sessions {row.session or ''}".strip()
        user = self.user or row.user or row.session
        memory = row.memory
        if user is None or not isinstance(memory, dict):
            field, problem = (
                ("user_id", "is missing") if user is None else ("memory", "is missing or not a JSON object")
            )
            yield RefusedRecord(place, field, problem, row._asdict())
            return
        for name, kind in _KINDS.items():
            texts = memory.get(name) or []
            if not isinstance(texts, list):
                yield RefusedRecord(place, f"memory.{name}", "is not a list", row._asdict())
                continue
            for number, text in enumerate(texts):
                yield _propose_fact(f"{place}, {name} {number + 1}", user, kind, _get_text(text), row)

    def _localize_time(self, written: datetime | None) -> datetime | None:
        return None if written is None else set_zone(written, self.zone)


def _propose_fact(place: str, user: str, kind: Kind, text: str, row: SessionMemoryRow) -> ImportRecord:
    try:
        proposed = FactProposedV1.create_strict(
            id=create_import_id("pg", "chat_sessions", row.session or "", _digest_parts(kind, text)),
            text=text,
            kind=kind,
            lineage=Lineage(extractor="import"),
        )
    except InvalidBody as error:
        return RefusedRecord(place, error.field, error.problem, text)
    return IncomingEvent(place, user, proposed, text)


def _get_text(written: Any) -> str:
    """Return the text of a fact; some bots store a fact as an object with a text."""
    if isinstance(written, dict):
        return str(written.get("text") or written.get("content") or "")
    return str(written)


def _digest_parts(*parts: object) -> str:
    return sha256("\0".join(map(str, parts)).encode(errors="surrogatepass")).hexdigest()[:32]
