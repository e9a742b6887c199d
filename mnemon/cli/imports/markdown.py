"""`mnemon import markdown`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mnemon.cli.imports.progress import ImportFiles, ImportOptions, check_owner
from mnemon.cli.option_group import expand_options
from mnemon.cli.terminal.exit_code import Ending, refuse

if TYPE_CHECKING:
    from mnemon_contracts.subjects import Owner
    from mnemon_infra.config import Deployment


@expand_options
def markdown(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH", help="Files, or folders of *.md files; - reads standard input."),
    ],
    tenant: Annotated[
        str | None, typer.Option(help="Tenant of the users; without it: the tenant that the files name.")
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            help="Import everything as this user; without it: the user that a file or its path "
            "names: 42.md, 42/profile.md."
        ),
    ] = None,
    rewrite: Annotated[
        bool,
        typer.Option(
            "--rewrite",
            help="After the import, rewrite each file as `mnemon export markdown` does; the old one is kept "
            "as FILE.bak.",
        ),
    ] = False,
    *,
    options: ImportOptions,
) -> None:
    """Import facts, one per line: `- [id:pf_001] [t:profile] [imp:high] [exp:2026-12-31] text`.

    The marks in brackets are optional. A fact keeps its id if the user has no facts yet; otherwise it is
    proposed like any other fact, and may be refused or merged into another fact.

    Example: `mnemon import markdown data/memory --tenant acme --rewrite`
    """
    from mnemon.operations.imports.markdown import MarkdownReader

    check_owner(tenant, user)
    files = list(_list_files(paths))
    owners = _require_rewritable(files, tenant, user) if rewrite and not options.dry_run else {}

    async def rewrite_all(deployment: "Deployment") -> None:
        await _rewrite_files(deployment, owners)

    found = ImportFiles(files, MarkdownReader(tenant, user).read)
    options.run_import(found.read_records(), tenant, found, rewrite_all if owners else None)


def _list_files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        found = sorted(path.rglob("*.md"))
        if not found:
            refuse(Ending.WRONG_USE, f"there are no *.md files in {path}")
        yield from found


def _require_rewritable(files: list[Path], tenant: str | None, user: str | None) -> "dict[Path, Owner]":
    """Return the owner of each file. End the command if a file cannot be rewritten."""
    from mnemon.operations.imports.markdown import parse_path
    from mnemon.operations.imports.normalised_files import get_backup_path

    if tenant is None:
        refuse(Ending.WRONG_USE, "--rewrite needs --tenant")
    owners: dict[Path, Owner] = {}
    for path in files:
        tier, named = parse_path(path)
        if tier is not None or (user or named) is None:
            refuse(
                Ending.WRONG_USE,
                f"{path} is not one user's whole memory; --rewrite applies only to such files",
            )
        if get_backup_path(path).exists():
            refuse(Ending.WRONG_USE, f"{get_backup_path(path)} exists and would be overwritten; move it away")
        owners[path] = tenant, str(user or named)
    return owners


async def _rewrite_files(deployment: "Deployment", owners: "dict[Path, Owner]") -> None:
    from mnemon.operations.exports.run import NotProjected
    from mnemon.operations.imports.normalised_files import rewrite_files
    from mnemon_infra.broker.connection import connect
    from mnemon_infra.database.engine import Database

    try:
        async with (
            await connect(str(deployment.nats_url), name="mnemon-import") as connection,
            Database(deployment, name="mnemon-import") as database,
        ):
            await rewrite_files(connection, database, owners)
    except NotProjected as error:
        refuse(
            Ending.PART_MISSING,
            f"{error}; no file is changed",
            "Check the consumers with `mnemon status`, then run the import again",
        )
    except OSError as error:
        refuse(Ending.WRONG_USE, f"{error.filename} cannot be written: {error.strerror}")
