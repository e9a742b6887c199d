"""Copies of sparse files have the same bytes and the same holes."""

from pathlib import Path

import pytest

from mnemon_infra.process.sparse_copy import copy_sparse_file

MEGABYTE = 1024 * 1024


def write_parts(path: Path, size: int, *parts: tuple[int, bytes]) -> Path:
    """Write parts at their offsets into a file of `size` bytes whose rest is holes, and return the path."""
    with path.open("wb") as file:
        file.truncate(size)
        for offset, data in parts:
            file.seek(offset)
            file.write(data)
    return path


@pytest.mark.parametrize(
    ("size", "parts"),
    [
        (0, ()),
        (5, ((0, b"short"),)),
        (8 * MEGABYTE, ()),
        (8 * MEGABYTE, ((0, b"begin"), (5 * MEGABYTE, b"x" * 2 * MEGABYTE), (8 * MEGABYTE - 3, b"end"))),
        (8 * MEGABYTE, ((3 * MEGABYTE, b"middle"),)),
    ],
)
def test_copy_has_the_same_bytes(tmp_path: Path, size: int, parts: tuple[tuple[int, bytes], ...]) -> None:
    source = write_parts(tmp_path / "source", size, *parts)

    copy_sparse_file(source, tmp_path / "target")

    assert (tmp_path / "target").read_bytes() == source.read_bytes()


def test_copy_takes_no_more_of_the_disk_than_the_data(tmp_path: Path) -> None:
    source = write_parts(tmp_path / "source", 64 * MEGABYTE, (20 * MEGABYTE, b"data"))
    if source.stat().st_blocks * 512 > MEGABYTE:
        pytest.skip("this disk has no sparse files")

    copy_sparse_file(source, tmp_path / "target")

    assert (tmp_path / "target").stat().st_blocks * 512 <= MEGABYTE
