"""Questions on the terminal, which commands ask while their event loop runs."""

import asyncio
import sys

import typer


def can_ask(*, as_json: bool = False) -> bool:
    """Return whether the command can ask on the terminal."""
    return not as_json and sys.stdin.isatty()


async def ask_question(question: str) -> str:
    """Ask a question on standard error, and return the typed line without the white space around it.

    The event loop runs on while the question waits, so that SIGTERM and Ctrl-C end the command at once. A
    prompt that blocks the event loop would hold them back until the next line.

    Raises:
        typer.Abort: the input has ended, for example by Ctrl-D.
    """
    typer.echo(f"{question}: ", nl=False, err=True)
    try:
        await _await_line()
    except asyncio.CancelledError:
        typer.echo(err=True)  # end the line of the question
        raise
    line = sys.stdin.readline()
    if not line:
        typer.echo(err=True)
        raise typer.Abort
    return line.strip()


async def confirm(question: str) -> bool:
    """Ask a question on standard error until the answer is yes or no; an empty line means no.

    Raises:
        typer.Abort: the input has ended, for example by Ctrl-D.
    """
    while True:
        match (await ask_question(f"{question} [y/N]")).lower():
            case "y" | "yes":
                return True
            case "n" | "no" | "":
                return False
        typer.echo("Answer y or n.", err=True)


async def _await_line() -> None:
    """Wait until the terminal has a line.

    A terminal passes on whole lines only, so that reading a line does not block afterwards.
    """
    loop, terminal = asyncio.get_running_loop(), sys.stdin.fileno()
    has_line = asyncio.Event()
    loop.add_reader(terminal, has_line.set)
    try:
        await has_line.wait()
    finally:
        loop.remove_reader(terminal)
