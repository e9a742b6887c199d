"""Command `mnemon batches`: list batches of requests to language models."""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemon.cli.options.moment import parse_time
from mnemon.cli.options.target import DataOption, complete_command, require_deployment
from mnemon.cli.terminal.exit_code import ExitCode, perform_async, refuse
from mnemon.cli.terminal.output import JsonOption, show_json, show_table
from mnemon.display_text import make_printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnemon_infra.database.windows.batches import BatchState, StoredBatch


@perform_async
async def batches(
    state: Annotated[
        str,
        typer.Option(
            metavar="STATE",
            help="State of the batches to show: open, completed or failed; `all` shows every batch.",
        ),
    ] = "all",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of batches to show.")] = 20,
    before: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Show only batches that were created before this time, such as "
            "2026-11-21T10:00:00Z; a time without an offset is UTC. Default: all batches.",
        ),
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """List batches of requests to providers of language models, newest first.

    A batch is `claimed` (not sent to the provider yet), `intended` (being sent), `submitted` (accepted by the
    provider), `completed` or `failed`, with the error. The first three are `open`. The windows of a failed
    batch are requested again.

    Example: `mnemon batches --state failed --data ./memory`
    """
    from mnemon_infra.database.engine import Database
    from mnemon_infra.database.windows.batches import STATES, list_newest_batches
    from mnemon_infra.telemetry.logging import configure_logging

    if state not in STATES:
        refuse(ExitCode.USAGE_ERROR, f"--state {state} is unknown; choose from: {', '.join(STATES)}")
    moment = datetime.now(UTC) + timedelta(days=1) if before is None else parse_time("--before", before)
    deployment = require_deployment(data, "database")
    configure_logging()
    async with Database(deployment, name="mnemon-batches") as database:
        found = await database.run_query(list_newest_batches(STATES[state], moment, limit + 1))
    shown = found[:limit]
    older = shown[-1].created_at.astimezone(UTC).isoformat() if len(found) > limit else None
    if as_json:
        show_json({"batches": [_batch_to_json(each) for each in shown], "next": older})
    else:
        _show_batches(shown, state)
        if older:
            options = "" if state == "all" else f" --state {state}"
            command = f"mnemon batches --before {older} --limit {limit}{options}"
            typer.echo(f"older: {complete_command(command, data)}")
    return ExitCode.DONE


def _batch_to_json(batch: "StoredBatch") -> dict[str, Any]:
    kept = asdict(batch) | {"ended_at": _get_end(batch)}
    return {
        name: value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
        for name, value in kept.items()
    }


def _show_batches(batches: "Sequence[StoredBatch]", state: str) -> None:
    if not batches:
        typer.echo("no batches yet" if state == "all" else f"no {state} batches")
        return
    columns = "batch", "state", "model", "lines", "created", "ended", "deadline", "provider's id"
    show_table(
        columns,
        [
            (
                *(each.batch_id, each.state, make_printable(f"{each.provider}/{each.model}"), each.lines),
                *(_format_time(at) for at in (each.created_at, _get_end(each), each.deadline_at)),
                make_printable(each.provider_batch_id or "-"),
            )
            for each in batches
        ],
    )
    for each in batches:
        if each.error:
            typer.echo(f"{each.batch_id}: {make_printable(each.error)}")


def _format_time(at: datetime | None) -> str:
    return "-" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def _get_end(batch: "StoredBatch") -> datetime | None:
    over: tuple[BatchState, ...] = ("completed", "failed")
    return batch.changed_at if batch.state in over else None
