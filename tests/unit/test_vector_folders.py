"""Folders of vectors that change places, and a kill in between."""

from pathlib import Path

from mnemon_infra.vectors import folders
from mnemon_infra.vectors.folders import settle
from mnemon_infra.vectors.made_by import RECORD


def test_folders_that_a_kill_left_are_put_right(tmp_path: Path) -> None:
    live, to = tmp_path / "vectors", tmp_path / "vectors_next"
    for folder in live, to:
        folder.mkdir()
        (folder / RECORD).write_text(folder.name)
    live.rename(tmp_path / "vectors_aside")
    settle(live)
    assert (live / RECORD).read_text() == "vectors"
    live.rename(tmp_path / "vectors_aside")
    to.rename(live)
    settle(live)
    assert (live / RECORD).read_text() == "vectors_next"
    assert (folders.former_of(live) / RECORD).read_text() == "vectors"
    folders.undo(live, to)
    folders.exchange(live, to)
    assert {each.name for each in tmp_path.iterdir()} == {"vectors", "vectors_before"}
    settle(live)
    assert (live / RECORD).read_text() == "vectors_next"
