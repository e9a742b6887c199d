"""Stack in a separate process, which `mnemon chat` or `mnemon try` starts and stops."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO, Final

from mnemon_infra.process.data_folder import Endpoints

OUTPUT_FILE: Final = "chat.log"
"""Name of the file, in the data folder, with the output of the last stack that `run_stack` started."""

_POLL_SECONDS: Final = 0.1
_SHOWN_CHARACTERS: Final = 500


class StackNotStarted(Exception):
    """The stack ended during its start; the message has the end of its output."""


def open_output_file(data: Path) -> BinaryIO:
    """Open an empty file for the output of a stack, in the folder `data`; create the folder if absent.

    Raises:
        OSError: the folder cannot be used.
    """
    data.mkdir(parents=True, exist_ok=True)
    return (data / OUTPUT_FILE).open("wb")


@asynccontextmanager
async def run_stack(data: Path, output: BinaryIO) -> AsyncIterator[None]:
    """Run `mnemon up` on the folder `data`, in a separate process, until the end of the block.

    Raises:
        StackNotStarted: the stack did not start; the message has the end of its output.
    """
    with output as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mnemon", "up", "--no-admin", "--data", str(data)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # A Ctrl-C in the terminal reaches only this process, which ends the new process.
            start_new_session=True,
        )
    try:
        while Endpoints.read(data) is None:
            if process.returncode is not None:
                raise StackNotStarted(
                    (data / OUTPUT_FILE).read_text(errors="replace")[-_SHOWN_CHARACTERS:].strip()
                )
            await asyncio.sleep(_POLL_SECONDS)
        yield
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
