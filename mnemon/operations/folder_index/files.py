"""The text files of a folder, without those that git ignores."""

import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal, NamedTuple

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from mnemon_contracts.events.memory import Origin

MAX_BYTES: Final = 262_144
"""Default limit of the size of a file, in bytes. Larger files are mostly neither prose nor code."""

_GIT_LIST: Final = ("ls-files", "--cached", "--others", "--exclude-standard", "-z")
_GIT_LIST_IGNORED: Final = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
_NO_HOOK: Final = ("-c", "core.fsmonitor=false")
"""Options of git that keep `git ls-files` from running a program that the repository configures."""

SkipReason = Literal["binary", "empty", "too_large", "unreadable", "link"]


class NotIndexed(Exception):
    """A file cannot be indexed, for the given reason."""

    def __init__(self, reason: SkipReason) -> None:
        super().__init__(reason)
        self.reason: SkipReason = reason


class FolderFiles(NamedTuple):
    """The files of a folder.

    Attributes:
        origin: `repository` for a folder in a git repository, otherwise `folder`.
        paths: paths of the files, relative to the folder, with `/` as separator, sorted. A folder that cannot
            be read is listed too, and ends with `/`: it may have files that are not listed.
    """

    origin: Origin
    paths: list[str]


class FolderText(NamedTuple):
    """The text of a file, and its SHA-256 in hexadecimal."""

    text: str
    digest: str


def list_files(folder: Path) -> FolderFiles:
    """List the files of a folder.

    In a git repository, or a folder inside one, git lists the tracked files and the untracked files that are
    not ignored; repositories inside the folder are left out. In any other folder, or if git is not installed
    or fails, hidden files and the files that `.gitignore` files name are left out.

    Raises:
        OSError: the folder cannot be read.
    """
    tracked = _list_by_git(folder)
    if tracked is not None:
        return FolderFiles("repository", sorted([*tracked, *_list_unreadable_folders(folder)]))
    origin: Origin = "repository" if (folder / ".git").exists() else "folder"
    return FolderFiles(origin, sorted(_walk_folder(folder, folder, ())))


def read_file(path: Path, max_bytes: int) -> FolderText:
    """Read a text file.

    Raises:
        NotIndexed: the file is not UTF-8 text, is empty or too large, cannot be read, or is a link, which may
            lead out of the folder.
    """
    try:
        if path.is_symlink():
            raise NotIndexed("link")
        if not path.is_file():
            raise NotIndexed("unreadable")
        if path.stat().st_size > max_bytes:
            raise NotIndexed("too_large")
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotIndexed("binary") from error
    except OSError as error:
        raise NotIndexed("unreadable") from error
    if "\0" in text:
        raise NotIndexed("binary")
    if not text.strip():
        raise NotIndexed("empty")
    return FolderText(text, sha256(text.encode()).hexdigest())


def _list_by_git(folder: Path) -> list[str] | None:
    """Return the files that git lists and that exist, without nested repositories.

    Return None if git is not installed or fails, as outside of a repository.
    """
    try:
        listed = _run_git(folder, *_GIT_LIST, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    names = {os.fsdecode(name) for name in listed.split(b"\0") if name}
    return [name for name in names if _may_be_file(folder / name)]


def _list_unreadable_folders(folder: Path) -> list[str]:
    """Return the folders that git passes over because they cannot be read; each path ends with `/`.

    Raises:
        OSError: the folder itself cannot be read.
    """
    unreadable: list[str] = []

    def note_folder(error: OSError) -> None:
        path = Path(error.filename).relative_to(folder)
        if not path.parts:
            raise error
        unreadable.append(f"{path.as_posix()}/")

    ignored = _list_ignored_folders(folder)
    for path, folders, names in os.walk(folder, onerror=note_folder):
        if Path(path) != folder and ".git" in (*folders, *names):
            folders.clear()  # a nested repository
        folders[:] = [name for name in folders if name != ".git" and Path(path, name) not in ignored]
    return unreadable


def _list_ignored_folders(folder: Path) -> set[Path]:
    """Return the folders that a rule of git ignores, without those inside them."""
    listed = _run_git(folder, *_GIT_LIST_IGNORED)
    # The list also has folders in which git sees ignored files only, and which may have unreadable folders.
    listed_folders = b"\0".join(name for name in listed.split(b"\0") if name.endswith(b"/"))
    # The exit code is 1 if git ignores none.
    ignored = _run_git(folder, "check-ignore", "--stdin", "-z", questions=listed_folders)
    return {folder / os.fsdecode(name) for name in ignored.split(b"\0") if name}


def _run_git(folder: Path, *arguments: str, questions: bytes = b"", check: bool = False) -> bytes:
    """Return the output of a command of git, which reads `questions` from its standard input."""
    command = ("git", *_NO_HOOK, "-C", str(folder), *arguments)
    return subprocess.run(command, input=questions, capture_output=True, check=check).stdout  # noqa: S603


def _may_be_file(path: Path) -> bool:
    """Return whether an entry of git's list may be a file.

    The others are deleted files, which git lists until their deletion is committed, and repositories in the
    folder.
    """
    try:
        return not stat.S_ISDIR(path.lstat().st_mode)
    except OSError as error:  # if the folder of the file cannot be read, the file may exist
        return not isinstance(error, FileNotFoundError | NotADirectoryError)


def _walk_folder(folder: Path, root: Path, ignored: tuple[tuple[Path, GitIgnoreSpec], ...]) -> Iterator[str]:
    rules = folder / ".gitignore"
    try:
        if rules.is_file():
            ignored = (*ignored, (folder, _parse_rules(rules.read_text(encoding="utf-8", errors="replace"))))
        entries = [(entry, entry.is_dir() and not entry.is_symlink()) for entry in folder.iterdir()]
    except OSError:
        if folder == root:
            raise
        yield f"{folder.relative_to(root).as_posix()}/"
        return
    for entry, is_folder in entries:
        slash = "/" if is_folder else ""
        if entry.name.startswith(".") or any(
            spec.match_file(entry.relative_to(base).as_posix() + slash) for base, spec in ignored
        ):
            continue
        if is_folder:
            yield from _walk_folder(entry, root, ignored)
        else:
            yield entry.relative_to(root).as_posix()


def _parse_rules(text: str) -> GitIgnoreSpec:
    """Return the rules of a `.gitignore` file; a pattern that is invalid is ignored, as by git."""
    patterns: list[GitIgnoreSpecPattern] = []
    for line in filter(None, text.splitlines()):
        with suppress(ValueError):
            patterns.append(GitIgnoreSpecPattern(line))
    return GitIgnoreSpec(patterns)
