"""The test suites of `tests/integration`, run on servers in containers."""

import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from testcontainers.community.postgres import PostgresContainer
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import HttpWaitStrategy

from mnemon_infra.broker.connection import MAX_PAYLOAD, connect

COMPOSE = (Path(__file__).parents[2] / "compose.yaml").read_text()
NATS_PORT, HEALTH_PORT = 4222, 8222
CONFIGURATION = f"""\
port: {NATS_PORT}
http_port: {HEALTH_PORT}
max_payload: {MAX_PAYLOAD}
jetstream {{ store_dir: /data, sync_interval: always }}
"""


def require_engine() -> None:
    """Skip the calling module if no Docker engine answers."""
    docker = shutil.which("docker")
    if not docker or subprocess.run([docker, "version"], capture_output=True, check=False).returncode:
        pytest.skip("no Docker engine answers: embedded servers only", allow_module_level=True)


def image(name: str) -> str:
    """Return the image that compose.yaml names."""
    found = re.search(rf"image: ({name}:\S+)", COMPOSE)
    assert found, f"compose.yaml has no image {name}"
    return found[1]


@pytest.fixture(scope="session")
def nats_container() -> Iterator[DockerContainer]:
    container = (
        DockerContainer(image("nats"))
        .with_command("--config /etc/nats/nats-server.conf")
        .with_copy_into_container(CONFIGURATION.encode(), "/etc/nats/nats-server.conf")
        .with_exposed_ports(NATS_PORT, HEALTH_PORT)
        .waiting_for(HttpWaitStrategy(HEALTH_PORT, "/healthz?js-enabled-only=true"))
    )
    with container:
        yield container


@pytest.fixture(scope="session")
def database_url() -> Iterator[str]:
    with PostgresContainer(image("postgres"), driver=None) as container:
        yield container.get_connection_url()


@pytest_asyncio.fixture
async def nats_url(nats_container: DockerContainer) -> AsyncIterator[str]:
    """Yield the URL of the NATS server in a container; delete the streams of the test afterwards."""
    host, port = nats_container.get_container_host_ip(), nats_container.get_exposed_port(NATS_PORT)
    url = f"nats://{host}:{port}"
    yield url
    connection = await connect(url, name="test-clean-up")
    jetstream = connection.jetstream()
    for stream in await jetstream.streams_info():
        await jetstream.delete_stream(str(stream.config.name))
    await connection.close()
