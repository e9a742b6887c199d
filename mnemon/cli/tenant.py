"""Command `mnemon tenant`: move a tenant to another deployment, and confirm, revert or abandon the move."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mnemon.cli.backup.options import show_positions
from mnemon.cli.options.option_group import expand_options
from mnemon.cli.options.owner import check_owner
from mnemon.cli.options.target import (
    DataOption,
    complete_command,
    open_broker,
    open_connections,
    require_deployment,
)
from mnemon.cli.terminal.exit_code import ExitCode, perform_async, refuse
from mnemon.cli.terminal.output import JsonOption, show_json
from mnemon.display_text import format_count

if TYPE_CHECKING:
    from mnemon.operations.tenant_move.deployment import TenantSite
    from mnemon.operations.tenant_move.run import MoveResult
    from mnemon_infra.config import Deployment

app = typer.Typer(
    no_args_is_help=True,
    help="Move a tenant to another deployment, and confirm, revert or abandon the move.",
)


def _check_tenant(tenant: str) -> str:
    """Return the argument TENANT; end the command if the argument cannot be the id of a tenant."""
    check_owner(tenant, None)
    return tenant


TenantArgument = Annotated[
    str,
    typer.Argument(metavar="TENANT", help="Id of the tenant, as its bots use it.", callback=_check_tenant),
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
OptionalTargetOption = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="URL|DIR",
        help="The other deployment: the address of its NATS servers with an operator's login, or the folder "
        "of a running stack. Give either --to or --target-lost.",
    ),
]
LostOption = Annotated[
    bool,
    typer.Option(
        "--target-lost",
        help="Abandon the move in this deployment only, because the other deployment is lost. If the other "
        "deployment comes back, repeat the command with --to. Default: off.",
    ),
]
TargetDatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--to-database",
        metavar="URL",
        help="Database of the other deployment, such as postgresql://b/mnemon. Required if --to is a URL; a "
        "folder in --to has its own database.",
    ),
]
TargetSchemaOption = Annotated[
    str | None,
    typer.Option(
        "--to-schema",
        metavar="NAME",
        help="Schema in the database of the other deployment. Default: if --to is a folder, "
        "MNEMON_DATABASE_SCHEMA; if --to is a URL, or the variable is not set, mnemon.",
    ),
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="URL",
        help="Address of the other deployment's NATS servers for bots, such as nats://b:4222. Bots get the "
        "address with the error `moved`, so leave out user and password. Default: the address in --to, "
        "without its login.",
    ),
]


_OPTIONS: Final = {"database_dsn": "--to-database", "database_schema": "--to-schema"}
"""Options by the fields of a deployment that they set."""


@dataclass(frozen=True)
class MoveTarget:
    """The other deployment, as the options name it."""

    to: TargetOption
    to_database: TargetDatabaseOption = None
    to_schema: TargetSchemaOption = None

    def build_deployment(self) -> "Deployment":
        """Return the other deployment; end the command if an option is invalid or missing."""
        from pydantic import ValidationError

        from mnemon_contracts.base import describe_problem
        from mnemon_infra.config import Deployment

        if "://" not in self.to:
            fields = require_deployment(Path(self.to), "broker", "database").model_dump()
        elif self.to_database is None:
            refuse(
                ExitCode.USAGE_ERROR,
                "the database of the other deployment is not named",
                "Name it: --to-database postgresql://user:password@host:5432/name",
            )
        else:
            fields = {"nats_url": self.to, "database_dsn": self.to_database, "database_schema": "mnemon"}
        if self.to_schema is not None:
            fields["database_schema"] = self.to_schema
        try:
            return Deployment(**fields)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            option = _OPTIONS.get(str(first["loc"][0]), "--to")
            refuse(
                ExitCode.USAGE_ERROR,
                f"{option} is invalid: {describe_problem(first)}",
                "Correct the option, then repeat the command",
            )


@app.command("move")
@expand_options
@perform_async
async def move(
    tenant: TenantArgument,
    *,
    target: MoveTarget,
    address: AddressOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Move a tenant to another deployment, while its bots talk.

    Events are copied with their ids and times; log positions that events name are replaced with those in the
    other log. Log and rows of both deployments are compared. Then requests are refused for about a second,
    the remaining events are copied, and the other deployment serves the tenant. The former deployment answers
    requests with the error `moved` and the new address.

    API keys are copied, so that the same keys work in the other deployment.

    After a kill, run the same command again; it continues where it stopped. `mnemon tenant abandon`
    abandons a move that has not switched. After the switch, each run forwards events that bots have published
    to the former deployment since. `mnemon tenant confirm` ends the move, `mnemon tenant revert` moves the
    tenant back.

    Example: `mnemon tenant move acme --to ./other --data ./memory`

    Example: `mnemon tenant move acme --to nats://operator:...@b:4222 --to-database postgresql://b/mnemon`
    """
    from mnemon.operations.tenant_move.run import TenantMove

    async with _open_sites(tenant, target, data, address) as (source_site, target_site, addresses):
        with show_positions() as progress:
            result = await TenantMove(source_site, target_site, addresses, progress).perform()
    if as_json:
        show_json(_result_to_json(result, addresses[1]))
        return ExitCode.DONE
    if result.is_repeated:
        typer.echo(
            f"{tenant} is at {addresses[1]}. {format_count(result.forwarded, 'late event', 'was')} forwarded."
        )
        _show_withheld(result)
    else:
        typer.echo(
            f"{tenant} is at {addresses[1]} now: {format_count(result.events, 'event')}, and"
            f" {format_count(result.rows, 'compared row')}, in {result.seconds:,.1f} s."
            f" Requests were refused for {result.pause_seconds:.2f} s."
        )
    if result.is_confirmed:
        typer.echo("The move is confirmed.")
    else:
        typer.echo(
            "Next: let the tenant's bots connect to this address, and run the same command again. Then run "
            "`mnemon tenant confirm` with the same tenant and deployments"
        )
    return ExitCode.DONE


