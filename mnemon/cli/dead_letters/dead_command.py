"""Command `mnemon dead`: list, show, redrive and drop dead letters."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from mnemon.cli.options.option_group import expand_options
from mnemon.cli.options.target import (
    DataOption,
    complete_command,
    open_broker,
    open_connections,
    require_deployment,
)
from mnemon.cli.terminal.exit_code import ExitCode, perform_async, refuse
from mnemon.cli.terminal.output import JsonOption, show_progress
from mnemon.cli.terminal.prompt import ask_confirmation, can_ask

if TYPE_CHECKING:
    from nats.aio.client import Client

    from mnemon_infra.broker.dead_letters.listing import Letter, LetterFilter

app = typer.Typer(
    no_args_is_help=True,
    help="List, show, redrive and drop dead letters: messages that a consumer could not handle.",
)

LetterArgument = Annotated[
    int, typer.Argument(metavar="ID", min=1, help="Id of the dead letter, as `mnemon dead list` shows it.")
]
IdsArgument = Annotated[
    list[int] | None,
    typer.Argument(metavar="ID", help="Ids of dead letters, as `mnemon dead list` shows them."),
]
AllLettersOption = Annotated[
    bool, typer.Option("--all", help="Select all dead letters; with filters, all that match the filters.")
]
_NAME: Final = "mnemon-dead"
"""Name of the connections to NATS and PostgreSQL."""

YesOption = Annotated[
    bool,
    typer.Option(
        "--yes", "-y", help="With --all: redrive or drop several dead letters without confirmation."
    ),
]


@dataclass(frozen=True)
class LetterOptions:
    """Options that select dead letters."""

    consumer: Annotated[
        str | None,
        typer.Option(help="Select only dead letters of this consumer, such as `persist`. Default: all."),
    ] = None
    reason: Annotated[
        str | None,
        typer.Option(help="Select only dead letters with this reason, such as `invalid_body`. Default: all."),
    ] = None
    tenant: Annotated[
        str | None, typer.Option(help="Select only dead letters of this tenant. Default: all.")
    ] = None
    user: Annotated[
        str | None,
        typer.Option(
            help="Select only dead letters of users with this id, in any tenant unless --tenant is given. "
            "Default: all."
        ),
    ] = None
    since: Annotated[
        datetime | None,
        typer.Option(
            help="Select only dead letters stored at or after this time in UTC, such as 2026-11-21 or "
            "2026-11-21T10:00:00. Default: all."
        ),
    ] = None

    def create_filter(self) -> "LetterFilter":
        """Return the filter for the dead letters that the options select."""
        from mnemon_infra.broker.dead_letters.listing import LetterFilter

        since = self.since and self.since.replace(tzinfo=UTC)
        return LetterFilter(self.consumer, self.reason, self.tenant, self.user, since)


@app.command("list")
@expand_options
@perform_async
async def list_(
    *,
    filters: LetterOptions,
    limit: Annotated[int, typer.Option(min=1, help="Number of newest dead letters to show.")] = 100,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """List dead letters, oldest first, each with its subject and reason.

    Example: `mnemon dead list --consumer persist --since 2026-11-21`
    """
    from collections import deque

    from mnemon.cli.dead_letters.view import show_letters, summarize_letter
    from mnemon_infra.broker.dead_letters.listing import read_letters

    count = 0
    newest: deque[dict[str, Any]] = deque(maxlen=limit)
    async with open_broker(require_deployment(data, "broker"), _NAME) as connection:
        async for letter in read_letters(connection, filters.create_filter()):
            count += 1
            newest.append(summarize_letter(letter))  # without the text, which may be long
    show_letters(newest, count, data, as_json)
    return ExitCode.DONE


@app.command("show")
@perform_async
async def show(letter_id: LetterArgument, data: DataOption = None, as_json: JsonOption = False) -> ExitCode:
    """Show one dead letter in full: its origin, its text and the next step.

    Exits with code 1 if no dead letter has the id.

    Example: `mnemon dead show 17`
    """
    from mnemon.cli.dead_letters.view import show_letter
    from mnemon_infra.broker.dead_letters.redrive import find_original

    async with open_broker(require_deployment(data, "broker"), _NAME) as connection:
        letter = await _require_letter(connection, letter_id, data)
        original = await find_original(connection, letter) if letter.kind == "event" else None
    show_letter(letter, original, data, as_json)
    return ExitCode.DONE


@app.command("redrive")
@expand_options
@perform_async
async def redrive(
    *,
    letter_ids: IdsArgument = None,
    take_all: AllLettersOption = False,
    filters: LetterOptions,
    yes: YesOption = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Redrive dead letters, for example after a fix, and delete each redriven dead letter.

    Each event is published again under its original id and takes a new position at the end of the log. If
    the database already has a row of the event, only the dead letter is deleted. An event that still cannot
    be handled becomes a dead letter again. A trigger is published again too. For a window that `extract`
    gave up, `extract` asks a model once more.

    Exits with code 1 if no dead letter has a given id, a dead letter cannot be redriven, or you do not
    confirm; 2 if there is no terminal on which to confirm.

    Example: `mnemon dead redrive --all --reason unknown_event`
    """
    from mnemon.cli.dead_letters.view import show_redrive
    from mnemon.operations.dead_letters import redrive_letters
    from mnemon_infra.broker.dead_letters.redrive import KeptLetter, RedrivenLetter

    chosen = _select_letters(letter_ids, take_all, filters.create_filter(), data)
    given: list[dict[str, Any]] = []
    kept: list[dict[str, Any]] = []
    applied: list[int] = []
    deployment = require_deployment(data, "broker", "database")
    async with open_connections(deployment, _NAME) as (connection, database):
        ids = await _confirm_ids(connection, chosen, yes, "Redrive", data)
        if ids is None:
            return ExitCode.NEGATIVE_RESULT
        async for letter, result in redrive_letters(connection, database, _track_ids(ids, "redriving")):
            match result:
                case RedrivenLetter(sequence):
                    given.append({"id": letter.id, "stream": letter.stream, "sequence": sequence})
                case KeptLetter(why):
                    kept.append({"id": letter.id, "why": why})
                case _:
                    applied.append(letter.id)
    if as_json:
        typer.echo(json.dumps({"redriven": given, "applied_already": applied, "kept": kept}))
    elif not ids:
        typer.echo("no dead letters")
    else:
        show_redrive(len(given), len(applied), kept, data)
    return ExitCode.NEGATIVE_RESULT if kept else ExitCode.DONE


