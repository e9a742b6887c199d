"""Folder of a stack that a command starts, and its output."""

from pathlib import Path

from mnemon.cli.stack.temporary_stack import _open_output


def test_only_this_account_can_read_the_output_of_the_stack(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    with _open_output(folder) as output:
        assert Path(output.name).stat().st_mode & 0o077 == 0
    assert folder.stat().st_mode & 0o077 == 0


def test_former_output_becomes_private(tmp_path: Path) -> None:
    former = tmp_path / "chat.log"
    former.touch(mode=0o644)
    with _open_output(tmp_path) as output:
        assert Path(output.name) == former
    assert former.stat().st_mode & 0o077 == 0
