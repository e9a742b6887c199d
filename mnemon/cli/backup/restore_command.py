"""Command `mnemon restore`: restore a backup into empty servers."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mnemon.cli.backup.options import PassphraseOption, open_repository, show_positions
from mnemon.cli.options.target import complete_command, load_deployment, require_deployment
from mnemon.cli.terminal.exit_code import ExitCode, perform_command, refuse
from mnemon.cli.terminal.output import JsonOption, show_json
from mnemon.display_text import format_count

if TYPE_CHECKING:
    from nats.aio.client import Client

    from mnemon.operations.restore.later_erasures import LaterErasures
    from mnemon.operations.restore.logins import RestoredLogins
    from mnemon.operations.restore.run import Backup, RestoreResult
    from mnemon_infra.config import Deployment

_UNKNOWN_ERASURES = (
    "no erasure register: erasures after the backup are unknown, and users who were erased since come back. "
    "Erase these users again, or restore again into empty servers with --register or MNEMON_ERASURE_REGISTER"
)


def restore(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="Folder or bucket that `mnemon backup` wrote to.")
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="DIR",
            help="New folder to restore into, for `mnemon up` to run. Default: the servers in "
            "MNEMON_NATS_URL and DATABASE_URL.",
        ),
    ] = None,
    register: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE",
            help="Folder or bucket of the erasure register, whose erasures after the backup are applied "
            "again. Default: MNEMON_ERASURE_REGISTER.",
        ),
    ] = None,
    identity: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with the secret age key that decrypts the backup, as `age-keygen -o` writes it. "
            "Default: none.",
        ),
    ] = None,
    passphrase_file: PassphraseOption = None,
    logins: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            resolve_path=True,
            help="Without --data: new file for the logins of the backup; an existing file is not changed. "
            "Default: none. With --data, the folder gets the logins.",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Restore nothing; compare the whole backup with its manifest."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Restore a backup: events at their positions and with their times, settings, API keys and logins.

    Every segment is checked against the manifest, and the restored log is compared with the backup, event by
    event. Then `persist` replays the log into the database. Erasures that happened after the backup are read
    from the erasure register and applied again: the restored log lacks the events that they remove. Until the
    log is complete, no process of mnemon serves it. After a kill, run the same command again; it continues
    where it stopped.

    Stop bots and consumers first. The servers must be empty: no events, no settings, no API keys, no rows.

    Example: `mnemon restore /mnt/backups/mnemon --data ./restored --register /mnt/register`

    Example: `mnemon restore s3://backups/mnemon --identity key.txt --check`
    """
    request = _RestoreRequest(source, data, register, identity, passphrase_file, logins)
    perform_command(_check_backup(request, as_json) if check else _restore_backup(request, as_json))


@dataclass(frozen=True, slots=True)
class _RestoreRequest:
    source: str
    data: Path | None
    register: str | None
    identity: Path | None
    passphrase_file: Path | None
    logins: Path | None

    async def open_backup(self) -> "Backup":
        from mnemon.operations.restore.run import open_backup

        return await open_backup(
            open_repository(self.source, (), self.passphrase_file, self.identity),
        )


async def _check_backup(request: _RestoreRequest, as_json: bool) -> ExitCode:
    from mnemon.operations.restore.run import verify_backup

    backup = await request.open_backup()
    with show_positions() as progress:
        events = await verify_backup(backup, progress)
    manifest = backup.manifest
    if as_json:
        show_json(
            {
                "position": manifest.position,
                "events": events,
                "complete": manifest.is_complete,
                "damaged": False,
            }
        )
        return ExitCode.DONE
    _warn_of_interruption(backup)
    typer.echo(
        f"The backup of {manifest.created_at} agrees with its manifest: {format_count(events, 'event')} up"
        f" to log position {manifest.position:,}, in {format_count(len(manifest.segments), 'segment')}."
    )
    return ExitCode.DONE


async def _restore_backup(request: _RestoreRequest, as_json: bool) -> ExitCode:
    from mnemon.operations.restore.replay import replay_log
    from mnemon.operations.restore.run import restore_log
    from mnemon_infra.telemetry.logging import configure_logging

    configure_logging(level=logging.WARNING)
    backup = await request.open_backup()
    configured = load_deployment()
    erasures = await _read_erasures(backup, request.register or configured.erasure_register)
    async with _open_target(request, backup, configured) as (deployment, connection, logins):
        with show_positions() as progress:
            result = await restore_log(connection, backup, erasures, configured.replicas, progress)
            replayed = await replay_log(deployment, partial(progress, "replay"))
    _show_result(request, backup, result, logins, replayed, as_json)
    return ExitCode.DONE


async def _read_erasures(backup: "Backup", register: str | None) -> "LaterErasures":
    from mnemon.operations.restore.run import find_later_erasures
    from mnemon_infra.storage.erasure_register import ErasureRegister

    if register is None:
        _print_warning(_UNKNOWN_ERASURES)
        return find_later_erasures(backup, [])
    entries = await ErasureRegister.open(register).list_entries()
    if not entries:
        _print_warning(f"the erasure register in {register} has no entries: check that it is the right place")
    return find_later_erasures(backup, entries)