@app.command("drop")
@expand_options
@perform_async
async def drop(
    *,
    letter_ids: IdsArgument = None,
    take_all: AllLettersOption = False,
    filters: LetterOptions,
    yes: YesOption = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Delete dead letters for good, and delete from the log the events that `persist` could not handle.

    The event stays in the log if the database has a row of the event, for example after a rebuild with a
    newer version. It also stays if events of its name have no rows, or if a consumer other than `persist`
    could not handle it.

    Exits with code 1 if no dead letter has a given id, or you do not confirm; 2 if there is no terminal on
    which to confirm.

    Example: `mnemon dead drop 17 18`
    """
    from mnemon.operations.dead_letters import drop_letters

    chosen = _select_letters(letter_ids, take_all, filters.create_filter(), data)
    deployment = require_deployment(data, "broker", "database")
    async with open_connections(deployment, _NAME) as (connection, database):
        ids = await _confirm_ids(connection, chosen, yes, "Delete for good", data)
        if ids is None:
            return ExitCode.NEGATIVE_RESULT
        await drop_letters(connection, database, _track_ids(ids, "removing"))
    typer.echo(
        json.dumps({"dropped": ids}) if as_json else f"{len(ids):,} removed" if ids else "no dead letters"
    )
    return ExitCode.DONE


def _select_letters(
    letter_ids: Sequence[int] | None, take_all: bool, letter_filter: "LetterFilter", data: Path | None
) -> "list[int] | LetterFilter":
    """Return the dead letters that a command changes: the given ids, or with `--all` the filter.

    End the command if ids and `--all` are both given or both absent, or if a filter comes with ids.
    """
    from mnemon_infra.broker.dead_letters.listing import LetterFilter

    if take_all == bool(letter_ids) or (letter_ids and letter_filter != LetterFilter()):
        refuse(
            ExitCode.USAGE_ERROR,
            "give either ids of dead letters, or --all, with or without filters",
            f"List the dead letters: {complete_command('mnemon dead list', data)}",
        )
    return letter_filter if take_all else list(dict.fromkeys(letter_ids or ()))


async def _require_letter(connection: "Client", letter_id: int, data: Path | None) -> "Letter":
    from mnemon_infra.broker.dead_letters.listing import read_letter

    found = await read_letter(connection, letter_id)
    if found is None:
        refuse(
            ExitCode.NEGATIVE_RESULT,
            f"there is no dead letter {letter_id}",
            f"List the dead letters: {complete_command('mnemon dead list', data)}",
        )
    return found


async def _confirm_ids(
    connection: "Client", chosen: "list[int] | LetterFilter", yes: bool, question: str, data: Path | None
) -> "list[int] | None":
    """Return the ids of the chosen dead letters: given ids in order, or those of a filter oldest first.

    Return None if the operator does not confirm. End the command if a named dead letter does not exist, or if
    there is no terminal on which to confirm.
    """
    from mnemon_infra.broker.dead_letters.listing import read_letters

    if isinstance(chosen, list):
        return [(await _require_letter(connection, each, data)).id for each in chosen]
    found = [letter.id async for letter in read_letters(connection, chosen)]
    if len(found) > 1 and not yes and not await _ask_confirmation(f"{question} {len(found):,} dead letters?"):
        return None
    return found


async def _ask_confirmation(question: str) -> bool:
    if not can_ask():
        refuse(
            ExitCode.USAGE_ERROR,
            f"cannot ask for confirmation without a terminal: {question}",
            "Confirm in advance: --yes",
        )
    return await ask_confirmation(question)


def _track_ids(ids: Sequence[int], description: str) -> Iterator[int]:
    with show_progress(description=description, total=len(ids)) as update:
        for each in ids:
            yield each
            update(advance=1)
