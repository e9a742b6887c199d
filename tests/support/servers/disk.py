"""A small disk in memory, which a test can fill."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.support.processes.stack import TIMEOUT

Disk = Callable[[int], Path]


def mount(*arguments: str) -> None:
    """Run `mount` with these arguments; it needs root."""
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


@contextmanager
def making_disk() -> Iterator[Disk]:
    """Yield a function that mounts a disk of a number of megabytes, and returns its folder; call it once.

    At the end, processes on the disk are killed, and the disk is removed.
    """
    parent = Path(tempfile.mkdtemp(prefix="mnemon-test-"))
    place = parent / "disk"

    def make(megabytes: int) -> Path:
        place.mkdir()
        try:
            mount("-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "tmpfs", str(place))
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("mounting is not permitted here")
        return place

    yield make
    servers = [
        process
        for process in psutil.process_iter(["cmdline"])
        if any(str(place) in argument for argument in process.info["cmdline"] or ())
    ]
    for process in servers:
        process.kill()
    psutil.wait_procs(servers, TIMEOUT)
    if place.is_mount():
        subprocess.run(["umount", "--lazy", str(place)], check=True)
    shutil.rmtree(parent, ignore_errors=True)
