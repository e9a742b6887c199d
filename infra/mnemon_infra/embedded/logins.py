"""Logins of a data folder at the broker that runs in it, those of mnemon's own processes included."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

from mnemon_infra.broker.provisioning.authorization import Authorization, Login, LoginRole, quote_text
from mnemon_infra.process.data_folder import replace_file


@contextmanager
def edit_authorization(path: Path) -> Iterator[Authorization]:
    """Yield the logins in a file for a change.

    The file is written at the end of the block, unless the block raises.

    Raises:
        ForeignLoginFile: the file was not written by `mnemon auth`.
        OSError: the file cannot be read or written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.with_name(f"{path.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        authorization = Authorization.from_file(path)
        yield authorization
        # The account of nats-server may own the file, or read it by its group.
        replace_file(path, authorization.to_text(), keep_owner_and_mode=True)


class FolderLogins:
    """The logins in the folder `auth` of a stack.

    If there are any, the broker requires logins from its next start on.
    """

    def __init__(self, data: Path) -> None:
        self._folder = data / "auth"
        self._configuration = data / "nats" / "nats-server.conf"
        self.path = self._folder / "nats.conf"

    @property
    def exist(self) -> bool:
        """True if the broker requires logins from its next start on."""
        return self.path.exists()

    @property
    def in_force(self) -> bool:
        """True if the broker was started with these logins."""
        try:
            return self.include_line in self._configuration.read_text("utf-8")
        except FileNotFoundError:
            return False

    @property
    def include_line(self) -> str:
        """The line of the broker's configuration that includes the logins."""
        return f"include {quote_text(f'../{self._folder.name}/{self.path.name}')}\n"

    @contextmanager
    def edit(self) -> Iterator[Authorization]:
        """Issue the logins of roles that lack one, and yield all logins for a change.

        Raises:
            ForeignLoginFile: the file of logins was not written by `mnemon auth`.
            OSError: a file cannot be read or written.
        """
        self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with edit_authorization(self.path) as authorization:
            for role in get_args(LoginRole):
                if not authorization.has_role_login(role):
                    replace_file(self._folder / role, authorization.issue_role_login(role).password)
            yield authorization

    def read_login(self, role: LoginRole) -> Login:
        """Return the login of a role.

        Raises:
            FileNotFoundError: the login was not issued.
        """
        return Login(role, (self._folder / role).read_text("utf-8"))

    def add_login(self, url: str, role: LoginRole) -> str:
        """Return the broker's address, with the login of a role in it if the broker needs one."""
        return self.read_login(role).add_to_url(url) if self.in_force else url
