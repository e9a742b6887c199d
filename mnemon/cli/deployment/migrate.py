"""Command `mnemon migrate`: migrate the database schema."""

import asyncio
import json

import typer

from mnemon.cli.options.target import DataOption, require_deployment
from mnemon.cli.terminal.exit_code import ExitCode, perform_async
from mnemon.cli.terminal.output import JsonOption


@perform_async
async def migrate(data: DataOption = None, as_json: JsonOption = False) -> ExitCode:
    """Migrate the database schema to the revision that this version needs.

    A schema that is up to date does not change: run the command at every upgrade, from any number of
    processes.

    Example: `DATABASE_URL=postgresql://mnemon@db/mnemon mnemon migrate`
    """
    from mnemon_infra.database.migration import migrate_schema

    deployment = require_deployment(data, "database")
    assert deployment.database_url, "require_deployment has checked it"
    schema = deployment.database_schema
    revision = await asyncio.to_thread(migrate_schema, deployment.database_url, schema)
    if as_json:
        typer.echo(json.dumps({"schema": schema, "revision": revision}))
    else:
        typer.echo(f"schema {schema} is at revision {revision}")
    return ExitCode.DONE
