"""The stack of a folder, started for as long as somebody talks, where none runs."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO, Final

from mnemon_infra.process.data_folder import Endpoints

LOG: Final = "chat.log"
"""In the folder: what the stack said when it was last started so."""

_LOOK: Final = 0.1
_SHOWN: Final = 500


class NotStarted(Exception):
    """The stack has ended before it answered."""


def new_log(data: Path) -> BinaryIO:
    """The log of a start; the folder is made if absent.

    Raises:
        OSError: the folder cannot be used.
    """
    data.mkdir(parents=True, exist_ok=True)
    return (data / LOG).open("wb")


@asynccontextmanager
async def started(data: Path, output: BinaryIO) -> AsyncIterator[None]:
    """`mnemon up` on the folder, in a process of its own, until the end of the block.

    Raises:
        NotStarted: it did not start; in it is what it said last.
    """
    with output as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mnemon", "up", "--no-admin", "--data", str(data)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # A Ctrl-C in the terminal is for us: this one is told to end.
            start_new_session=True,
        )
    try:
        while Endpoints.read(data) is None:
            if process.returncode is not None:
                raise NotStarted((data / LOG).read_text(errors="replace")[-_SHOWN:].strip())
            await asyncio.sleep(_LOOK)
        yield
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
