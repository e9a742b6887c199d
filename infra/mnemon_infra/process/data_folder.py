"""Data folder of a stack: its lock, its version, and the endpoints of the running servers."""

import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict, ValidationError

if TYPE_CHECKING:
    from mnemon_infra.config import Deployment


FOLDER_FORMAT: Final = 1
"""Format of the data folder that this version writes, and the newest that it reads."""


class FolderInUse(Exception):
    """Another process holds the lock of the folder.

    Attributes:
        pid: id of that process; None if it has just taken the lock.
        since: time at which it took the lock, with the offset of its time zone; None if `pid` is None.
    """

    def __init__(self, data: Path, pid: int | None, since: str | None) -> None:
        holder = "another process" if pid is None else f"process {pid}, since {since}"
        super().__init__(f"{data} is in use by {holder}")
        self.pid = pid
        self.since = since


class FolderTooNew(Exception):
    """A newer version of mnemon has written the folder; the message names the next step."""

    def __init__(self, data: Path, by: str, found: int) -> None:
        super().__init__(
            f"the data folder {data} was written by a newer mnemon ({by}, in format {found}, this version "
            f"knows {FOLDER_FORMAT} at most). Nothing has been changed. Upgrade mnemon, or restore a backup "
            "from before the upgrade into another folder"
        )


class FolderUnusable(Exception):
    """The file system refuses the folder; the message has its reason and names the next step."""

    def __init__(self, data: Path, error: OSError) -> None:
        super().__init__(
            f"{data} cannot be used: {error.strerror} ({error.filename or data}). Make it writable, free "
            "space on its disk, or choose another folder: --data DIR"
        )


class FolderVersion(BaseModel):
    """Content of `DIR/version.json`: the version that last wrote a data folder; 0.2.0 wrote no such file."""

    model_config = ConfigDict(frozen=True)

    format: int
    mnemon: str

    @classmethod
    def read(cls, data: Path) -> "FolderVersion | None":
        """Read the version of a folder; None if the file is absent or invalid."""
        try:
            return cls.model_validate_json((data / "version.json").read_bytes())
        except (FileNotFoundError, ValidationError):
            return None


class Endpoints(BaseModel):
    """Content of `DIR/endpoints.json`: addresses of a running stack's servers. Operators' scripts read it.

    `http` is the address of the admin page.
    """

    model_config = ConfigDict(frozen=True)

    nats: str
    database: str
    qdrant: str | None = None
    http: str | None = None
    gateway: str | None = None

    @classmethod
    def read(cls, data: Path) -> "Endpoints | None":
        """Read the endpoints of the stack in this folder; None if the file is absent or invalid.

        The file of a killed run stays until the next run.
        """
        try:
            return cls.model_validate_json((data / "endpoints.json").read_bytes())
        except (FileNotFoundError, NotADirectoryError, ValidationError):
            return None

    @classmethod
    def from_deployment(cls, deployment: "Deployment") -> "Endpoints":
        """Return the addresses of a deployment's servers, in a form that clients of any language accept.

        Raises:
            ValidationError: the address of NATS or of the database is not known.
        """
        database = deployment.database_url
        return cls(
            nats=deployment.nats_url,
            database=database and database.set(drivername="postgresql").render_as_string(hide_password=False),
            qdrant=deployment.qdrant_url,
        )

    def write(self, data: Path) -> None:
        """Write `endpoints.json`.

        While a stack runs, the file exists only if all servers of the stack answer.
        """
        replace_file(data / "endpoints.json", self.model_dump_json() + "\n")

    @staticmethod
    def remove(data: Path) -> None:
        """Remove `endpoints.json`, if present. Call this when a server stops answering."""
        (data / "endpoints.json").unlink(missing_ok=True)


def remove_stale_endpoints(data: Path) -> None:
    """Remove the endpoints that a killed run left, so that no script uses them during the next run.

    Raises:
        FolderInUse: another process uses the folder.
    """
    with lock_folder(data):
        Endpoints.remove(data)


def find_holder(data: Path) -> str | None:
    """Return a description of the process that runs a stack in the folder; None if no stack runs there.

    The function does not change the folder.
    """
    import psutil  # most commands find a stack that answers, and need no processes

    try:
        lock = (data / "lock").open(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    with lock:
        pid, since = _parse_holder(lock.read())
        # First: an attempt to lock the folder could stop a stack that is about to start.
        if pid is None or not psutil.pid_exists(pid):
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return f"process {pid}, since {since}"
    return None


@contextmanager
def lock_folder(data: Path) -> Iterator[None]:
    """Lock the folder, which is created if absent, until the end of the block or of the process.

    Raises:
        FolderInUse: another process holds the lock.
    """
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (data / "lock").open("a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise FolderInUse(data, *_parse_holder(lock.read())) from None
        since = datetime.now().astimezone().isoformat(" ", "seconds")
        lock.truncate(0)
        lock.write(json.dumps({"pid": os.getpid(), "since": since}))
        lock.flush()
        yield


def mark_folder(data: Path) -> None:
    """Record this version of mnemon in a data folder, which must be locked.

    Raises:
        FolderTooNew: a newer version has written the folder; nothing was changed.
    """
    former = FolderVersion.read(data)
    if former and former.format > FOLDER_FORMAT:
        raise FolderTooNew(data, former.mnemon, former.format)
    present = FolderVersion(format=FOLDER_FORMAT, mnemon=version("mnemon"))
    if present != former:
        replace_file(data / "version.json", present.model_dump_json() + "\n")


def replace_file(path: Path, text: str, *, keep_owner_and_mode: bool = False) -> None:
    """Replace the text of a file atomically, or create the file. Only the owner may read the file.

    With `keep_owner_and_mode`, an existing file keeps its owner, group and mode as far as this account may
    set them: only root may give a file to another account, and other accounts may set only their own groups.
    A file whose group changes loses the permissions of the group, except those that all accounts have.
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(text, encoding="utf-8")
    if keep_owner_and_mode and path.exists():
        former = path.stat()
        mode = stat.S_IMODE(former.st_mode)
        with suppress(PermissionError):
            os.chown(draft, -1, former.st_gid)
        if draft.stat().st_gid != former.st_gid:
            mode &= ~stat.S_IRWXG | (mode & stat.S_IRWXO) << 3
        draft.chmod(mode)
        with suppress(PermissionError):
            os.chown(draft, former.st_uid, -1)
    draft.replace(path)


def sync_path(path: Path) -> None:
    """Write a file or a folder to the disk: once this returns, a power cut cannot undo its last change."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _parse_holder(text: str) -> tuple[int | None, str | None]:
    try:
        holder = json.loads(text)
        return holder["pid"], holder["since"]
    except (ValueError, LookupError, TypeError):
        return None, None
