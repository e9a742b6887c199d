"""Command `mnemon export`: export memory as JSON lines or as Markdown."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mnemon.cli.options.owner import check_owner
from mnemon.cli.options.target import (
    DataOption,
    complete_command,
    open_broker,
    open_connections,
    open_deployment,
    require_deployment,
)
from mnemon.cli.terminal.exit_code import ExitCode, perform_async, refuse, refuse_file
from mnemon.cli.terminal.output import show_progress
from mnemon.cli.terminal.signals import StopSignals
from mnemon.display_text import format_count

if TYPE_CHECKING:
    from mnemon.operations.exports.mirror import Mirror, MirrorCounts
    from mnemon.operations.exports.mirror_folder import MirrorFolder, MirrorScope
    from mnemon.operations.exports.run import ExportCounts, ExportFormat
    from mnemon_infra.config import Deployment

app = typer.Typer(no_args_is_help=True, help="Export memory to files.")

ExportTenantOption = Annotated[
    str | None, typer.Option(help="Export memory of this tenant. Required unless --all is given.")
]
ExportUserOption = Annotated[
    str | None, typer.Option(help="Export only this user of --tenant. Default: all users of the tenant.")
]
AllUsersOption = Annotated[bool, typer.Option("--all", help="Export all users of all tenants.")]
OutputOption = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="File to write, or - for standard output.")
]
STANDARD_OUTPUT: Final = Path("-")
JsonSummary = Annotated[
    bool, typer.Option("--json", help="Print one JSON value with the counts instead of a sentence.")
]


@app.command("jsonl")
@perform_async
async def jsonl(
    tenant: ExportTenantOption = None,
    user: ExportUserOption = None,
    all_users: AllUsersOption = False,
    output: OutputOption = STANDARD_OUTPUT,
    data: DataOption = None,
    as_json: JsonSummary = False,
) -> ExitCode:
    """Export memory as lines of JSON for `mnemon import jsonl`: messages, facts with their versions and
    sources, summaries, profile fields, tasks and documents.

    The export leaves out what was cleared, discarded, removed or erased, and facts that were forgotten or
    evicted, or have expired. A file given by -o appears when the export is complete; standard output has all
    lines if the command ends with code 0.

    Exits with code 1 if the export of the named user or tenant is empty.

    Example: `mnemon export jsonl --tenant acme --user u42 -o u42.jsonl`
    """
    from mnemon.operations.exports.jsonl import format_header, generate_lines

    _check_scope(tenant, user, all_users)
    return await _write_export(data, generate_lines, format_header(), output, (tenant, user), as_json)


@app.command("markdown")
@perform_async
async def markdown(
    tenant: ExportTenantOption = None,
    user: ExportUserOption = None,
    all_users: AllUsersOption = False,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE|DIR",
            help="File to write, or - for standard output; with --follow, the folder, which is required.",
        ),
    ] = STANDARD_OUTPUT,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Write one file per user into the folder given by -o, and update the files until Ctrl-C.",
        ),
    ] = False,
    data: DataOption = None,
    as_json: JsonSummary = False,
) -> ExitCode:
    """Export facts, profile fields and tasks as Markdown, for readers or for `mnemon import markdown`.

    A fact is written with its id, tier, importance as a word, day of expiry and text; `jsonl` has all fields.

    With `--follow`, a user's file is `DIR/TENANT/USER.md`. It is replaced when the user's facts, profile
    or tasks change, and removed when none of them are left. The next run continues where the last one ended.

    Exits with code 1 if the export of the named user or tenant is empty. With `--follow`, the command waits
    until it is not.

    Example: `mnemon export markdown --tenant acme --user u42 -o u42.md`

    Example: `mnemon export markdown --tenant acme --follow -o ./memory-files --data ./memory`
    """
    from mnemon.operations.exports.markdown import generate_lines

    _check_scope(tenant, user, all_users)
    if follow:
        return await _mirror_memory(data, output, (tenant, user), as_json)
    return await _write_export(data, generate_lines, None, output, (tenant, user), as_json)


def _check_scope(tenant: str | None, user: str | None, all_users: bool) -> None:
    if all_users == (tenant is not None) or (user is not None and tenant is None):
        refuse(ExitCode.USAGE_ERROR, "give either --all, or --tenant T with or without --user U")
    check_owner(tenant, user)


async def _write_export(
    data: Path | None,
    form: "ExportFormat",
    first: str | None,
    output: Path,
    filters: tuple[str | None, str | None],
    as_json: bool,
) -> ExitCode:
    from rich.progress import SpinnerColumn

    from mnemon.operations.exports.run import ExportCounts, NotProjected, wait_until_projected, write_memories
    from mnemon_infra.database.engine import Database

    async with open_deployment(data, "broker", "database") as servers:
        try:
            async with open_broker(servers.deployment, "mnemon-export") as connection:
                written = ExportCounts(await wait_until_projected(connection))
        except NotProjected as error:
            next_step = (
                f"See how far `persist` is: {complete_command('mnemon status', data)}"
                if servers.is_running
                else f"Start the stack, which runs `persist`: {complete_command('mnemon up', data)}"
            )
            refuse(ExitCode.UNAVAILABLE, str(error), next_step)
        columns = SpinnerColumn(), "{task.fields[users]:,} users, {task.fields[lines]:,} lines"
        async with Database(servers.deployment, name="mnemon-export") as database:
            with _open_output(output) as put, show_progress(*columns, users=0, lines=0) as update:
                heading = [] if first is None else [first]

                def put_line(line: str) -> None:
                    while heading:
                        put(heading.pop())
                    put(line)

                await write_memories(
                    database,
                    filters,
                    form,
                    put_line,
                    written,
                    lambda counts: update(users=counts.users, lines=counts.lines),
                )
                _require_memory(written, filters)
                while heading:
                    put(heading.pop())
    _show_counts(written, output, as_json)
    return ExitCode.DONE


def _require_memory(written: "ExportCounts", filters: tuple[str | None, str | None]) -> None:
    """End the command before it writes a file if the export of the named user or tenant is empty."""
    tenant, user = filters
    if tenant is None or written.users:
        return
    whose = f"tenant {tenant!r}" if user is None else f"user {user!r} of tenant {tenant!r}"
    refuse(
        ExitCode.NEGATIVE_RESULT,
        f"the export of {whose} is empty",
        "Check the spelling: ids are the ones that bots use",
    )


@contextmanager
def _open_output(output: Path) -> Iterator[Callable[[str], None]]:
    """Yield a function that writes a line. The file appears under its name when all lines are written.

    End the command if the file cannot be written, or standard output is closed.
    """
    if output == STANDARD_OUTPUT:
        if sys.stdout is None:  # the command was started with `>&-`
            refuse(ExitCode.USAGE_ERROR, "standard output is closed", "Open it, or choose a file: -o FILE")
        yield print
        sys.stdout.flush()  # an error ends the command before it shows the counts
        return
    if output.is_dir():
        refuse(
            ExitCode.USAGE_ERROR,
            f"{output} is a folder, and the export writes one file",
            f"Name the file: -o {output / 'FILE'}. For a file per user: mnemon export markdown --follow -o "
            f"{output}, with the same --tenant or --all",
        )
    # With the process id, so that two exports at once do not write into one file.
    part = output.with_name(f"{output.name}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8") as file:
            yield lambda line: print(line, file=file)
        part.replace(output)
    except OSError as error:
        refuse_file(output, "written", error, "Choose another file: -o FILE")
    finally:
        with suppress(OSError):  # a read-only file system refuses it, even if the file is absent
            part.unlink(missing_ok=True)


def _show_counts(written: "ExportCounts", output: Path, as_json: bool) -> None:
    """Show the counts, on standard error if the export goes to standard output."""
    figures = {"users": written.users, "lines": written.lines, "position": written.position}
    about = f"Users: {written.users:,}, lines: {written.lines:,}, as of log position {written.position:,}."
    typer.echo(json.dumps(figures) if as_json else about, err=output == STANDARD_OUTPUT)


_AGAIN = "Then run the command again; the export continues where it stopped"


async def _mirror_memory(
    data: Path | None, path: Path, filters: tuple[str | None, str | None], as_json: bool
) -> ExitCode:
    """Keep a folder of Markdown files equal to memory until Ctrl-C."""
    from mnemon.operations.exports.mirror_folder import FolderNotUsable, MirrorFolder, MirrorScope

    if path == STANDARD_OUTPUT:
        refuse(ExitCode.USAGE_ERROR, "--follow writes a file per user", "Name a folder: -o DIR")
    deployment = require_deployment(data, "broker", "database")
    scope = MirrorScope(*filters)
    folder = MirrorFolder(path, scope)
    try:
        with StopSignals() as stop, folder.lock():
            done = await _run_mirror(deployment, folder, scope, stop)
    except FolderNotUsable as error:
        refuse(ExitCode.USAGE_ERROR, str(error), error.next_step)
    except OSError as error:
        refuse_file(error.filename or path, "written", error, f"Make the file writable. {_AGAIN}")
    figures = {"written": done.written, "removed": done.removed, "position": done.position}
    typer.echo(json.dumps(figures) if as_json else _describe_counts(done))
    return ExitCode.DONE


async def _run_mirror(
    deployment: "Deployment", folder: "MirrorFolder", scope: "MirrorScope", stop: StopSignals
) -> "MirrorCounts":
    from nats.errors import Error

    from mnemon.operations.exports.mirror import Mirror
    from mnemon_infra.database.engine import DatabaseUnavailable

    try:
        async with open_connections(deployment, "mnemon-export") as (connection, database):
            mirror = Mirror(connection, database, folder, scope, _print_counts)
            await mirror.write_all()
            typer.echo(
                f"following into {folder.path}: {_describe_counts(mirror.counts)} Press Ctrl-C to stop.",
                err=True,
            )
            await _follow_until_stopped(mirror, stop)
            return mirror.counts
    except DatabaseUnavailable as error:
        refuse(ExitCode.UNAVAILABLE, f"the database cannot be used: {error}", f"Remove the cause. {_AGAIN}")
    except Error as error:
        refuse(
            ExitCode.UNAVAILABLE, f"the NATS server does not answer: {error}", f"Start the server. {_AGAIN}"
        )


async def _follow_until_stopped(mirror: "Mirror", stop: StopSignals) -> None:
    """Follow the log until a signal arrives; a file that is being written is replaced whole or not at all."""
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
    written = format_count(done.written, "file")
    return f"{written} written, {done.removed:,} removed, as of log position {done.position:,}."
