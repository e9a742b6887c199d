"""Questions on the terminal, which commands ask while their event loop runs."""

import asyncio
import os
import sys
from typing import Final

import typer

_LINE_SIZE: Final = 4096
"""Maximum number of bytes that a terminal returns for one line, by termios(3)."""


def can_ask(*, as_json: bool = False) -> bool:
    """Return whether the command can ask on the terminal; False if it prints JSON."""
    return not as_json and sys.stdin.isatty()


async def ask_question(question: str) -> str:
    """Ask a question on standard error, and return the answer without the white space around it.

    The answer is what was typed before Enter or Ctrl-D.

    The event loop runs on while the question waits, so that SIGTERM and Ctrl-C end the command at once. A
    prompt that blocks the event loop would delay both signals until the next Enter.

    Raises:
        typer.Abort: the input has ended, for example by Ctrl-D at the beginning of the line.
    """
    typer.echo(f"{question}: ", nl=False, err=True)
    try:
        await _await_input()
    except asyncio.CancelledError:
        typer.echo(err=True)  # end the line of the question
        raise
    # `sys.stdin.readline` would block the event loop after Ctrl-D within a line.
    typed = os.read(sys.stdin.fileno(), _LINE_SIZE)
    if not typed.endswith(b"\n"):
        typer.echo(err=True)
    if not typed:
        raise typer.Abort
    return typed.decode(sys.stdin.encoding, errors="replace").strip()


async def ask_confirmation(question: str) -> bool:
    """Ask a question on standard error until the answer is yes or no; an empty line means no.

    Raises:
        typer.Abort: the input has ended, for example by Ctrl-D at the beginning of the line.
    """
    while True:
        match (await ask_question(f"{question} [y/N]")).lower():
            case "y" | "yes":
                return True
            case "n" | "no" | "":
                return False
        typer.echo("Answer y or n.", err=True)


async def _await_input() -> None:
    """Wait until the terminal can be read: after Enter, after Ctrl-D, or at the end of the input."""
    loop, terminal = asyncio.get_running_loop(), sys.stdin.fileno()
    has_input = asyncio.Event()
    loop.add_reader(terminal, has_input.set)
    try:
        await has_input.wait()
    finally:
        loop.remove_reader(terminal)
