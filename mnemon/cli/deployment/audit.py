"""Command `mnemon audit`: compare the log with rows, vectors and dead letters."""

from collections.abc import Mapping
from dataclasses import asdict, astuple
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemon.cli.options.target import DataOption, complete_next_step, open_connections, open_deployment
from mnemon.cli.terminal.exit_code import ExitCode, perform_async, refuse
from mnemon.cli.terminal.output import JsonOption, show_json, show_progress, show_table
from mnemon.display_text import format_count

if TYPE_CHECKING:
    from mnemon.operations.audit.ledger import Audit, AuditFault
    from mnemon_infra.config import Deployment


@perform_async
async def audit(
    sample: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Compare the content of about one in N users only. The existence of rows is checked "
            "for all users. With 1, the content of all users is compared.",
        ),
    ] = 1,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Check that every event was applied, deliberately ignored or kept as a dead letter, and compare the
    stores.

    The audit reads the log up to the applied position of `persist`; consumers keep running. It
    computes the expected rows of each event, compares them with the stored rows, and compares the vectors
    with the stored rows. It changes nothing.

    Exits with code 0 if everything is accounted for, 1 if the audit finds a fault, 3 if a server does not
    answer.

    Example: `mnemon audit --data ./memory --json`
    """
    async with open_deployment(data, "broker", "database") as at:
        found = await _examine_deployment(at.deployment, sample)
    if as_json:
        show_json(_audit_to_json(found))
    else:
        _show_audit(found, data)
    return ExitCode.NEGATIVE_RESULT if found.faults.total else ExitCode.DONE


async def _examine_deployment(deployment: "Deployment", sample: int) -> "Audit":
    from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

    from mnemon.operations.audit.run import NotProvisioned, run_audit
    from mnemon.operations.rebuild.live_vectors import open_live_pages
    from mnemon_infra.database.audit.events import UserSample
    from mnemon_infra.rebuild.generations import Site

    columns = "reading the log", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    try:
        async with (
            open_connections(deployment, "mnemon-audit") as (connection, database),
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
        refuse(ExitCode.UNAVAILABLE, str(error))


def _audit_to_json(audit: "Audit") -> dict[str, Any]:
    return {
        "complete": not audit.faults.total,
        "up_to": audit.up_to,
        "beyond": audit.beyond,
        "every": audit.every,
        "seconds": audit.seconds,
        "persist": {
            "events": audit.persist.events,
            "applied": audit.persist.applied,
            "nothing": audit.persist.ignored,
            "dead": audit.persist.dead,
            "removed": audit.persist.removed,
            "waiting": audit.persist.waiting,
            "missing": audit.faults.count_consumer_faults("persist", "persist-sweep"),
        },
        "dedupe": asdict(audit.dedupe) | {"missing": audit.faults.count_consumer_faults("dedupe")},
        "extract": {
            "intended": audit.extract.intended,
            "open": audit.extract.open,
            "oldest_open_seconds": audit.extract.oldest.total_seconds() if audit.extract.oldest else None,
            "ended": audit.extract.ended,
            "answered": audit.extract.answered,
        },
        "vectors": {name: asdict(each) for name, each in audit.vectors.items()} if audit.vectors else None,
        "dead_letters": [
            {"consumer": consumer, "reason": reason, "letters": letters}
            for (consumer, reason), letters in sorted(audit.letters.items())
        ],
        "durables": [asdict(each) for each in audit.durables],
        "missing": audit.faults.total,
        "missing_by_kind": audit.faults.counts,
        "faults": [asdict(each) for each in audit.faults.named],
    }


def _show_audit(audit: "Audit", data: Path | None) -> None:
    persist, dedupe, extract = audit.persist, audit.dedupe, audit.extract
    rows = [
        ("persist", "applied", persist.applied),
        *_list_counts("persist", "ignored, ", persist.ignored),
        *_list_counts("persist", "dead, ", persist.dead),
        ("persist", "missing", audit.faults.count_consumer_faults("persist", "persist-sweep")),
        *_list_counts("dedupe", "", dedupe.outcomes),
        ("dedupe", "missing", audit.faults.count_consumer_faults("dedupe")),
        *_list_counts("extract", "", extract.ended),
        ("extract", "open batches", extract.open),
        *_list_counts("extract", "windows, ", extract.answered),
    ]
    show_table(("consumer", "outcome", "events"), rows)
    if audit.letters:
        typer.echo()
        letters = [(*each, number) for each, number in sorted(audit.letters.items())]
        show_table(("dead letters of", "reason", "letters"), letters)
    if audit.vectors:
        typer.echo()
        show_table(
            ("vectors of", "points", "items", "of dead letters", "awaiting a sweep"),
            [(name, *astuple(each)) for name, each in audit.vectors.items()],
        )
    typer.echo()
    show_table(
        ("consumer", "stream", "pending", "in work", "redelivered"),
        [(each.name, each.stream, each.pending, each.in_work, each.redelivered) for each in audit.durables],
    )
    typer.echo()
    _show_extent(audit)
    _show_conclusion(audit, data)


def _list_counts(consumer: str, what: str, counts: Mapping[str, int]) -> list[tuple[str, str, int]]:
    return [(consumer, f"{what}{name}", number) for name, number in sorted(counts.items())]


def _show_extent(audit: "Audit") -> None:
    read = f"{format_count(audit.persist.events, 'event')} up to {audit.up_to:,}, in {audit.seconds:.1f} s"
    typer.echo(f"read          {read}")
    if audit.vectors is None:
        typer.echo("vectors       none found at the configured place")
    if audit.every > 1:
        typer.echo(f"compared      the content of about one in {audit.every} users; the rows of all users")
    if audit.persist.removed:
        typer.echo(
            f"removed       the content of {format_count(audit.persist.removed, 'event')}, as expected"
        )
    if audit.persist.waiting:
        waiting = format_count(audit.persist.waiting, "event")
        typer.echo(f"waiting       {waiting} for the sweep that removes their content")
    if audit.beyond:
        beyond = format_count(audit.beyond, "position")
        typer.echo(f"not checked   {beyond} of the log that persist had not handled when the audit began")
    if audit.extract.oldest:
        hours = audit.extract.oldest.total_seconds() / 3600
        typer.echo(f"open batches  the oldest is {hours:.1f} h old")


def _describe_fault(fault: "AuditFault") -> str:
    from mnemon.operations.audit.ledger import MEANINGS

    return MEANINGS[fault.kind] + (f": {fault.detail}" if fault.detail else "")


def _show_conclusion(audit: "Audit", data: Path | None) -> None:
    from mnemon.operations.audit.ledger import MEANINGS, NEXT_STEPS

    faults = audit.faults
    if not faults.total:
        typer.secho("everything is accounted for", fg="green", bold=True)
        return
    show_table(
        ("event", "consumer", "where", "fault"),
        [(each.seq, each.consumer, each.where, _describe_fault(each)) for each in faults.named],
        texts=("fault",),
    )
    for kind in sorted(faults.counts):
        typer.echo(f"  {MEANINGS[kind]}: {complete_next_step(NEXT_STEPS[kind], data)}")
    sequences = ", ".join(f"{seq}" for seq in faults.list_sequences())
    typer.secho(f"{format_count(faults.total, 'fault')}; lowest positions: {sequences}", fg="red", bold=True)
