"""Tables of a bot's chats in PostgreSQL, as `mnemon import postgres` reads them."""

from collections.abc import AsyncIterator
from enum import StrEnum
from typing import TYPE_CHECKING

from mnemon.cli.terminal.exit_code import ExitCode, refuse

if TYPE_CHECKING:
    from mnemon.operations.imports.postgres import RowReader
    from mnemon.operations.imports.records import ImportRecord


class ChatTables(StrEnum):
    """Layouts of the tables of a bot's chats."""

    CONVERSATIONS = "conversations"
    CHAT_LOGS = "chat-logs"


async def read_records(
    dsn: str, layout: ChatTables, schema: str, reading: "RowReader"
) -> "AsyncIterator[ImportRecord]":
    """Yield the records of the tables.

    End the command if the database does not answer, a table or a column is missing, or no user is named.
    """
    from mnemon.operations.imports.records import NotReadable
    from mnemon_infra.database.messages.external_chats import (
        ChatLogs,
        ExternalChatsUnavailable,
        open_external_database,
        stream_messages,
    )

    try:
        async with open_external_database(dsn) as connection:
            if layout is ChatTables.CONVERSATIONS:
                rows = reading.read_conversations(stream_messages(connection, schema))
            else:
                rows = reading.read_chat_logs(await ChatLogs.inspect(connection, schema))
            async for each in rows:
                yield each
    except ExternalChatsUnavailable as error:
        refuse(ExitCode.UNAVAILABLE, str(error))
    except NotReadable as error:
        refuse(ExitCode.USAGE_ERROR, str(error))
