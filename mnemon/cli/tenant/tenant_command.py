"""Command `mnemon tenant`: move a tenant to another deployment, and confirm or revert the move."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mnemon.cli.backup.options import show_positions
from mnemon.cli.options.target import DataOption, require_deployment
from mnemon.cli.terminal.exit_code import ExitCode, perform_command, refuse
from mnemon.cli.terminal.output import JsonOption, show_json

if TYPE_CHECKING:
    from mnemon.operations.tenant_move.deployment import TenantSite
    from mnemon.operations.tenant_move.run import MoveResult
    from mnemon_infra.config import Deployment

app = typer.Typer(no_args_is_help=True, help="Move a tenant to another deployment.")

TenantArgument = Annotated[
    str, typer.Argument(metavar="TENANT", help="Id of the tenant, as its bots use it.")
]
TargetOption = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="URL|DIR",
        help="The other deployment: the address of its NATS servers with an operator's login, or the folder "
        "of a running stack.",
    ),
]
TargetDatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--to-database",
        metavar="URL",
        help="Database of the other deployment. Default: that of the folder in --to.",
    ),
]
TargetSchemaOption = Annotated[
    str, typer.Option("--to-schema", metavar="NAME", help="Schema in the other database.")
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="URL",
        help="Address of the other NATS servers for bots, without a login. Default: that of --to.",
    ),
]


@app.command("move")
def move(
    tenant: TenantArgument,
    to: TargetOption,
    to_database: TargetDatabaseOption = None,
    to_schema: TargetSchemaOption = "mnemon",
    address: AddressOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move a tenant to another deployment, while its bots talk.

    Events are copied with their ids and times; positions inside of events are mapped. Log and rows of both
    deployments are compared. Then requests are refused for about a second, the remaining events are copied,
    and the other deployment serves the tenant. The former deployment answers requests with the error `moved`
    and the new address.

    After a kill, run the same command again; it continues where it stopped. After the switch, each run
    forwards events that bots have published to the former deployment since. `mnemon tenant confirm` ends the
    move, `mnemon tenant revert` moves the tenant back.

    Example: `mnemon tenant move acme --to ./other --data ./memory`

    Example: `mnemon tenant move acme --to nats://operator:...@b:4222 --to-database postgresql://b/mnemon`
    """
    target = _Target(to, to_database, to_schema, address)
    perform_command(_move(tenant, target, data, as_json))


