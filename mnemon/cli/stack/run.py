"""`mnemon run`."""

from typing import TYPE_CHECKING, Annotated

import typer

from mnemon.cli.consumer_names import parse_consumers
from mnemon.cli.stack.metrics_port import MetricsPort, list_metrics_addresses, set_metrics_port
from mnemon.cli.target import DataOption, require_deployment
from mnemon.cli.terminal.exit_code import Ending, perform_command
from mnemon.cli.terminal.signals import StopSignals

if TYPE_CHECKING:
    from mnemon_infra.config import Deployment


def run(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME", help="Names of consumers, such as persist retrieve.")
    ],
    data: DataOption = None,
    metrics_port: MetricsPort = None,
) -> None:
    """Run consumers against the configured servers, until Ctrl-C.

    Any number of processes may run the same consumer: they share its work. Prepare the servers with `mnemon
    provision` and `mnemon migrate` first.

    Example: `MNEMON_NATS_URL=nats://nats:4222 DATABASE_URL=postgresql://db/mnemon mnemon run persist`
    """
    chosen = parse_consumers(names)
    perform_command(
        _run_consumers(chosen, set_metrics_port(require_deployment(data, "broker", "database"), metrics_port))
    )


async def _run_consumers(names: tuple[str, ...], deployment: "Deployment") -> Ending:
    from mnemon_consumers.app import run_consumers
    from mnemon_infra.telemetry.logging import configure_logging

    configure_logging()
    with StopSignals() as stop:
        async with run_consumers(names, deployment):
            typer.echo(f"{', '.join(names)}: running. Ctrl-C stops.")
            for address in list_metrics_addresses(deployment):
                typer.echo(f"  metrics  {address}")
            await stop.wait()
    return Ending.DONE
