"""Command `mnemon mcp`: serve memory to clients of the Model Context Protocol."""

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemon.cli.memory.requests import TenantOption, connect_memory
from mnemon.cli.options.target import DataOption, require_deployment
from mnemon.cli.stack.listening_socket import open_socket
from mnemon.cli.terminal.exit_code import ExitCode, perform_command, refuse
from mnemon.cli.terminal.signals import StopSignals, list_ending_signals

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from mnemon_infra.config import Deployment

TOKEN = "MNEMON_MCP_TOKEN"  # noqa: S105 (the name of the variable)
MIN_TOKEN_LENGTH = 16
"""Minimum number of characters of a token in `TOKEN`."""


def mcp(
    tenant: TenantOption,
    user: Annotated[
        str | None,
        typer.Option(
            help="User whose memory is served; required without --http. Default with --http: the user in the "
            "header Mnemon-User of each request."
        ),
    ] = None,
    http: Annotated[
        int | None,
        typer.Option(
            "--http",
            min=0,
            max=65_535,
            metavar="PORT",
            help="Port to serve streamable HTTP on; 0 means any free port. Default: standard "
            "input and output.",
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="With --http: address to listen on.")] = "127.0.0.1",
    data: DataOption = None,
) -> None:
    """Serve a user's memory to clients of the Model Context Protocol, as tools, a resource and a prompt.

    A client starts the command as a process and uses standard input and output. With --http, the command
    serves `/mcp` to clients that send `Authorization: Bearer TOKEN`, with the token in MNEMON_MCP_TOKEN or,
    if that is not set, one that the command creates and prints.

    Example: `mnemon mcp --tenant acme --user u42 --data ./memory`
    """
    if user is None and http is None:
        refuse(
            ExitCode.USAGE_ERROR,
            "no user is given",
            "Add --user NAME, or serve several users with --http PORT",
        )
    deployment = require_deployment(data, "broker")
    perform_command(
        _serve_stdio(deployment, tenant, str(user), data)
        if http is None
        else _serve_http(deployment, tenant, user, host, http, data)
    )


async def _serve_stdio(deployment: "Deployment", tenant: str, user: str, data: Path | None) -> ExitCode:
    import signal

    from mnemon.mcp.server import McpTarget, create_server
    from mnemon.mcp.transports import serve_stdio
    from mnemon_infra.telemetry.logging import configure_logging
    from mnemon_producers.events import check_id

    configure_logging()
    # End at once: nothing needs cleaning up, and a thread that reads standard input cannot be stopped.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for number in list_ending_signals():
        asyncio.get_running_loop().remove_signal_handler(number)
    async with connect_memory(deployment, tenant, data) as memory:
        check_id("user", user)
        await serve_stdio(create_server(lambda _: McpTarget(memory, user)))
    return ExitCode.DONE


async def _serve_http(
    deployment: "Deployment", tenant: str, user: str | None, host: str, port: int, data: Path | None
) -> ExitCode:
    import secrets

    from mnemon.http.server import format_address, serve_http
    from mnemon.mcp.server import McpTarget, NotPermitted, create_server
    from mnemon.mcp.transports import USER_HEADER, create_http_application, read_user_header
    from mnemon_infra.broker.connection import end_process_after_close
    from mnemon_infra.telemetry.logging import configure_logging
    from mnemon_producers.events import check_id

    configure_logging()
    given = os.environ.get(TOKEN)
    if given and len(given) < MIN_TOKEN_LENGTH:
        refuse(
            ExitCode.USAGE_ERROR,
            f"{TOKEN} has {len(given)} characters, and needs at least {MIN_TOKEN_LENGTH}",
            "Set a longer token, such as the output of: openssl rand -base64 32",
        )
    token = given or secrets.token_urlsafe(24)
    listening = open_socket("the MCP server", host, port, option="--http")
    is_serving = False

    async def report_close() -> None:
        if is_serving:
            end_process_after_close("mnemon-mcp")

    with StopSignals() as stop:
        async with connect_memory(deployment, tenant, data, closed_cb=report_close) as memory:
            if user is not None:
                check_id("user", user)

            def resolve_target(context: "ServerRequestContext[Any]") -> McpTarget:
                named = read_user_header(context, default=user)
                if user is not None and named != user:
                    raise NotPermitted(
                        f"the server is for the user {user!r}, and the header {USER_HEADER} names another; "
                        "name that user, or leave out the header"
                    )
                return McpTarget(memory, named)

            server = create_server(resolve_target)
            async with serve_http(create_http_application(server, host, token), listening):
                typer.echo(f"mnemon mcp answers at {format_address(listening)}/mcp")
                if not given:
                    typer.echo(
                        f"  Authorization: Bearer {token}  (for this run only; set {TOKEN} to choose one)"
                    )
                typer.echo("  Press Ctrl-C to stop.")
                is_serving = True
                await stop.wait()
                is_serving = False
    return ExitCode.DONE
