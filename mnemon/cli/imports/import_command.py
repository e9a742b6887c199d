"""Command `mnemon import`: import memory, one subcommand for each source."""

from collections.abc import AsyncIterator, Iterator
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mnemon.cli.imports.progress import (
    FilesArgument,
    ImportFiles,
    ImportOptions,
    ImportTenantOption,
    ZoneOption,
    parse_time_zone,
)
from mnemon.cli.options.option_group import expand_options
from mnemon.cli.options.owner import check_owner
from mnemon.cli.options.target import DataOption, open_connections, refuse_connection, require_deployment
from mnemon.cli.terminal.exit_code import ExitCode, perform_async, refuse, refuse_file
from mnemon.cli.terminal.output import JsonOption, show_json, show_progress, show_table
from mnemon.display_text import format_count

if TYPE_CHECKING:
    from mnemon.operations.imports.postgres import RowReader
    from mnemon.operations.imports.records import ImportRecord
    from mnemon.operations.imports.telegram import TelegramReader
    from mnemon_contracts.subjects import Owner
    from mnemon_infra.config import Deployment
    from mnemon_producers.locomo import LocomoConversation
    from mnemon_producers.publisher import Published

_MOST_SENDERS: Final = 5
"""Maximum number of senders to name if no message is from the sender in `--bot`."""

app = typer.Typer(no_args_is_help=True, help="Import memory from files and other systems.")


@app.command("jsonl")
@expand_options
def jsonl(
    files: FilesArgument,
    tenant: Annotated[
        str | None,
        typer.Option(
            help="Import all lines into this tenant; the files must have lines of one tenant only. Default: "
            "the tenants that the lines name."
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            help="Import all lines as this user; the files must have lines of one user only. Default: the "
            "users that the lines name."
        ),
    ] = None,
    *,
    options: ImportOptions,
) -> None:
    """Import a file of `mnemon export jsonl`, without calls of a language model.

    A repeated import adds nothing; an interrupted import continues where it stopped.

    Exits with code 1 if a record is refused.

    Example: `mnemon export jsonl --tenant acme --user u42 -o u42.jsonl; mnemon import jsonl u42.jsonl`
    """
    from mnemon.operations.imports.jsonl import JsonLinesReader

    check_owner(tenant, user)
    found = ImportFiles(files, JsonLinesReader(tenant, user).read)
    options.run_import(found.read_records(), tenant, found)


@app.command("telegram")
@expand_options
def telegram(
    files: FilesArgument,
    tenant: ImportTenantOption,
    bot: Annotated[
        str | None,
        typer.Option(
            help="Sender that is the assistant: an id such as user123456, or the displayed name. Default: "
            "in a chat with a bot or with one person, that bot or person; in a group, no sender."
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            help="Import all messages as this user. Default: the person who talks to the bot, by Telegram "
            "id, such as 123456; for a group, the group, such as chat789."
        ),
    ] = None,
    zone: ZoneOption = "UTC",
    *,
    options: ImportOptions,
) -> None:
    """Import result.json of a Telegram Desktop export, each chat as a conversation.

    If an earlier import took another sender for the assistant, an import with --bot first erases that
    conversation, with the facts that were extracted from it alone.

    Exits with code 1 if a record is refused, or with code 2 if no message is from the sender in --bot.

    Example: `mnemon import telegram result.json --tenant acme --dry-run`
    """
    from mnemon.operations.imports.telegram import TelegramReader

    check_owner(tenant, user)
    reader = TelegramReader(bot, user, parse_time_zone(zone))
    found = ImportFiles(files, reader.read)
    if bot is not None:
        _require_sender(files, reader, bot)
    options.run_import(found.read_records(), tenant, found)


def _require_sender(files: list[Path], reader: "TelegramReader", bot: str) -> None:
    """End the command if no message is from the sender in --bot. Standard input is not checked."""
    from mnemon.operations.imports.records import NotReadable
    from mnemon.operations.imports.telegram import list_senders

    senders: dict[str, str] = {}
    try:
        for path in files:
            if path == Path("-"):
                return
            with path.open("rb") as file:
                for role, sender, name in list_senders(reader.read(file)):
                    if role == "assistant":
                        return
                    senders.setdefault(sender, name)
    except (OSError, NotReadable):
        return  # the import reports the file
    named = ", ".join(f"{name!r} ({sender})" for sender, name in islice(senders.items(), _MOST_SENDERS))
    refuse(
        ExitCode.USAGE_ERROR,
        f"no message is from {bot!r}, so nothing was imported",
        f"Give one of the senders as --bot: {named}" if named else "",
    )


