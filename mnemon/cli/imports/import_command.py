"""`mnemon import`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mnemon.cli.imports.markdown import markdown
from mnemon.cli.imports.postgres import postgres
from mnemon.cli.imports.progress import (
    FilesArgument,
    ImportFiles,
    ImportOptions,
    ImportTenantOption,
    ZoneOption,
    check_owner,
    parse_time_zone,
)
from mnemon.cli.option_group import expand_options
from mnemon.cli.target import DataOption, require_deployment
from mnemon.cli.terminal.exit_code import Ending, perform_command, refuse
from mnemon.cli.terminal.output import JsonOption, show_json, show_progress, show_table

if TYPE_CHECKING:
    from mnemon_infra.config import Deployment
    from mnemon_producers.locomo import LocomoConversation
    from mnemon_producers.publisher import Published

app = typer.Typer(no_args_is_help=True, help="Import memory from files and other systems.")


@app.command("jsonl")
@expand_options
def jsonl(
    files: FilesArgument,
    tenant: Annotated[
        str | None,
        typer.Option(help="Import everything into this tenant; without it: the tenants that the lines name."),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            help="Import the only user of the file as this user; without it: the users that the lines name."
        ),
    ] = None,
    *,
    options: ImportOptions,
) -> None:
    """Import a file of `mnemon export jsonl`, without asking a model.

    Importing it again adds nothing; an interrupted import continues where it stopped.

    Example: `mnemon export jsonl --tenant acme --user u42 -o u42.jsonl; mnemon import jsonl u42.jsonl`
    """
    from mnemon.operations.imports.jsonl import JsonLinesReader

    check_owner(tenant, user)
    found = ImportFiles(files, JsonLinesReader(tenant, user).read)
    options.run_import(found.read_records(), tenant, found)


app.command("markdown")(markdown)


@app.command("telegram")
@expand_options
def telegram(
    files: FilesArgument,
    tenant: ImportTenantOption,
    bot: Annotated[
        str | None,
        typer.Option(help="Sender that is the assistant: an id such as user123456, or the displayed name."),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            help="Import everything as this user; without it: each person who talks to the bot, by Telegram "
            "id."
        ),
    ] = None,
    zone: ZoneOption = "UTC",
    *,
    options: ImportOptions,
) -> None:
    """Import result.json of a Telegram Desktop export, each chat as a conversation.

    Example: `mnemon import telegram result.json --tenant acme --dry-run`
    """
    from mnemon.operations.imports.telegram import TelegramReader

    check_owner(tenant, user)
    found = ImportFiles(files, TelegramReader(bot, user, parse_time_zone(zone)).read)
    options.run_import(found.read_records(), tenant, found)


@app.command("openai")
@expand_options
def openai(
    files: FilesArgument,
    tenant: ImportTenantOption,
    user: Annotated[str, typer.Option(help="User of the conversations.")],
    *,
    options: ImportOptions,
) -> None:
    """Import conversations.json of a ChatGPT export, the oldest conversation first.

    Example: `mnemon import openai conversations.json --tenant acme --user u42`
    """
    from mnemon.operations.imports.openai import read_conversations

    check_owner(tenant, user)
    found = ImportFiles(files, lambda file: read_conversations(file, user))
    options.run_import(found.read_records(), tenant, found)


app.command("postgres")(postgres)


@app.command("locomo")
def locomo(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Files of the LoCoMo benchmark, as published.")
    ],
    tenant: Annotated[str, typer.Option(help="Tenant of the users.")],
    user: Annotated[
        str | None,
        typer.Option(
            help="Import all conversations as this user; without it: one user per conversation, named after "
            "the sample."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read the files and report, but send nothing.")
    ] = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import conversations of the LoCoMo benchmark, each turn as a message with its speaker and time.

    Importing a file again changes nothing.

    Example: `mnemon import locomo conv-26.json --tenant acme`
    """
    check_owner(tenant, user)
    conversations = [conversation for file in files for conversation in _read_locomo(file, tenant, user)]
    if dry_run:
        _show_conversations(conversations, None, as_json)
        return
    perform_command(
        _publish_conversations(require_deployment(data, "broker"), tenant, conversations, as_json)
    )


def _read_locomo(file: Path, tenant: str, user: str | None) -> "list[LocomoConversation]":
    from mnemon_producers.locomo import NotLocomo, read

    try:
        return read(file.read_bytes(), tenant=tenant, user=user)
    except OSError as error:
        refuse(Ending.WRONG_USE, f"{file} cannot be read: {error.strerror}")
    except NotLocomo as error:
        refuse(Ending.WRONG_USE, f"{file} is not a LoCoMo file: {error}")


async def _publish_conversations(
    deployment: "Deployment", tenant: str, conversations: "list[LocomoConversation]", as_json: bool
) -> Ending:
    from mnemon_contracts.base import InvalidBody
    from mnemon_contracts.subjects import InvalidId
    from mnemon_producers.client import MemoryClient
    from mnemon_producers.errors import NotConnected, PublishFailed

    events = [event for conversation in conversations for event in conversation.events]
    try:
        async with MemoryClient.connect(str(deployment.nats_url), tenant=tenant) as memory:
            with show_progress(description="publishing", total=len(events)) as update:
                published = await memory.publish_many(
                    events, progress=lambda published: update(completed=published.count)
                )
    except (InvalidId, InvalidBody) as error:
        refuse(Ending.WRONG_USE, str(error))
    except NotConnected as error:
        refuse(Ending.PART_MISSING, str(error), "Start a stack: mnemon up")
    except PublishFailed as error:
        again = "Run the import again: events that are already there are not added twice"
        refuse(Ending.PART_MISSING if error.retryable else Ending.NOT_SO, str(error), again)
    _show_conversations(conversations, published, as_json)
    return Ending.DONE


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
        typer.echo(f"{new:,} events published, {published.duplicates:,} were already there.")
