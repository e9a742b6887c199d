"""The image of the Dockerfile, configured as in compose.yaml, in Linux namespaces without an engine."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import tempfile
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import nats
import psycopg
import pytest
import yaml
from sqlalchemy.engine import make_url

from mnemon_infra.embedded.nats_server import NatsServer
from mnemon_infra.embedded.postgres import Postgres
from tests.support.processes.stack import stack_folder, until
from tests.support.repository.image import (
    Image,
    assemble_base,
    build_image,
    enter_container,
    find_first_process,
    require_namespaces,
    run_container,
)
from tests.support.servers.ports import free_port

ROOT = Path(__file__).parents[2]
SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    """Build the image, which takes minutes."""
    require_namespaces()
    # Not in /tmp, which may be in memory: debootstrap refuses file systems without device files.
    with tempfile.TemporaryDirectory(prefix="mnemon-image-", dir="/var/tmp") as folder:
        base = assemble_base(Path(folder, "base"))
        yield build_image((ROOT / "Dockerfile").read_text(), ROOT, base, Path(folder))


@pytest.fixture
async def servers() -> AsyncIterator[dict[str, str]]:
    """Start servers for the test; yield the environment variables of compose.yaml with their addresses."""
    with stack_folder() as data:
        data.mkdir(mode=0o700)
        broker, database = NatsServer(data, None), Postgres(data, free_port())
        await broker.start()
        await database.start()
        url = make_url(database.url)
        yield {
            "MNEMON_NATS_URL": broker.url,
            "PG_HOST": "127.0.0.1",
            "PG_PORT": str(url.port),
            "PG_DB": str(url.database),
            "PG_USER": str(url.username),
            "PG_PASSWORD": str(url.password),
        }
        await database.stop()
        await broker.stop()


def environment_of(service: str, servers: dict[str, str]) -> dict[str, str]:
    """Return the environment variables of a service, with the test's servers in place of the containers."""
    composed = SERVICES[service]["environment"].items()
    given = {name: str(value) for name, value in composed if value is not None}
    del given["MNEMON_QDRANT_URL"]
    return given | servers


def run(command: list[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, check=False)


def require_free_port(port: int) -> None:
    """Skip the test if another process listens on the port: it would answer the health check.

    The containers share the network of this machine, so that they reach the servers of the test.
    """
    try:
        socket.create_server(("0.0.0.0", port)).close()
    except OSError:
        pytest.skip(f"port {port} is taken")


@asynccontextmanager
async def container(
    image: Image, service: str, servers: dict[str, str]
) -> AsyncIterator[tuple[Process, int]]:
    """Run a service; yield its process, and the id of the container's process 1 on this machine."""
    (port,) = re.findall(r"127\.0\.0\.1:(\d+)", str(SERVICES[service]["healthcheck"]["test"]))
    require_free_port(int(port))
    command = run_container(image, *SERVICES[service]["command"], **environment_of(service, servers))
    process = await asyncio.create_subprocess_exec(*command)
    try:
        # A shell mounts the file system, and then executes the program.
        await until(lambda: b"/opt/mnemon/" in find_command(process.pid))
        yield process, find_first_process(process.pid)
    finally:
        if process.returncode is None:
            # Killing process 1 ends the container. `unshare` cannot be killed, because its user has changed.
            with suppress(OSError, ValueError):
                os.kill(find_first_process(process.pid), signal.SIGKILL)
            await process.wait()


def find_command(container: int) -> bytes:
    """Return the command line of a container's process 1; empty before that process exists."""
    with suppress(OSError, ValueError):
        return Path(f"/proc/{find_first_process(container)}/cmdline").read_bytes()
    return b""


def test_image_shows_its_help_by_default(image: Image) -> None:
    shown = run(run_container(image))
    assert shown.returncode == 0, shown.stderr
    assert "provision" in shown.stdout


def test_containers_write_to_temporary_files_only(image: Image) -> None:
    script = "touch /tmp/one && ! touch /opt/mnemon/one && ! touch /one && id -u"
    written = run(run_container(image, script, entrypoint=["sh", "-ec"]))
    assert written.returncode == 0, written.stderr
    assert written.stdout.strip() == image.user == "10001"
    assert written.stderr.count("Read-only file system") == 2


async def test_setup_and_consumer_run_as_composed(image: Image, servers: dict[str, str]) -> None:
    setup = SERVICES["setup"]
    prepared = run(
        run_container(
            image, *setup["command"], entrypoint=setup["entrypoint"], **environment_of("setup", servers)
        )
    )
    assert prepared.returncode == 0, prepared.stderr

    kind, *check = SERVICES["persist"]["healthcheck"]["test"]
    assert kind == "CMD"
    async with container(image, "persist", servers) as (process, first):
        async with await nats.connect(servers["MNEMON_NATS_URL"]) as client:
            said = b'{"role": "user", "content": "hi"}'
            await client.jetstream().publish("chat.acme.u1.-.message.v1", said)
        await until(lambda: run(enter_container(image, first, check)).returncode == 0)
        url = "postgresql://{PG_USER}:{PG_PASSWORD}@{PG_HOST}:{PG_PORT}/{PG_DB}".format(**servers)
        with psycopg.connect(url, autocommit=True) as connection:
            query = "SELECT content FROM mnemon.messages"
            await until(lambda: connection.execute(query).fetchall() == [("hi",)])

        lines = Path(f"/proc/{first}/status").read_text().splitlines()
        status = dict(line.split(":\t", 1) for line in lines)
        assert set(status["Uid"].split()) == {"10001"}
        assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0
        assert status["NoNewPrivs"] == "1"

        os.kill(first, signal.SIGTERM)
        grace = int(SERVICES["persist"]["stop_grace_period"].removesuffix("s"))
        assert await asyncio.wait_for(process.wait(), grace) == 0


async def test_admin_page_is_healthy_as_composed(image: Image, servers: dict[str, str]) -> None:
    kind, *check = SERVICES["admin"]["healthcheck"]["test"]
    assert kind == "CMD"
    async with container(image, "admin", servers) as (process, first):
        await until(lambda: run(enter_container(image, first, check)).returncode == 0)
        assert process.returncode is None
