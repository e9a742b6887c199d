"""`mnemon admin`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mnemon.cli.target import DataOption, target
from mnemon.cli.terminal.exit_code import Ending, perform, refuse
from mnemon.cli.terminal.signals import Stop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnemon_infra.config import Deployment

DEFAULT_PORT = 8765


def admin(
    data: DataOption = None,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where it listens; 0.0.0.0 is everywhere.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=0, max=65_535, help="Its port; 0 is a free one.")
    ] = DEFAULT_PORT,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="A name that it is reached by, such as a proxy's; repeatable.",
        ),
    ] = None,
) -> None:
    """Serve the admin page, for a browser, until Ctrl-C.

    It asks for a token: what MNEMON_ADMIN_TOKEN says, else the one in DIR/admin/token, which is made at the
    first start. The link that is printed logs in without it, once. Other machines reach the page by a proxy
    that speaks HTTPS: the token and people's messages would be readable on their way.

    Example: `mnemon admin --data ./memory --port 8765`
    """
    deployment = target(data, "broker", "database")
    perform(_admin(deployment, data and data.resolve(), host, port, allow_host or ()))


async def _admin(
    deployment: "Deployment", data: Path | None, host: str, port: int, names: "Sequence[str]"
) -> Ending:
    from mnemon.admin.application import application
    from mnemon.admin.connections import Parts
    from mnemon.admin.session.access import Access
    from mnemon.admin.session.revoked import ended_sessions
    from mnemon.admin.session.tokens import new_link, new_token, token_of
    from mnemon.http.server import serving
    from mnemon.http.socket_binding import listening_on, shown
    from mnemon_infra.telemetry.logging import configure_logging

    configure_logging()
    try:
        listening = listening_on(host, port)
    except OSError as error:
        refuse(Ending.WRONG_USE, f"{host}:{port}: {error.strerror}", "Choose another: --port PORT")
    configured = deployment.admin_token and deployment.admin_token.get_secret_value()
    token = configured or (token_of(data) if data else new_token())
    link = new_link()
    access = Access(token, [link], ended=ended_sessions(data) if data else None)
    page = application(Parts(deployment, data), access, names)
    with Stop() as stop:
        async with serving(page, listening):
            address = shown(listening)
            typer.echo(f"admin page  {address}")
            typer.echo(f"log in      {address}/login?key={link}  (once)")
            if not configured and not data:
                typer.echo(f"token       {token}  (of this run; MNEMON_ADMIN_TOKEN sets one)")
            await stop.asked()
    return Ending.DONE