@asynccontextmanager
async def _open_target(
    request: _RestoreRequest, backup: "Backup", configured: "Deployment"
) -> "AsyncIterator[tuple[Deployment, Client, RestoredLogins]]":
    """Open the deployment to restore into; yield it, a connection to it, and the restored logins.

    End the command if a server is not configured, if --data comes with configured servers, if a stack runs in
    the folder, or if the target has memory that is not of this backup.
    """
    from mnemon.operations.restore.logins import (
        require_closed_server,
        restore_folder_logins,
        restore_login_file,
    )
    from mnemon_infra.broker.connection import connect, connect_deployment
    from mnemon_infra.embedded.logins import FolderLogins
    from mnemon_infra.embedded.stack import run_stack

    if request.data is None:
        deployment = require_deployment(None, "broker", "database")
        if request.logins:
            restore_login_file(request.logins, backup)
        async with await connect_deployment(deployment, name="mnemon-restore") as connection:
            logins = require_closed_server(connection, backup, request.logins)
            await _require_empty_database(deployment, connection, backup)
            yield deployment, connection, logins
        return
    if configured.nats_url or configured.database_url:
        refuse(
            ExitCode.USAGE_ERROR,
            "--data restores into a folder, and MNEMON_NATS_URL or DATABASE_URL names other servers",
            "Unset these variables, or leave --data out",
        )
    _require_stopped_stack(request.data)
    logins = restore_folder_logins(request.data, backup)
    async with run_stack(request.data, configured, with_streams=False) as stack:
        url = FolderLogins(request.data).add_login(stack.endpoints.nats, "operator")
        async with await connect(url, name="mnemon-restore") as connection:
            await _require_empty_folder(request.data, stack.deployment, connection, backup)
            yield stack.deployment, connection, logins


async def _require_empty_database(deployment: "Deployment", connection: "Client", backup: "Backup") -> None:
    from mnemon.operations.restore.replay import require_empty_database
    from mnemon_infra.broker.provisioning.restoration import is_restored

    if not await is_restored(connection, backup.mark):
        await require_empty_database(deployment)


async def _require_empty_folder(
    data: Path, deployment: "Deployment", connection: "Client", backup: "Backup"
) -> None:
    """End the command if the folder has memory that is not of this backup."""
    from mnemon.operations.restore.replay import DatabaseNotEmpty

    try:
        await _require_empty_database(deployment, connection, backup)
    except DatabaseNotEmpty as error:
        refuse(
            ExitCode.USAGE_ERROR,
            f"{data} already has events, at least up to log position {error.position:,}, so nothing was "
            "restored",
            "Restore into a new folder: --data DIR",
        )


def _require_stopped_stack(data: Path) -> None:
    """End the command if a stack runs in the folder."""
    from mnemon_infra.process.data_folder import find_holder

    if holder := find_holder(data):
        refuse(
            ExitCode.USAGE_ERROR,
            f"the stack in {data} ({holder}) is running",
            "Stop it, or name a new folder: --data DIR",
        )


def _show_result(
    request: _RestoreRequest,
    backup: "Backup",
    result: "RestoreResult",
    logins: "RestoredLogins",
    replayed: int,
    as_json: bool,
) -> None:
    from mnemon_infra.durables import CONSUMERS

    manifest = result.manifest
    if as_json:
        show_json(
            {
                "position": manifest.position,
                "events": result.events,
                "left_out": result.left_out,
                "erasures": [
                    {"tenant": each.tenant, "user": each.user, "conversation": each.event.conversation}
                    for each in result.erasures
                ],
                "repeated": result.is_repeated,
                "replayed": replayed,
                "settings": len(backup.record.settings),
                "requires_login": logins.is_closed,
                "complete": manifest.is_complete,
            }
        )
        return
    _warn_of_interruption(backup)
    events = f"{format_count(result.events, 'event')} up to log position {manifest.position:,}"
    restored = (
        f"An earlier run has restored {events} from the backup of {manifest.created_at}."
        if result.is_repeated
        else f"{events} restored from the backup of {manifest.created_at}, in agreement with it."
    )
    typer.echo(f"{restored} {format_count(replayed, 'event', 'is')} replayed into the database.")
    if result.erasures:
        typer.echo(_describe_erasures(result, request.data))
    for line in _describe_logins(request, logins):
        typer.echo(line)
    start = (
        complete_command("mnemon up", request.data) if request.data else f"mnemon run {' '.join(CONSUMERS)}"
    )
    status = complete_command("mnemon status", request.data)
    typer.echo(f"Next: {start}. Searches find everything once `index` has caught up: {status}")
    typer.echo(f"Then compare log and stores: {complete_command('mnemon audit', request.data)}")


def _describe_erasures(result: "RestoreResult", data: Path | None) -> str:
    erasures = format_count(len(result.erasures), "erasure")
    left_out = f"{format_count(result.left_out, 'event', 'was')} left out"
    if not result.is_repeated:
        return f"{erasures} after the backup applied again: {left_out}."
    return (
        f"This run applied no erasures: an earlier run had finished the log, and {left_out} then."
        f" The register has {erasures} after the backup."
        " When mnemon runs, repeat those that are newer than that run:"
        f" {complete_command('mnemon erase TENANT USER', data)}"
    )


def _describe_logins(request: _RestoreRequest, logins: "RestoredLogins") -> Sequence[str]:
    if not request.data or not logins.is_closed:
        return []
    lines = ["NATS requires a login. Operators, workers and the gateway have new passwords, in the folder."]
    if logins.kept:
        lines.append(f"The passwords of {', '.join(logins.kept)} are the former ones.")
    if logins.is_lost:
        lines.append(
            "The backup has no logins of tenants. Make new ones: "
            f"{complete_command('mnemon auth tenant NAME', request.data)}"
        )
    return lines


def _warn_of_interruption(backup: "Backup") -> None:
    if not backup.manifest.is_complete:
        _print_warning(
            "the last run of the backup was interrupted: the backup ends at log position"
            f" {backup.manifest.position:,}"
        )


def _print_warning(text: str) -> None:
    typer.secho(f"warning: {text}", fg="yellow", err=True)
