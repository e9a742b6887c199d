"""Command `mnemon migrate`: migrate the database schema."""

import asyncio
import json
from typing import TYPE_CHECKING

import typer

from mnemon.cli.options.target import DataOption, require_deployment
from mnemon.cli.terminal.exit_code import ExitCode, perform_command
from mnemon.cli.terminal.output import JsonOption

if TYPE_CHECKING:
    from mnemon_infra.config import Deployment


def migrate(data: DataOption = None, as_json: JsonOption = False) -> None:
    """Migrate the database schema to the revision that this version needs.

    A schema that is up to date does not change: run the command at every upgrade, from any number of
    processes.

    Example: `DATABASE_URL=postgresql://mnemon@db/mnemon mnemon migrate`
    """
    perform_command(_migrate_schema(require_deployment(data, "database"), as_json))


async def _migrate_schema(deployment: "Deployment", as_json: bool) -> ExitCode:
    from mnemon_infra.database.migration import migrate_schema

    assert deployment.database_url, "require_deployment has checked it"
    schema = deployment.database_schema
    revision = await asyncio.to_thread(migrate_schema, deployment.database_url, schema)
    if as_json:
        typer.echo(json.dumps({"schema": schema, "revision": revision}))
    else:
        typer.echo(f"schema {schema} is at revision {revision}")
    return ExitCode.DONE
