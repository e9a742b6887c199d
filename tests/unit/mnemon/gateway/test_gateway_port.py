"""Port of the gateway of `mnemon up`, and its report of a port that another program uses."""

import socket
from pathlib import Path

import pytest

from mnemon.gateway.launcher import prepare_key_path, serve_gateway
from mnemon_infra.config import Deployment


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a data folder that has the first API key, so that the gateway needs no NATS server for one."""
    prepare_key_path(tmp_path).write_text("key")
    return tmp_path


async def test_taken_port_is_reported_until_another_one_is_saved(data: Path) -> None:
    servers = Deployment.model_construct()
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        prepare_key_path(data).with_name("port").write_text(str(taken))
        async with serve_gateway(data, servers, servers, None) as first:
            assert (first.taken_port, str(taken) in first.address) == (taken, False)
        async with serve_gateway(data, servers, servers, None) as again:
            assert (again.taken_port, again.address) == (None, first.address)
