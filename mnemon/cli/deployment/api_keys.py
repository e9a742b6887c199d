"""Command `mnemon auth key`: create, list and revoke keys for the HTTP gateway."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemon.cli.options.target import DataOption, complete_command, open_broker, require_deployment
from mnemon.cli.terminal.exit_code import ExitCode, perform_async, refuse
from mnemon.cli.terminal.output import JsonOption, show_json, show_table

if TYPE_CHECKING:
    from pathlib import Path

    from mnemon_infra.settings.api_keys import ApiKey, ApiKeys

app = typer.Typer(no_args_is_help=True, help="Create, list and revoke API keys for the HTTP gateway.")


@app.command("create")
@perform_async
async def create(
    tenant: Annotated[str, typer.Option(help="Tenant whose memory the key may use.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help="Scope of the key: read, write or erase. Repeat the option for several scopes. Default: "
            "read and write."
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(help="User to whose memory the key is restricted. Default: all users of the tenant."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Label of the key, such as dashboard. Default: none.")
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Create a key for programs that use the gateway. The key is shown once; mnemon keeps a hash of it.

    Example: `mnemon auth key create --tenant acme --scope read --name dashboard --data ./memory`
    """
    from mnemon_contracts.base import InvalidBody
    from mnemon_infra.settings.api_keys import issue_key

    try:
        issued = issue_key(tenant, scope or ["read", "write"], user, name)
    except InvalidBody as error:
        refuse(ExitCode.USAGE_ERROR, str(error), "Show the options: mnemon auth key create --help")
    async with _open_keys(data) as keys:
        await keys.add(issued.stored)
    if as_json:
        show_json({"key": issued.text, **_key_to_json(issued.stored)})
    else:
        typer.echo(f"  key     {issued.text}")
        typer.echo(f"  id      {issued.stored.id}")
        typer.echo(f"  scopes  {' '.join(issued.stored.scopes)}")
        typer.echo("Send it as a header: Authorization: Bearer KEY")
    return ExitCode.DONE


@app.command("list")
@perform_async
async def list_(data: DataOption = None, as_json: JsonOption = False) -> ExitCode:
    """List the keys, without their secrets.

    Example: `mnemon auth key list --data ./memory`
    """
    async with _open_keys(data) as keys:
        found = await keys.list_keys()
    if as_json:
        show_json([_key_to_json(key) for key in found])
    elif not found:
        typer.echo("no keys")
    else:
        show_table(
            ("id", "tenant", "scopes", "user", "name", "created (UTC)"),
            [
                (
                    *(key.id, key.tenant, " ".join(key.scopes), key.user or "", key.name or ""),
                    f"{key.created_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}",
                )
                for key in found
            ],
        )
    return ExitCode.DONE


@app.command("revoke")
@perform_async
async def revoke(
    key_id: Annotated[
        str, typer.Argument(metavar="ID", help="Id of the key, as `mnemon auth key list` shows it.")
    ],
    data: DataOption = None,
) -> ExitCode:
    """Revoke a key. A gateway that reaches the NATS server accepts the key for at most five more seconds.

    Exits with code 1 if there is no such key.

    Example: `mnemon auth key revoke 0f3a9c21b7d4 --data ./memory`
    """
    async with _open_keys(data) as keys:
        if not await keys.revoke(key_id):
            refuse(
                ExitCode.NEGATIVE_RESULT,
                f"there is no key {key_id!r}",
                f"List the keys: {complete_command('mnemon auth key list', data)}",
            )
    typer.echo(f"revoked: {key_id}")
    return ExitCode.DONE


@asynccontextmanager
async def _open_keys(data: "Path | None") -> "AsyncIterator[ApiKeys]":
    from mnemon_infra.settings.api_keys import ApiKeysNotProvisioned, open_api_keys

    async with open_broker(require_deployment(data, "broker"), "mnemon-auth") as connection:
        try:
            yield await open_api_keys(connection)
        except ApiKeysNotProvisioned as error:
            refuse(ExitCode.UNAVAILABLE, str(error))


def _key_to_json(key: "ApiKey") -> dict[str, Any]:
    shown = key.model_dump(mode="json", exclude={"digest"})
    return {name: shown[name] for name in ("id", "tenant", "scopes", "user", "name", "created_at")}
