"""`mnemon usage`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemon.cli.budgets import show_out_of_budget
from mnemon.cli.ending import Ending, perform, refuse
from mnemon.cli.output import Figure, JsonOption, show_table
from mnemon.cli.target import DataOption, target

if TYPE_CHECKING:
    from consumers.spending.usage import OutOfBudget, Part, Total
    from contracts.model_settings import Price
    from infra.config import Deployment


@dataclass(frozen=True, slots=True)
class _Found:
    """What is shown: of whole days in UTC, the last of them today."""

    since: datetime
    until: datetime
    by: "Sequence[Part]"
    totals: "Mapping[tuple[str, ...], Total]"
    all: "Total"
    unpriced_models: Sequence[str]
    out_of_budget: "Sequence[OutOfBudget]"
    prices: "Sequence[Price]"


def usage(
    tenant: Annotated[str | None, typer.Option(help="Only this tenant; without it: all of them.")] = None,
    days: Annotated[int, typer.Option(min=1, max=3660, help="Today and the days before it, in UTC.")] = 7,
    by: Annotated[
        str, typer.Option(metavar="PART,...", help="What is told apart: any of day, tenant, purpose, model.")
    ] = "day,tenant,purpose",
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what language models were asked, the tokens that took, and what it cost.

    Costs are counted by the prices that were set when a model was asked, so set them first, in US dollars
    for a million tokens; `cached` may be left out, and `batch` is the share that a batch costs (0.5):

    `mnemon settings set spending.prices='[{"model": "gpt-4o-mini", "input": 0.15, "cached": 0.075,
    "output": 0.6}]'`

    A limit makes background work of a tenant wait for the next day (UTC), once so much is spent:

    `mnemon settings set spending.usd_per_day=5 --tenant acme`

    Example: `mnemon usage --days 30 --by tenant,model --data ./memory`
    """
    perform(_usage(target(data, "broker", "database"), tenant, days, _parts(by), data, as_json))


def _parts(by: str) -> "Sequence[Part]":
    from consumers.spending.usage import PARTS

    names = [name.strip() for name in by.split(",")]
    known = [part for name in names for part in PARTS if part == name]
    if len(known) != len(names):
        refuse(Ending.WRONG_USE, f"--by {by}: there are {', '.join(PARTS)}")
    return list(dict.fromkeys(known))


async def _usage(
    deployment: "Deployment",
    tenant: str | None,
    days: int,
    by: "Sequence[Part]",
    data: Path | None,
    as_json: bool,
) -> Ending:
    found = await _find(deployment, tenant, days, by)
    if as_json:
        typer.echo(json.dumps(_as_json(found), ensure_ascii=False))
    else:
        _show(found, data)
    return Ending.DONE


async def _find(deployment: "Deployment", tenant: str | None, days: int, by: "Sequence[Part]") -> _Found:
    from consumers.spending.usage import Total, out_of_budget, summed, unpriced_models
    from contracts.model_settings import Spending
    from infra.broker.connect import connect
    from infra.database.engine import Database
    from infra.database.spending import spent_by_tenant, usage
    from infra.settings.store import LiveSettings
    from infra.telemetry.logging import configure_logging

    configure_logging()
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    since, until = today - timedelta(days=days - 1), today + timedelta(days=1)
    settings = LiveSettings()
    async with (
        await connect(str(deployment.nats_url), name="mnemon-usage") as connection,
        Database(deployment, name="mnemon-usage") as database,
        settings.watched(connection),
    ):
        calls = await database.read(usage(tenant, since, until))
        spent = await database.read(spent_by_tenant(today))

    def spending_of(one: str) -> Spending:
        return settings.of(one).spending

    totals = summed(calls, by, spending_of)
    broke = out_of_budget(spent, settings.tenants(), spending_of)
    return _Found(
        since,
        until,
        by,
        totals,
        sum(totals.values(), Total()),
        unpriced_models(calls),
        [each for each in broke if tenant in (None, each.tenant)],
        settings.value.spending.prices if tenant is None else spending_of(tenant).prices,
    )


def _as_json(found: _Found) -> dict[str, Any]:
    return {
        "since": found.since.isoformat(),
        "until": found.until.isoformat(),
        "by": found.by,
        "usage": [
            dict(zip(found.by, key, strict=True)) | _total_as_json(total)
            for key, total in found.totals.items()
        ],
        "total": _total_as_json(found.all),
        "unpriced_models": found.unpriced_models,
        "out_of_budget": [each._asdict() for each in found.out_of_budget],
    }


def _total_as_json(total: "Total") -> dict[str, Any]:
    return asdict(total) | {"usd": _usd(total), "cached_share": total.cached_share}


def _usd(total: "Total") -> float | None:
    """None is not nothing: nobody knows what it cost."""
    return None if total.calls and total.unpriced == total.calls else total.usd


def _show(found: _Found, data: Path | None) -> None:
    last = found.until - timedelta(days=1)
    period = f"{found.since:%Y-%m-%d}" + (f" to {last:%Y-%m-%d}" if found.since < last else "") + " (UTC)"
    if not found.all.calls:
        typer.echo(f"no model was asked, {period}")
    else:
        rows = [(*key, *_cells(total)) for key, total in found.totals.items()]
        rows.append(("total", *[""] * (len(found.by) - 1), *_cells(found.all)))
        show_table((*found.by, "calls", "batched", "input", "cached", "output", "US$"), rows)
        typer.echo(f"\nperiod        {period}")
        typer.echo(f"cached        {found.all.cached_share or 0:.0%} of the input tokens")
        if found.all.batched:
            typer.echo(f"batches       {found.all.saved:,.4f} US$ saved, at the prices of now")
    for each in found.out_of_budget:
        show_out_of_budget(*each)
    if found.unpriced_models:
        _show_how_to_price(found, data)


def _cells(total: "Total") -> tuple[object, ...]:
    usd = _usd(total)
    cost = Figure("-" if usd is None else f"{usd:,.4f}")
    return total.calls, total.batched, total.input, total.cached, total.output, cost


def _show_how_to_price(found: _Found, data: Path | None) -> None:
    prices = [each.model_dump(mode="json", exclude_defaults=True) for each in found.prices]
    prices += [{"model": model, "input": 0, "output": 0} for model in found.unpriced_models]
    where = f" --data {quote(str(data))}" if data else ""
    typer.echo(f"no price      {found.all.unpriced:,} calls are not in the cost. From now on they are with")
    typer.echo(
        f"  mnemon settings set{where} spending.prices={quote(json.dumps(prices, ensure_ascii=False))}"
    )
    typer.echo("  where each 0 is what a million tokens cost, in US dollars")
