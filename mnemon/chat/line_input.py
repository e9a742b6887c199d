"""Input of a person, line by line: from a terminal, or from a pipe."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterable

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
    """Yield the lines of standard input."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        yield line
