"""Files of an import of Markdown, and their replacement by `--rewrite`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mnemon.cli.options.target import open_connections
from mnemon.cli.terminal.exit_code import ExitCode, refuse, refuse_file

if TYPE_CHECKING:
    from mnemon_contracts.subjects import Owner
    from mnemon_infra.config import Deployment


def list_files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        found = sorted(path.rglob("*.md"))
        if not found:
            refuse(ExitCode.USAGE_ERROR, f"there are no *.md files in {path}; give another folder")
        yield from found


def require_rewritable(files: list[Path], tenant: str | None, user: str | None) -> "dict[Path, Owner]":
    """Return the owner of each file that `--rewrite` replaces.

    End the command if no tenant is given, if a file is standard input, has only one tier of a user or names
    no user, or if a backup of a file exists.
    """
    from mnemon.operations.imports.markdown import parse_path
    from mnemon.operations.imports.normalised_files import get_backup_path

    if tenant is None:
        refuse(ExitCode.USAGE_ERROR, "--rewrite needs a tenant; give it with --tenant")
    owners: dict[Path, Owner] = {}
    for path in files:
        if path == Path("-"):
            refuse(
                ExitCode.USAGE_ERROR,
                "standard input cannot be rewritten; name a file, or leave out --rewrite",
            )
        tier, named = parse_path(path)
        if tier is not None:
            refuse(
                ExitCode.USAGE_ERROR,
                f"{path} has only the tier `{tier}` of a user, and --rewrite needs a user's whole memory; "
                "leave out --rewrite",
            )
        if (user or named) is None:
            refuse(ExitCode.USAGE_ERROR, f"{path} names no user; give --user, or leave out --rewrite")
        if get_backup_path(path).exists():
            refuse(
                ExitCode.USAGE_ERROR,
                f"{get_backup_path(path)} exists and would be overwritten; move the file away",
            )
        owners[path] = tenant, str(user or named)
    return owners


async def rewrite_imported_files(deployment: "Deployment", owners: "dict[Path, Owner]") -> None:
    """Replace each file with the memory of its user; end the command if a file cannot be replaced."""
    from mnemon.operations.exports.run import NotProjected
    from mnemon.operations.imports.normalised_files import rewrite_files

    try:
        async with open_connections(deployment, "mnemon-import") as (connection, database):
            await rewrite_files(connection, database, owners)
    except NotProjected as error:
        refuse(
            ExitCode.UNAVAILABLE,
            f"no file is changed: {error}",
            "Then run the import again; `mnemon status` shows the lag",
        )
    except OSError as error:
        refuse_file(error.filename or "a file", "written", error, "Make the file writable")
