"""Rewrite of imported Markdown files in the form of an export, with the old content as a backup."""

from collections.abc import Mapping
from pathlib import Path
from shutil import copy2, copymode
from typing import Final

from nats.aio.client import Client

from mnemon.operations.exports.markdown import generate_lines
from mnemon.operations.exports.run import ExportCounts, NotProjected, wait_until_projected, write_memories
from mnemon_contracts.subjects import Owner, build_memory_subject
from mnemon_infra.broker.streams.applied_position import AppliedPosition
from mnemon_infra.broker.streams.log_reader import read_last_position
from mnemon_infra.database.engine import Database

DECISION_TIMEOUT: Final = 300.0
"""Maximum seconds to wait until `dedupe` has decided on proposals: facts have their ids only then."""


def get_backup_path(path: Path) -> Path:
    """Return the path of the backup of a file: `42.md.bak` next to `42.md`."""
    return path.with_name(f"{path.name}.bak")


async def rewrite_files(connection: Client, database: Database, files: Mapping[Path, Owner]) -> None:
    """Replace each file with the memory of its user, and keep the old content as a backup.

    Raises:
        NotProjected: `dedupe` has not decided on all proposals, or the rows are behind; no file is changed.
        DatabaseUnavailable, nats.errors.Error: a server does not answer; some files may be rewritten.
        OSError: a file cannot be written.
    """
    subjects = [build_memory_subject(*owner, "fact.proposed") for owner in files.values()]
    proposed = await read_last_position(connection, *subjects)
    if (
        await AppliedPosition("dedupe").wait_for(connection.jetstream(), proposed, DECISION_TIMEOUT)
        < proposed
    ):
        raise NotProjected(
            f"dedupe did not decide on all imported facts within {DECISION_TIMEOUT:.0f} s; wait until "
            "`dedupe` has caught up"
        )
    position = await wait_until_projected(connection)
    for path, owner in files.items():
        part, old = (path.with_name(f"{path.name}.{ending}") for ending in ("part", "bak.part"))
        try:
            part.touch(mode=0o600)  # private until it gets the mode of the original file
            with part.open("w", encoding="utf-8") as file:

                def write_line(line: str) -> None:
                    print(line, file=file)

                await write_memories(
                    database,
                    owner,
                    generate_lines,
                    write_line,
                    ExportCounts(position),
                    lambda _: None,
                )
            copymode(path, part)
            copy2(path, old)
            # Each name refers to a complete file at any moment, even if the process is killed here.
            old.rename(get_backup_path(path))
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
            old.unlink(missing_ok=True)
