"""Command `mnemon auth`: create, limit, revoke and list logins at NATS."""

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from mnemon.cli.deployment import api_keys
from mnemon.cli.terminal.exit_code import ExitCode, perform_command, refuse, refuse_file
from mnemon.cli.terminal.output import JsonOption, show_json, show_table
from mnemon.display_text import format_data_option, spell_command

if TYPE_CHECKING:
    from mnemon_infra.broker.provisioning.authorization import Authorization, Login, LoginRole

app = typer.Typer(
    no_args_is_help=True,
    help="Create, limit, revoke and list logins to NATS; create, list and revoke API keys for the gateway.",
)
app.add_typer(api_keys.app, name="key")

FolderOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        resolve_path=True,
        help="Folder of a stack of `mnemon up`, running or stopped; required without --file.",
    ),
]
FileOption = Annotated[
    Path | None,
    typer.Option(
        "--file",
        metavar="FILE",
        resolve_path=True,
        help="File of logins that the configuration of your own nats-server includes; use it instead of "
        "--data.",
    ),
]
_RELOAD: Final = "run this twice: nats-server --signal reload"
Tenant = Annotated[str, typer.Argument(metavar="NAME", help="Id of the tenant, as its bots use it.")]


@app.command("tenant")
def tenant(
    name: Tenant, data: FolderOption = None, file: FileOption = None, as_json: JsonOption = False
) -> None:
    """Create a login for a tenant's bots, which can publish and send requests for that tenant only.

    The password is shown once. Run the command again to replace the password; the former one stops working.
    With --file, the change takes effect when you have run `nats-server --signal reload` twice. If a folder
    had no logins, its NATS server requires one from its next start on.

    Example: `mnemon auth tenant acme --data ./memory`
    """
    from mnemon_contracts.subjects import build_inbox_prefix

    with _open_logins(data, file) as users:
        login = users.issue_tenant_login(name)
    perform_command(
        _show_login(login, data, file, as_json, {"tenant": name, "inbox_prefix": build_inbox_prefix(name)})
    )


@app.command("worker")
def worker(data: FolderOption = None, file: FileOption = None, as_json: JsonOption = False) -> None:
    """Create a login for consumers, such as those of `mnemon run`; `mnemon up` has its own login.

    With --data, the command shows the login that the folder has, and creates logins if the folder has none.
    With --file, each run replaces the password.

    Example: `mnemon auth worker --file /etc/nats/mnemon.conf`
    """
    _issue_role("worker", data, file, as_json)


@app.command("gateway")
def gateway(data: FolderOption = None, file: FileOption = None, as_json: JsonOption = False) -> None:
    """Create a login for the HTTP gateway of `mnemon gateway`; `mnemon up` has its own login.

    With --data, the command shows the login that the folder has, and creates logins if the folder has none.
    With --file, each run replaces the password.

    Example: `mnemon auth gateway --file /etc/nats/mnemon.conf`
    """
    _issue_role("gateway", data, file, as_json)


@app.command("operator")
def operator(data: FolderOption = None, file: FileOption = None, as_json: JsonOption = False) -> None:
    """Create a login for an operator with all permissions, for example for `mnemon provision`.

    With --data, the command shows the login that the folder has, and creates logins if the folder has none.
    With --file, each run replaces the password.

    Example: `mnemon auth operator --file /etc/nats/mnemon.conf`
    """
    _issue_role("operator", data, file, as_json)


@app.command("limit")
def limit(
    name: Tenant,
    payload: Annotated[
        int | None,
        typer.Option(
            min=1024,
            metavar="BYTES",
            help="Maximum size of a message, in bytes; the server disconnects a client that exceeds it. "
            "Default: the limit of the server.",
        ),
    ] = None,
    connections: Annotated[
        int | None,
        typer.Option(
            min=1, help="Maximum number of concurrent connections. Default: the limit of the server."
        ),
    ] = None,
    subscriptions: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Maximum number of subscriptions of each connection. Default: the limit of the server.",
        ),
    ] = None,
    data: FolderOption = None,
    file: FileOption = None,
) -> None:
    """Replace the limits of a tenant at NATS.

    A limit whose option is absent returns to the general limit of the server. With --file, the change takes
    effect when you have run `nats-server --signal reload` twice.

    Exits with code 1 if the tenant has no login.

    Example: `mnemon auth limit acme --payload 65536 --connections 50 --data ./memory`
    """
    from mnemon_infra.broker.provisioning.authorization import Limits

    with _open_logins(data, file) as users:
        known = users.replace_tenant_limits(name, Limits(payload, connections, subscriptions))
    if not known:
        refuse(
            ExitCode.NEGATIVE_RESULT,
            f"the tenant {name!r} has no login",
            f"Create a login: mnemon auth tenant {quote(name)} --data DIR, or with --file FILE",
        )
    perform_command(_apply_change(data, file))


@app.command("revoke")
def revoke(name: Tenant, data: FolderOption = None, file: FileOption = None) -> None:
    """Revoke a tenant's login and disconnect its bots. The memory of the tenant stays.

    With --file, the revocation takes effect when you have run `nats-server --signal reload` twice.

    Exits with code 1 if the tenant has no login.

    Example: `mnemon auth revoke acme --data ./memory`
    """
    with _open_logins(data, file) as users:
        known = users.revoke_tenant_login(name)
    if known and data:
        typer.echo(f"revoked: {name}")
    perform_command(_apply_change(data, file) if known else _refuse_unknown_login(name, data))


async def _refuse_unknown_login(name: str, data: Path | None) -> ExitCode:
    # An earlier run may have removed the login without the server loading the file.
    await _reload_logins(data)
    refuse(
        ExitCode.NEGATIVE_RESULT,
        f"the tenant {name!r} has no login",
        "List the logins: mnemon auth list --data DIR, or with --file FILE",
    )


