"""Tables on the terminal, for people; programs use `--json`."""

from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of a table.")]


class Figure(str):
    """A number that is written out already."""

    __slots__ = ()


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Show rows on the terminal; numbers stand to the right."""
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
