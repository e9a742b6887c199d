"""Files whose facts came in are written as exports are; what they were stays beside them."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from shutil import copy2, copymode
from typing import Final

from nats.aio.client import Client

from mnemon.operations.exports.markdown import lines
from mnemon.operations.exports.run import ExportCounts, NotProjected, settled, write
from mnemon_contracts.subjects import Owner, memory_subject
from mnemon_infra.broker.streams.applied_position import Position
from mnemon_infra.broker.streams.log_reader import last_position
from mnemon_infra.database.engine import Database

PATIENCE: Final = 300.0
"""Seconds for proposals to be decided on: only then facts have their ids."""


def backup_of(path: Path) -> Path:
    """Where the old content of a file goes: `42.md.bak` beside `42.md`."""
    return path.with_name(f"{path.name}.bak")


async def rewrite(connection: Client, database: Database, files: Mapping[Path, Owner]) -> None:
    """Write each file anew with what is known of its user, and keep what it was.

    Args:
        connection: where the log is.
        database: where the rows are.
        files: with the users whom they are of.

    Raises:
        NotProjected: not all of it is decided on, and written; no file is changed.
        DatabaseUnavailable, nats.errors.Error: some of the files may be rewritten.
        OSError: a file cannot be written.
    """
    subjects = [memory_subject(*owner, "fact.proposed") for owner in files.values()]
    proposed = max([await last_position(connection, each) for each in subjects], default=0)
    if await Position("dedupe").reach(connection.jetstream(), proposed, PATIENCE) < proposed:
        raise NotProjected("dedupe has not decided on all imported facts yet")
    position = await settled(connection)
    for path, owner in files.items():
        part, old = (path.with_name(f"{path.name}.{ending}") for ending in ("part", "bak.part"))
        try:
            part.touch(mode=0o600)  # until it has the mode of the file
            with part.open("w", encoding="utf-8") as file:

                def put(line: str) -> None:
                    print(line, file=file)

                await write(database, _one(owner), lines, put, ExportCounts(position), lambda _: None)
            copymode(path, part)
            copy2(path, old)
            # Each name has a whole file at any moment, wherever the process is killed.
            old.rename(backup_of(path))
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
            old.unlink(missing_ok=True)


async def _one(owner: Owner) -> AsyncIterator[Owner]:
    yield owner
