"""Samples of a running stack: memory, files and connections of its processes, rows, messages and bytes."""

import asyncio
import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil
from nats.aio.client import Client
from psycopg.sql import SQL, Identifier

from mnemon_contracts.streams import DEAD, LOG, SETTINGS, WORK
from mnemon_infra.database.engine import Connection, Database, query
from mnemon_infra.database.tables import metadata

Sample = dict[str, float]
"""Values by the name of their series, such as `memory_mb.nats-server` or `rows.windows`."""

_STREAMS: Final = (LOG, WORK, DEAD, f"KV_{SETTINGS}")
_MEGABYTE: Final = 1024 * 1024

_SERVERS: Final = "postgres", "nats-server"
_MODULES: Final = {
    "mnemon_consumers.background_process": "background",
    "mnemon_bench.workers.consumers": "foreground",
}
"""Role of a process, by the Python module that it runs."""


async def take_sample(connection: Client, database: Database, folder: Path) -> Sample:
    """Sample the child processes of this process, the tables, the streams and the data folder.

    Raises:
        DatabaseUnavailable, nats.errors.Error: a server does not answer.
    """
    sample = await asyncio.to_thread(lambda: {**sample_processes(), **_measure_folder(folder)})
    sample |= await database.run_query(_count_rows())
    for name in _STREAMS:
        info = await connection.jetstream().stream_info(name, subjects_filter=">")
        sample[f"messages.{name}"] = info.state.messages
        if name == WORK:
            kinds = Counter(subject.partition(".")[0] for subject in info.state.subjects or ())
            sample["messages.WORK.schedules"] = kinds["schedule"]
            sample["messages.WORK.triggers"] = kinds["work"]
    return sample


def sample_processes() -> Sample:
    """Return number, memory (MB), threads, files and connections of child processes, by role.

    The role is the name of a server, `background` or `foreground`. Other processes are left out.
    """
    sample: defaultdict[str, float] = defaultdict(float)
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess), process.oneshot():
            role = _find_role(process)
            if role is None:
                continue
            sample[f"memory_mb.{role}"] += measure_process(process) / _MEGABYTE
            sample[f"processes.{role}"] += 1
            sample[f"threads.{role}"] += process.num_threads()
            files = list(_list_files(process))
            sockets = sum(each.startswith("socket:") for each in files)
            sample[f"files.{role}"] += len(files) - sockets
            sample[f"connections.{role}"] += sockets
    return dict(sample)


def measure_process(process: psutil.Process) -> int:
    """Return the memory of a process in bytes, with its share of the memory that several processes use.

    On a system without this figure (PSS), only memory that no other process uses counts (USS).
    """
    memory = process.memory_full_info()
    return int(getattr(memory, "pss", memory.uss))


def _find_role(process: psutil.Process) -> str | None:
    if (name := process.name()) in _SERVERS:
        return name
    return next((_MODULES[word] for word in process.cmdline() if word in _MODULES), None)


def _list_files(process: psutil.Process) -> Iterator[str]:
    """Yield the targets of a process's open file descriptors; without /proc, only those of regular files."""
    folder = Path(f"/proc/{process.pid}/fd")
    if not folder.exists():
        yield from (each.path for each in process.open_files())
        return
    for link in folder.iterdir():
        with suppress(FileNotFoundError):
            yield str(link.readlink())


def _measure_folder(folder: Path) -> Sample:
    """Return the size in megabytes and the number of files of the servers' parts of the data folder."""
    sample: defaultdict[str, float] = defaultdict(float)
    for part in ("nats", "postgres", "vectors"):
        for place, _, names in os.walk(folder / part):
            sample[f"disk_files.{part}"] += len(names)
            for name in names:
                with suppress(OSError):
                    sample[f"disk_mb.{part}"] += os.lstat(Path(place) / name).st_blocks * 512 / _MEGABYTE
    return dict(sample)


@query
async def _count_rows(connection: Connection) -> Sample:
    sample: Sample = {}
    for table in metadata.sorted_tables:
        counted = SQL("SELECT count(*), pg_total_relation_size({}::regclass) FROM {}")
        cursor = await connection.execute(counted.format(table.name, Identifier(table.name)))
        ((rows, size),) = await cursor.fetchall()
        sample[f"rows.{table.name}"] = rows
        sample[f"table_mb.{table.name}"] = size / _MEGABYTE
    cursor = await connection.execute("SELECT count(*) FROM pg_stat_activity WHERE datname IS NOT NULL")
    ((sample["connections.database"],),) = await cursor.fetchall()
    return sample
