"""Address at which a process serves its metrics, and whether it is alive and ready."""

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
    """The same deployment, shown at a port, if one is named."""
    return deployment if port is None else deployment.model_copy(update={"metrics_port": port})


def take_next_metrics_port(deployment: "Deployment") -> "Deployment":
    """The same for a second process of it, which is shown at the next port."""
    port = deployment.metrics_port
    return deployment if port is None else deployment.model_copy(update={"metrics_port": port + 1})


def list_metrics_addresses(*deployments: "Deployment") -> list[str]:
    """Where they show their metrics."""
    return [
        f"http://{each.metrics_host}:{each.metrics_port}/metrics" for each in deployments if each.metrics_port
    ]
