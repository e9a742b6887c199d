"""Servers that a command works on: those of a folder, or those that environment variables name."""

import os
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, NoReturn

import typer

from mnemon.cli.terminal.exit_code import ExitCode, refuse
from mnemon.display_text import format_data_option

if TYPE_CHECKING:
    from nats.aio.client import Client

    from mnemon_infra.config import Deployment
    from mnemon_infra.database.engine import Database
    from mnemon_producers.errors import NotConnected

DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="Folder of the stack that `mnemon up` runs. Default: the servers that MNEMON_NATS_URL, "
        "DATABASE_URL and the other environment variables name.",
    ),
]

DEFAULT_DATA = Path("mnemon-data")
"""Default folder of `mnemon up`."""

_COMMAND_ON_STACK = re.compile(r"\bmnemon (?:dead|erase|forget|provision|rebuild|reindex|status|tenant)\b")
"""Commands that next steps name, and that take the folder of a stack as `--data`."""

_VARIABLES = {
    "broker": ("nats_url", "MNEMON_NATS_URL"),
    "database": ("database_url", "DATABASE_URL (or PG_HOST PG_PORT PG_DB PG_USER PG_PASSWORD)"),
}


def require_deployment(data: Path | None, *needed: Literal["broker", "database"]) -> "Deployment":
    """Return the deployment of a command; end the command if no stack runs or a server is not configured.

    Args:
        data: the folder of a stack that `mnemon up` runs; None means the servers that environment
            variables name.
        needed: the servers that have to be configured. The deployment of a stack has the address of the
            database only if `needed` contains `database`.
    """
    if data is not None:
        return _load_running(data, needed)
    deployment = load_deployment()
    missing = [part for part in needed if not getattr(deployment, _VARIABLES[part][0])]
    if missing:
        variables = " and ".join(_VARIABLES[part][1] for part in missing)
        running = DEFAULT_DATA if (DEFAULT_DATA / "endpoints.json").exists() else "DIR"
        refuse(
            ExitCode.UNAVAILABLE,
            f"no {' and no '.join(missing)} configured",
            f"Set {variables}, or give the folder of a running stack: --data {running}",
        )
    return deployment


class TargetServers(NamedTuple):
    """Servers of a command; `is_running` is False if the command started them for a stopped stack."""

    deployment: "Deployment"
    is_running: bool


@asynccontextmanager
async def open_deployment(
    data: Path | None, *needed: Literal["broker", "database"]
) -> AsyncIterator[TargetServers]:
    """Open the deployment of a command that also works on a stopped stack.

    The servers of a stopped stack run for the duration of the block. End the command if the folder has no
    stack or a server is not configured, as `require_deployment` does.

    Raises:
        Exception: the errors of `mnemon_infra.embedded.stack.run_stack`.
    """
    from mnemon_infra.embedded.logins import FolderLogins
    from mnemon_infra.embedded.stack import run_stack
    from mnemon_infra.process.data_folder import Endpoints
    from mnemon_infra.telemetry.logging import configure_logging

    configure_logging()  # keep log lines out of the output that a program reads
    if data is not None and Endpoints.read(data) is None and (data / "nats").is_dir():
        async with run_stack(data, load_deployment()) as stack:
            logins = FolderLogins(data)
            # Only the operator's login may change settings.
            own = (
                {"nats_url": logins.read_login("operator").add_to_url(stack.endpoints.nats)}
                if logins.in_force
                else {}
            )
            yield TargetServers(stack.deployment.model_copy(update=own), is_running=False)
        return
    deployment = require_deployment(data, *needed)
    if data is not None and not (deployment.qdrant_url or deployment.vectors_folder):
        deployment = deployment.model_copy(update={"vectors_folder": data / "vectors"})
    yield TargetServers(deployment, is_running=True)


@asynccontextmanager
async def open_broker(deployment: "Deployment", name: str) -> AsyncIterator["Client"]:
    """Connect to the NATS servers of a deployment until the end of the block; log to standard error.

    `name` is the name of the connection, which the server's monitoring shows.

    Raises:
        BrokerUnreachable: no server that mnemon can use answers, or the login lacks a permission.
    """
    from mnemon_infra.broker.connection import connect_deployment, explain_denials
    from mnemon_infra.telemetry.logging import configure_logging

    configure_logging()  # keep log lines out of the output that a program reads
    async with await connect_deployment(deployment, name=name) as connection:
        with explain_denials(connection):
            yield connection


