"""`mnemon export markdown --follow`."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from mnemon.cli.target import require_deployment
from mnemon.cli.terminal.exit_code import Ending, perform_command, refuse
from mnemon.cli.terminal.signals import StopSignals

if TYPE_CHECKING:
    from mnemon.operations.exports.mirror import Mirror, MirrorCounts
    from mnemon.operations.exports.mirror_folder import MirrorFolder, MirrorScope
    from mnemon_infra.config import Deployment

_AGAIN = "Then run the command again: it continues where it stopped"


def follow_memory(
    folder: Path, whose: tuple[str | None, str | None], data: Path | None, as_json: bool
) -> NoReturn:
    """Keep a folder of Markdown files as memory is, until Ctrl-C. Ends the command."""
    if folder == Path("-"):
        refuse(Ending.WRONG_USE, "--follow writes a file per user", "Name a folder: -o DIR")
    perform_command(_follow_into(require_deployment(data, "broker", "database"), folder, whose, as_json))


async def _follow_into(
    deployment: "Deployment", path: Path, whose: tuple[str | None, str | None], as_json: bool
) -> Ending:
    from mnemon.operations.exports.mirror_folder import FolderNotUsable, MirrorFolder, MirrorScope
    from mnemon_infra.telemetry.logging import configure_logging

    configure_logging()
    scope = MirrorScope(*whose)
    folder = MirrorFolder(path, scope)
    try:
        with StopSignals() as stop, folder.lock():
            done = await _run_mirror(deployment, folder, scope, stop)
    except FolderNotUsable as error:
        refuse(Ending.WRONG_USE, str(error), error.next_step)
    except OSError as error:
        # Handle errors of files only: an OSError of a connection has no file name.
        if error.filename is None:
            raise
        refuse(
            Ending.WRONG_USE,
            f"{error.filename} cannot be written: {error.strerror}",
            f"Make the file writable. {_AGAIN}",
        )
    figures = {"written": done.written, "removed": done.removed, "position": done.position}
    typer.echo(json.dumps(figures) if as_json else _describe_counts(done))
    return Ending.DONE


async def _run_mirror(
    deployment: "Deployment", folder: "MirrorFolder", scope: "MirrorScope", stop: StopSignals
) -> "MirrorCounts":
    from nats.errors import Error

    from mnemon.operations.exports.mirror import Mirror
    from mnemon_infra.broker.connection import connect
    from mnemon_infra.database.engine import Database, DatabaseUnavailable

    connection = await connect(str(deployment.nats_url), name="mnemon-export")
    try:
        async with Database(deployment, name="mnemon-export") as database:
            mirror = Mirror(connection, database, folder, scope, _print_counts)
            await mirror.write_all()
            typer.echo(
                f"following into {folder.path}: {_describe_counts(mirror.counts)} Press Ctrl-C to stop.",
                err=True,
            )
            await _follow_until_stopped(mirror, stop)
            return mirror.counts
    except DatabaseUnavailable as error:
        refuse(Ending.PART_MISSING, f"the database does not answer: {error}", f"Start it. {_AGAIN}")
    except Error as error:
        refuse(Ending.PART_MISSING, f"the NATS server does not answer: {error}", f"Start it. {_AGAIN}")
    finally:
        await connection.close()


async def _follow_until_stopped(mirror: "Mirror", stop: StopSignals) -> None:
    """Follow until a signal arrives; a file that is being written is replaced as a whole or not at all."""
    following = asyncio.create_task(mirror.follow_log())
    asked = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({following, asked}, return_when=asyncio.FIRST_COMPLETED)
        if following.done():
            following.result()
    finally:
        for each in following, asked:
            each.cancel()
        await asyncio.gather(following, asked, return_exceptions=True)


def _print_counts(done: "MirrorCounts") -> None:
    typer.echo(_describe_counts(done), err=True)


def _describe_counts(done: "MirrorCounts") -> str:
    return f"{done.written:,} files written, {done.removed:,} removed, as of log position {done.position:,}."
