"""The folder that a stack keeps its data in: who holds it, and where its servers answer."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

if TYPE_CHECKING:
    from mnemon_infra.config import Deployment


class FolderInUse(Exception):
    """Another process runs a stack in the folder. `pid` and `since` are None while it has not said so yet."""

    def __init__(self, data: Path, pid: int | None, since: str | None) -> None:
        holder = "another process" if pid is None else f"process {pid}, since {since}"
        super().__init__(f"{data} is in use by {holder}")
        self.pid = pid
        self.since = since


class Endpoints(BaseModel):
    """Where a running stack answers: `DIR/endpoints.json`, which other people's scripts rely on."""

    model_config = ConfigDict(frozen=True)

    nats: str
    database: str
    qdrant: str | None = None
    http: str | None = None

    @classmethod
    def read(cls, data: Path) -> "Endpoints | None":
        """The endpoints of the stack in this folder; None when none is ready there."""
        try:
            return cls.model_validate_json((data / "endpoints.json").read_bytes())
        except (FileNotFoundError, NotADirectoryError, ValidationError):
            return None

    @classmethod
    def of(cls, deployment: "Deployment") -> "Endpoints":
        """The servers of a deployment, as a client of any language wants them.

        Raises:
            ValidationError: not all of them are known.
        """
        database = deployment.database_url
        return cls(
            nats=deployment.nats_url,
            database=database and database.set(drivername="postgresql").render_as_string(hide_password=False),
            qdrant=deployment.qdrant_url,
        )

    def write(self, data: Path) -> None:
        """Say that everything answers."""
        replace(data / "endpoints.json", self.model_dump_json() + "\n")

    @staticmethod
    def remove(data: Path) -> None:
        """Say that not everything answers."""
        (data / "endpoints.json").unlink(missing_ok=True)


def forget_killed(data: Path) -> None:
    """Remove what a killed run announced. `mnemon up` does it first: nobody shall take it for the new run's.

    Raises:
        FolderInUse: the run is alive.
    """
    with held(data):
        Endpoints.remove(data)


def holder_of(data: Path) -> str | None:
    """Return which process runs a stack in the folder, in words; None without one. Writes nothing."""
    import psutil  # most commands find a stack that answers, and need no processes

    try:
        lock = (data / "lock").open(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    with lock:
        pid, since = _holder(lock.read())
        # First: a lock that is tried for is in the way of a stack that is about to start.
        if pid is None or not psutil.pid_exists(pid):
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return f"process {pid}, since {since}"
    return None


@contextmanager
def held(data: Path) -> Iterator[None]:
    """Hold the folder, created if absent. The lock is the kernel's, and ends with the process in any case.

    Raises:
        FolderInUse: another process holds it.
    """
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (data / "lock").open("a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise FolderInUse(data, *_holder(lock.read())) from None
        since = datetime.now().astimezone().isoformat(" ", "seconds")
        lock.truncate(0)
        lock.write(json.dumps({"pid": os.getpid(), "since": since}))
        lock.flush()
        yield


def replace(path: Path, text: str) -> None:
    """Write a file that only this user may read, so that a reader finds the old text or the new one."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def _holder(said: str) -> tuple[int | None, str | None]:
    try:
        holder = json.loads(said)
    except ValueError:
        return None, None
    return holder["pid"], holder["since"]
