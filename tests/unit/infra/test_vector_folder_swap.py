"""Folders of vectors that change places, and a kill in between."""

from pathlib import Path

from mnemon_infra.vectors import folder_swap
from mnemon_infra.vectors.embedding_metadata import RECORD
from mnemon_infra.vectors.folder_swap import settle


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
    assert (folder_swap.former_of(live) / RECORD).read_text() == "vectors"
    folder_swap.undo(live, to)
    folder_swap.exchange(live, to)
    assert {each.name for each in tmp_path.iterdir()} == {"vectors", "vectors_before"}
    settle(live)
    assert (live / RECORD).read_text() == "vectors_next"
