"""The background process of `mnemon up`: it ends with its parent, and is restarted after its own death."""

import json
import socket
from pathlib import Path

import nats
import psutil
import pytest

from tests.support.processes.stack import Up, mnemon, until
from tests.support.servers.ports import free_port
from tests.support.stock_client import persisted


async def publish_and_read(url: str, text: str) -> list[str]:
    """Publish a message, wait until it is persisted, and return the user's messages."""
    async with await nats.connect(url) as client:
        body = json.dumps({"role": "user", "content": text}).encode()
        said = await client.jetstream().publish("chat.acme.u1.-.message.v1", body)
        await persisted(client, said.seq)
        reply = json.loads((await client.request("ask.acme.u1.history.v1", b"{}", timeout=60)).data)
    return [message["content"] for message in reply["messages"]]


def has_ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.long
async def test_background_process_restarts_after_kill_and_ends_with_its_parent(stack: Up) -> None:
    assert stack.endpoints is not None
    first = stack.beside()
    assert first is not None
    assert first.nice() > psutil.Process(stack.process.pid).nice(), "the one that answers goes first"
    first.kill()

    def another() -> bool:
        now = stack.beside()
        return now is not None and now.pid != first.pid

    await until(another)
    assert await publish_and_read(stack.endpoints.nats, "hi") == ["hi"]
    assert "background process ended, restarting" in stack.log

    second = stack.beside()
    assert second is not None
    await stack.kill()
    await until(lambda: has_ended(second))


@pytest.mark.long
async def test_up_without_background_consumers_starts_no_background_process(up: Up) -> None:
    await up.start("--only", "retrieve")
    assert up.beside() is None
    assert await up.stop() == 0


@pytest.mark.long
async def test_up_runs_background_consumers_alone(up: Up) -> None:
    await up.start("--only", "persist")
    assert up.beside() is not None
    assert await up.stop() == 0
    assert "Traceback" not in up.log


@pytest.mark.long
async def test_taken_metrics_port_of_the_background_process_is_refused(data: Path) -> None:
    port = free_port(1)
    with socket.create_server(("127.0.0.1", port + 1)):
        refused = await mnemon("up", "--data", data, "--no-admin", "--metrics-port", str(port))
    assert (refused.code, refused.out) == (2, "")
    assert f"mnemon: the metrics endpoint cannot listen on 127.0.0.1:{port + 1}" in refused.err
    assert "Traceback" not in refused.err
