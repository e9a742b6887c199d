"""Command `mnemon run`: run consumers against the configured servers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from mnemon.cli.options.target import DataOption, require_deployment
from mnemon.cli.terminal.exit_code import ExitCode, perform_async, refuse
from mnemon.cli.terminal.signals import StopSignals

if TYPE_CHECKING:
    from mnemon_infra.config import Deployment

MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        min=1,
        max=65_534,
        metavar="PORT",
        show_default=False,
        help="Port of /metrics, /healthz and /readyz; `mnemon up` takes the next port too, for a second "
        "process. Default: the port in MNEMON_METRICS_PORT if it is set, otherwise none.",
    ),
]


def set_metrics_port(deployment: "Deployment", port: int | None) -> "Deployment":
    """Return the deployment with the metrics port `port`; None keeps the configured port."""
    return deployment if port is None else deployment.model_copy(update={"metrics_port": port})


def take_next_metrics_port(deployment: "Deployment") -> "Deployment":
    """Return the deployment for a second process, with the next metrics port."""
    port = deployment.metrics_port
    return deployment if port is None else deployment.model_copy(update={"metrics_port": port + 1})


def list_metrics_addresses(*deployments: "Deployment") -> list[str]:
    """Return the addresses of the metrics of those processes that have a metrics port."""
    return [
        f"http://{each.metrics_host}:{each.metrics_port}/metrics" for each in deployments if each.metrics_port
    ]


def parse_consumers(names: Sequence[str]) -> tuple[str, ...]:
    """Return the named consumers, each once, in the order given.

    End the command if a name is unknown, or if no name is given.
    """
    from mnemon_infra.durables import CONSUMERS

    chosen = tuple(dict.fromkeys(name for name in names if name))
    unknown = [name for name in chosen if name not in CONSUMERS]
    if unknown or not chosen:
        problem = f"there is no consumer {unknown[0]!r}" if unknown else "no consumer is given"
        refuse(ExitCode.USAGE_ERROR, problem, f"Choose from: {', '.join(CONSUMERS)}")
    return chosen


@perform_async
async def run(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME",
            help="Consumers to run: any of persist, index, dedupe, compact, extract, maintain and retrieve.",
        ),
    ],
    data: DataOption = None,
    metrics_port: MetricsPort = None,
) -> ExitCode:
    """Run consumers against the configured servers, until Ctrl-C.

    Several processes may run the same consumer and share its work; without a Qdrant server
    (MNEMON_QDRANT_URL), run `index`, `dedupe` and `retrieve` in one process. Prepare the servers with `mnemon
    provision` and `mnemon migrate` first.

    Example: `MNEMON_NATS_URL=nats://nats:4222 DATABASE_URL=postgresql://db/mnemon mnemon run persist`
    """
    from mnemon_consumers.app import run_consumers
    from mnemon_infra.telemetry.logging import configure_logging

    chosen = parse_consumers(names)
    deployment = set_metrics_port(require_deployment(data, "broker", "database"), metrics_port)
    configure_logging()
    with StopSignals() as stop:
        async with run_consumers(chosen, deployment):
            typer.echo(f"{', '.join(chosen)}: running. Ctrl-C stops.")
            for address in list_metrics_addresses(deployment):
                typer.echo(f"  metrics  {address}")
            await stop.wait()
    return ExitCode.DONE
