"""The manifest decides which segments a further run keeps."""

import pytest

from mnemon.operations.backup.manifest import (
    BackupUnusable,
    Manifest,
    SegmentEntry,
    StoredFile,
    select_kept_segments,
)


def segment(first: int, last: int, *, is_full: bool = True) -> SegmentEntry:
    file = StoredFile(name=f"segments/{first}", size=1, sha256="x")
    return SegmentEntry(
        first=first, last=last, last_stored_at=last, events=last - first + 1, is_full=is_full, file=file
    )


ONE, TWO, THREE = segment(1, 10), segment(11, 20), segment(21, 24, is_full=False)


def manifest(*segments: SegmentEntry) -> Manifest:
    return Manifest(
        mnemon="1", backup_id="b", created_at="now", is_complete=True, position=24, segments=segments
    )


def test_a_further_run_reads_after_the_last_full_segment() -> None:
    assert select_kept_segments([]) == ([], 0)
    assert select_kept_segments([ONE, TWO]) == ([ONE, TWO], 20)
    assert select_kept_segments([ONE, TWO, THREE]) == ([ONE, TWO], 20)
    assert select_kept_segments([THREE]) == ([], 0)


def test_a_manifest_is_read_as_it_was_written() -> None:
    written = manifest(ONE, TWO, THREE)
    assert Manifest.parse(written.encode(), "x") == written
    assert (written.events, written.last_stored_at) == (24, 24)
    assert written.file_names == {"segments/1", "segments/11", "segments/21"}
    assert manifest().last_stored_at == 0


@pytest.mark.parametrize("body", [b"", b"{}", b"[1]", b'{"format": "x"}'])
def test_a_damaged_manifest_is_refused(body: bytes) -> None:
    with pytest.raises(BackupUnusable, match=r"manifest\.json in the place is damaged"):
        Manifest.parse(body, "the place")


def test_a_manifest_of_a_newer_format_is_refused() -> None:
    newer = manifest().model_copy(update={"format": 2})
    with pytest.raises(BackupUnusable, match="format 2, and this version reads format 1: upgrade mnemon"):
        Manifest.parse(newer.encode(), "x")
