"""What a person says, line by line: from a terminal, or from a pipe."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterable

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter


async def typed(commands: Iterable[str], toolbar: Callable[[], str]) -> AsyncIterator[str]:
    """Lines that are typed, with completion of commands; a Ctrl-C drops a line, a Ctrl-D is the end."""
    session: PromptSession[str] = PromptSession(
        completer=WordCompleter(list(commands), sentence=True),
        complete_while_typing=False,
        bottom_toolbar=toolbar,
    )
    while True:
        try:
            # What a Ctrl-C does while there is no prompt is not for it to decide.
            yield await session.prompt_async("\n> ", handle_sigint=False)
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


async def piped() -> AsyncIterator[str]:
    """Lines of standard input."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        yield line
