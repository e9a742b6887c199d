"""`mnemon run`."""

from typing import TYPE_CHECKING, Annotated

import typer

from mnemon.cli.consumer_names import consumers_named
from mnemon.cli.stack.metrics_port import MetricsPort, addresses, shown_at
from mnemon.cli.target import DataOption, target
from mnemon.cli.terminal.exit_code import Ending, perform
from mnemon.cli.terminal.signals import Stop

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
    chosen = consumers_named(names)
    perform(_run(chosen, shown_at(target(data, "broker", "database"), metrics_port)))


async def _run(names: tuple[str, ...], deployment: "Deployment") -> Ending:
    from mnemon_consumers.app import run_consumers
    from mnemon_infra.telemetry.logging import configure_logging

    configure_logging()
    with Stop() as stop:
        async with run_consumers(names, deployment):
            typer.echo(f"{', '.join(names)}: running. Ctrl-C stops.")
            for address in addresses(deployment):
                typer.echo(f"  metrics  {address}")
            await stop.asked()
    return Ending.DONE
