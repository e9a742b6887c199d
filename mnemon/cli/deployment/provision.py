"""Command `mnemon provision`: create or update streams, consumers and buckets."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from mnemon.cli.target import DataOption, require_deployment
from mnemon.cli.terminal.exit_code import ExitCode, perform_command
from mnemon.cli.terminal.output import JsonOption, show_table

if TYPE_CHECKING:
    from mnemon_infra.config import Deployment


def provision(data: DataOption = None, as_json: JsonOption = False) -> None:
    """Create or update streams, consumers and buckets on the NATS server.

    The command changes nothing that is up to date: run it at every deployment.

    Example: `MNEMON_NATS_URL=nats://nats:4222 mnemon provision`
    """
    perform_command(_provision(require_deployment(data, "broker"), as_json))


async def _provision(deployment: "Deployment", as_json: bool) -> ExitCode:
    from mnemon_infra.broker.connection import connect_deployment
    from mnemon_infra.broker.provisioning.topology import provision as provision_server

    async with await connect_deployment(deployment, name="mnemon-provision") as connection:
        changes = await provision_server(connection, deployment.replicas)
    if as_json:
        typer.echo(json.dumps([asdict(change) for change in changes]))
    else:
        rows = [(change.what, change.action, change.detail) for change in changes]
        show_table(("what", "action", "difference"), rows)
    return ExitCode.DONE
