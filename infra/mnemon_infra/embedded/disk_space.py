"""Whether there is room on the disk: who writes to a mapped file without any is killed, and told nothing."""

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path

import structlog

from mnemon_infra.embedded.process import ServerFailed, ServerProcess
from mnemon_infra.process.free_space import LEAST, free_bytes, megabytes

log = structlog.get_logger("embedded")

TO_START = 128 * 1024 * 1024
"""Bytes that must be free for a stack to start: a new one takes the half of it at once."""

LOOK_EVERY = 1.0
"""Seconds between two looks."""

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""What the system says where there is no room."""

_STUCK = b"critical write error"


class NoRoom(ServerFailed):
    """The disk is full; the message says where, and what to do."""

    def __init__(self, folder: Path, free: int, needed: int) -> None:
        super().__init__(
            f"the disk of {folder} is full: {megabytes(free)} are free, {megabytes(needed)} are needed. "
            "Make room there, or choose a folder on another disk: mnemon up --data DIR"
        )


def require_room(folder: Path) -> None:
    """Stop before a server or an engine does, half-way.

    Raises:
        NoRoom: a stack would not come far in this folder.
    """
    free = free_bytes(folder)
    if free < TO_START:
        raise NoRoom(folder, free, TO_START)


async def watch(folder: Path, broker: ServerProcess | None, room_again: Callable[[], None]) -> None:
    """Say when the disk becomes full, and when there is room again; never returns.

    nats-server stores nothing any more in a stream that it once could not write to, and answers nobody who
    publishes, until it is started again. So it is ended once there is room; who keeps it starts it.

    Args:
        folder: on the disk.
        broker: the server, if it is one of ours.
        room_again: called when there is room after there was none.
    """
    is_full = is_stuck = False
    seen = broker.log_path.stat().st_size if broker else 0
    while True:
        await asyncio.sleep(LOOK_EVERY)
        free = free_bytes(folder)
        if free < LEAST and not is_full:
            is_full = True
            log.error(
                "disk full, writes refused until space is freed",
                folder=str(folder),
                free=megabytes(free),
            )
        if broker:
            said, seen = _said_since(broker.log_path, seen)
            is_stuck = is_stuck or _STUCK in said.lower()
        if free >= 2 * LEAST and (is_full or is_stuck):
            is_full = is_stuck = False
            log.warning("disk space freed, writes resumed", folder=str(folder), free=megabytes(free))
            room_again()
            if broker:
                broker.ask_to_end()


def _said_since(path: Path, seen: int) -> tuple[bytes, int]:
    """What was added to a log, and how long it is now."""
    with path.open("rb") as lines:
        lines.seek(seen)
        said = lines.read()
    return said, seen + len(said)
