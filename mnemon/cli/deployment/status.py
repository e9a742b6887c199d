"""Command `mnemon status`: show the health of a deployment."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mnemon.cli.deployment.usage import show_out_of_budget
from mnemon.cli.options.target import (
    DataOption,
    complete_next_step,
    load_deployment,
    require_deployment,
)
from mnemon.cli.terminal.exit_code import ExitCode, perform_command
from mnemon.cli.terminal.output import JsonOption, show_table
from mnemon.display_text import format_count

if TYPE_CHECKING:
    from mnemon.operations.health.language_models import BatchesState, ModelsState
    from mnemon.operations.health.state import BrokerState, DatabaseState, Health, VectorsState
    from mnemon_infra.config import Deployment


def status(data: DataOption = None, as_json: JsonOption = False) -> None:
    """Show streams, the lag of each consumer, versions, health and the work of language models.

    If messages wait, the command samples the consumers for up to about two seconds, and reports their rate,
    the time until they catch up and those that fall behind. A consumer that falls behind is a warning, not a
    problem.

    Windows are ranges of messages that `extract` reads for facts: due, waiting for a retry, in batches of a
    provider, or given up. Background work of a tenant that is out of budget waits for the next day (UTC).

    Exits with code 0 if the system is healthy, 1 if there is a problem, 3 if NATS or the database does not
    answer.

    Example: `mnemon status --data ./memory --json`
    """
    from mnemon_infra.process.data_folder import Endpoints, find_holder

    if data and Endpoints.read(data) is None and (holder := find_holder(data)):
        perform_command(_show_silent_status(data, holder, as_json))
    perform_command(_show_status(require_deployment(data, "broker", "database"), data, as_json))


async def _show_status(deployment: "Deployment", data: Path | None, as_json: bool) -> ExitCode:
    from mnemon.operations.health.report import examine_deployment
    from mnemon_infra.telemetry.logging import configure_logging

    configure_logging()
    return _report_health(await examine_deployment(deployment, data), data, as_json)


async def _show_silent_status(data: Path, holder: str, as_json: bool) -> ExitCode:
    from mnemon.operations.health.report import describe_silent_stack

    return _report_health(
        describe_silent_stack(data, holder, load_deployment().database_schema), data, as_json
    )


def _report_health(health: "Health", data: Path | None, as_json: bool) -> ExitCode:
    if as_json:
        typer.echo(health.model_dump_json())
    else:
        _show_health(health, data)
    if not health.reachable:
        return ExitCode.UNAVAILABLE
    return ExitCode.DONE if health.healthy else ExitCode.NEGATIVE_RESULT


def _show_health(health: "Health", data: Path | None) -> None:
    if not health.broker.error:
        _show_broker(health.broker)
    if not health.database.error:
        _show_database(health.database)
    _show_vectors(health.vectors)
    if health.models and not health.models.error:
        _show_models(health.models)
    for warning in health.warnings:
        typer.secho(f"warning: {complete_next_step(warning, data)}", fg="yellow")
    if health.healthy:
        typer.secho("healthy", fg="green", bold=True)
    for problem in health.problems:
        typer.secho(f"problem: {complete_next_step(problem, data)}", fg="red")


def _show_broker(broker: "BrokerState") -> None:
    streams = [(name, each.messages, each.bytes, each.last_seq) for name, each in broker.streams.items()]
    lags = [
        (
            *(name, each.stream, each.pending, each.in_work, each.redelivered, each.readers),
            "" if each.per_second is None else f"{each.per_second:,.0f}/s",
            "" if each.seconds_left is None else _format_age(each.seconds_left),
        )
        for name, each in broker.consumers.items()
    ]
    services = ", ".join(f"{name} ({count})" for name, count in broker.services.items()) or "none"
    show_table(("stream", "messages", "bytes", "last seq"), streams)
    typer.echo()
    columns = "consumer", "stream", "pending", "in work", "redelivered", "readers", "rate", "caught up in"
    show_table(columns, lags)
    typer.echo()
    typer.echo(f"services      {services}")
    typer.echo(f"dead letters  {broker.dead_letters:,}")
    typer.echo(f"broker        nats-server {broker.version}")


def _show_database(database: "DatabaseState") -> None:
    revision = f"schema {database.schema_name} at {database.revision or 'no revision'}"
    typer.echo(f"database      PostgreSQL {database.version or ''}, {revision}")


def _show_vectors(vectors: "VectorsState") -> None:
    if vectors.engine == "server":
        name = f"Qdrant {vectors.version}" if vectors.version else "Qdrant, which does not answer"
        typer.echo(f"vectors       {name}: a server, for any number of processes of each consumer")
    else:
        *names, last = vectors.one_process
        typer.echo(f"vectors       Qdrant Edge: {', '.join(names)} and {last} run in one process")


def _show_models(models: "ModelsState") -> None:
    windows = models.windows
    typer.echo(
        f"windows       {windows.due:,} due, {windows.later:,} waiting for a retry, {windows.in_batches:,} in"
        f" batches, {windows.dead_today:,} given up today"
    )
    typer.echo(f"batches       {', '.join(_describe_batches(each) for each in models.batches) or 'none'}")
    for each in models.out_of_budget:
        show_out_of_budget(each.tenant, each.usd, each.usd_per_day)


def _describe_batches(batches: "BatchesState") -> str:
    age = _format_age(batches.age_seconds)
    return f"{batches.batches:,} {batches.state} ({format_count(batches.lines, 'line')}, the oldest {age})"


def _format_age(seconds: float) -> str:
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
