"""`mnemon audit`."""

from collections.abc import Mapping
from dataclasses import asdict, astuple
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemon.cli.target import DataOption, open_deployment
from mnemon.cli.terminal.exit_code import Ending, perform_command, refuse
from mnemon.cli.terminal.output import JsonOption, show_json, show_progress, show_table

if TYPE_CHECKING:
    from mnemon.operations.audit.ledger import Audit, AuditFault
    from mnemon_infra.config import Deployment


def audit(
    sample: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Compare the content of every N-th user only. The existence of rows is checked "
            "for all users.",
        ),
    ] = 1,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check that every event was applied, deliberately ignored or kept as a dead letter, and compare the
    stores.

    The audit reads the log up to the position where `persist` has finished every event; consumers keep
    running. It computes the expected result of each event and compares it with the stored rows and vectors.
    It changes nothing.

    Ends with 0 when everything is accounted for, 1 when something is missing, 3 when a server does not
    answer.

    Example: `mnemon audit --data ./memory --json`
    """
    perform_command(_run_audit(data, sample, as_json))


async def _run_audit(data: Path | None, sample: int, as_json: bool) -> Ending:
    async with open_deployment(data, "broker", "database") as at:
        found = await _examine_deployment(at.deployment, sample)
    if as_json:
        show_json(_audit_to_json(found))
    else:
        _show_audit(found)
    return Ending.NOT_SO if found.faults.total else Ending.DONE


async def _examine_deployment(deployment: "Deployment", sample: int) -> "Audit":
    from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

    from mnemon.operations.audit.run import NotProvisioned, run_audit
    from mnemon.operations.rebuild.live_vectors import open_live_pages
    from mnemon_infra.broker.connection import connect
    from mnemon_infra.database.audit.events import UserSample
    from mnemon_infra.database.engine import Database
    from mnemon_infra.rebuild.generations import Site

    columns = "reading the log", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    try:
        async with (
            await connect(str(deployment.nats_url), name="mnemon-audit") as connection,
            Database(deployment, name="mnemon-audit") as database,
            open_live_pages(Site(deployment, connection, database)) as pages,
        ):
            with show_progress(*columns) as update:
                return await run_audit(
                    connection,
                    database,
                    UserSample(sample),
                    lambda position, up_to: update(completed=position, total=up_to),
                    pages,
                )
    except NotProvisioned as error:
        refuse(Ending.PART_MISSING, str(error), "Create streams and consumers: mnemon provision")


def _audit_to_json(found: "Audit") -> dict[str, Any]:
    return {
        "complete": not found.faults.total,
        "up_to": found.up_to,
        "beyond": found.beyond,
        "every": found.every,
        "seconds": found.seconds,
        "persist": {
            "events": found.persist.events,
            "applied": found.persist.applied,
            "nothing": found.persist.ignored,
            "dead": found.persist.dead,
            "removed": found.persist.removed,
            "waiting": found.persist.waiting,
            "missing": found.faults.count_of("persist", "persist-sweep"),
        },
        "dedupe": asdict(found.dedupe) | {"missing": found.faults.count_of("dedupe")},
        "extract": {
            "intended": found.extract.intended,
            "open": found.extract.open,
            "oldest_open_seconds": found.extract.oldest.total_seconds() if found.extract.oldest else None,
            "ended": found.extract.ended,
            "answered": found.extract.answered,
        },
        "vectors": {name: asdict(each) for name, each in found.vectors.items()} if found.vectors else None,
        "dead_letters": [
            {"consumer": consumer, "reason": reason, "letters": letters}
            for (consumer, reason), letters in sorted(found.letters.items())
        ],
        "durables": [asdict(each) for each in found.durables],
        "missing": found.faults.total,
        "missing_by_kind": found.faults.counts,
        "faults": [asdict(each) for each in found.faults.named],
    }


def _show_audit(found: "Audit") -> None:
    persist, dedupe, extract = found.persist, found.dedupe, found.extract
    rows = [
        ("persist", "applied", persist.applied),
        *_list_counts("persist", "ignored, ", persist.ignored),
        *_list_counts("persist", "dead, ", persist.dead),
        ("persist", "missing", found.faults.count_of("persist", "persist-sweep")),
        *_list_counts("dedupe", "", dedupe.outcomes),
        ("dedupe", "missing", found.faults.count_of("dedupe")),
        *_list_counts("extract", "", extract.ended),
        ("extract", "open batches", extract.open),
        *_list_counts("extract", "windows, ", extract.answered),
    ]
    show_table(("consumer", "outcome", "events"), rows)
    if found.letters:
        typer.echo()
        letters = [(*each, number) for each, number in sorted(found.letters.items())]
        show_table(("dead letters of", "reason", "letters"), letters)
    if found.vectors:
        typer.echo()
        show_table(
            ("vectors of", "points", "items", "of dead letters", "awaiting a sweep"),
            [(name, *astuple(each)) for name, each in found.vectors.items()],
        )
    typer.echo()
    show_table(
        ("consumer", "stream", "pending", "in work", "redelivered"),
        [(each.name, each.stream, each.pending, each.in_work, each.redelivered) for each in found.durables],
    )
    typer.echo()
    _show_extent(found)
    _show_conclusion(found)


def _list_counts(consumer: str, what: str, counts: Mapping[str, int]) -> list[tuple[str, str, int]]:
    return [(consumer, f"{what}{name}", number) for name, number in sorted(counts.items())]


def _show_extent(found: "Audit") -> None:
    read = f"{found.persist.events:,} events up to {found.up_to:,}, in {found.seconds:.1f} s"
    typer.echo(f"read          {read}")
    if found.vectors is None:
        typer.echo("vectors       none found at the configured place")
    if found.every > 1:
        typer.echo(f"compared      the content of about every {found.every}th user; the rows of all users")
    if found.persist.removed:
        typer.echo(f"removed       the content of {found.persist.removed:,} events, as expected")
    if found.persist.waiting:
        typer.echo(f"waiting       {found.persist.waiting:,} events for the sweep that removes their content")
    if found.beyond:
        typer.echo(f"not checked   {found.beyond:,} positions of the log that persist has not finished yet")
    if found.extract.oldest:
        hours = found.extract.oldest.total_seconds() / 3600
        typer.echo(f"open batches  the oldest is {hours:.1f} h old")


def _describe_fault(fault: "AuditFault") -> str:
    from mnemon.operations.audit.ledger import MEANINGS

    return MEANINGS[fault.kind] + (f": {fault.detail}" if fault.detail else "")


def _show_conclusion(found: "Audit") -> None:
    from mnemon.operations.audit.ledger import MEANINGS, NEXT_STEPS

    faults = found.faults
    if not faults.total:
        typer.secho("everything is accounted for", fg="green", bold=True)
        return
    show_table(
        ("event", "consumer", "where", "fault"),
        [(each.seq, each.consumer, each.where, _describe_fault(each)) for each in faults.named],
    )
    for kind in sorted(faults.counts):
        typer.echo(f"  {MEANINGS[kind]}: {NEXT_STEPS[kind]}")
    sequences = ", ".join(f"{seq}" for seq in faults.list_sequences())
    number = "1 event is" if faults.total == 1 else f"{faults.total:,} events are"
    typer.secho(f"{number} missing: {sequences}", fg="red", bold=True)
