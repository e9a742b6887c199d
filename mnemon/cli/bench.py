"""`mnemon bench`."""

import json
import logging
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from mnemon.cli.ending import Ending, perform
from mnemon.cli.output import JsonOption, show_table
from mnemon.cli.stopping import Stop


class Bench(StrEnum):
    """What can be measured."""

    PUBLISH = "publish"
    INGEST = "ingest"
    RETRIEVE = "retrieve"
    SEARCHABLE = "searchable"
    SEARCH = "search"
    DEDUPE = "dedupe"


def bench(
    name: Annotated[Bench, typer.Argument(metavar="NAME", help=", ".join(Bench) + ".")],
    as_json: JsonOption = False,
) -> None:
    """Measure mnemon against a bare loop, turn about in the same run, on servers of its own.

    What counts are the ratios: they hold on a slow machine too. Ends with 1 when a target is missed.

    Example: `mnemon bench ingest --json`
    """
    perform(_bench(name, as_json))


async def _bench(name: Bench, as_json: bool) -> Ending:
    from bench import dedupe, ingest, publish, retrieve, search, searchable
    from infra.config import Deployment
    from infra.embedded.stack import embedded
    from infra.telemetry.logging import configure_logging

    configure_logging(level=logging.ERROR)

    def report(line: str) -> None:
        typer.echo(line, err=True)

    with Stop(), tempfile.TemporaryDirectory(prefix="mnemon-bench-") as folder:
        # Not `Deployment()`: the servers that the environment names are somebody's real ones.
        async with embedded(Path(folder), Deployment.model_construct()) as stack:
            match name:
                case Bench.PUBLISH:
                    measured = await publish.run(str(stack.deployment.nats_url))
                case Bench.INGEST:
                    measured = await ingest.run(stack.deployment, report=report)
                case Bench.RETRIEVE:
                    measured = await retrieve.run(stack.deployment, report=report)
                case Bench.SEARCHABLE:
                    measured = await searchable.run(stack.deployment, report=report)
                case Bench.SEARCH:
                    measured = await search.run(stack.deployment, report=report)
                case Bench.DEDUPE:
                    measured = await dedupe.run(stack.deployment, report=report)
    if as_json:
        typer.echo(json.dumps(measured))
    else:
        _show(measured)
    return Ending.NOT_SO if any(_missed(measured)) else Ending.DONE


def _figures(measured: dict[str, Any]) -> dict[str, float]:
    """The ratios, and what has a target of its own."""
    aimed_at = [name for bounds in measured["targets"].values() for name in bounds]
    raw = {name: measured[name] for name in aimed_at if name not in measured["ratios"]}
    figures: dict[str, float] = raw | measured["ratios"]
    return figures


def _missed(measured: dict[str, Any]) -> list[str]:
    """The figures beyond their target: `at_least` and `at_most` say which way."""
    figures, targets = _figures(measured), measured["targets"]
    too_low = [name for name, bound in targets.get("at_least", {}).items() if figures[name] < bound]
    too_high = [name for name, bound in targets.get("at_most", {}).items() if figures[name] > bound]
    return too_low + too_high


def _show(measured: dict[str, Any]) -> None:
    figures, missed = _figures(measured), _missed(measured)
    bounds = {
        name: f"{words} {bound:,}"
        for words, targets in (
            ("at least", measured["targets"].get("at_least", {})),
            ("at most", measured["targets"].get("at_most", {})),
        )
        for name, bound in targets.items()
    }
    show_table(
        ("figure", "measured", "target", ""),
        [
            (name, f"{figure:,.2f}", bounds.get(name, ""), "missed" if name in missed else "")
            for name, figure in figures.items()
        ],
    )
    typer.echo()
    for name, value in measured.items():
        if name not in ("ratios", "targets") and name not in figures:
            typer.echo(f"{name}: {json.dumps(value)}")
