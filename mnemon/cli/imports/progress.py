"""Shared parts of all imports: options, a progress bar, and a report."""

import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal, NoReturn

import typer

from mnemon.cli.target import require_deployment
from mnemon.cli.terminal.exit_code import Ending, perform_command, refuse
from mnemon.cli.terminal.output import show_table

if TYPE_CHECKING:
    from mnemon.operations.imports.records import ImportRecord, RefusedRecord
    from mnemon.operations.imports.report import ImportReport
    from mnemon.operations.imports.run import ImportProgress
    from mnemon_infra.config import Deployment

ImportTenantOption = Annotated[str, typer.Option(help="Tenant of the users.")]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Read everything and report, but send nothing.")
]
RefusedOption = Annotated[
    Path | None,
    typer.Option("--refused", metavar="FILE", help="Write refused records to this file, with the reasons."),
]
ZoneOption = Annotated[str, typer.Option(help="Time zone of times without an offset, such as Europe/Moscow.")]
FilesArgument = Annotated[
    list[Path], typer.Argument(metavar="FILE", help="Files to import; - reads standard input.")
]

AfterImport = Callable[["Deployment"], Awaitable[None]]
NeededServer = Literal["broker", "database"]
RecordReader = Callable[[BinaryIO], "Iterator[ImportRecord]"]


class ImportFiles:
    """Files that are read one after another, and how far that has come."""

    def __init__(self, paths: list[Path], reader: RecordReader) -> None:
        self._paths = paths
        self._reader = reader
        self._bytes_before = 0
        self._open: BinaryIO | None = None
        self.total: int | None = None
        try:
            if Path("-") not in paths:
                self.total = sum(path.stat().st_size for path in paths)
        except OSError as error:
            refuse(Ending.WRONG_USE, f"{error.filename} cannot be read: {error.strerror}")

    @property
    def position(self) -> int:
        """Bytes that are read."""
        is_file = self._open is not None and self.total is not None
        return self._bytes_before + (self._open.tell() if is_file and self._open else 0)

    def read_records(self) -> "Iterator[ImportRecord]":
        """What is in them. Ends the command where one is no such file."""
        from mnemon.operations.imports.records import NotReadable

        for path in self._paths:
            try:
                with ExitStack() as ends:
                    is_input = path == Path("-")
                    self._open = sys.stdin.buffer if is_input else ends.enter_context(path.open("rb"))
                    for found in self._reader(self._open):
                        yield (
                            found if len(self._paths) == 1 else found._replace(place=f"{path}: {found.place}")
                        )
                    self._bytes_before, self._open = self.position, None
            except OSError as error:
                refuse(Ending.WRONG_USE, f"{path} cannot be read: {error.strerror}")
            except NotReadable as error:
                again = (
                    "Correct the file and run the import again; records already imported are not added twice"
                )
                refuse(Ending.WRONG_USE, f"{path}: {error}", again)


def check_owner(tenant: str | None, user: str | None) -> None:
    """End the command where one of them cannot be an id."""
    from mnemon_contracts.subjects import InvalidId
    from mnemon_producers.events import check_id

    try:
        for field, given in ("tenant", tenant), ("user", user):
            if given is not None:
                check_id(field, given)
    except InvalidId as error:
        refuse(Ending.WRONG_USE, str(error))


