"""Servers for a command: configured or running ones, else a stack that stops when the command ends."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final

import typer

from mnemon.cli.options.target import DEFAULT_DATA, load_deployment, require_deployment
from mnemon.cli.terminal.exit_code import ExitCode, refuse

if TYPE_CHECKING:
    from mnemon_infra.config import Deployment

_OUTPUT_FILE: Final = "chat.log"
"""Name of the file, in the folder of the stack, with the output of the last stack that a command started."""

_POLL_SECONDS: Final = 0.1
_SHOWN_CHARACTERS: Final = 500

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

    End the command if the stack does not start.

    If `data` is None, take the servers that the environment names, or the folder `DEFAULT_DATA` if
    MNEMON_NATS_URL is not set.

    Raises:
        NoRoom: a stack would be started, and the disk has too little room for it.
        FolderUnusable: a stack would be started, and the folder cannot be created or written.
    """
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
    async with AsyncExitStack() as ends:
        with show_spinner("nats-server, PostgreSQL and the consumers"):
            await ends.enter_async_context(_run_stack(folder))
        yield require_deployment(folder, "broker")


@asynccontextmanager
async def _run_stack(folder: Path) -> AsyncIterator[None]:
    """Run `mnemon up` on a folder, in a separate process, until the end of the block.

    End the command if the stack does not start.

    Raises:
        NoRoom: the disk has too little room for a stack.
        FolderUnusable: the folder cannot be created or written.
    """
    from mnemon_infra.process.data_folder import Endpoints

    with _open_output(folder) as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mnemon", "up", "--no-admin", "--data", str(folder)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # A Ctrl-C in the terminal reaches only this process, which ends the new process.
            start_new_session=True,
        )
    try:
        while Endpoints.read(folder) is None:
            if process.returncode is not None:
                output = folder / _OUTPUT_FILE
                said = output.read_text(errors="replace")[-_SHOWN_CHARACTERS:].strip()
                refuse(
                    ExitCode.UNAVAILABLE,
                    f"the stack in {folder} did not start: {said}",
                    f"The whole output is in {output}",
                )
            await asyncio.sleep(_POLL_SECONDS)
        yield
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


def _open_output(folder: Path) -> BinaryIO:
    """Create the folder, and open the file for the output of the stack.

    Raises:
        NoRoom: the disk has too little room for a stack.
        FolderUnusable: the folder cannot be created or written.
    """
    from mnemon_infra.embedded.disk_space import require_room
    from mnemon_infra.process.data_folder import FolderUnusable

    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_room(folder)
        output = folder / _OUTPUT_FILE
        output.touch(mode=0o600)  # the output has the first key of the gateway
        output.chmod(0o600)
        return output.open("wb")
    except OSError as error:
        raise FolderUnusable(folder, error) from None