@app.command("list")
def list_(data: FolderOption = None, file: FileOption = None, as_json: JsonOption = False) -> None:
    """List the logins, each with its limits and the subjects that it may publish and subscribe to.

    Example: `mnemon auth list --data ./memory`
    """
    from mnemon_infra.broker.provisioning.authorization import Authorization, ForeignLoginFile

    path = _choose_path(data, file)
    try:
        permitted = Authorization.from_file(path).list_permissions()
    except ForeignLoginFile as error:
        refuse(ExitCode.USAGE_ERROR, str(error))
    except OSError as error:
        refuse_file(path, "read", error, "Make the file readable")
    if as_json:
        show_json([each._asdict() for each in permitted])
        return
    if not permitted:
        target = format_data_option(data) if data else f" --file {quote(str(file))}"
        typer.echo("no logins")
        typer.echo(f"  Create the first login: {spell_command('mnemon auth tenant NAME')}{target}")
        return
    rows = [
        (
            *(each.user, each.role, each.tenant or "", " ".join(each.publish), " ".join(each.subscribe)),
            " ".join(f"{name}={most}" for name, most in each.limits.items()),
        )
        for each in permitted
    ]
    columns = "user", "role", "tenant", "publishes", "subscribes to", "limits"
    show_table(columns, rows, texts=("publishes", "subscribes to", "limits"))


def _choose_path(data: Path | None, file: Path | None) -> Path:
    from mnemon_infra.embedded.logins import FolderLogins

    if (data is None) == (file is None):
        refuse(
            ExitCode.USAGE_ERROR,
            "give either --data DIR or --file FILE",
            "For a stack of `mnemon up`: --data DIR. For your own nats-server: --file FILE",
        )
    return FolderLogins(data).path if data else file or Path()


@contextmanager
def _open_logins(data: Path | None, file: Path | None) -> "Iterator[Authorization]":
    """Open the logins of a folder or of a file for changes.

    End the command if the file was not written by `mnemon auth`, if it cannot be read or written, or if an
    id in the block is invalid. Warn if the changed file could not keep its owner or group.
    """
    from mnemon_contracts.subjects import InvalidId
    from mnemon_infra.broker.provisioning.authorization import ForeignLoginFile
    from mnemon_infra.embedded.logins import FolderLogins, edit_authorization

    path = _choose_path(data, file)
    try:
        former = path.stat() if path.exists() else None
        with FolderLogins(data).edit() if data else edit_authorization(path) as users:
            yield users
        if former:
            _warn_of_changed_owner(path, former)
    except (ForeignLoginFile, InvalidId) as error:
        refuse(ExitCode.USAGE_ERROR, str(error))
    except OSError as error:
        refuse_file(path, "read or written", error, "Make the file readable and writable")


def _warn_of_changed_owner(path: Path, former: os.stat_result) -> None:
    present = path.stat()
    if (present.st_uid, present.st_gid) == (former.st_uid, former.st_gid):
        return
    typer.echo(
        f"mnemon: {path} did not keep its owner or group: only root may give a file to another account",
        err=True,
    )
    name, owner = quote(str(path)), f"{former.st_uid}:{former.st_gid}"
    typer.echo(
        "  So that nats-server can read it, run as root: "
        f"chown {owner} {name} && chmod {stat.S_IMODE(former.st_mode):o} {name}",
        err=True,
    )


def _issue_role(role: "LoginRole", data: Path | None, file: Path | None, as_json: bool) -> None:
    from mnemon_infra.embedded.logins import FolderLogins

    with _open_logins(data, file) as users:
        # In a folder, take the existing login: running processes of mnemon use it.
        login = FolderLogins(data).read_login(role) if data else users.issue_role_login(role)
    perform_command(_show_login(login, data, file, as_json, {}))


async def _show_login(
    login: "Login", data: Path | None, file: Path | None, as_json: bool, of_bot: dict[str, str]
) -> ExitCode:
    from mnemon_infra.process.data_folder import Endpoints

    await _reload_logins(data)
    endpoints = Endpoints.read(data) if data else None
    url = login.add_to_url(endpoints.nats if endpoints else "nats://HOST:4222")
    shown: dict[str, Any] = {"user": login.user, "password": login.password, "url": url, **of_bot}
    if file:
        shown["include"] = str(file)
    if as_json:
        show_json(shown)
        return ExitCode.DONE
    for name, value in shown.items():
        typer.echo(f"  {name.replace('_', ' '):<13} {value}")
    if of_bot:
        tenant = json.dumps(of_bot["tenant"], ensure_ascii=False)
        typer.echo(f'In the bot: MemoryClient.connect("{url}", tenant={tenant})')
    if file:
        typer.echo(f'In nats-server.conf: include "{file}", and remove its own `authorization` block')
        typer.echo(f"Then, and after each change, {_RELOAD}")
    return ExitCode.DONE


async def _apply_change(data: Path | None, file: Path | None) -> ExitCode:
    if file:
        typer.echo(f"The file is changed. To apply the change, {_RELOAD}")
    return await _reload_logins(data)


async def _reload_logins(data: Path | None) -> ExitCode:
    """Make a running stack load the changed logins; tell the operator if the stack has to be restarted."""
    from mnemon_infra.embedded.logins import FolderLogins
    from mnemon_infra.embedded.nats_server import NatsServer

    if data is None:
        return ExitCode.DONE
    server = NatsServer(data, None)
    if FolderLogins(data).in_force:
        await server.reload()
    elif any(server.list_orphans()):
        typer.echo(
            f"mnemon: logins take effect at the next start: stop the stack in {data} and start it again",
            err=True,
        )
    return ExitCode.DONE
