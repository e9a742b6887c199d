"""A full or read-only disk is reported with the next step; stored events stay, and the stack continues."""

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from nats.aio.client import Client

from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.streams.applied_position import read_applied_position
from mnemon_producers.client import MemoryClient
from mnemon_producers.errors import PublishFailed
from mnemon_producers.timeouts import Timeouts
from tests.support.processes.stack import TIMEOUT, Up, mnemon, until
from tests.support.servers.disk import Disk, mount


@contextmanager
def filled(place: Path) -> Iterator[None]:
    """Fill the disk during the block."""
    filler = place / "filler"
    descriptor = os.open(filler, os.O_CREAT | os.O_WRONLY)
    try:
        while True:
            os.write(descriptor, bytes(65_536))
    except OSError:
        os.close(descriptor)
    yield
    filler.unlink()


@pytest.mark.long
async def test_full_disk_at_start_is_reported_and_left_unchanged(disk: Disk) -> None:
    place = disk(64)
    finished = await mnemon("up", "--data", place / "data")
    assert finished.code == 3
    assert "has too little room: 64 MB are free, 128 MB are needed. Make room" in finished.err
    assert len(finished.err.splitlines()) == 1
    assert sorted(path.name for path in (place / "data").iterdir()) == ["lock"]
    with filled(place):
        tried = await mnemon("try", "--data", place / "data")
    assert (tried.code, "has too little room: 0 MB are free" in tried.err) == (3, True), tried.err


async def indexed(connection: Client, seq: int) -> None:
    async with asyncio.timeout(TIMEOUT):
        while await read_applied_position(connection.jetstream(), "index") < seq:
            await asyncio.sleep(0.05)


async def publish_until_refused(memory: MemoryClient) -> tuple[int, PublishFailed]:
    """Publish messages until one fails; return the number of stored messages and the error.

    The last file of the log may have room for a few messages although the disk is full.
    """
    for stored in range(100):
        try:
            await memory.publish("u1", "user", "said meanwhile " * 100, id=f"e{stored}")
        except PublishFailed as failed:
            return stored, failed
    raise AssertionError("nothing is refused")


async def said_by(memory: MemoryClient, up_to: int) -> list[str]:
    """Return the second word of each of the user's messages."""
    history = await memory.history("u1", limit=100, min_seq=up_to)
    return [message.content.split()[1] for message in history.messages]


@pytest.mark.long
async def test_disk_turning_full_or_read_only_is_reported_and_keeps_events(disk: Disk) -> None:
    place = disk(200)
    up = Up(place / "data")
    endpoints = await up.start()
    # A server whose disk is full does not answer; one with a slow disk may take a second.
    impatient = Timeouts(publish=3, retry=1)
    patient = Timeouts(publish=10, retry=TIMEOUT, ask=TIMEOUT)

    async with MemoryClient.connect(endpoints.nats, tenant="acme", timeouts=patient) as memory:
        await memory.publish("u1", "user", "said before", id="before")
    async with MemoryClient.connect(endpoints.nats, tenant="acme", timeouts=impatient) as memory:
        with filled(place):
            stored, failed = await publish_until_refused(memory)
            assert "its disk may be full: see `mnemon status`" in str(failed)
            assert failed.retryable
            status = await mnemon("status", "--data", up.data)
            assert status.code in (1, 3)
            assert f"the disk of {up.data} is full" in status.out
            assert up.process.returncode is None

    async with MemoryClient.connect(endpoints.nats, tenant="acme", timeouts=patient) as memory:
        last = await memory.publish("u1", "user", "said again", id=failed.event_id)
        connection = await connect(endpoints.nats, name="test")
        await indexed(connection, last)
        await connection.close()
        said = await said_by(memory, last)
    assert said == ["before", *["meanwhile"] * stored, "again"]
    assert '"dead_letters":0' in (await mnemon("status", "--data", up.data, "--json")).out
    assert "disk space freed" in up.log
    assert await up.stop() == 0

    mount("-o", "remount,ro", str(place))
    for folder in (up.data, place / "new"):
        finished = await mnemon("up", "--data", folder)
        assert finished.code == 2
        assert f"{folder} cannot be used: Read-only file system" in finished.err
        assert "choose another folder: --data DIR" in finished.err
    mount("-o", "remount,rw", str(place))
    endpoints = await up.start("--only", "persist,retrieve")
    async with MemoryClient.connect(endpoints.nats, tenant="acme", timeouts=patient) as memory:
        assert await said_by(memory, last) == said
    assert await up.stop() == 0


@pytest.mark.long
async def test_stack_with_server_stopped_by_full_disk_is_reported_as_running(disk: Disk) -> None:
    place = disk(200)
    up = Up(place / "data")
    await up.start("--only", "persist")
    with filled(place):
        up.servers()["nats-server"].kill()
        await until(lambda: up.endpoints is None)
        status = await mnemon("status", "--data", up.data)
        assert status.code == 3
        assert f"the disk of {up.data} is full" in status.out
        assert f"the stack in {up.data} (process {up.process.pid}," in status.out
        said = json.loads((await mnemon("status", "--data", up.data, "--json")).out)
        assert (said["folder"]["is_full"], said["reachable"], said["healthy"]) == (True, False, False)
        other = await mnemon("provision", "--data", up.data)
        assert other.code == 3
        assert "does not answer" in other.err
    await up.ready()
    assert await up.stop() == 0
