"""compose.yaml, started unchanged: each consumer runs in its own container, and a bot gets an answer."""

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from testcontainers.compose import DockerCompose

from mnemon import MemoryClient
from mnemon_producers.errors import AskFailed, NotConnected, PublishFailed
from tests.containers.conftest import require_engine
from tests.support.servers.ports import free_port

require_engine()
if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode:
    pytest.skip("docker has no `compose`", allow_module_level=True)

ROOT = Path(__file__).parents[2]
TIMEOUT = 900
"""Seconds until all containers answer, including the download of images and a build."""


@pytest.fixture
def ports(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """Start all services of compose.yaml as a new project; yield the ports of broker and admin page."""
    chosen = {name: free_port() for name in ("NATS_PORT", "ADMIN_PORT")}
    monkeypatch.setenv("COMPOSE_PROJECT_NAME", "mnemon-test")
    for name, port in chosen.items():
        monkeypatch.setenv(name, str(port))
    # Without `wait`, which would fail: the service `setup` exits when it is done.
    with DockerCompose(ROOT, build=True, wait=False):
        yield chosen


@pytest.mark.timeout(TIMEOUT + 60)
async def test_a_bot_is_answered_by_containers(ports: dict[str, int]) -> None:
    async with asyncio.timeout(TIMEOUT):
        while not (found := await saved_and_found(f"nats://127.0.0.1:{ports['NATS_PORT']}")):
            await asyncio.sleep(1)
        while not await asyncio.to_thread(answers, f"http://127.0.0.1:{ports['ADMIN_PORT']}/login"):
            await asyncio.sleep(1)
    assert found == ["Prefers night trains to planes"]


async def saved_and_found(url: str) -> list[str]:
    with suppress(NotConnected, PublishFailed, AskFailed):
        async with MemoryClient.connect(url, tenant="acme") as memory:
            await memory.save("u1", "Prefers night trains to planes")
            return [hit.text for hit in (await memory.search("u1", "train or plane?")).hits]
    return []


def answers(url: str) -> bool:
    with suppress(URLError, ConnectionError), urlopen(url) as reply:
        return bool(reply.status == 200)
    return False