@app.command("confirm")
@expand_options
@perform_async
async def confirm(
    tenant: TenantArgument,
    *,
    target: MoveTarget,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Confirm a move: forward the last late events; the move can no longer be reverted.

    The former deployment keeps its copy, and answers requests other than `erase` with the error `moved`.
    `mnemon tenant status`, run in the former deployment, counts events that arrive later.

    Example: `mnemon tenant confirm acme --to ./other --data ./memory`
    """
    from mnemon.operations.tenant_move.confirmation import confirm_move
    from mnemon.operations.tenant_move.run import TenantMove

    async with _open_sites(tenant, target, data) as (source_site, target_site, addresses):
        await confirm_move(source_site, target_site, is_dry_run=True)
        with show_positions() as progress:
            result = await TenantMove(source_site, target_site, addresses, progress).perform()
        await confirm_move(source_site, target_site)
    if as_json:
        show_json(_result_to_json(result, addresses[1]))
    else:
        forwarded = format_count(result.forwarded, "late event", "was")
        typer.echo(f"The move of {tenant} is confirmed. {forwarded} forwarded.")
        _show_withheld(result)
    return ExitCode.DONE


@app.command("revert")
@expand_options
@perform_async
async def revert(
    tenant: TenantArgument,
    *,
    target: MoveTarget,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Move back a tenant that was moved by mistake, with all events that it has received since the move.

    --to names the deployment to which the tenant was moved, as for `move`. After a kill, run the same command
    again.

    Example: `mnemon tenant revert acme --to ./other --data ./memory`
    """
    from mnemon.operations.tenant_move.run import TenantMove

    async with _open_sites(tenant, target, data) as (source_site, target_site, addresses):
        with show_positions() as progress:
            result = await TenantMove(
                target_site, source_site, (addresses[1], addresses[0]), progress, is_returning=True
            ).perform()
    if as_json:
        show_json(_result_to_json(result, addresses[0]))
    else:
        typer.echo(
            f"{tenant} is at {addresses[0]} again, with all events since the move. Requests were refused for"
            f" {result.pause_seconds:.2f} s."
        )
    return ExitCode.DONE


@app.command("abandon")
@perform_async
async def abandon(
    tenant: TenantArgument,
    to: OptionalTargetOption = None,
    to_database: TargetDatabaseOption = None,
    to_schema: TargetSchemaOption = None,
    is_lost: LostOption = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Abandon a move that has not switched: the tenant stays where it is, as if no move had begun.

    The command also works after `mnemon tenant move` was killed, even within the write pause: requests are
    then answered again at once. API keys that the move copied are revoked in the other deployment. The copied
    events stay there with a mark: nothing is derived from them, and a later `mnemon tenant move` continues
    with them. `mnemon erase TENANT USER`, run for the other deployment, erases users of the copy; the tenant
    can then no longer move there. A begun `revert` is abandoned in the same way. After a switch, use `mnemon
    tenant revert`.

    Example: `mnemon tenant abandon acme --to ./other --data ./memory`

    Example: `mnemon tenant abandon acme --target-lost --data ./memory`
    """
    from mnemon.operations.tenant_move.abandonment import abandon_move

    if (to is None) != is_lost:
        refuse(
            ExitCode.USAGE_ERROR,
            "give either --to or --target-lost",
            f"Run: mnemon tenant abandon {quote(tenant)} --to URL|DIR; or, if the other deployment is lost:"
            f" mnemon tenant abandon {quote(tenant)} --target-lost",
        )
    target = None if to is None else MoveTarget(to, to_database, to_schema)
    if target is None:
        async with _open_site(tenant, require_deployment(data, "broker", "database")) as source_site:
            result = await abandon_move(source_site, None)
    else:
        async with _open_sites(tenant, target, data) as (source_site, target_site, addresses):
            result = await abandon_move(source_site, target_site, addresses[1])
    abandoned = "revert" if result.is_revert else "move"
    if as_json:
        show_json({"abandoned": abandoned, "revoked_keys": result.keys, "has_copy": result.has_copy})
        return ExitCode.DONE
    typer.echo(
        f"The {abandoned} of {tenant} is abandoned: the tenant stays where it is."
        f" {format_count(result.keys, 'copied API key')} revoked."
    )
    if result.has_copy and not result.is_revert:
        command = complete_command(f"mnemon tenant move {quote(tenant)} --to URL|DIR", data)
        typer.echo(
            "The other deployment keeps a copy from which nothing is derived. To continue with it:"
            f" {command}. To erase a user of the copy, which rules out a later move to that deployment, run"
            f" there: mnemon erase {quote(tenant)} USER"
        )
    return ExitCode.DONE


@app.command("status")
@perform_async
async def status(tenant: TenantArgument, data: DataOption = None, as_json: JsonOption = False) -> ExitCode:
    """Show where a tenant is, and the late events and removals that this deployment has not forwarded.

    Exits with code 1 if there are such events. Removals count until `mnemon tenant confirm` has named them.

    Example: `mnemon tenant status acme --data ./memory`
    """
    from mnemon.operations.tenant_move.late_events import count_late_events
    from mnemon_infra.settings.residence import read_residence

    deployment = require_deployment(data, "broker")
    async with open_broker(deployment, "mnemon-tenant-status") as connection:
        residence = (await read_residence(connection, tenant)).residence
        late = await count_late_events(connection, tenant, residence)
    if as_json:
        show_json(
            {
                "tenant": tenant,
                "state": residence.state if residence else "here",
                "peer": residence.peer if residence else None,
                "confirmed": bool(residence and residence.is_confirmed),
                "abandoned": bool(residence and residence.is_abandoned),
                "pause_seconds": residence.pause if residence else 0.0,
                "late_events": late,
            }
        )
    elif residence is None:
        typer.echo(f"{tenant} has not moved.")
    else:
        confirmed = ", confirmed" if residence.is_confirmed else ""
        abandoned = ", abandoned" if residence.is_abandoned else ""
        typer.echo(
            f"{tenant}: {residence.state}{confirmed}{abandoned}. The other deployment is {residence.peer}."
        )
        withheld = len(residence.withheld) if late and not residence.is_confirmed else 0
        command = complete_command(f"mnemon tenant move {quote(tenant)} --to URL|DIR", data)
        if late > withheld:
            arrived = format_count(late - withheld, "event")
            typer.echo(f"{arrived} arrived here since the tenant left. To forward late events: {command}")
        if withheld:
            kept = format_count(withheld, "late removal", "was")
            typer.echo(f"{kept} not forwarded, so that newer messages stay. To list them: {command}")
    return ExitCode.NEGATIVE_RESULT if late else ExitCode.DONE


@asynccontextmanager
async def _open_sites(
    tenant: str, target: MoveTarget, data: Path | None, address: str | None = None
) -> AsyncIterator[tuple["TenantSite", "TenantSite", tuple[str, str]]]:
    """Open both deployments; yield the tenant in each, and the addresses for bots, this deployment first.

    End the command if the address of a server is not given, if an option is invalid, or if both deployments
    are the same.
    """
    from mnemon.operations.tenant_move.deployment import strip_login

    source_deployment = require_deployment(data, "broker", "database")
    target_deployment = target.build_deployment()
    source_url = strip_login(source_deployment.nats_url or "")
    target_url = strip_login(target_deployment.nats_url or "")
    if source_url == target_url:
        refuse(
            ExitCode.USAGE_ERROR,
            "--to names the deployment that the command already uses",
            "Name another one: --to URL|DIR",
        )
    async with (
        _open_site(tenant, source_deployment) as source_site,
        _open_site(tenant, target_deployment) as target_site,
    ):
        yield source_site, target_site, (source_url, address or target_url)


@asynccontextmanager
async def _open_site(tenant: str, deployment: "Deployment") -> AsyncIterator["TenantSite"]:
    from mnemon.operations.tenant_move.deployment import TenantSite
    from mnemon_infra.broker.provisioning.presence import require_streams

    async with open_connections(deployment, "mnemon-tenant-move") as (connection, database):
        await require_streams(connection)
        yield TenantSite(connection, database, tenant)


def _show_withheld(result: "MoveResult") -> None:
    if result.withheld:
        typer.echo(
            f"{format_count(len(result.withheld), 'late removal', 'was')} not forwarded, so that newer"
            " messages stay. Repeat in the new deployment those that are still wanted:"
        )
    for each in result.withheld:
        typer.echo(f"  {each}")


def _result_to_json(result: "MoveResult", address: str) -> dict[str, object]:
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
