"""Command `mnemon backup`: back up log, settings, API keys, logins and erasures."""

from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from mnemon.cli.backup.options import PassphraseOption, open_repository, show_positions
from mnemon.cli.options.target import DataOption, open_broker, open_deployment
from mnemon.cli.terminal.exit_code import ExitCode, perform_async, refuse, refuse_file
from mnemon.cli.terminal.output import JsonOption, show_json
from mnemon.display_text import format_count

if TYPE_CHECKING:
    from mnemon.operations.backup.run import BackupResult


@perform_async
async def backup(
    destination: Annotated[
        str,
        typer.Argument(
            metavar="DESTINATION",
            help="Folder or bucket of the backup, such as /mnt/backups/mnemon or s3://bucket/prefix.",
        ),
    ],
    recipient: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            help="Encrypt the backup for this public age key, which begins with age1. Repeat the option "
            "for several keys. Default: no encryption.",
        ),
    ] = None,
    passphrase_file: PassphraseOption = None,
    logins: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            resolve_path=True,
            help="File of logins to back up, which `mnemon auth --file` wrote. Default: with --data, the "
            "login file of that folder; otherwise none.",
        ),
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Back up the log, settings, API keys, logins and erasures, while everything runs.

    The first run copies the whole log. A further run with the same destination copies new events, and
    rewrites segments with events that the log no longer has: the backup then has no text of an erased user.
    If a run is killed, the segments that the manifest names can be restored, and the next run continues from
    there. The first run writes its first manifest at its end, or earlier after 100,000 events or 32 MiB
    before compression.

    The variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL configure a
    bucket.

    Example: `mnemon backup /mnt/backups/mnemon --data ./memory`

    Example: `mnemon backup s3://backups/mnemon --recipient age1... --data ./memory`
    """
    from mnemon.operations.backup.run import run_backup

    repository = open_repository(destination, recipient or [], passphrase_file)
    text = _read_logins(data, logins)
    async with (
        open_deployment(data, "broker") as at,
        open_broker(at.deployment, "mnemon-backup") as connection,
    ):
        with show_positions() as progress:
            result = await run_backup(connection, repository, text, partial(progress, "events"))
    if passphrase_file:
        key = f" --passphrase-file {quote(str(passphrase_file))}"
    else:
        key = " --identity FILE" if recipient else ""
    _show_result(result, f"mnemon restore {quote(destination)}{key} --check", destination, as_json)
    return ExitCode.DONE


def _read_logins(data: Path | None, file: Path | None) -> str | None:
    """Return the text of the file with the logins; None if no file is named and the folder has none.

    End the command if the named file is absent, or if the file cannot be read or was not written by
    `mnemon auth`.
    """
    from mnemon_infra.broker.provisioning.authorization import Authorization
    from mnemon_infra.embedded.logins import FolderLogins

    path = file or (FolderLogins(data).path if data else None)
    if path is None:
        return None
    try:
        text = path.read_text("utf-8")
        Authorization.from_text(text)
    except FileNotFoundError:
        if file is None:
            return None
        refuse(
            ExitCode.USAGE_ERROR, f"{path} does not exist", "Name the file that `mnemon auth --file` wrote"
        )
    except OSError as error:
        refuse_file(path, "read", error, "Make the file readable")
    except ValueError:
        refuse(
            ExitCode.USAGE_ERROR,
            f"{path} was not written by `mnemon auth`",
            "Name another file: --logins FILE",
        )
    return text


def _show_result(result: "BackupResult", check: str, destination: str, as_json: bool) -> None:
    from rich.filesize import decimal

    manifest = result.manifest
    if as_json:
        show_json(
            {
                "position": manifest.position,
                "events": manifest.events,
                "new_events": result.new_events,
                "segments": len(manifest.segments),
                "rewritten_segments": result.rewritten,
                "removed_files": result.removed_files,
                "bytes": sum(each.file.size for each in manifest.segments),
                "encryption": manifest.encryption,
            }
        )
        return
    size = decimal(sum(each.file.size for each in manifest.segments))
    typer.echo(
        f"{format_count(manifest.events, 'event')} up to log position {manifest.position:,} saved in"
        f" {destination}, in {format_count(len(manifest.segments), 'segment')}, {size} in all;"
        f" {format_count(result.new_events, 'event', 'is')} new."
    )
    if result.rewritten:
        rewritten = format_count(result.rewritten, "segment", "was")
        typer.echo(f"{rewritten} written again without events that the log no longer has.")
    typer.echo(f"To check the backup: {check}")
