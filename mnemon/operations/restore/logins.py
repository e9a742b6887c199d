"""Logins of a restored deployment, which requires one if the backup has logins or its server required one."""

from pathlib import Path
from typing import NamedTuple

from nats.aio.client import Client

from mnemon.operations.restore.run import Backup
from mnemon_infra.broker.provisioning.authorization import Authorization
from mnemon_infra.embedded.logins import FolderLogins
from mnemon_infra.process.data_folder import replace_file


class ServerOpen(Exception):
    """The server requires no login, although the backup demands one; the message names the next step."""

    def __init__(self, step: str) -> None:
        super().__init__(
            "the NATS server requires no login, but the backup has logins or its server required one, so "
            f"nothing was restored: {step}; then restore again"
        )


class RestoredLogins(NamedTuple):
    """Logins after a restore.

    Attributes:
        is_closed: whether NATS requires a login.
        kept: logins of bots in the folder, whose passwords work as before; empty for servers that
            mnemon does not start.
        is_lost: whether the folder has logins, and the backup has none; False for servers that mnemon does
            not start.
    """

    is_closed: bool
    kept: list[str]
    is_lost: bool


def restore_folder_logins(data: Path, backup: Backup) -> RestoredLogins:
    """Write the logins of a backup into a folder, before its NATS server starts for the first time.

    Workers, the gateway and operators get new passwords, in files of the folder. Passwords of tenants stay.
    A folder that has streams keeps its logins: an interrupted restore has written them, or the restore will
    be refused.

    Raises:
        ForeignLoginFile: the folder has a file of logins that `mnemon auth` did not write.
    """
    manifest, text = backup.manifest, backup.record.logins
    logins = FolderLogins(data)
    needs_login = manifest.needs_login or text is not None or logins.exist
    if needs_login and not (data / "nats" / "jetstream").exists():
        with logins.edit() as users:
            if text is not None:
                users.add_tenants(Authorization.from_text(text))
    if not logins.exist:
        return RestoredLogins(is_closed=False, kept=[], is_lost=False)
    bots = [
        each.user for each in Authorization.from_file(logins.path).list_permissions() if each.role == "bot"
    ]
    return RestoredLogins(is_closed=True, kept=bots, is_lost=text is None)


def restore_login_file(path: Path, backup: Backup) -> bool:
    """Write the logins of the backup, if it has any, to the file `path`, unless that exists.

    Return whether the file was written.
    """
    if path.exists() or backup.record.logins is None:
        return False
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(path, backup.record.logins)
    return True


def require_closed_server(connection: Client, backup: Backup, file: Path | None) -> RestoredLogins:
    """Check that a server that mnemon does not start requires a login, as a backup with logins demands.

    A backup demands this if it has logins, or if its server required a login. `file` is the file of the
    restored logins, for the error; None if no file was named.

    Raises:
        ServerOpen: the server requires no login.
    """
    needs_login = backup.manifest.needs_login or backup.record.logins is not None
    is_closed = bool(connection._server_info.get("auth_required"))
    if needs_login and not is_closed:
        raise ServerOpen(_choose_step(backup, file))
    return RestoredLogins(is_closed, kept=[], is_lost=False)


def _choose_step(backup: Backup, file: Path | None) -> str:
    """Return the next step for a server that requires no login."""
    if file is not None and file.exists():
        return (
            f'add `include "{file}"` to nats-server.conf, reload the server, and log in as operator in '
            "MNEMON_NATS_URL (`mnemon auth operator --file FILE` makes a password)"
        )
    if backup.record.logins is not None:
        return "write the logins of the backup with --logins FILE"
    return "make logins with `mnemon auth operator --file FILE`, and include the file in nats-server.conf"
