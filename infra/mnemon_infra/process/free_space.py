"""Free space on a disk."""

import os
from pathlib import Path
from typing import Final, NamedTuple

LEAST: Final = 32 * 1024 * 1024
"""Free bytes below which a disk counts as full: work in progress needs this room to end."""

NEARLY_FULL_SHARE: Final = 0.05
"""Free share of a disk below which the disk counts as nearly full, within the bounds of `DiskSpace.needed`.

Elasticsearch blocks writes at this share: its `disk.watermark.flood_stage` is 95 % by default.
"""

MOST_NEEDED: Final = 2 * 1024**3
"""Free bytes that suffice on any disk: twice PostgreSQL's default `max_wal_size` of 1 GB."""


class DiskSpace(NamedTuple):
    """Bytes of a disk; `free` leaves out the space that is reserved for root."""

    free: int
    total: int

    @property
    def needed(self) -> int:
        """Free bytes below which the disk counts as nearly full."""
        return max(2 * LEAST, min(MOST_NEEDED, int(self.total * NEARLY_FULL_SHARE)))

    @property
    def is_nearly_full(self) -> bool:
        return self.free < self.needed


def format_megabytes(count: int) -> str:
    """Format a number of bytes in megabytes of 1,048,576 bytes, such as `12 MB`."""
    return f"{count / 1024 / 1024:.0f} MB"


def read_disk_space(folder: Path) -> DiskSpace:
    """Return the free and the total bytes of the disk of a folder.

    Raises:
        OSError: the folder does not exist.
    """
    disk = os.statvfs(folder)
    return DiskSpace(disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize)
