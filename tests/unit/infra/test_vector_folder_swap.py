"""Swap of two folders of vectors, completed or undone after a kill in between."""

from pathlib import Path

from mnemon_infra.vectors.edge import folder_swap
from mnemon_infra.vectors.edge.folder_swap import settle_swap
from mnemon_infra.vectors.embedding_metadata import RECORD


def test_folders_that_a_kill_left_are_put_right(tmp_path: Path) -> None:
    live, to = tmp_path / "vectors", tmp_path / "vectors_next"
    for folder in live, to:
        folder.mkdir()
        (folder / RECORD).write_text(folder.name)
    live.rename(tmp_path / "vectors_aside")
    settle_swap(live)
    assert (live / RECORD).read_text() == "vectors"
    live.rename(tmp_path / "vectors_aside")
    to.rename(live)
    settle_swap(live)
    assert (live / RECORD).read_text() == "vectors_next"
    assert (folder_swap.build_former_path(live) / RECORD).read_text() == "vectors"
    folder_swap.undo_swap(live, to)
    folder_swap.swap_folders(live, to)
    assert {each.name for each in tmp_path.iterdir()} == {"vectors", "vectors_before"}
    settle_swap(live)
    assert (live / RECORD).read_text() == "vectors_next"
