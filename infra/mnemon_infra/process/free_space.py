"""Free space on a disk."""

import os
from pathlib import Path

LEAST = 32 * 1024 * 1024
"""Bytes below which a disk counts as full: what is under way when that is found needs room to end."""


def megabytes(count: int) -> str:
    """Bytes as a person reads them."""
    return f"{count / 1024 / 1024:.0f} MB"


def free_bytes(folder: Path) -> int:
    """What others than root may still write to the disk of a folder."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize
