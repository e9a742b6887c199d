"""Progress bar of a replay."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class ReplayBar:
    """Progress bar of a replay, with position, speed and remaining time.

    Without a terminal, only messages are shown.
    """

    def __init__(self, bar: "Progress") -> None:
        self._bar = bar
        self._tasks: dict[str, TaskID] = {}

    def report_rows(self, reached: int, up_to: int) -> None:
        """Show the log position that the rows have reached, and the position at which the replay ends."""
        self._show("rows", reached, up_to)

    def report_vectors(self, reached: int, up_to: int) -> None:
        """Show the log position that the vectors have reached, and the position at which the replay ends."""
        self._show("vectors", reached, up_to)

    def _show(self, what: str, reached: int, up_to: int) -> None:
        if what not in self._tasks:
            self._tasks[what] = self._bar.add_task(what, total=up_to, completed=reached, rate="")
        task = self._tasks[what]
        speed = next(each.speed for each in self._bar.tasks if each.id == task)
        rate = f"{speed:,.0f} events/s" if speed else ""
        self._bar.update(task, total=up_to, completed=reached, rate=rate)

    def show_line(self, line: str) -> None:
        """Print a message on standard error."""
        typer.echo(line, err=True)


@contextmanager
def show_replay() -> Iterator[ReplayBar]:
    """Show the progress bar of a replay for the duration of the block."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield ReplayBar(bar)
