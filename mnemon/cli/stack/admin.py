"""Command `mnemon admin`: serve the admin page."""

from typing import Annotated

import typer

from mnemon.cli.options.target import DataOption, require_deployment
from mnemon.cli.stack.listening_socket import HostOption, PortOption, open_socket
from mnemon.cli.terminal.exit_code import ExitCode, perform_async
from mnemon.cli.terminal.signals import StopSignals

DEFAULT_PORT = 8765


@perform_async
async def admin(
    data: DataOption = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = DEFAULT_PORT,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="Host name by which browsers reach the page, such as the name of a proxy with HTTPS. "
            "Repeat the option for several names. Default: none; IP addresses and localhost are always "
            "allowed.",
        ),
    ] = None,
) -> ExitCode:
    """Serve the admin page for a browser, until Ctrl-C.

    The page asks for a token: MNEMON_ADMIN_TOKEN if it is set. Otherwise, with --data, the token is in
    DIR/admin/token, which the first start creates; without --data, the command prints a token for this run.
    The printed link logs in once without the token. For access from other machines, use a proxy with HTTPS:
    otherwise the token and people's messages can be read on the network.

    Example: `mnemon admin --data ./memory --port 8765`
    """
    from mnemon.admin.application import create_application
    from mnemon.admin.connections import ServerConnections
    from mnemon.admin.session.access import Access
    from mnemon.admin.session.ended_sessions import read_ended_sessions
    from mnemon.admin.session.tokens import create_link_key, create_token, load_token
    from mnemon.http.server import format_address, serve_http
    from mnemon_infra.telemetry.logging import configure_logging

    deployment = require_deployment(data, "broker", "database")
    data = data and data.resolve()
    configure_logging()
    listening = open_socket("the admin page", host, port)
    configured = deployment.admin_token and deployment.admin_token.get_secret_value()
    token = configured or (load_token(data) if data else create_token())
    link = create_link_key()
    access = Access(token, [link], ended=read_ended_sessions(data) if data else None)
    page = create_application(ServerConnections(deployment, data), access, allow_host or ())
    with StopSignals() as stop:
        async with serve_http(page, listening):
            address = format_address(listening)
            typer.echo(f"admin page  {address}")
            typer.echo(f"log in      {address}/login?key={link}  (once)")
            if not configured and not data:
                typer.echo(f"token       {token}  (for this run only; set MNEMON_ADMIN_TOKEN to choose one)")
            await stop.wait()
    return ExitCode.DONE
