"""Chats in another program's PostgreSQL, read as a stream from one snapshot and never written.

The readers know two layouts. `conversations` has a row per message. `chat-logs` has a row per question with
its answer, and the memory of a bot in `chat_sessions.memory`. In `chat-logs`, the column of the user is
`user_id`, `telegram_user_id` or `chat_id`, and that of the session is `session_id` or `chat_session_id`.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final, NamedTuple

import psycopg
from psycopg.sql import SQL, Composable, Composed, Identifier

ExternalConnection = psycopg.AsyncConnection[tuple[Any, ...]]

PAGE: Final = 1000
"""Maximum number of rows that one fetch reads."""

_CONNECT_SECONDS: Final = 10

_USER: Final = ("user_id", "telegram_user_id", "chat_id")
_SESSION: Final = ("session_id", "chat_session_id")


class ExternalChatsUnavailable(Exception):
    """The database does not answer, refuses a query, or lacks a table or column, as the message says."""


class ExternalMessageRow(NamedTuple):
    """A message of the layout `conversations`; an empty conversation has one row without a message."""

    user: str
    conversation: str
    id: str | None
    role: str | None
    content: str | None
    created_at: datetime | None


class QuestionRow(NamedTuple):
    """A question with its answer, of the layout `chat-logs`; values that the tables lack are None."""

    user: str | None
    session: str | None
    id: str | None
    question: str | None
    response: str | None
    created_at: datetime | None


class SessionMemoryRow(NamedTuple):
    """The memory of a session, as its bot wrote it."""

    user: str | None
    session: str | None
    memory: Any


@asynccontextmanager
async def open_external_database(dsn: str) -> AsyncIterator[ExternalConnection]:
    """Open a read-only connection on which all queries see the same state of the database.

    Raises:
        ExternalChatsUnavailable: the database cannot be reached, or a query in the block fails.
    """
    try:
        connection = await psycopg.AsyncConnection.connect(
            dsn, connect_timeout=_CONNECT_SECONDS, application_name="mnemon-import", client_encoding="utf8"
        )
    except (psycopg.Error, OSError) as error:
        raise ExternalChatsUnavailable(
            f"no connection to the database of --dsn: {_describe_error(error)}. Check the address and the "
            "password, and that the server runs"
        ) from error
    try:
        async with connection:
            await connection.set_read_only(True)
            await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
            yield connection
    except psycopg.Error as error:
        raise ExternalChatsUnavailable(
            f"reading the database of --dsn failed: {_describe_error(error)}. Check that the server "
            "runs and that the role may read the tables, then import again"
        ) from error


async def stream_messages(
    connection: ExternalConnection, schema: str
) -> AsyncGenerator[ExternalMessageRow, None]:
    """Yield the messages of the layout `conversations`, by user and conversation, oldest first.

    An empty conversation yields one row without a message.

    Raises:
        ExternalChatsUnavailable: a table or a column is missing.
    """
    await _require_columns(connection, schema, "conversations", ("id", "telegram_user_id", "created_at"))
    wanted = ("id", "conversation_id", "role", "content", "created_at")
    await _require_columns(connection, schema, "messages", wanted)
    query = SQL("""
        SELECT c.telegram_user_id::text, c.id::text, m.id::text, m.role::text, m.content::text, m.created_at
        FROM {conversations} AS c LEFT JOIN {messages} AS m ON m.conversation_id = c.id
        ORDER BY c.telegram_user_id, c.created_at, c.id, m.created_at, m.id
    """).format(
        conversations=Identifier(schema, "conversations"),
        messages=Identifier(schema, "messages"),
    )
    async for row in _stream_rows(connection, query):
        yield ExternalMessageRow._make(row)


class ChatLogs:
    """Reader of the layout `chat-logs`, with the column names that the tables have."""

    def __init__(
        self, connection: ExternalConnection, schema: str, logs: Sequence[str], sessions: Sequence[str]
    ) -> None:
        self._connection = connection
        self._schema = schema
        self._logs = logs
        self._sessions = sessions
        self._session = next((each for each in _SESSION if each in logs), None)

    @classmethod
    async def inspect(cls, connection: ExternalConnection, schema: str) -> "ChatLogs":
        """Inspect the tables and return a reader.

        Without the table `chat_sessions`, the reader has questions and answers only.

        Raises:
            ExternalChatsUnavailable: a table or a column is missing.
        """
        logs = await _require_columns(connection, schema, "chat_logs", ("question", "response", "created_at"))
        sessions = await _list_columns(connection, schema, "chat_sessions")
        if sessions:
            await _require_columns(connection, schema, "chat_sessions", ("memory",))
        return cls(connection, schema, logs, sessions)

    @property
    def has_users(self) -> bool:
        """True if `chat_logs` has a column for the user or for the session of a question."""
        return bool({*_USER, *_SESSION} & {*self._logs})

    async def stream_questions(self) -> AsyncGenerator[QuestionRow, None]:
        """Yield questions and answers, by user and session, oldest first."""
        joined: Composable = SQL("")
        if self._session and "id" in self._sessions:
            joined = SQL("LEFT JOIN {} AS s ON s.id::text = l.{}::text").format(
                Identifier(self._schema, "chat_sessions"), Identifier(self._session)
            )
        owners = [_format_column("l", self._logs, _USER)]
        if self._session and "id" in self._sessions:
            owners.append(_format_column("s", self._sessions, _USER))
        query = SQL("""
            SELECT {user}, {session}, {id}, l.question::text, l.response::text, l.created_at
            FROM {logs} AS l {joined} ORDER BY 1, 2, l.created_at, 3
        """).format(
            user=SQL("coalesce({})").format(SQL(", ").join(owners)),
            session=_format_column("l", self._logs, _SESSION),
            id=_format_column("l", self._logs, ("id",)),
            logs=Identifier(self._schema, "chat_logs"),
            joined=joined,
        )
        async for row in _stream_rows(self._connection, query):
            yield QuestionRow._make(row)

    async def stream_memories(self) -> AsyncGenerator[SessionMemoryRow, None]:
        """Yield the memory of each session that has one, by user and session."""
        if not self._sessions:
            return
        query = SQL(
            "SELECT {user}, {id}, s.memory FROM {} AS s WHERE s.memory IS NOT NULL ORDER BY 1, 2"
        ).format(
            Identifier(self._schema, "chat_sessions"),
            user=_format_column("s", self._sessions, _USER),
            id=_format_column("s", self._sessions, ("id",)),
        )
        async for row in _stream_rows(self._connection, query):
            yield SessionMemoryRow._make(row)


def _describe_error(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _format_column(table: str, columns: Sequence[str], names: Sequence[str]) -> Composable:
    """Return the first of these columns that a table has, as text; NULL if the table lacks all of them."""
    found = next((each for each in names if each in columns), None)
    return SQL("NULL::text") if found is None else SQL("{}::text").format(Identifier(table, found))


async def _require_columns(
    connection: ExternalConnection, schema: str, table: str, names: Sequence[str]
) -> Sequence[str]:
    """Return all columns of a table, after a check that it has the columns `names`.

    Raises:
        ExternalChatsUnavailable: the table or a required column is missing.
    """
    columns = await _list_columns(connection, schema, table)
    if not columns:
        raise ExternalChatsUnavailable(
            f"there is no table {schema}.{table}, or the role may not read it: name another --schema or "
            "--layout, or grant SELECT on the table to the role"
        )
    if missing := [each for each in names if each not in columns]:
        raise ExternalChatsUnavailable(
            f"{schema}.{table} has no column {', '.join(missing)}; its columns are {', '.join(columns)}: "
            "name another --layout"
        )
    return columns


async def _list_columns(connection: ExternalConnection, schema: str, table: str) -> Sequence[str]:
    cursor = await connection.execute(
        "SELECT column_name::text FROM information_schema.columns"
        " WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
        [schema, table],
    )
    return [name for (name,) in await cursor.fetchall()]


async def _stream_rows(
    connection: ExternalConnection, query: Composed
) -> AsyncGenerator[tuple[Any, ...], None]:
    async with connection.cursor(name="chats") as cursor:
        await cursor.execute(query)
        while page := await cursor.fetchmany(PAGE):
            for row in page:
                yield row
