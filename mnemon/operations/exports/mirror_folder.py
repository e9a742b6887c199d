"""A folder with one Markdown file for each user: `<folder>/<tenant>/<user>.md`.

File names are the ids, percent-encoded where a file system may reject a character or may confuse two ids.
Each file is replaced as a whole, so that a reader finds either the old text or the new text.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from string import ascii_lowercase, digits
from typing import Final

from mnemon_contracts.subjects import Owner

STATE: Final = ".mnemon-follow.json"
"""Name of the file with the scope of the mirror and the log position up to which the folder is written."""

_LOCK: Final = ".mnemon-follow.lock"
_DRAFT: Final = ".mnemon-follow.part"
_OWN_FILES: Final = {STATE, _LOCK, _DRAFT}
_VERSION: Final = 1

_PLAIN: Final = set(f"{ascii_lowercase}{digits}-_.@+=".encode())
_NAME_LIMIT: Final = 200
"""Maximum number of characters of a name without its ending; file systems take 255."""
_DIGEST_LENGTH: Final = 32


class FolderNotUsable(Exception):
    """The folder cannot be used for this mirror; `next_step` tells the operator what to do."""

    def __init__(self, problem: str, next_step: str) -> None:
        super().__init__(problem)
        self.next_step = next_step


@dataclass(frozen=True, slots=True)
class MirrorScope:
    """The users whose memory a mirror shows: one user, one tenant (`user` is None), or all (both None)."""

    tenant: str | None
    user: str | None


@dataclass(frozen=True, slots=True)
class MirrorState:
    """Saved progress of a mirror.

    Attributes:
        scope: the users whose memory the mirror shows.
        position: log position up to which all changes are written.
        log: creation time of the log; the position is meaningless in another log.
    """

    scope: MirrorScope
    position: int
    log: str


class MirrorFolder:
    """The files of a mirror. Only the account of the process may read them."""

    def __init__(self, path: Path, scope: MirrorScope) -> None:
        self.path = path
        self._scope = scope

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder for the duration of the block; create it if absent.

        Raises:
            FolderNotUsable: the folder has other files or another mirror, or another process writes to it.
            OSError: the folder cannot be written.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._require_own_files()
        with os.fdopen(os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FolderNotUsable(
                    f"another process already writes to {self.path}",
                    "Stop that process, or choose another folder: -o DIR",
                ) from None
            self.path.chmod(0o700)
            self._require_scope()
            (self.path / _DRAFT).unlink(missing_ok=True)
            yield

    def load_state(self) -> MirrorState | None:
        """Return the saved progress; None if the folder has none that this version can read."""
        try:
            kept = json.loads((self.path / STATE).read_text(encoding="utf-8"))
            if kept["version"] != _VERSION:
                return None
            return MirrorState(MirrorScope(**kept["scope"]), int(kept["position"]), str(kept["log"]))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def save_state(self, position: int, log: str) -> None:
        """Save the log position up to which the folder is written."""
        state = MirrorState(self._scope, position, log)
        self._replace_file(self.path / STATE, json.dumps({"version": _VERSION, **asdict(state)}))

    def write_file(self, owner: Owner, text: str) -> bool:
        """Write a user's file; return False if the file has this text already."""
        path = self.get_path(owner)
        with suppress(FileNotFoundError):
            if path.read_bytes() == text.encode():
                return False
        path.parent.mkdir(mode=0o700, exist_ok=True)
        self._replace_file(path, text)
        return True

    def remove_file(self, path: Path) -> bool:
        """Remove a user's file, then the tenant's folder if it is empty; return False if there is no file."""
        try:
            path.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return False
        with suppress(OSError):  # other users of the tenant have files
            path.parent.rmdir()
        return True

    def get_path(self, owner: Owner) -> Path:
        """Return the path of a user's file."""
        tenant, user = owner
        return self.path / encode_name(tenant) / f"{encode_name(user)}.md"

    def list_files(self) -> Iterator[Path]:
        """Yield the paths of all users' files."""
        yield from self.path.glob("[!.]*/*.md")

    def _require_own_files(self) -> None:
        if (self.path / STATE).exists() or (self.path / _LOCK).exists():
            return
        if other := next((each.name for each in self.path.iterdir() if each.name not in _OWN_FILES), None):
            raise FolderNotUsable(
                f"{self.path} contains files that mnemon did not write, such as {other!r}",
                "Give a new or empty folder: -o DIR",
            )

    def _require_scope(self) -> None:
        state = self.load_state()
        if state is not None and state.scope != self._scope:
            raise FolderNotUsable(
                f"{self.path} has the memory of {_describe_scope(state.scope)}, "
                f"not of {_describe_scope(self._scope)}",
                "Give the same --tenant, --user or --all as before, or another folder: -o DIR",
            )

    def _replace_file(self, path: Path, text: str) -> None:
        draft = self.path / _DRAFT
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)


def encode_name(identifier: str) -> str:
    """Encode an id as a name that every file system accepts and that no other id has.

    Uppercase letters are encoded too: some file systems do not distinguish them from lowercase letters. A
    name that is too long is cut, and a digest of the id follows after a `~`.
    """
    raw = identifier.encode()
    name = "".join(
        chr(byte) if byte in _PLAIN and not (place == 0 and byte == ord(".")) else f"%{byte:02X}"
        for place, byte in enumerate(raw)
    )
    if len(name) <= _NAME_LIMIT:
        return name
    beginning = name[: _NAME_LIMIT - _DIGEST_LENGTH - 1]
    if (cut := beginning.rfind("%", -2)) >= 0:
        beginning = beginning[:cut]
    return f"{beginning}~{sha256(raw).hexdigest()[:_DIGEST_LENGTH]}"


def _describe_scope(scope: MirrorScope) -> str:
    if scope.tenant is None:
        return "all tenants"
    return f"tenant {scope.tenant!r}" + ("" if scope.user is None else f", user {scope.user!r}")