@app.command("openai")
@expand_options
def openai(
    files: FilesArgument,
    tenant: ImportTenantOption,
    user: Annotated[str, typer.Option(help="Import all conversations as this user.")],
    *,
    options: ImportOptions,
) -> None:
    """Import conversations.json of a ChatGPT export, the oldest conversation first.

    Exits with code 1 if a record is refused.

    Example: `mnemon import openai conversations.json --tenant acme --user u42`
    """
    from mnemon.operations.imports.openai import read_conversations

    check_owner(tenant, user)
    found = ImportFiles(files, lambda file: read_conversations(file, user))
    options.run_import(found.read_records(), tenant, found)


@app.command("locomo")
@perform_async
async def locomo(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="JSON files of the LoCoMo benchmark, unchanged.")
    ],
    tenant: Annotated[str, typer.Option(help="Tenant to import into.")],
    user: Annotated[
        str | None,
        typer.Option(
            help="Import all conversations as this user. Default: one user per conversation, named "
            "after the sample."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read the files and report the result without sending anything.")
    ] = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Import conversations of the LoCoMo benchmark, each turn as a message with its speaker and a time.

    A repeated import of a file does not change memory.

    Example: `mnemon import locomo conv-26.json --tenant acme`
    """
    from mnemon_contracts.base import InvalidBody
    from mnemon_contracts.subjects import InvalidId
    from mnemon_producers.client import MemoryClient
    from mnemon_producers.errors import NotConnected, PublishFailed

    check_owner(tenant, user)
    conversations = [conversation for file in files for conversation in _read_locomo(file, tenant, user)]
    if dry_run:
        _show_conversations(conversations, None, as_json)
        return ExitCode.DONE
    deployment = require_deployment(data, "broker")
    events = [event for conversation in conversations for event in conversation.events]
    try:
        async with MemoryClient.connect(str(deployment.nats_url), tenant=tenant) as memory:
            with show_progress(description="publishing", total=len(events)) as update:
                published = await memory.publish_many(
                    events, progress=lambda published: update(completed=published.count)
                )
    except (InvalidId, InvalidBody) as error:
        refuse(ExitCode.USAGE_ERROR, str(error))
    except NotConnected as error:
        refuse_connection(error, data)
    except PublishFailed as error:
        again = "Remove the cause, then run the import again: each message is kept once"
        refuse(ExitCode.UNAVAILABLE if error.retryable else ExitCode.NEGATIVE_RESULT, str(error), again)
    _show_conversations(conversations, published, as_json)
    return ExitCode.DONE


def _read_locomo(file: Path, tenant: str, user: str | None) -> "list[LocomoConversation]":
    from mnemon_producers.locomo import NotLocomo, read_conversations

    try:
        return read_conversations(file.read_bytes(), tenant=tenant, user=user)
    except OSError as error:
        refuse_file(file, "read", error)
    except NotLocomo as error:
        refuse(
            ExitCode.USAGE_ERROR,
            f"{file} is not a LoCoMo file: {error}",
            "Correct the file, or give one in the format of locomo10.json",
        )


def _show_conversations(
    conversations: "list[LocomoConversation]", published: "Published | None", as_json: bool
) -> None:
    if as_json:
        summary = {
            "conversations": [
                {
                    "user": conversation.events[0].user,
                    "conversation": conversation.name,
                    "sessions": conversation.sessions,
                    "turns": conversation.turns,
                }
                for conversation in conversations
            ],
            "published": published.count - published.duplicates if published else 0,
            "already_there": published.duplicates if published else 0,
            "last_seq": published.last_seq if published else None,
        }
        show_json(summary)
        return
    show_table(
        ("user", "conversation", "sessions", "turns"),
        [(one.events[0].user, one.name, one.sessions, one.turns) for one in conversations],
    )
    if published is None:
        typer.echo("Nothing was sent.")
    else:
        new = published.count - published.duplicates
        typer.echo(f"{format_count(new, 'event')} published, {published.duplicates:,} already there.")


@app.command("markdown")
@expand_options
def markdown(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH", help="Files, folders of *.md files, or - for standard input."),
    ],
    tenant: Annotated[
        str | None, typer.Option(help="Tenant to import into. Default: the tenant that the files name.")
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            help="Import all records as this user. Default: the user that a file or its path names, "
            "such as 42.md or 42/profile.md."
        ),
    ] = None,
    rewrite: Annotated[
        bool,
        typer.Option(
            "--rewrite",
            help="After the import, replace each file with its user's memory, as `mnemon export markdown` "
            "writes it, and keep the old file as FILE.bak. Requires --tenant.",
        ),
    ] = False,
    *,
    options: ImportOptions,
) -> None:
    """Import facts, profile fields and tasks from Markdown, one per line.

    The line of a fact is `- [id:pf_001] [t:profile] [imp:high] [exp:2026-12-31] text`; the marks in brackets
    are optional. A line with a check box, such as `- [ ] Call the bank`, is a task. Below the heading
    `User data`, a line such as `- city: Lisbon` is a profile field.

    A fact keeps its id on four conditions: its line has an id, a tier and an importance; the default policy
    accepts the fact; no other fact of the user has the id; and the user has no facts from other sources.
    Otherwise, the fact is proposed like any other fact, and may be rejected or merged into another fact.

    Exits with code 1 if a record is refused.

    Example: `mnemon import markdown data/memory --tenant acme --rewrite`
    """
    from mnemon.operations.imports.markdown import MarkdownReader

    check_owner(tenant, user)
    files = list(_list_files(paths))
    owners = _require_rewritable(files, tenant, user) if rewrite and not options.dry_run else {}

    async def rewrite_all(deployment: "Deployment") -> None:
        await _rewrite_files(deployment, owners)

    found = ImportFiles(files, MarkdownReader(tenant, user).read)
    options.run_import(found.read_records(), tenant, found, rewrite_all if owners else None)


def _list_files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        found = sorted(path.rglob("*.md"))
        if not found:
            refuse(ExitCode.USAGE_ERROR, f"there are no *.md files in {path}; give another folder")
        yield from found


def _require_rewritable(files: list[Path], tenant: str | None, user: str | None) -> "dict[Path, Owner]":
    """Return the owner of each file that `--rewrite` replaces.

    End the command if no tenant is given, if a file is standard input, has only one tier of a user or names
    no user, or if a backup of a file exists.
    """
    from mnemon.operations.imports.markdown import parse_path
    from mnemon.operations.imports.normalised_files import get_backup_path

    if tenant is None:
        refuse(ExitCode.USAGE_ERROR, "--rewrite needs a tenant; give it with --tenant")
    owners: dict[Path, Owner] = {}
    for path in files:
        if path == Path("-"):
            refuse(
                ExitCode.USAGE_ERROR,
                "standard input cannot be rewritten; name a file, or leave out --rewrite",
            )
        tier, named = parse_path(path)
        if tier is not None:
            refuse(
                ExitCode.USAGE_ERROR,
                f"{path} has only the tier `{tier}` of a user, and --rewrite needs a user's whole memory; "
                "leave out --rewrite",
            )
        if (user or named) is None:
            refuse(ExitCode.USAGE_ERROR, f"{path} names no user; give --user, or leave out --rewrite")
        if get_backup_path(path).exists():
            refuse(
                ExitCode.USAGE_ERROR,
                f"{get_backup_path(path)} exists and would be overwritten; move the file away",
            )
        owners[path] = tenant, str(user or named)
    return owners


async def _rewrite_files(deployment: "Deployment", owners: "dict[Path, Owner]") -> None:
    from mnemon.operations.exports.run import NotProjected
    from mnemon.operations.imports.normalised_files import rewrite_files

    try:
        async with open_connections(deployment, "mnemon-import") as (connection, database):
            await rewrite_files(connection, database, owners)
    except NotProjected as error:
        refuse(
            ExitCode.UNAVAILABLE,
            f"no file is changed: {error}",
            "Then run the import again; `mnemon status` shows the lag",
        )
    except OSError as error:
        refuse_file(error.filename or "a file", "written", error, "Make the file writable")


class ChatTables(StrEnum):
    """Layouts of the tables of a bot's chats."""

    CONVERSATIONS = "conversations"
    CHAT_LOGS = "chat-logs"


@app.command("postgres")
@expand_options
def postgres(
    dsn: Annotated[
        str,
        typer.Option(
            help="Address of the database, such as postgresql://bot@db/ai_db. The password may be in "
            "PGPASSWORD."
        ),
    ],
    layout: Annotated[
        ChatTables,
        typer.Option(
            help="Layout of the tables. `conversations`: tables conversations and messages, with one row "
            "per message. `chat-logs`: table chat_logs, with one row per question and answer, and, if it "
            "exists, table chat_sessions, with the memory of each session."
        ),
    ],
    tenant: ImportTenantOption,
    user: Annotated[
        str | None,
        typer.Option(
            help="Import all records as this user. Default: the users that the tables name; in the layout "
            "`chat-logs`, the session is the user of a row that names no user."
        ),
    ] = None,
    schema: Annotated[str, typer.Option(help="Schema of the tables in the database.")] = "public",
    zone: ZoneOption = "UTC",
    *,
    options: ImportOptions,
) -> None:
    """Import chats from a bot's PostgreSQL database without changing the database.

    Exits with code 1 if a record is refused.

    Example: `mnemon import postgres --dsn postgresql://bot@db/ai_db --layout conversations --tenant acme`
    """
    from mnemon.operations.imports.postgres import RowReader

    check_owner(tenant, user)
    found = _read_records(dsn, layout, schema, RowReader(user, parse_time_zone(zone)))
    options.run_import(found, tenant)


async def _read_records(
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
