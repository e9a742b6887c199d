"""Command `mnemon import`: import memory, one subcommand for each source."""

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mnemon.cli.imports.chat_tables import ChatTables, read_records
from mnemon.cli.imports.locomo import read_locomo, show_conversations
from mnemon.cli.imports.markdown_files import list_files, require_rewritable, rewrite_imported_files
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
from mnemon.cli.options.target import DataOption, refuse_connection, require_deployment
from mnemon.cli.terminal.exit_code import ExitCode, perform_async, refuse
from mnemon.cli.terminal.output import JsonOption, show_progress

if TYPE_CHECKING:
    from mnemon.operations.imports.telegram import TelegramReader
    from mnemon_infra.config import Deployment

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
    """Import conversations of the LoCoMo benchmark, each turn as a message with its speaker and time.

    A repeated import of a file does not change memory.

    Example: `mnemon import locomo conv-26.json --tenant acme`
    """
    from mnemon_contracts.base import InvalidBody
    from mnemon_contracts.subjects import InvalidId
    from mnemon_producers.client import MemoryClient
    from mnemon_producers.errors import NotConnected, PublishFailed

    check_owner(tenant, user)
    conversations = [conversation for file in files for conversation in read_locomo(file, tenant, user)]
    if dry_run:
        show_conversations(conversations, None, as_json)
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
    show_conversations(conversations, published, as_json)
    return ExitCode.DONE


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
    files = list(list_files(paths))
    owners = require_rewritable(files, tenant, user) if rewrite and not options.dry_run else {}

    async def rewrite_all(deployment: "Deployment") -> None:
        await rewrite_imported_files(deployment, owners)

    found = ImportFiles(files, MarkdownReader(tenant, user).read)
    options.run_import(found.read_records(), tenant, found, rewrite_all if owners else None)


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
    found = read_records(dsn, layout, schema, RowReader(user, parse_time_zone(zone)))
    options.run_import(found, tenant)
