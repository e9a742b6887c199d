"""Input of a person, line by line: from a terminal, or from a pipe."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from io import FileIO
from threading import Thread

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter


async def read_typed_lines(commands: Iterable[str], toolbar: Callable[[], str]) -> AsyncIterator[str]:
    """Yield typed lines, with completion of commands; Ctrl-C drops a line, Ctrl-D ends the input."""
    session: PromptSession[str] = PromptSession(
        completer=WordCompleter(list(commands), sentence=True),
        complete_while_typing=False,
        bottom_toolbar=toolbar,
    )
    while True:
        try:
            # The prompt must not replace the handler for a Ctrl-C outside of the prompt.
            yield await session.prompt_async("\n> ", handle_sigint=False)
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


async def read_piped_lines() -> AsyncIterator[str]:
    """Yield the lines of standard input.

    A daemon thread reads each line, without a buffer. Therefore a cancelled command ends at once, even if
    the pipe stays open: it waits neither for the thread nor for the lock of a buffer.
    """
    loop = asyncio.get_running_loop()
    with FileIO(sys.stdin.fileno(), closefd=False) as pipe:
        while line := await _read_line(loop, pipe):
            yield line.decode(sys.stdin.encoding, "replace")


async def _read_line(loop: asyncio.AbstractEventLoop, pipe: FileIO) -> bytes:
    read: asyncio.Future[bytes] = loop.create_future()

    def deliver(line: bytes) -> None:
        if not read.done():
            read.set_result(line)

    def read_pipe() -> None:
        line = pipe.readline()
        with suppress(RuntimeError):  # the command has ended
            loop.call_soon_threadsafe(deliver, line)

    Thread(target=read_pipe, daemon=True).start()
    return await read
