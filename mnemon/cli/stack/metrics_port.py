"""Port and addresses of the metrics and health checks of a process."""

from typing import TYPE_CHECKING, Annotated

import typer

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
        help="Port of /metrics, /healthz and /readyz; without it: MNEMON_METRICS_PORT, otherwise none.",
    ),
]


def set_metrics_port(deployment: "Deployment", port: int | None) -> "Deployment":
    """Return the deployment with a metrics port, if one is given."""
    return deployment if port is None else deployment.model_copy(update={"metrics_port": port})


def take_next_metrics_port(deployment: "Deployment") -> "Deployment":
    """Return the deployment for a second process, with the next metrics port."""
    port = deployment.metrics_port
    return deployment if port is None else deployment.model_copy(update={"metrics_port": port + 1})


def list_metrics_addresses(*deployments: "Deployment") -> list[str]:
    """Return the addresses of the metrics of several processes."""
    return [
        f"http://{each.metrics_host}:{each.metrics_port}/metrics" for each in deployments if each.metrics_port
    ]
