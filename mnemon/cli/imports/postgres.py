"""`mnemon import postgres`."""

from collections.abc import AsyncIterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from mnemon.cli.imports.progress import (
    ImportOptions,
    ImportTenantOption,
    ZoneOption,
    check_owner,
    parse_time_zone,
)
from mnemon.cli.option_group import expand_options
from mnemon.cli.terminal.exit_code import Ending, refuse

if TYPE_CHECKING:
    from mnemon.operations.imports.postgres import RowReader
    from mnemon.operations.imports.records import ImportRecord


class ChatTables(StrEnum):
    """Layouts of the tables that have the chats."""

    CONVERSATIONS = "conversations"
    CHAT_LOGS = "chat-logs"


@expand_options
def postgres(
    dsn: Annotated[
        str,
        typer.Option(
            help="Address of the database, such as postgresql://bot@db/ai_db; PGPASSWORD may hold the "
            "password."
        ),
    ],
    layout: Annotated[
        ChatTables,
        typer.Option(
            help="`conversations`: tables conversations and messages, a row per message; `chat-logs`: table "
            "chat_logs, a row per answer."
        ),
    ],
    tenant: ImportTenantOption,
    user: Annotated[
        str | None,
        typer.Option(help="Import everything as this user; without it: the users that the tables name."),
    ] = None,
    schema: Annotated[str, typer.Option(help="Schema of the tables.")] = "public",
    zone: ZoneOption = "UTC",
    *,
    options: ImportOptions,
) -> None:
    """Import chats from a bot's PostgreSQL database, which is only read.

    Example: `mnemon import postgres --dsn postgresql://bot@db/ai_db --layout conversations --tenant acme`
    """
    from mnemon.operations.imports.postgres import RowReader

    check_owner(tenant, user)
    found = _read_records(dsn, layout, schema, RowReader(user, parse_time_zone(zone)))
    options.run_import(found, tenant)


async def _read_records(
    dsn: str, layout: ChatTables, schema: str, reading: "RowReader"
) -> "AsyncIterator[ImportRecord]":
    """Yield the records of the tables. End the command if the tables do not exist."""
    from mnemon.operations.imports.records import NotReadable
    from mnemon_infra.database.messages.external_chats import ChatLogs, NotThere, other_database, said

    try:
        async with other_database(dsn) as connection:
            if layout is ChatTables.CONVERSATIONS:
                rows = reading.read_conversations(said(connection, schema))
            else:
                rows = reading.read_chat_logs(await ChatLogs.of(connection, schema))
            async for each in rows:
                yield each
    except NotThere as error:
        refuse(Ending.PART_MISSING, str(error))
    except NotReadable as error:
        refuse(Ending.WRONG_USE, str(error))