def parse_time_zone(name: str) -> tzinfo:
    """The time zone of a name. Ends the command where there is none."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        refuse(Ending.WRONG_USE, f"--zone {name!r} is not a time zone; give a name such as Europe/Moscow")


def import_files(
    files: ImportFiles,
    *,
    tenant: str | None,
    dry_run: bool,
    refused: Path | None,
    data: Path | None,
    as_json: bool,
    after: AfterImport | None = None,
) -> NoReturn:
    """Bring in what files hold, and do what comes `after` it; or say what would come in. Ends the command."""
    with _open_report(refused) as report:
        if dry_run:
            perform_command(_run_dry(read_files(files), files, tenant, report, as_json))
        needed: tuple[NeededServer, ...] = ("broker", "database") if after else ("broker",)
        deployment = require_deployment(data, *needed)
        perform_command(_run_import(deployment, read_files(files), files, tenant, report, as_json, after))


def import_rows(
    found: "AsyncIterator[ImportRecord]",
    *,
    tenant: str,
    dry_run: bool,
    refused: Path | None,
    data: Path | None,
    as_json: bool,
) -> NoReturn:
    """The same of what comes from a database."""
    with _open_report(refused) as report:
        if dry_run:
            perform_command(_run_dry(found, None, tenant, report, as_json))
        perform_command(
            _run_import(require_deployment(data, "broker"), found, None, tenant, report, as_json, None)
        )


async def read_files(files: ImportFiles) -> "AsyncIterator[ImportRecord]":
    """What is in files. Ends the command where one is no such file."""
    for each in files.read_records():
        yield each


async def _run_dry(
    found: "AsyncIterator[ImportRecord]",
    files: ImportFiles | None,
    tenant: str | None,
    report: "ImportReport",
    as_json: bool,
) -> Ending:
    from mnemon.operations.imports.run import count_records

    with _bar(files) as progress:
        await count_records(found, tenant, report, progress)
    show_report(report, True, as_json)
    return choose_ending(report)


async def _run_import(
    deployment: "Deployment",
    found: "AsyncIterator[ImportRecord]",
    files: ImportFiles | None,
    tenant: str | None,
    report: "ImportReport",
    as_json: bool,
    after: AfterImport | None,
) -> Ending:
    with _bar(files) as progress:
        await bring(deployment, found, tenant, report, progress)
    if after:
        await after(deployment)
    show_report(report, False, as_json)
    return choose_ending(report)


async def bring(
    deployment: "Deployment",
    found: "AsyncIterator[ImportRecord]",
    tenant: str | None,
    report: "ImportReport",
    progress: "ImportProgress",
) -> None:
    """Bring in what is found.

    Raises:
        nats.errors.Error, BrokerUnreachable: the log does not take it.
    """
    from mnemon.operations.imports.run import RecordImporter
    from mnemon_infra.broker.connection import connect

    connection = await connect(str(deployment.nats_url), name="mnemon-import")
    try:
        await RecordImporter(connection, tenant, report, progress).import_records(found)
    finally:
        await connection.close()


@contextmanager
def _open_report(refused: Path | None) -> "Iterator[ImportReport]":
    """Yield a report; it writes refused records to a file if one is named."""
    from mnemon.operations.imports.report import ImportReport, format_refused

    if refused is None:
        yield ImportReport()
        return
    try:
        # A record may have a lone surrogate, which UTF-8 cannot encode: write its escape sequence.
        file = refused.open("w", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        refuse(Ending.WRONG_USE, f"{refused} cannot be written: {error.strerror}")

    def keep(one: "RefusedRecord") -> None:
        file.write(format_refused(one) + "\n")

    with file:
        yield ImportReport(keep)


@contextmanager
def _bar(files: ImportFiles | None) -> "Iterator[ImportProgress]":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("importing"),
        BarColumn(),
        TextColumn("{task.fields[events]:,} events"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=files.total if files else None, events=0)
        yield lambda report: bar.update(
            task,
            completed=files.position if files else 0,
            events=report.events.total(),
        )


def show_report(report: "ImportReport", dry_run: bool, as_json: bool) -> None:
    """Say what came of it."""
    if as_json:
        typer.echo(json.dumps(report.to_json(), ensure_ascii=False))
        return
    if report.events:
        show_table(("event", "found"), sorted(report.events.items()))
    else:
        typer.echo("0 events found.")
    for reason, count in report.left_out.most_common():
        typer.echo(f"{count:,} left out: {reason}")
    if report.refused:
        typer.echo(f"{report.refused:,} refused, for example")
        for each in report.first:
            typer.echo(f"  {each.place}: {each.field}: {each.reason}")
    for doubt in report.first_doubts:
        typer.secho(f"{doubt.place}: {doubt.reason}", fg="yellow", err=True)
    if report.doubts > len(report.first_doubts):
        typer.secho(
            f"and {report.doubts - len(report.first_doubts):,} more of this kind", fg="yellow", err=True
        )
    if dry_run:
        typer.echo("Nothing was sent.")
    else:
        typer.echo(f"{report.published:,} events published, {report.already_there:,} were already there.")


def choose_ending(report: "ImportReport") -> Ending:
    """Not so, where not all of it can come in."""
    return Ending.NOT_SO if report.refused else Ending.DONE
