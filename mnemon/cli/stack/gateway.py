"""Command `mnemon gateway`: serve memory over HTTP."""

import re
from typing import Annotated, Final

import typer

from mnemon.cli.options.target import DataOption, open_broker, require_deployment
from mnemon.cli.stack.listening_socket import HostOption, PortOption, open_socket
from mnemon.cli.terminal.exit_code import ExitCode, perform_async, refuse
from mnemon.cli.terminal.signals import StopSignals

DEFAULT_PORT = 8080
_ORIGIN: Final = re.compile(
    r"\*|null|(?!http://[^/]*:80$|https://[^/]*:443$)"
    r"[a-z][a-z0-9+.-]*://(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d+)?"
)
"""An origin as browsers send it in the header `Origin`; `*` permits all."""


@perform_async
async def gateway(
    data: DataOption = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = DEFAULT_PORT,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-origin",
            metavar="ORIGIN",
            help="Origin of web pages that may use the gateway, such as https://chat.example.com. "
            "Repeat the option for several origins. Default: none.",
        ),
    ] = None,
) -> ExitCode:
    """Serve memory over HTTP, until Ctrl-C.

    Every request for memory needs a key: `mnemon auth key create --tenant acme`. The page at `/docs`
    describes the requests below `/v1`. For access from other machines, use a proxy with HTTPS: otherwise keys
    and people's messages can be read on the network.

    Example: `mnemon gateway --data ./memory --port 8080`
    """
    from mnemon.gateway.application import create_application
    from mnemon.http.server import format_address, serve_http
    from mnemon_infra.broker.connection import end_process_when_closed
    from mnemon_infra.settings.api_keys import ApiKeysNotProvisioned, open_api_keys

    for origin in allow_origin or ():
        if not _ORIGIN.fullmatch(origin):
            refuse(
                ExitCode.USAGE_ERROR,
                f"{origin!r} of --allow-origin is not an origin, so no web page would match it",
                "Write it as browsers send it, in lowercase, without a path, a slash at its end or the usual "
                "port of HTTP or HTTPS: https://chat.example.com",
            )
    deployment = require_deployment(data, "broker")
    listening = open_socket("the gateway", host, port)
    with StopSignals() as stop:
        async with open_broker(deployment, "mnemon-gateway") as connection:
            try:
                keys = await open_api_keys(connection)
            except ApiKeysNotProvisioned as error:
                refuse(ExitCode.UNAVAILABLE, str(error))
            application = create_application(connection, keys, deployment, tuple(allow_origin or ()))
            with end_process_when_closed(connection):
                async with serve_http(application, listening):
                    address = format_address(listening)
                    typer.echo(f"gateway      {address}")
                    typer.echo(f"description  {address}/docs")
                    typer.echo("Press Ctrl-C to stop.")
                    await stop.wait()
    return ExitCode.DONE
