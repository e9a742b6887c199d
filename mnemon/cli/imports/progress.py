"""Shared parts of imports: options, a progress bar, and a report."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal, NoReturn

import typer

from mnemon.cli.options.target import DataOption, open_broker, require_deployment
from mnemon.cli.terminal.exit_code import ExitCode, perform_command, refuse, refuse_file
from mnemon.cli.terminal.output import JsonOption, show_json, show_progress, show_table
from mnemon.display_text import format_count, make_printable

if TYPE_CHECKING:
    from mnemon.operations.imports.records import ImportRecord, RefusedRecord
    from mnemon.operations.imports.report import ImportReport
    from mnemon_infra.config import Deployment

ImportTenantOption = Annotated[str, typer.Option(help="Tenant to import into.")]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Read everything and report the result without sending anything.")
]
RefusedOption = Annotated[
    Path | None,
    typer.Option(
        "--refused",
        metavar="FILE",
        help="Write refused records, with the reasons, to this file as JSON lines. Default: no file.",
    ),
]
ZoneOption = Annotated[
    str, typer.Option(help="Time zone, such as Europe/Moscow, of times without an offset.")
]
FilesArgument = Annotated[
    list[Path], typer.Argument(metavar="FILE", help="Files to import, or - for standard input.")
]

AfterImport = Callable[["Deployment"], Awaitable[None]]
NeededServer = Literal["broker", "database"]
RecordReader = Callable[[BinaryIO], "Iterator[ImportRecord]"]


class ImportFiles:
    """Files that are read one after another, with the progress in bytes.

    The constructor ends the command if a file is absent, but checks none if one of them is standard input.

    Attributes:
        total: size of all files, in bytes; None if one of them is standard input.
    """

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
            refuse_file(error.filename, "read", error)

    @property
    def position(self) -> int:
        """Number of bytes read so far; 0 if one of the files is standard input."""
        is_file = self._open is not None and self.total is not None
        return self._bytes_before + (self._open.tell() if is_file and self._open else 0)

    def has_file(self, path: Path) -> bool:
        """Return whether a path leads to one of the files."""
        return path.exists() and any(each.exists() and each.samefile(path) for each in self._paths)

    async def read_records(self) -> "AsyncIterator[ImportRecord]":
        """Yield the records of all files; end the command if a file cannot be read."""
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
                refuse_file(path, "read", error)
            except NotReadable as error:
                again = "Then run the import again; records already imported are not added twice"
                refuse(ExitCode.USAGE_ERROR, f"{path}: {error}", again)


def parse_time_zone(name: str) -> tzinfo:
    """Return the time zone of a name; end the command if no time zone has the name."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        refuse(ExitCode.USAGE_ERROR, f"--zone {name!r} is not a time zone; give a name such as Europe/Moscow")


@dataclass(frozen=True)
class ImportOptions:
    """Options that all imports except `locomo` share."""

    dry_run: DryRunOption = False
    refused: RefusedOption = None
    data: DataOption = None
    as_json: JsonOption = False

    def run_import(
        self,
        records: "AsyncIterator[ImportRecord]",
        tenant: str | None,
        files: ImportFiles | None = None,
        after: AfterImport | None = None,
    ) -> NoReturn:
        """Import records, or count them with `--dry-run`; show the report and end the command.

        The exit code is 1 if a record was refused.

        Args:
            records: the records.
            tenant: tenant of records that name no tenant.
            files: the files from which the records are read, for the progress; None if there are no files.
            after: function that is called after the import, but not with `--dry-run`.
        """
        needed: tuple[NeededServer, ...] = ("broker", "database") if after else ("broker",)
        deployment = None if self.dry_run else require_deployment(self.data, *needed)
        if self.refused and files and files.has_file(self.refused):
            refuse(
                ExitCode.USAGE_ERROR,
                f"--refused {self.refused} is one of the files to import, and would be overwritten",
                "Name another file for the refused records",
            )
        with _open_report(self.refused) as report:
            perform_command(_import_records(deployment, records, tenant, files, report, after, self.as_json))


async def _import_records(
    deployment: "Deployment | None",
    records: "AsyncIterator[ImportRecord]",
    tenant: str | None,
    files: ImportFiles | None,
    report: "ImportReport",
    after: AfterImport | None,
    as_json: bool,
) -> ExitCode:
    from rich.progress import BarColumn, TimeRemainingColumn

    from mnemon.operations.imports.run import RecordImporter, count_records

    columns = "importing", BarColumn(), "{task.fields[events]:,} events", TimeRemainingColumn()
    with show_progress(*columns, total=files.total if files else None, events=0) as update:

        def show_counts(report: "ImportReport") -> None:
            update(completed=files.position if files else 0, events=report.events.total())

        if deployment is None:
            await count_records(records, tenant, report, show_counts)
        else:
            async with open_broker(deployment, "mnemon-import") as connection:
                await RecordImporter(connection, tenant, report, show_counts).import_records(records)
    if deployment and after:
        await after(deployment)
    _show_report(report, deployment is None, as_json)
    return ExitCode.NEGATIVE_RESULT if report.refused else ExitCode.DONE


@contextmanager
def _open_report(refused: Path | None) -> "Iterator[ImportReport]":
    """Yield a report, which writes refused records to the file `refused` if given.

    End the command if the file cannot be written.
    """
    from mnemon.operations.imports.report import ImportReport, format_refused

    if refused is None:
        yield ImportReport()
        return
    try:
        # A record may have a lone surrogate, which UTF-8 cannot encode: write its escape sequence.
        file = refused.open("w", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        refuse_file(refused, "written", error, "Choose another file")

    def write_refused(one: "RefusedRecord") -> None:
        file.write(format_refused(one) + "\n")

    with file:
        yield ImportReport(write_refused)


def _show_report(report: "ImportReport", dry_run: bool, as_json: bool) -> None:
    """Show the counts of an import."""
    if as_json:
        show_json(report.to_json())
        return
    if report.events:
        show_table(("event", "found"), sorted(report.events.items()))
    else:
        typer.echo("0 events found.")
    if users := [user if tenant is None else f"{tenant}/{user}" for tenant, user in report.first_users]:
        more = " and more" if report.has_more_users else ""
        typer.echo(
            make_printable(f"Events of {'user' if len(users) == 1 else 'users'} {', '.join(users)}{more}.")
        )
    for reason, count in report.left_out.most_common():
        typer.echo(f"{count:,} left out: {reason}")
    if report.refused:
        typer.echo(f"{report.refused:,} refused, for example")
        for each in report.first:
            typer.echo(f"  {each.place}: {each.field}: {each.reason}")
        typer.echo("Correct these and import again: events that the log has already are not added again.")
    for doubt in report.first_doubts:
        typer.secho(f"{doubt.place}: {doubt.reason}", fg="yellow", err=True)
    if report.doubts > len(report.first_doubts):
        typer.secho(
            f"and {report.doubts - len(report.first_doubts):,} more of this kind", fg="yellow", err=True
        )
    if judged := report.judged_by_default_policy:
        typer.echo(
            f"{format_count(judged, 'proposed fact', 'was')} judged by the default policy; an import uses the"
            " policy of the tenant."
        )
    if dry_run:
        typer.echo("Nothing was sent.")
    else:
        typer.echo(
            f"{format_count(report.published, 'event')} published, {report.already_there:,} already there."
        )
