"""Launcher of a stack's gateway in a separate process; it also creates the first key of the data folder."""

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

from mnemon.http.lazy_process import LazyProcess, start_on_demand
from mnemon.http.saved_port import open_saved_port, read_saved_port
from mnemon.http.server import format_address
from mnemon_infra.broker.connection import connect_deployment
from mnemon_infra.config import Deployment
from mnemon_infra.process.data_folder import replace_file
from mnemon_infra.settings.api_keys import issue_key, open_api_keys

USUAL_PORT: Final = 8080
"""Port of the gateway at the first start, unless another process has it."""

FIRST_TENANT: Final = "default"
"""Tenant of the first key."""


class GatewayAddress(NamedTuple):
    """The address of a stack's gateway, and its first key if this start has created the key.

    Attributes:
        address: the address, such as `http://127.0.0.1:8080`.
        new_key: the first key of the folder; None if the key is not new.
        taken_port: the former or usual port, if another process has it; None if the gateway has this port.
    """

    address: str
    new_key: str | None
    taken_port: int | None


@asynccontextmanager
async def serve_gateway(
    data: Path, deployment: Deployment, operator: Deployment, port: int | None
) -> AsyncIterator[GatewayAddress]:
    """Serve the gateway of the stack in a folder, on this machine only, for the duration of the block.

    Args:
        data: the data folder of the stack.
        deployment: the servers, with the login of the gateway.
        operator: the servers, with the login of an operator, which creates the first key.
        port: the port; None means the former port if that is free, else the usual port, else any free port.

    Raises:
        mnemon.http.saved_port.PortTaken: the chosen port cannot be opened.
        OSError: no free port can be opened, or the file with the port cannot be written.
        BrokerUnreachable, nats.errors.Error: the NATS server does not answer, so the first key cannot be
            created.
        ApiKeysNotProvisioned: the bucket of keys is absent, so the first key cannot be created.
    """
    expected = port or read_saved_port(_get_port_path(data)) or USUAL_PORT
    with open_gateway_socket(data, port) as listening:
        taken = None if listening.getsockname()[1] == expected else expected
        key = None if has_key(data) else await _create_first_key(data, operator)
        options = json.dumps(deployment.to_json())
        process = LazyProcess("mnemon.gateway", lambda: options, lambda _: None)
        async with start_on_demand(process, listening):
            yield GatewayAddress(format_address(listening), key, taken)


def open_gateway_socket(data: Path, port: int | None) -> socket.socket:
    """Return the listening socket of the gateway of the stack in the folder `data`, and save its port there.

    `port` is the chosen port; None means the former port if that is free, else the usual port, else any free
    port.

    Raises:
        mnemon.http.saved_port.PortTaken: the chosen port cannot be opened.
        OSError: no free port can be opened, or the file with the port cannot be written.
    """
    return open_saved_port(_get_port_path(data), port, USUAL_PORT)


def _get_port_path(data: Path) -> Path:
    return prepare_key_path(data).with_name("port")


def prepare_key_path(data: Path) -> Path:
    """Create the gateway's folder, which only this account can read, and return the path of the first key."""
    folder = data / "gateway"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / "key"


def has_key(data: Path) -> bool:
    """Return whether the first key of a folder was created. Create the gateway's folder if it is absent."""
    return prepare_key_path(data).exists()


async def _create_first_key(data: Path, operator: Deployment) -> str:
    issued = issue_key(FIRST_TENANT, name="first key of this folder")
    async with await connect_deployment(operator, name="mnemon-up") as connection:
        await (await open_api_keys(connection)).add(issued.stored)
    replace_file(prepare_key_path(data), issued.text + "\n")
    return issued.text
