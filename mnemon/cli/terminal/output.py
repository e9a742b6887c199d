"""Output on the terminal: tables and progress for people, JSON for programs."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of text.")]


class Figure(str):
    """A number that is already formatted as text; `show_table` aligns it to the right."""

    __slots__ = ()


def show_json(value: object) -> None:
    """Print a value as one line of JSON."""
    typer.echo(json.dumps(value, ensure_ascii=False))


@contextmanager
def show_progress(
    *columns: "str | ProgressColumn", description: str = "", total: float | None = None, **fields: Any
) -> Iterator[Callable[..., None]]:
    """Show a progress bar for the duration of the block, if standard error is a terminal.

    Yields:
        A function that updates the bar, with the arguments of `rich.progress.Progress.update`.
    """
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield partial(bar.update, bar.add_task(description, total=total, **fields))


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Show a table; cells that are an `int` or a `Figure` are aligned to the right."""
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    # Fold numbers on a narrow terminal: a truncated number would be a different number.
    folded = (Column(name, overflow="fold") for name in columns)
    table = Table(*folded, box=None, pad_edge=False)
    for row in rows:
        table.add_row(
            *(
                Text(_format_cell(cell), justify="right" if isinstance(cell, int | Figure) else "left")
                for cell in row
            )
        )
    Console().print(table)


def _format_cell(cell: object) -> str:
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
