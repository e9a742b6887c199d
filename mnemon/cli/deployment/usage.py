"""Command `mnemon usage`: show calls, tokens and cost of language models."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemon.cli.options.target import DataOption, complete_command, open_connections, require_deployment
from mnemon.cli.terminal.exit_code import ExitCode, perform_async, refuse
from mnemon.cli.terminal.output import Figure, JsonOption, show_json, show_table
from mnemon.display_text import format_count

if TYPE_CHECKING:
    from mnemon_consumers.domain.spending.period import Period
    from mnemon_consumers.domain.spending.usage import Total, UsageGrouping
    from mnemon_contracts.settings.language_models import Price
    from mnemon_infra.config import Deployment


@perform_async
async def usage(
    tenant: Annotated[str | None, typer.Option(help="Show this tenant only. Default: all tenants.")] = None,
    days: Annotated[
        int, typer.Option(min=1, max=3660, help="Number of days to show, including today (UTC).")
    ] = 7,
    by: Annotated[
        str,
        typer.Option(
            metavar="PART,...",
            help="Columns to group by, comma-separated: any of day, tenant, purpose, model.",
        ),
    ] = "day,tenant,purpose",
    data: DataOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Show the calls of language models, their tokens and their cost.

    Costs use the prices that were set when a model was called. Set the prices first, in US dollars for a
    million tokens; `cached` may be left out, and `batch` is the share of these prices that a request in a
    batch costs (default 0.5):

    `mnemon settings set spending.prices='[{"model": "gpt-4o-mini", "input": 0.15, "cached": 0.075, "output":
    0.6}]'`

    Set a limit, above which background work of a tenant waits for the next day (UTC):

    `mnemon settings set spending.usd_per_day=5 --tenant acme`

    Example: `mnemon usage --days 30 --by tenant,model --data ./memory`
    """
    deployment = require_deployment(data, "broker", "database")
    grouping = _parse_grouping(by)
    found = await _load_period(deployment, tenant, days)
    if as_json:
        show_json(_period_to_json(found, grouping))
    else:
        _show_usage(found, grouping, tenant, data)
    return ExitCode.DONE


def _parse_grouping(by: str) -> "Sequence[UsageGrouping]":
    from mnemon_consumers.domain.spending.usage import PARTS

    names = [name.strip() for name in by.split(",")]
    known = [part for name in names for part in PARTS if part == name]
    if len(known) != len(names):
        refuse(ExitCode.USAGE_ERROR, f"--by {by} has an unknown part; choose from: {', '.join(PARTS)}")
    return list(dict.fromkeys(known))


async def _load_period(deployment: "Deployment", tenant: str | None, days: int) -> "Period":
    from mnemon_consumers.domain.spending.period import load_last_days
    from mnemon_infra.settings.store import LiveSettings

    settings = LiveSettings()
    async with (
        open_connections(deployment, "mnemon-usage") as (connection, database),
        settings.watch_bucket(connection),
    ):
        return await load_last_days(database, settings, tenant, days)


def _period_to_json(period: "Period", by: "Sequence[UsageGrouping]") -> dict[str, Any]:
    return {
        "since": period.since.isoformat(),
        "until": period.until.isoformat(),
        "by": by,
        "usage": [
            dict(zip(by, key, strict=True)) | _total_to_json(total)
            for key, total in period.sum_by(by).items()
        ],
        "total": _total_to_json(period.total),
        "unpriced_models": period.unpriced_models,
        "out_of_budget": [each._asdict() for each in period.out_of_budget],
    }


def _total_to_json(total: "Total") -> dict[str, Any]:
    return asdict(total) | {"usd": total.known_usd, "cached_share": total.cached_share}


def _show_usage(
    usage: "Period", by: "Sequence[UsageGrouping]", tenant: str | None, data: Path | None
) -> None:
    last = usage.until - timedelta(days=1)
    period = f"{usage.since:%Y-%m-%d}" + (f" to {last:%Y-%m-%d}" if usage.since < last else "") + " (UTC)"
    if not usage.total.calls:
        typer.echo(f"no calls of language models, {period}")
    else:
        rows = [(*key, *_format_total(total)) for key, total in usage.sum_by(by).items()]
        rows.append(("total", *[""] * (len(by) - 1), *_format_total(usage.total)))
        show_table((*by, "calls", "batched", "input", "cached", "output", "US$"), rows)
        typer.echo(f"\nperiod        {period}")
        typer.echo(f"cached        {usage.total.cached_share or 0:.0%} of the input tokens")
        if usage.total.batched:
            typer.echo(f"batches       {usage.total.saved:,.4f} US$ saved, at the current prices")
    for each in usage.out_of_budget:
        show_out_of_budget(*each)
    if usage.unpriced_models:
        typer.echo(
            f"no price      {format_count(usage.total.unpriced, 'call')} without a price, not in the cost;"
            " a later price does not change that"
        )
    if models := usage.models_to_price:
        has_own_prices = usage.prices != usage.settings.value.spending.prices
        _show_how_to_price(usage.prices, models, tenant if has_own_prices else None, data)


def _format_total(total: "Total") -> tuple[object, ...]:
    usd = total.known_usd
    cost = Figure("-" if usd is None else f"{usd:,.4f}")
    return total.calls, total.batched, total.input, total.cached, total.output, cost


def _show_how_to_price(
    present: "Sequence[Price]", models: Sequence[str], tenant: str | None, data: Path | None
) -> None:
    prices = [each.model_dump(mode="json", exclude_defaults=True) for each in present]
    prices += [{"model": model, "input": 0, "output": 0} for model in models]
    command = f"mnemon settings set spending.prices={quote(json.dumps(prices, ensure_ascii=False))}"
    if tenant is not None:
        command += f" --tenant {quote(tenant)}"
    typer.echo("  to set prices for future calls:")
    typer.echo(f"  {complete_command(command, data)}")
    typer.echo("  replace each 0 by the price of a million tokens, in US dollars")


def show_out_of_budget(tenant: str, usd: float, usd_per_day: float) -> None:
    """Print the US dollars that a tenant out of budget has spent today, and its budget for a day."""
    spent = f"{usd:,.4f} US$ of {usd_per_day:,g} spent today"
    typer.secho(f"out of budget {tenant}: {spent}; background work waits until tomorrow (UTC)", fg="yellow")
