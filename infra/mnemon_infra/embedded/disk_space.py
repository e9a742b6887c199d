"""Free disk space of a stack: a check before the start, and a watch while the stack runs.

After a failed write to a stream, nats-server stores nothing in that stream until it is restarted. So the
watch ends nats-server as soon as the disk has room again, and the stack restarts it.
"""

import asyncio
import errno
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import structlog

from mnemon_infra.embedded.process import ServerFailed, ServerProcess
from mnemon_infra.process.free_space import LEAST, format_megabytes, read_disk_space

log = structlog.get_logger("embedded")

MINIMUM_FOR_START = 128 * 1024 * 1024
"""Bytes that must be free for a stack to start: a new stack takes half of this at once."""

CHECK_INTERVAL = 1.0
"""Seconds between two checks."""

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Error numbers of the system for a full disk or an exhausted quota."""

_WRITE_ERROR = b"critical write error"
"""Words, in lower case, with which nats-server logs a failed write to a stream."""


class NoRoom(ServerFailed):
    """The disk has too little free space for a start; the message names the folder and the next step."""

    def __init__(self, folder: Path, free: int, needed: int) -> None:
        super().__init__(
            f"the disk of {folder} has too little room: {format_megabytes(free)} are free, "
            f"{format_megabytes(needed)} are needed. "
            "Make room there, or start a new stack in a folder on another disk (--data DIR)"
        )


def require_room(folder: Path) -> None:
    """Check that the disk has room for a start, which would otherwise fail half-way.

    Raises:
        NoRoom: less than `MINIMUM_FOR_START` bytes are free on the disk of the folder.
    """
    free = read_disk_space(folder).free
    if free < MINIMUM_FOR_START:
        raise NoRoom(folder, free, MINIMUM_FOR_START)


async def watch_disk(folder: Path, broker: ServerProcess | None, on_freed: Callable[[], None]) -> None:
    """Log when the disk becomes full, and when it has room again. The function never returns.

    After a failed write to a stream, nats-server stores nothing in the stream and answers no publisher until
    it is restarted. So this function ends the server as soon as the disk has room, and the stack restarts it.

    Args:
        folder: a folder on the disk.
        broker: the nats-server, if this stack runs one.
        on_freed: called each time that a full disk has room again, before the broker is restarted.
    """
    is_full = is_stuck = False
    seen = broker.log_path.stat().st_size if broker else 0
    while True:
        await asyncio.sleep(CHECK_INTERVAL)
        free = read_disk_space(folder).free
        if free < LEAST and not is_full:
            is_full = True
            log.error(
                "disk full, writes refused until space is freed",
                folder=str(folder),
                free=format_megabytes(free),
            )
        if broker:
            with suppress(FileNotFoundError):  # operators delete or empty log files to free space
                seen = min(seen, broker.log_path.stat().st_size)
                said = broker.read_log_file(seen)
                seen += len(said)
                is_stuck = is_stuck or _WRITE_ERROR in said.lower()
        if free >= 2 * LEAST and (is_full or is_stuck):
            is_full = is_stuck = False
            on_freed()
            if broker:
                log.warning(
                    "disk space freed, restarting broker",
                    folder=str(folder),
                    free=format_megabytes(free),
                    broker=broker.name,
                )
                broker.ask_to_end()
            else:
                log.warning("disk space freed", folder=str(folder), free=format_megabytes(free))
