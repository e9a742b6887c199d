"""Output on the terminal: tables and progress for people, JSON for programs."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from mnemon.display_text import make_printable

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of text.")]


_GAP: Final = 2
"""Number of spaces between two columns of a table."""

_LEAST_TEXT: Final = 20
"""Minimum width of a folded column, in characters, unless its longest text is shorter."""


class Figure(str):
    """A number that is already formatted as text; `show_table` aligns it to the right."""

    __slots__ = ()


def show_json(value: object) -> None:
    """Print a value as one line of JSON."""
    typer.echo(json.dumps(value, ensure_ascii=False))


def show_message(label: str, content: str) -> None:
    """Print the lines of a message beside its label, such as the speaker."""
    typer.secho(f"{label}  ", dim=True, nl=False)
    typer.echo(make_printable(content).replace("\n", "\n" + " " * (len(label) + _GAP)))


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


def show_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, texts: Sequence[str] = ()
) -> None:
    """Show a table; cells that are an `int` or a `Figure` are aligned to the right.

    On a terminal, the columns in `texts` are folded if the other columns leave them room. All else stays
    whole, so that names and times can be copied and searched, and numbers are not mistaken.
    """
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    table = Table(
        *(Column(name, no_wrap=name not in texts, overflow="fold") for name in columns),
        box=None,
        pad_edge=False,
    )
    widths = [cell_len(name) for name in columns]
    for row in rows:
        cells = [_format_cell(cell) for cell in row]
        longest = (max(map(cell_len, cell.split("\n"))) for cell in cells)
        widths = [max(pair) for pair in zip(widths, longest, strict=True)]
        table.add_row(
            *(
                Text(cell, justify="right" if isinstance(value, int | Figure) else "left")
                for cell, value in zip(cells, row, strict=True)
            )
        )
    least = (
        min(width, _LEAST_TEXT) if name in texts else width
        for name, width in zip(columns, widths, strict=True)
    )
    console = Console()
    if not console.is_terminal or console.width < sum(least) + _GAP * (len(widths) - 1):
        console.width = sum(widths) + _GAP * len(widths)
    console.print(table)


def _format_cell(cell: object) -> str:
    return f"{cell:,}" if isinstance(cell, int) else make_printable(str(cell))
