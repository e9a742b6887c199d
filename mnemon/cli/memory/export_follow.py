"""`mnemon export markdown --follow`."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from mnemon.cli.target import target
from mnemon.cli.terminal.exit_code import Ending, perform, refuse
from mnemon.cli.terminal.signals import Stop

if TYPE_CHECKING:
    from mnemon.operations.exports.mirror import Mirror, Mirrored
    from mnemon.operations.exports.mirror_folder import MirrorFolder, MirrorScope
    from mnemon_infra.config import Deployment

_AGAIN = "Then run the command again: it continues where it stopped"


def follow_memory(
    folder: Path, whose: tuple[str | None, str | None], data: Path | None, as_json: bool
) -> NoReturn:
    """Keep a folder of Markdown files as memory is, until Ctrl-C. Ends the command."""
    if folder == Path("-"):
        refuse(Ending.WRONG_USE, "--follow writes a file per user", "Name a folder: -o DIR")
    perform(_follow(target(data, "broker", "database"), folder, whose, as_json))


async def _follow(
    deployment: "Deployment", path: Path, whose: tuple[str | None, str | None], as_json: bool
) -> Ending:
    from mnemon.operations.exports.mirror_folder import FolderNotUsable, MirrorFolder, MirrorScope
    from mnemon_infra.telemetry.logging import configure_logging

    configure_logging()
    scope = MirrorScope(*whose)
    folder = MirrorFolder(path, scope)
    try:
        with Stop() as stop, folder.claimed():
            done = await _mirror(deployment, folder, scope, stop)
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
    typer.echo(json.dumps(figures) if as_json else _in_words(done))
    return Ending.DONE


async def _mirror(
    deployment: "Deployment", folder: "MirrorFolder", scope: "MirrorScope", stop: Stop
) -> "Mirrored":
    from nats.errors import Error

    from mnemon.operations.exports.mirror import Mirror
    from mnemon_infra.broker.connection import connect
    from mnemon_infra.database.engine import Database, DatabaseUnavailable

    connection = await connect(str(deployment.nats_url), name="mnemon-export")
    try:
        async with Database(deployment, name="mnemon-export") as database:
            mirror = Mirror(connection, database, folder, scope, _say)
            await mirror.catch_up()
            typer.echo(
                f"following into {folder.path}: {_in_words(mirror.done)} Press Ctrl-C to stop.", err=True
            )
            await _until_asked(mirror, stop)
            return mirror.done
    except DatabaseUnavailable as error:
        refuse(Ending.PART_MISSING, f"the database does not answer: {error}", f"Start it. {_AGAIN}")
    except Error as error:
        refuse(Ending.PART_MISSING, f"the NATS server does not answer: {error}", f"Start it. {_AGAIN}")
    finally:
        await connection.close()


async def _until_asked(mirror: "Mirror", stop: Stop) -> None:
    """Follow until a signal arrives; a file that is being written is replaced as a whole or not at all."""
    following = asyncio.create_task(mirror.follow())
    asked = asyncio.create_task(stop.asked())
    try:
        await asyncio.wait({following, asked}, return_when=asyncio.FIRST_COMPLETED)
        if following.done():
            following.result()
    finally:
        for each in following, asked:
            each.cancel()
        await asyncio.gather(following, asked, return_exceptions=True)


def _say(done: "Mirrored") -> None:
    typer.echo(_in_words(done), err=True)


def _in_words(done: "Mirrored") -> str:
    return f"{done.written:,} files written, {done.removed:,} removed, as of log position {done.position:,}."