@app.command("confirm")
def confirm(
    tenant: TenantArgument,
    to: TargetOption,
    to_database: TargetDatabaseOption = None,
    to_schema: TargetSchemaOption = "mnemon",
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Confirm a move: forward the last late events; the move can no longer be reverted.

    The former deployment keeps its copy, and answers requests with the error `moved`. `mnemon tenant status`
    counts events that arrive there later.

    Example: `mnemon tenant confirm acme --to ./other --data ./memory`
    """
    perform_command(_confirm(tenant, _Target(to, to_database, to_schema, None), data, as_json))


@app.command("revert")
def revert(
    tenant: TenantArgument,
    to: TargetOption,
    to_database: TargetDatabaseOption = None,
    to_schema: TargetSchemaOption = "mnemon",
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move a tenant back that was moved by mistake, with all events that it has received since.

    --to names the deployment to which the tenant was moved, as for `move`. After a kill, run the same command
    again.

    Example: `mnemon tenant revert acme --to ./other --data ./memory`
    """
    perform_command(_revert(tenant, _Target(to, to_database, to_schema, None), data, as_json))


@app.command("status")
def status(tenant: TenantArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Show where a tenant is, and how many events arrived here since it left.

    Exits with code 1 if any have arrived.

    Example: `mnemon tenant status acme --data ./memory`
    """
    perform_command(_show_status(tenant, data, as_json))


class _Target:
    """The other deployment, as the options name it."""

    def __init__(self, place: str, database: str | None, schema: str, address: str | None) -> None:
        self._place, self._database, self._schema = place, database, schema
        self._address = address

    def open_deployment(self) -> "Deployment":
        from mnemon_infra.config import Deployment

        if "://" not in self._place:
            return require_deployment(Path(self._place), "broker", "database")
        if self._database is None:
            refuse(
                ExitCode.USAGE_ERROR,
                "the database of the other deployment is not named",
                "Name it: --to-database postgresql://user:password@host:5432/name",
            )
        return Deployment(nats_url=self._place, database_dsn=self._database, database_schema=self._schema)

    def find_address(self, deployment: "Deployment") -> str:
        from mnemon.operations.tenant_move.deployment import strip_login

        return self._address or strip_login(deployment.nats_url or "")


@asynccontextmanager
async def _open_sites(
    tenant: str, target: _Target, data: Path | None
) -> AsyncIterator[tuple["TenantSite", "TenantSite", tuple[str, str]]]:
    """Open both deployments; yield the tenant in each, and the addresses for bots."""
    from mnemon.operations.tenant_move.deployment import TenantSite, strip_login
    from mnemon_infra.broker.connection import connect_deployment
    from mnemon_infra.broker.provisioning.presence import require_streams
    from mnemon_infra.database.engine import Database
    from mnemon_infra.telemetry.logging import configure_logging

    configure_logging()
    here, there = require_deployment(data, "broker", "database"), target.open_deployment()
    addresses = strip_login(here.nats_url or ""), target.find_address(there)
    if addresses[0] == addresses[1]:
        refuse(ExitCode.USAGE_ERROR, "--to names the deployment where the tenant is", "Name another one")
    async with AsyncExitStack() as ends:
        sites = []
        for deployment in (here, there):
            connection = await ends.enter_async_context(
                await connect_deployment(deployment, name="mnemon-tenant-move")
            )
            await require_streams(connection)
            database = await ends.enter_async_context(Database(deployment, name="mnemon-tenant-move"))
            sites.append(TenantSite(connection, database, tenant))
        yield sites[0], sites[1], addresses


async def _move(tenant: str, target: _Target, data: Path | None, as_json: bool) -> ExitCode:
    from mnemon.operations.tenant_move.run import TenantMove

    async with _open_sites(tenant, target, data) as (here, there, addresses):
        with show_positions() as progress:
            result = await TenantMove(here, there, addresses, progress).perform()
    if as_json:
        show_json(_describe(result, addresses[1]))
        return ExitCode.DONE
    if result.is_repeated:
        typer.echo(f"{tenant} is at {addresses[1]}. {result.forwarded:,} late events were forwarded.")
        _show_withheld(result)
    else:
        typer.echo(
            f"{tenant} is at {addresses[1]} now: {result.events:,} events, and {result.rows:,} compared rows,"
            f" in {result.seconds:,.1f} s. Requests were refused for {result.pause_seconds:.2f} s."
        )
    typer.echo("Next: let its bots connect there, run this command again, then: mnemon tenant confirm")
    return ExitCode.DONE


async def _confirm(tenant: str, target: _Target, data: Path | None, as_json: bool) -> ExitCode:
    from mnemon.operations.tenant_move.run import TenantMove, confirm_move

    async with _open_sites(tenant, target, data) as (here, there, addresses):
        await confirm_move(here, there, is_dry_run=True)
        with show_positions() as progress:
            result = await TenantMove(here, there, addresses, progress).perform()
        await confirm_move(here, there)
    if as_json:
        show_json(_describe(result, addresses[1]))
    else:
        typer.echo(f"The move of {tenant} is confirmed. {result.forwarded:,} late events were forwarded.")
        _show_withheld(result)
    return ExitCode.DONE


async def _revert(tenant: str, target: _Target, data: Path | None, as_json: bool) -> ExitCode:
    from mnemon.operations.tenant_move.run import TenantMove

    async with _open_sites(tenant, target, data) as (here, there, addresses):
        with show_positions() as progress:
            result = await TenantMove(
                there, here, (addresses[1], addresses[0]), progress, is_returning=True
            ).perform()
    if as_json:
        show_json(_describe(result, addresses[0]))
    else:
        typer.echo(
            f"{tenant} is at {addresses[0]} again, with all events since the move. Requests were refused for"
            f" {result.pause_seconds:.2f} s."
        )
    return ExitCode.DONE


async def _show_status(tenant: str, data: Path | None, as_json: bool) -> ExitCode:
    from mnemon.operations.tenant_move.late_events import count_late_events
    from mnemon_infra.broker.connection import connect_deployment
    from mnemon_infra.settings.residence import read_residence

    deployment = require_deployment(data, "broker")
    async with await connect_deployment(deployment, name="mnemon-tenant-status") as connection:
        residence = (await read_residence(connection, tenant)).residence
        late = await count_late_events(connection, tenant, residence)
    if as_json:
        show_json(
            {
                "tenant": tenant,
                "state": residence.state if residence else "here",
                "peer": residence.peer if residence else None,
                "confirmed": bool(residence and residence.is_confirmed),
                "pause_seconds": residence.pause if residence else 0.0,
                "late_events": late,
            }
        )
    elif residence is None:
        typer.echo(f"{tenant} has not moved.")
    else:
        confirmed = ", confirmed" if residence.is_confirmed else ""
        typer.echo(f"{tenant}: {residence.state}{confirmed}. The other deployment is {residence.peer}.")
        if late:
            typer.echo(
                f"{late:,} events arrived here since it left. To forward them before the move is confirmed:"
                " mnemon tenant move"
            )
    return ExitCode.NEGATIVE_RESULT if late else ExitCode.DONE


def _show_withheld(result: "MoveResult") -> None:
    if result.withheld:
        typer.echo(
            f"{len(result.withheld):,} late removals were not forwarded, because they would remove newer"
            " messages too. Publish those that are still wanted to the new deployment:"
        )
    for each in result.withheld:
        typer.echo(f"  {each}")


def _describe(result: "MoveResult", address: str) -> dict[str, object]:
    return {
        "address": address,
        "events": result.events,
        "rows": result.rows,
        "skipped_positions": result.fillers,
        "forwarded": result.forwarded,
        "withheld": list(result.withheld),
        "proposals": result.proposals,
        "pause_seconds": round(result.pause_seconds, 3),
        "seconds": round(result.seconds, 1),
        "repeated": result.is_repeated,
    }
