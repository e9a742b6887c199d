"""Files of a folder that are indexed, and files that are left out."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mnemon.operations.folder_index import files
from mnemon.operations.folder_index.files import NotIndexed, list_files, read_file

TREE = {
    "README.md": "Read me",
    "src/app.py": "print('hello')",
    "src/app.pyc": "compiled",
    "build/out.txt": "made",
    "notes/.gitignore": "draft.txt\n!kept.pyc\n",
    "notes/draft.txt": "not yet",
    "notes/done.txt": "done",
    "tracked.pyc": "tracked though ignored",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        path = tmp_path / "shop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "shop" / ".gitignore").write_text("*.pyc\n/build/\n")
    return tmp_path / "shop"


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(("git", "-C", folder, *arguments), check=True, capture_output=True)


def test_a_repository_is_listed_as_git_knows_it(folder: Path) -> None:
    git(folder, "init")
    git(folder, "add", "README.md", "src/app.py")
    git(folder, "add", "--force", "tracked.pyc")
    assert list_files(folder) == (
        "repository",
        [".gitignore", "README.md", "notes/.gitignore", "notes/done.txt", "src/app.py", "tracked.pyc"],
    )
    assert list_files(folder / "src") == ("repository", ["app.py"])
    (folder / "README.md").unlink()
    assert "README.md" not in list_files(folder).paths, "deleted, and the index still has it"


def test_a_repository_in_a_repository_is_not_part_of_it(folder: Path) -> None:
    git(folder, "init")
    nested = folder / "nested"
    nested.mkdir()
    git(nested, "init")
    (nested / "notes.txt").touch()
    assert not [path for path in list_files(folder).paths if path.startswith("nested")]


def test_a_submodule_is_not_part_of_its_repository(folder: Path) -> None:
    git(folder, "init")
    (folder / "sub").mkdir()
    git(folder, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    assert "sub" not in list_files(folder).paths


def test_listing_a_repository_runs_nothing_that_it_names(folder: Path, tmp_path: Path) -> None:
    git(folder, "init")
    git(folder, "config", "core.fsmonitor", f"touch {tmp_path / 'ran'}; false")
    list_files(folder)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("is_repository", [False, True])
def test_without_git_the_ignore_files_are_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, is_repository: bool
) -> None:
    monkeypatch.setattr(files, "_list_by_git", lambda _: None)
    if is_repository:
        (folder / ".git").mkdir()
        (folder / ".git" / "config").write_text("[core]")
    assert list_files(folder) == (
        "repository" if is_repository else "folder",
        ["README.md", "notes/done.txt", "src/app.py"],
    )


def test_invalid_ignore_patterns_are_ignored_as_git_does(folder: Path) -> None:
    (folder / ".gitignore").write_text("!\n*.pyc\nREADME\\\n/build/\n")
    assert list_files(folder).paths == ["README.md", "notes/done.txt", "src/app.py"]


def test_folder_that_git_cannot_read_is_named_among_the_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(folder, "init")
    (folder / "nested" / "secret").mkdir(parents=True)
    git(folder / "nested", "init")
    scan = os.scandir

    def refuse(path: str | Path) -> object:
        if Path(path).name in ("build", "notes", "secret"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    paths = list_files(folder).paths
    assert "notes/" in paths
    assert not [path for path in paths if path.startswith(("build", "nested"))], "git ignores them"
    with pytest.raises(PermissionError):
        list_files(folder / "notes")


def test_ignored_folder_is_not_walked_and_folder_of_ignored_files_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(folder, "init")
    (folder / "cache" / "pages").mkdir(parents=True)
    (folder / "cache" / "pages" / "one.pyc").touch()
    scan = os.scandir
    scanned: list[str] = []

    def refuse_pages(path: str | Path) -> object:
        scanned.append(Path(path).name)
        if Path(path).name == "pages":
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse_pages)
    assert "cache/pages/" in list_files(folder).paths
    assert "build" not in scanned


def test_folder_that_cannot_be_read_is_named_among_the_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    iterate = Path.iterdir

    def refuse_notes(path: Path) -> Iterator[Path]:
        if path.name == "notes":
            raise PermissionError(13, "Permission denied", str(path))
        return iterate(path)

    monkeypatch.setattr(Path, "iterdir", refuse_notes)
    assert list_files(folder).paths == ["README.md", "notes/", "src/app.py"]
    with pytest.raises(NotIndexed, match="unreadable"):
        read_file(folder / "notes/", 100)
    with pytest.raises(PermissionError):
        list_files(folder / "notes")


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"\xff\xfe\x00", "binary"), (b"a\0b", "binary"), (b" \n", "empty"), (b"x" * 101, "too_large")],
)
def test_a_file_that_is_no_text_is_left_out(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(NotIndexed) as left_out:
        read_file(path, 100)
    assert left_out.value.reason == reason


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("not of this folder")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link.txt").symlink_to(tmp_path / "outside" / "secret.txt")
    (inside / "linked").symlink_to(tmp_path / "outside")
    assert list_files(inside).paths == ["link.txt", "linked"]
    for name in ("link.txt", "linked"):
        with pytest.raises(NotIndexed, match="link"):
            read_file(inside / name, 100)


def test_digest_covers_the_text(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes("\ufeffПривет\r\n".encode())
    (tmp_path / "other").write_bytes("Привет\r\n".encode())
    one, other = (read_file(tmp_path / name, 100) for name in ("one", "other"))
    assert one == other
    assert (one.text, len(one.digest)) == ("Привет\r\n", 64)
