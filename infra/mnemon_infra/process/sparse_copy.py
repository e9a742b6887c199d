"""Copy of a file that leaves the holes of a sparse file as holes."""

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

_BLOCK: Final = 1024 * 1024
"""Bytes that are copied at a time."""


def copy_sparse_file(source: str | Path, target: str | Path) -> str | Path:
    """Copy the data of a file, but not its holes, and return the target.

    Qdrant Edge allocates its files in advance: `shutil.copy` writes 250 MB for 5 MB of data. On systems that
    cannot find holes, the whole file is copied. Pass the function to `shutil.copytree` as `copy_function`.
    """
    if not hasattr(os, "SEEK_DATA"):
        shutil.copyfile(source, target)
        return target
    with Path(source).open("rb") as data, Path(target).open("wb") as copy:
        copy.truncate(os.fstat(data.fileno()).st_size)
        for begin, end in _find_data(data):
            data.seek(begin)
            copy.seek(begin)
            while block := data.read(min(end - data.tell(), _BLOCK)):
                copy.write(block)
    return target


def _find_data(file: IO[bytes]) -> Iterator[tuple[int, int]]:
    """Yield begin and end, in bytes, of each part of a file that is not a hole."""
    size, end = os.fstat(file.fileno()).st_size, 0
    while end < size:
        try:
            begin = os.lseek(file.fileno(), end, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:  # which says that only a hole is left
                raise
            return
        end = os.lseek(file.fileno(), begin, os.SEEK_HOLE)
        yield begin, end
