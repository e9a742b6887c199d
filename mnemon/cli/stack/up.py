"""Command `mnemon up`: start servers, consumers, admin page and gateway on this machine."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mnemon.cli.options.target import DEFAULT_DATA, complete_command, load_deployment
from mnemon.cli.stack.run import (
    MetricsPort,
    list_metrics_addresses,
    parse_consumers,
    set_metrics_port,
    take_next_metrics_port,
)
from mnemon.cli.terminal.exit_code import ExitCode, perform_async, refuse, refuse_folder
from mnemon.cli.terminal.signals import StopSignals
from mnemon.display_text import format_count, spell_command

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from mnemon.admin.launcher import PageAddress
    from mnemon.gateway.launcher import GatewayAddress
    from mnemon_infra.broker.provisioning.authorization import LoginRole
    from mnemon_infra.config import Deployment
    from mnemon_infra.embedded.stack import Stack


_PORT = {"min": 1, "max": 65_535, "metavar": "PORT", "show_default": False}


@perform_async
async def up(
    data: Annotated[
        Path,
        typer.Option("--data", metavar="DIR", help="Folder for all data; created if it does not exist."),
    ] = DEFAULT_DATA,
    only: Annotated[
        str | None,
        typer.Option(
            "--only",
            metavar="NAMES",
            help="Consumers to run, comma-separated: any of persist, index, dedupe, compact, extract, "
            "maintain and retrieve. Default: all consumers.",
        ),
    ] = None,
    nats_port: Annotated[
        int | None,
        typer.Option(
            "--nats-port",
            help="Port of the NATS server. Default: the last used port, or a free port.",
            **_PORT,
        ),
    ] = None,
    database_port: Annotated[
        int | None,
        typer.Option(
            "--database-port",
            help="Port of the database. Default: none; the database listens on a Unix socket only.",
            **_PORT,
        ),
    ] = None,
    admin_port: Annotated[
        int | None,
        typer.Option(
            "--admin-port",
            help="Port of the admin page. Default: the last used port, or a free port.",
            **_PORT,
        ),
    ] = None,
    gateway_port: Annotated[
        int | None,
        typer.Option(
            "--gateway-port",
            help="Port of the HTTP gateway. Default: the last used port, or 8080, or a free port.",
            **_PORT,
        ),
    ] = None,
    metrics_port: MetricsPort = None,
    admin: Annotated[bool, typer.Option("--admin/--no-admin", help="Serve the admin page.")] = True,
    gateway: Annotated[bool, typer.Option("--gateway/--no-gateway", help="Serve the HTTP gateway.")] = True,
) -> ExitCode:
    """Start the whole stack on this machine: servers, consumers, admin page and gateway, until Ctrl-C.

    The command starts nats-server and PostgreSQL for this machine only, creates streams and tables, and
    runs the consumers. Servers named by MNEMON_NATS_URL or DATABASE_URL are used instead. While all servers
    answer, DIR/endpoints.json contains their addresses.

    The admin page serves browsers on this machine; the printed link logs in, once. After that the page asks
    for the token in DIR/admin/token, or for MNEMON_ADMIN_TOKEN. The gateway serves programs on this machine
    that send a key; the first key is in DIR/gateway/key. The page and the gateway start when the first client
    connects.

    Example: `mnemon up --data ./memory --nats-port 4222`
    """
    _prepare_folder(data)
    from mnemon.http.saved_port import PortTaken
    from mnemon_consumers.app import FOREGROUND, run_consumers
    from mnemon_consumers.background_process import BackgroundFailed, run_in_background
    from mnemon_infra.durables import CONSUMERS
    from mnemon_infra.embedded.process import ServerPortTaken
    from mnemon_infra.embedded.stack import run_stack
    from mnemon_infra.telemetry.logging import configure_logging

    begun = time.monotonic()
    names = parse_consumers(CONSUMERS if only is None else only.split(","))
    deployment = set_metrics_port(load_deployment(), metrics_port)
    front = [name for name in names if name in FOREGROUND]
    behind = [name for name in names if name not in FOREGROUND]
    if behind and deployment.metrics_port == 65_535:
        refuse(
            ExitCode.USAGE_ERROR,
            "the metrics port 65535 leaves no port for the second process",
            "Name a lower port (--metrics-port or MNEMON_METRICS_PORT)",
        )
    configure_logging()
    _require_free_port("--admin-port", admin_port if admin else None)
    _require_free_port("--gateway-port", gateway_port if gateway else None)
    try:
        with StopSignals() as stop:
            async with (
                run_stack(data, deployment, nats_port=nats_port, database_port=database_port) as stack,
                _drop_unused_embeddings(stack.deployment, names),
                stack.enter_with_retries(
                    lambda: run_in_background(behind, take_next_metrics_port(stack.deployment))
                ),
                stack.enter_with_retries(lambda: run_consumers(front, stack.deployment)),
                _serve_page(stack, admin_port) if admin else nullcontext() as page,
                _serve_gateway(stack, gateway_port) if gateway else nullcontext() as http_gateway,
            ):
                with stack.announce_endpoints(page and page.address, http_gateway and http_gateway.address):
                    _show_addresses(stack, names, time.monotonic() - begun, page, http_gateway)
                    await stop.wait()
                typer.echo("stopping")
    except ServerPortTaken as error:
        option = "--nats-port" if error.part == "broker" else "--database-port"
        refuse(ExitCode.USAGE_ERROR, str(error), f"Choose another {option}, or leave it out")
    except BackgroundFailed as error:
        refuse(ExitCode.UNAVAILABLE, str(error))
    except PortTaken as error:
        refuse(
            ExitCode.USAGE_ERROR,
            str(error),
            "Choose another --admin-port or --gateway-port, or leave it out",
        )
    return ExitCode.DONE


def _prepare_folder(data: Path) -> None:
    """Remove remains of a killed run from the folder, and check the disk space; end the command on errors.

    Call this before the imports, which take seconds: no other command must mistake the remains for a running
    stack.

    Raises:
        FolderUnusable: the folder cannot be created or written.
    """
    from mnemon_infra.embedded.disk_space import FULL, NoRoom, require_room
    from mnemon_infra.process.data_folder import FolderInUse, FolderUnusable, remove_stale_endpoints

    try:
        remove_stale_endpoints(data)
        require_room(data)
    except FolderInUse as error:
        refuse_folder(error, ", or choose another folder: mnemon up --data DIR")
    except NoRoom as error:
        refuse(ExitCode.UNAVAILABLE, str(error))
    except OSError as error:
        if error.errno in FULL:
            refuse(
                ExitCode.UNAVAILABLE,
                f"the disk of {data} is full",
                "Free space on this disk, or choose another folder: --data DIR",
            )
        raise FolderUnusable(data, error) from None


def _require_free_port(option: str, port: int | None) -> None:
    """End the command, before servers start, if the port of an option cannot be opened."""
    from mnemon.http.saved_port import PortTaken, require_free_port

    try:
        if port is not None:
            require_free_port(port)
    except PortTaken as error:
        refuse(ExitCode.USAGE_ERROR, str(error), f"Choose another {option}, or leave it out")


@asynccontextmanager
async def _drop_unused_embeddings(deployment: "Deployment", names: tuple[str, ...]) -> AsyncIterator[None]:
    """Let `index` read all events again, without a model, if the settings no longer name an embedding model.

    Do nothing if no consumer in `names` uses vectors.
    """
    from mnemon.operations.embedding_change import drop_embeddings
    from mnemon_consumers.app import FOREGROUND

    if not FOREGROUND.isdisjoint(names) and (events := await drop_embeddings(deployment)) is not None:
        typer.echo(
            f"The embedding model is off: {format_count(events, 'event', 'is')} indexed again, for search by"
            " words only."
        )
    yield


def _serve_page(stack: "Stack", port: int | None) -> "AbstractAsyncContextManager[PageAddress]":
    """Serve the admin page with an operator's login.

    The consumers' login permits neither requests to `retrieve` nor changes of settings.
    """
    from mnemon.admin.launcher import serve_admin_page

    return serve_admin_page(stack.data, _apply_login(stack, "operator"), port)


def _serve_gateway(stack: "Stack", port: int | None) -> "AbstractAsyncContextManager[GatewayAddress]":
    """Serve the gateway with its own login; an operator's login creates the first key."""
    from mnemon.gateway.launcher import serve_gateway

    return serve_gateway(stack.data, _apply_login(stack, "gateway"), _apply_login(stack, "operator"), port)


