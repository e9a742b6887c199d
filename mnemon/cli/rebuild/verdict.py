"""Output of `mnemon rebuild --verify`: the differences between the live and the rebuilt generation."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mnemon.cli.options.target import complete_command
from mnemon.cli.terminal.output import show_table

if TYPE_CHECKING:
    from mnemon_infra.database.generations.comparison import Difference
    from mnemon_infra.rebuild.row_verification import RowVerification

_LONGEST_VALUE = 60
"""Maximum number of characters of a value that are shown in a table."""


def verdict_to_json(verdict: "RowVerification", kept: str | None) -> dict[str, Any]:
    """Return the result of a verification as JSON values.

    `kept` is the schema of the rebuilt generation; None if it was dropped.
    """
    return {
        "position": verdict.position,
        "is_settled": verdict.is_settled,
        "rows": verdict.rows,
        "differences": verdict.differences,
        "by_table": verdict.counts,
        "first": [each._asdict() for each in verdict.first],
        "kept": kept,
    }


def show_verdict(verdict: "RowVerification", data: Path | None) -> None:
    """Show the result of a verification as text; `data` is the folder of the stack, for the next step."""
    if not verdict.is_settled:
        typer.echo(
            "`persist` or `index` is behind or not running: events that they have not handled "
            "were not compared.",
            err=True,
        )
    show_table(
        ("what", "rows or points", "differences"),
        [(name, rows, verdict.counts.get(name, 0)) for name, rows in verdict.rows.items()],
    )
    if verdict.first:
        typer.echo("")
        rows = [
            (each.table, " ".join(each.key.values()), _describe_difference(each)) for each in verdict.first
        ]
        columns = "table", "key", "difference: live | rebuilt"
        show_table(columns, rows, texts=columns[-1:])
        if verdict.differences > len(verdict.first):
            typer.echo(f"... and {verdict.differences - len(verdict.first):,} more")
        typer.echo(f"To swap in a rebuilt generation: {complete_command('mnemon rebuild', data)}")
    else:
        typer.echo(f"Up to position {verdict.position:,}, the live generation agrees with the log.")


def _describe_difference(difference: "Difference") -> str:
    live, rebuilt = difference.live, difference.rebuilt
    if live is None or rebuilt is None:
        return "missing in the live generation" if live is None else "missing in the rebuilt generation"
    return "; ".join(
        f"{name}: {_shorten_value(live[name])} | {_shorten_value(rebuilt[name])}" for name in live
    )


def _shorten_value(value: object) -> str:
    spelled = json.dumps(value, ensure_ascii=False)
    return spelled if len(spelled) <= _LONGEST_VALUE else f"{spelled[: _LONGEST_VALUE - 3]}..."
