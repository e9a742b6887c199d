"""Servers for a command: configured or running ones, else a stack that stops when the command ends."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mnemon.cli.options.target import DEFAULT_DATA, load_deployment, require_deployment
from mnemon.cli.terminal.exit_code import ExitCode, refuse

if TYPE_CHECKING:
    from mnemon_infra.config import Deployment

StartedDataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="Folder of a stack. If the stack does not run, the command starts it, and stops it at the end. "
        f"Default: the server in MNEMON_NATS_URL, otherwise {DEFAULT_DATA}.",
    ),
]


@asynccontextmanager
async def open_servers(
    data: Path | None,
    show_note: Callable[[str], None],
    show_spinner: Callable[[str], AbstractContextManager[object]],
) -> AsyncIterator["Deployment"]:
    """Open configured servers or the servers of a folder; start a stack in the folder if none runs there.

    End the command if the folder cannot be used, or if the stack does not start.

    If `data` is None, take the servers that the environment names, or the folder `DEFAULT_DATA` if
    MNEMON_NATS_URL is not set.
    """
    from mnemon.chat.temporary_stack import OUTPUT_FILE, StackNotStarted, open_output_file, run_stack
    from mnemon_infra.process.data_folder import Endpoints
    from mnemon_infra.telemetry.logging import configure_logging

    configure_logging()
    if data is None and load_deployment().nats_url:
        yield require_deployment(None, "broker")
        return
    folder = data or DEFAULT_DATA
    if Endpoints.read(folder) is not None:
        yield require_deployment(folder, "broker")
        return
    show_note(f"Starting a stack in {folder}. It stops with this command; messages are kept.")
    try:
        log = open_output_file(folder)
    except OSError as error:
        refuse(
            ExitCode.USAGE_ERROR,
            f"{folder} cannot be used: {error.strerror}",
            "Choose another folder: --data DIR",
        )
    try:
        async with AsyncExitStack() as ends:
            with show_spinner("nats-server, PostgreSQL and the consumers"):
                await ends.enter_async_context(run_stack(folder, log))
            yield require_deployment(folder, "broker")
    except StackNotStarted as error:
        refuse(
            ExitCode.UNAVAILABLE,
            f"the stack in {folder} did not start: {error}",
            f"Find the cause in {folder / OUTPUT_FILE}",
        )
