"""How a replay of the log is shown on a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn


class Watcher:
    """Shows how far a replay is, how fast, and how long it takes yet. A pipe gets the words only."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task: TaskID | None = None

    def at(self, reached: int, up_to: int) -> None:
        """So far it is, and so far it goes."""
        if self._task is None:
            self._task = self._bar.add_task("replaying", total=up_to, completed=reached, rate="")
        speed = self._bar.tasks[0].speed
        rate = f"{speed:,.0f} events/s" if speed else ""
        self._bar.update(self._task, total=up_to, completed=reached, rate=rate)

    def say(self, line: str) -> None:
        """Something that a person wants to know."""
        typer.echo(line, err=True)


@contextmanager
def watched() -> Iterator[Watcher]:
    """A bar, as long as the block lasts."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield Watcher(bar)
