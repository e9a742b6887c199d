"""Free space on a disk."""

import os
from pathlib import Path

LEAST = 32 * 1024 * 1024
"""Free bytes below which a disk counts as full: work in progress needs this room to end."""


def format_megabytes(count: int) -> str:
    """Format bytes as megabytes."""
    return f"{count / 1024 / 1024:.0f} MB"


def read_free_bytes(folder: Path) -> int:
    """Return the bytes that users other than root may still write to the disk of a folder."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize
