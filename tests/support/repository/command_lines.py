"""Commands `mnemon` in lines of shell, parsed as `mnemon` parses its arguments."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from mnemon.cli.app import app

COMMAND: Any = get_command(app)


def invocations(line: str) -> Iterator[list[str]]:
    """Yield the arguments of each command `mnemon` in a line of shell."""
    words: list[str] = []
    for word in [*shlex.split(line.replace(";", " ; ")), ";"]:
        if word in ("&&", ";", "|"):
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                del words[0]
            if words and words[0] == "mnemon":
                yield words[1:]
            words = []
        else:
            words.append(word)


def parse(arguments: list[str]) -> None:
    """Parse the arguments of a command, without running it.

    Raises:
        UsageError: the command has no such subcommand, option or argument.
    """
    group, above = COMMAND, None
    while hasattr(group, "commands"):
        above = group.make_context("mnemon", arguments, parent=above)
        name, group, arguments = group.resolve_command(above, [*above._protected_args, *above.args])
    group.make_context(name, arguments, parent=above)
