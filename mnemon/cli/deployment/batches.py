"""`mnemon batches`."""

import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemon.cli.target import DataOption, target
from mnemon.cli.terminal.exit_code import Ending, perform, refuse
from mnemon.cli.terminal.output import JsonOption, show_table
from mnemon.cli.terminal.text import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnemon_infra.config import Deployment
    from mnemon_infra.database.windows.batches import BatchState, StoredBatch


def batches(
    state: Annotated[
        str, typer.Option(metavar="STATE", help="Only these: all, open, completed or failed.")
    ] = "all",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Batches that are shown, at most.")] = 20,
    before: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only those made before, such as 2026-11-21T10:00:00Z."),
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show batches of requests that providers of language models have or had, the newest first.

    A batch is `claimed` (the provider was not asked to take it yet), `intended` (it was asked), `submitted`
    (it has it), `completed` or `failed`, with the error. The first three are `open`. What a failed batch had
    is asked for again.

    Example: `mnemon batches --state failed --data ./memory`
    """
    from mnemon_infra.database.windows.batches import STATES

    if state not in STATES:
        refuse(Ending.WRONG_USE, f"--state {state}: there are {', '.join(STATES)}")
    moment = datetime.now(UTC) + timedelta(days=1) if before is None else _moment(before)
    perform(_batches(target(data, "database"), state, moment, limit, data, as_json))


def _moment(spelled: str) -> datetime:
    try:
        time = datetime.fromisoformat(spelled)
    except ValueError:
        refuse(
            Ending.WRONG_USE,
            f"--before {spelled!r} is no time",
            "A time is written like 2026-11-21T10:00:00Z",
        )
    return time if time.tzinfo else time.replace(tzinfo=UTC)


async def _batches(
    deployment: "Deployment", state: str, before: datetime, limit: int, data: Path | None, as_json: bool
) -> Ending:
    from mnemon_infra.database.engine import Database
    from mnemon_infra.database.windows.batches import STATES, newest
    from mnemon_infra.telemetry.logging import configure_logging

    configure_logging()
    async with Database(deployment, name="mnemon-batches") as database:
        found = await database.read(newest(STATES[state], before, limit + 1))
    shown = found[:limit]
    older = shown[-1].created_at.astimezone(UTC).isoformat() if len(found) > limit else None
    if as_json:
        value = {"batches": [_as_json(each) for each in shown], "next": older}
        typer.echo(json.dumps(value, ensure_ascii=False))
    else:
        _show(shown, state)
        if older:
            options = "" if state == "all" else f" --state {state}"
            where = f" --data {quote(str(data))}" if data else ""
            typer.echo(f"older: mnemon batches --before {older}{options}{where}")
    return Ending.DONE


def _as_json(batch: "StoredBatch") -> dict[str, Any]:
    kept = asdict(batch) | {"ended_at": _ended_at(batch)}
    return {
        name: value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
        for name, value in kept.items()
    }


def _show(found: "Sequence[StoredBatch]", state: str) -> None:
    if not found:
        typer.echo("no batch was made" if state == "all" else f"no batch is {state}")
        return
    columns = "batch", "state", "model", "lines", "made", "ended", "deadline", "the provider's id"
    show_table(
        columns,
        [
            (
                *(each.batch_id, each.state, printable(f"{each.provider}/{each.model}"), each.lines),
                *(_shown(at) for at in (each.created_at, _ended_at(each), each.deadline_at)),
                printable(each.provider_batch_id or "-"),
            )
            for each in found
        ],
    )
    for each in found:
        if each.error:
            typer.echo(f"{each.batch_id}: {printable(each.error)}")


def _shown(at: datetime | None) -> str:
    return "-" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def _ended_at(batch: "StoredBatch") -> datetime | None:
    over: tuple[BatchState, ...] = ("completed", "failed")
    return batch.changed_at if batch.state in over else None
