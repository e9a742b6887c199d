"""The logins of a folder: who may use the broker that runs in it, and how our own processes log in."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

from mnemon_infra.broker.provisioning.authorization import Authorization, Login, LoginRole, quoted
from mnemon_infra.process.data_folder import replace


@contextmanager
def edited(path: Path) -> Iterator[Authorization]:
    """The users in a file, to be changed; what stands there at the end of the block is kept.

    Raises:
        NotOurs: the file holds something else.
        OSError: it cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.with_name(f"{path.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        authorization = Authorization.read(path)
        yield authorization
        replace(path, authorization.text())


class FolderLogins:
    """The folder `auth` of a stack. Where it is, nobody uses the broker without a login; else anybody may."""

    def __init__(self, data: Path) -> None:
        self._folder = data / "auth"
        self._configuration = data / "nats" / "nats-server.conf"
        self.path = self._folder / "nats.conf"

    @property
    def exist(self) -> bool:
        """Whether logins are needed from the next start on."""
        return self.path.exists()

    @property
    def in_force(self) -> bool:
        """Whether the broker was started with them."""
        try:
            return self.included in self._configuration.read_text("utf-8")
        except FileNotFoundError:
            return False

    @property
    def included(self) -> str:
        """How the configuration of the broker names them."""
        return f"include {quoted(f'../{self._folder.name}/{self.path.name}')}\n"

    @contextmanager
    def edited(self) -> Iterator[Authorization]:
        """Its users, to be changed; our own processes are among them."""
        self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with edited(self.path) as authorization:
            for role in get_args(LoginRole):
                if not authorization.has(role):
                    replace(self._folder / role, authorization.issue(role).password)
            yield authorization

    def login(self, role: LoginRole) -> Login:
        """How one of our own processes logs in."""
        return Login(role, (self._folder / role).read_text("utf-8"))

    def at(self, url: str, role: LoginRole) -> str:
        """The address of the broker with the login of a role in it, where one is needed."""
        return self.login(role).at(url) if self.in_force else url