def _apply_login(stack: "Stack", role: "LoginRole") -> "Deployment":
    """Return the deployment with the login of a role, or unchanged if a NATS server is configured."""
    from mnemon_infra.embedded.logins import FolderLogins

    if not any(server.part == "broker" for server in stack.servers):
        return stack.deployment
    nats = FolderLogins(stack.data).add_login(stack.endpoints.nats, role)
    return stack.deployment.model_copy(update={"nats_url": nats})


def _show_addresses(
    stack: "Stack",
    names: tuple[str, ...],
    seconds: float,
    page: "PageAddress | None",
    gateway: "GatewayAddress | None",
) -> None:
    """Show the addresses of all parts of the stack."""
    from mnemon_consumers.app import FOREGROUND
    from mnemon_contracts.login import redact_address

    titles = {server.part: server.title for server in stack.servers}
    database = stack.deployment.database_url
    database = database and database.set(drivername="postgresql")  # str() of a URL hides the password
    lines = {
        "broker": f"{redact_address(stack.endpoints.nats)}  ({titles.get('broker', 'configured')})",
        "database": f"{database}  ({titles.get('database', 'configured')})",
        "consumers": ", ".join(names),
        "folder": str(stack.data),
    }
    typer.secho(f"mnemon is up, after {seconds:.1f} s", bold=True)
    beside = [] if FOREGROUND.issuperset(names) else [take_next_metrics_port(stack.deployment)]
    at = list_metrics_addresses(stack.deployment, *beside)
    lines |= {"metrics": ", ".join(at)} if at else {}
    lines |= {"admin page": f"{page.login}  (logs in once)"} if page else {}
    lines |= {"gateway": f"{gateway.address}  ({_describe_key(stack, gateway)})"} if gateway else {}
    for name, value in lines.items():
        typer.echo(f"  {name:<10}  {value}")
    if gateway and gateway.taken_port:
        typer.secho(
            f"  Port {gateway.taken_port} is in use, so the gateway has another one. To choose one:"
            " --gateway-port PORT",
            fg="yellow",
        )
    look = spell_command(complete_command("mnemon status", stack.data))
    typer.echo(f"  Press Ctrl-C to stop. In another terminal: {look}")


def _describe_key(stack: "Stack", gateway: "GatewayAddress") -> str:
    if gateway.new_key:
        return f"key {gateway.new_key} of the tenant default"
    return f"first key in {stack.data / 'gateway' / 'key'}"
