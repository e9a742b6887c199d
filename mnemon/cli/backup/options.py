"""Options that `mnemon backup` and `mnemon restore` share, and their progress bars."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mnemon.cli.terminal.exit_code import ExitCode, refuse
from mnemon.cli.terminal.output import show_progress

if TYPE_CHECKING:
    from mnemon.operations.backup.repository import BackupRepository

PassphraseOption = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file",
        metavar="FILE",
        help="File with the passphrase that encrypts and decrypts the backup, instead of age keys. "
        "Default: none.",
    ),
]


def open_repository(
    location: str,
    recipients: Sequence[str] = (),
    passphrase_file: Path | None = None,
    identity: Path | None = None,
) -> "BackupRepository":
    """Open the folder or bucket of a backup, with the cipher for the given keys or passphrase.

    End the command if `location` is empty, as an unset variable of a script is.

    Raises:
        KeyUnusable: the options contradict each other, or a key or the passphrase file cannot be used.
        StoreUnavailable: the location cannot be used.
        ModuleNotFoundError: pyrage or obstore, which keys or a bucket need, is not installed.
    """
    from mnemon.operations.backup.encryption import choose_cipher
    from mnemon.operations.backup.repository import BackupRepository
    from mnemon_infra.storage.object_store import open_object_store

    if not location:
        refuse(
            ExitCode.USAGE_ERROR,
            "the name of the backup's folder or bucket is empty",
            "Name a folder or a bucket, such as /mnt/backups/mnemon",
        )
    return BackupRepository(open_object_store(location), choose_cipher(recipients, passphrase_file, identity))


@contextmanager
def show_positions() -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar; yield a function that updates it: step, reached position, last position."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with show_progress(*columns) as update:
        yield lambda step, reached, last: update(description=step, completed=reached, total=last)