@asynccontextmanager
async def open_connections(deployment: "Deployment", name: str) -> AsyncIterator[tuple["Client", "Database"]]:
    """Connect to the NATS servers and to the database of a deployment, like `open_broker`.

    Raises:
        BrokerUnreachable, DatabaseUnavailable: one of the servers does not answer.
    """
    from mnemon_infra.database.engine import Database

    async with open_broker(deployment, name) as connection, Database(deployment, name=name) as database:
        yield connection, database


def complete_command(command: str, data: Path | None) -> str:
    """Return a command to type next, for the same servers: with the `--data` of the current command."""
    return command + format_data_option(data)


def complete_next_step(text: str, data: Path | None) -> str:
    """Append the `--data` of the current command to a text that names a command of `_COMMAND_ON_STACK`.

    Return the text unchanged if it has `--data` already, or names no such command, or if `data` is None.
    """
    if data is None or "--data" in text or not _COMMAND_ON_STACK.search(text):
        return text
    return f"{text.removesuffix('.')}. For this stack, add:{format_data_option(data)}"


def refuse_connection(error: "NotConnected", data: Path | None) -> NoReturn:
    """Print why no server answers or accepts the login, and the next step; end the command."""
    next_step = (
        "Check that the server runs, and that MNEMON_NATS_URL has its address and login"
        if data is None
        else f"Check the servers: {complete_command('mnemon status', data)}"
    )
    refuse(ExitCode.UNAVAILABLE, error.problem, next_step if error.next_step else "")


def load_deployment() -> "Deployment":
    """Load the deployment from the environment; end the command if a variable is invalid.

    Warn of variables with a misspelt name.
    """
    from pydantic import ValidationError

    from mnemon_contracts.base import describe_problem
    from mnemon_infra.config import Deployment

    _warn_of_misspelt_variables()
    try:
        return Deployment()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        refuse(
            ExitCode.USAGE_ERROR,
            f"the environment variable {_name_variable(str(first['loc'][0]))} is invalid: "
            f"{describe_problem(first)}",
            "Correct the variable, then repeat the command",
        )


@cache
def _warn_of_misspelt_variables() -> None:
    """Print the variables that are ignored because of their name, once in a process."""
    from mnemon_infra.config import find_misspelt_variables

    for name, nearest in find_misspelt_variables(os.environ).items():
        typer.echo(f"mnemon: the environment variable {name} is ignored: its name is not known", err=True)
        typer.echo(f"  Did you mean {nearest}?", err=True)


def _name_variable(location: str) -> str:
    """Return the name of the environment variable at a location that pydantic reports."""
    return location if location.isupper() else f"MNEMON_{location.upper()}"


def _load_running(data: Path, needed: Sequence[str]) -> "Deployment":
    from mnemon_infra.config import Deployment
    from mnemon_infra.embedded.logins import FolderLogins
    from mnemon_infra.process.data_folder import Endpoints, find_holder

    endpoints = Endpoints.read(data)
    if endpoints is None:
        if holder := find_holder(data):
            refuse(
                ExitCode.UNAVAILABLE,
                f"the stack in {data} ({holder}) does not answer: it is starting, or one of its servers "
                "cannot start",
                f"Repeat the command when `mnemon up` shows the addresses, or show the cause: "
                f"{complete_command('mnemon status', data)}",
            )
        start = complete_command("mnemon up", data)
        refuse(ExitCode.UNAVAILABLE, f"no stack runs in {data}", f"Start the stack: {start}")
    _warn_of_misspelt_variables()
    nats = FolderLogins(data).add_login(endpoints.nats, "operator")
    # Parse the address on demand only: its parser takes longer to import than all else of `mnemon save`.
    database = endpoints.database if "database" in needed else None
    return Deployment(nats_url=nats, database_dsn=database, qdrant_url=endpoints.qdrant)
