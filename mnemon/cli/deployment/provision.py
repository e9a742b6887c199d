"""Command `mnemon provision`: create or update streams, durables and buckets."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mnemon.cli.options.target import DataOption, complete_command, open_broker, require_deployment
from mnemon.cli.terminal.exit_code import ExitCode, perform_command
from mnemon.cli.terminal.output import JsonOption, show_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from mnemon_infra.config import Deployment

_STATES: Final = {"created": "missing", "updated": "different", "unchanged": "unchanged"}
"""Word that `--check` shows for each action of provisioning."""


def provision(
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Show what is missing or different on the server, and change nothing. Use it where another "
            "program, such as NACK, manages the streams.",
        ),
    ] = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create or update streams, durables (consumers of NATS) and buckets on the NATS server.

    The command changes nothing that is up to date: run it at every upgrade.

    With --check, exits with code 1 if something is missing or different.

    Example: `MNEMON_NATS_URL=nats://nats:4222 mnemon provision`
    """
    deployment = require_deployment(data, "broker")
    perform_command(
        _show_drift(deployment, data, as_json) if check else _provision_server(deployment, as_json)
    )


async def _provision_server(deployment: "Deployment", as_json: bool) -> ExitCode:
    from mnemon_infra.broker.provisioning.topology import provision as provision_server

    async with open_broker(deployment, "mnemon-provision") as connection:
        changes = await provision_server(connection, deployment.replicas)
    _show_changes([asdict(change) for change in changes], as_json)
    return ExitCode.DONE


async def _show_drift(deployment: "Deployment", data: "Path | None", as_json: bool) -> ExitCode:
    from mnemon_infra.broker.provisioning.topology import list_drift

    async with open_broker(deployment, "mnemon-provision") as connection:
        drift = await list_drift(connection, deployment.replicas)
    _show_changes([asdict(each) | {"action": _STATES[each.action]} for each in drift], as_json)
    differing = [each.what for each in drift if each.action != "unchanged"]
    if not differing:
        return ExitCode.DONE
    typer.echo(f"mnemon: the NATS server differs in: {', '.join(differing)}", err=True)
    command = complete_command("mnemon provision", data)
    typer.echo(f"  Correct this where the streams are managed, or run: {command}", err=True)
    return ExitCode.NEGATIVE_RESULT


def _show_changes(changes: "Sequence[Mapping[str, str]]", as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(changes))
    else:
        rows = [(change["what"], change["action"], change["detail"]) for change in changes]
        show_table(("what", "action", "difference"), rows, texts=("difference",))
