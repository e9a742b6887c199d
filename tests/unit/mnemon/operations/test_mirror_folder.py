"""Files of a mirror: a name of its own for each user, atomic replacement, and one writing process."""

import stat
from itertools import combinations
from pathlib import Path
from urllib.parse import unquote

import pytest

from mnemon.operations.exports.mirror_folder import (
    STATE,
    FolderNotUsable,
    MirrorFolder,
    MirrorScope,
    encode_name,
)

ALL = MirrorScope(None, None)
ACME = MirrorScope("acme", None)

HOSTILE = [
    "42", "anna", "Anna", "ANNA", "Анна", "анна", "..", ".", ".hidden", "a/b", "../../etc/passwd", "a\\b",
    "a\nb", "con", "a b", "a%20b", "a~b", "%41nna", "é", "e\u0301", "ı", "i", "ſ", "s", "\u202egnp", "*",
    "a:b", "я" * 127, "x" * 255, "x" * 254, "X" * 255, "x" * 254 + "y", "%" * 255,
]  # fmt: skip


@pytest.mark.parametrize("user", HOSTILE)
def test_file_name_is_safe_and_reversible(user: str) -> None:
    name = encode_name(user)

    assert name.isascii()
    assert name.isprintable()
    assert "/" not in name
    assert not name.startswith(".")
    assert len(f"{name}.md") <= 255
    assert "~" in name or unquote(name) == user
    if len(user.encode()) <= 66:
        assert unquote(name) == user


def test_no_two_users_have_one_file_where_case_does_not_count() -> None:
    names = {user: encode_name(user) for user in HOSTILE}
    shared = [(one, other) for one, other in combinations(HOSTILE, 2)
              if names[one].casefold() == names[other].casefold()]  # fmt: skip
    assert shared == []


def test_an_escape_is_not_cut_in_two() -> None:
    beginning, _, digest = encode_name("я" * 127).partition("~")
    assert len(digest) == 32
    assert len(beginning) % 3 == 0
    for length in range(3):
        beginning = encode_name("x" * length + "я" * 120).partition("~")[0]
        assert (len(beginning) - length) % 3 == 0


def test_a_file_is_replaced_as_a_whole_and_readable_by_its_account_only(tmp_path: Path) -> None:
    folder = MirrorFolder(tmp_path / "files", ALL)
    with folder.lock():
        path = folder.get_path(("acme", "Anna"))
        assert folder.write_file(("acme", "Anna"), "one\n")
        inode = path.stat().st_ino
        assert not folder.write_file(("acme", "Anna"), "one\n"), "it said that already"
        assert path.stat().st_ino == inode
        assert folder.write_file(("acme", "Anna"), "two\n")
        assert (path.read_text(), path.stat().st_ino != inode) == ("two\n", True)

        modes = [stat.S_IMODE(each.stat().st_mode) for each in (folder.path, path.parent, path)]
        assert modes == [0o700, 0o700, 0o600]
        assert list(folder.list_files()) == [path]
        assert folder.remove_file(path)
        assert not folder.remove_file(path)
        assert not path.parent.exists()


def test_a_folder_that_was_open_to_others_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "files"
    path.mkdir(mode=0o755)
    with MirrorFolder(path, ALL).lock():
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_mirror_folder_keeps_its_position(tmp_path: Path) -> None:
    folder = MirrorFolder(tmp_path, ACME)
    with folder.lock():
        assert folder.load_state() is None
        folder.save_state(17, "then")
    again = MirrorFolder(tmp_path, ACME)
    with again.lock():
        state = again.load_state()
        assert state is not None
        assert (state.position, state.log, state.scope) == (17, "then", ACME)
    (tmp_path / STATE).write_text("{}")
    assert again.load_state() is None


def test_files_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    folder = MirrorFolder(tmp_path, ALL)
    with folder.lock():
        folder.save_state(1, "then")
    (tmp_path / ".mnemon-follow.part").write_text("- Likes te")
    with folder.lock():
        assert not (tmp_path / ".mnemon-follow.part").exists()


def test_foreign_files_stay_untouched(tmp_path: Path) -> None:
    (tmp_path / "diary.md").write_text("mine")
    with pytest.raises(FolderNotUsable, match=r"'diary\.md'"), MirrorFolder(tmp_path, ALL).lock():
        pass
    assert [each.name for each in tmp_path.iterdir()] == ["diary.md"]


def test_a_folder_is_of_one_scope_and_of_one_process(tmp_path: Path) -> None:
    folder = MirrorFolder(tmp_path, ACME)
    with folder.lock():
        folder.save_state(1, "then")
        with pytest.raises(FolderNotUsable, match="another process"), folder.lock():
            pass
    with (
        pytest.raises(FolderNotUsable, match="tenant 'acme', not of all"),
        MirrorFolder(tmp_path, ALL).lock(),
    ):
        pass
