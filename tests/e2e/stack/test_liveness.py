"""Faults of running processes: the process is unready, names the fault and the next step, and recovers."""

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from mnemon_bench.provider_server.server import ProviderServer
from mnemon_contracts.streams import LOG
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.broker.streams.applied_position import AppliedPosition, read_applied_position
from mnemon_infra.config import Deployment
from mnemon_infra.embedded.nats_server import NatsServer
from mnemon_infra.process.free_space import LEAST, read_disk_space
from mnemon_infra.settings.store import change_settings
from mnemon_producers.client import MemoryClient
from mnemon_producers.errors import PublishFailed
from mnemon_producers.timeouts import Timeouts
from tests.support.processes.readiness import Readiness, ask_endpoint
from tests.support.processes.stack import TIMEOUT, Up, mnemon, until
from tests.support.servers.disk import Disk
from tests.support.servers.ports import free_port
from tests.support.servers.qdrant import stack_schema
from tests.support.servers.schemas import create_schema
from tests.support.settings_edit import setting
from tests.support.stock_client import Stock

KEY = "sk-one-that-must-not-be-seen"
PERSIST = "persist"

Record = Callable[[str, object], None]


async def list_status_faults(up: Up) -> dict[str, str]:
    """Return the faults of durables that `mnemon status` names."""
    said = json.loads((await mnemon("status", "--data", up.data, "--json")).out)
    return {each["consumer"]: each["fault"] for each in said["faults"]}


@asynccontextmanager
async def ready_stack(up: Up, **environment: str) -> AsyncIterator[tuple[Readiness, Client]]:
    """Start a stack; yield its readiness and a connection to its log once its processes are ready."""
    port = free_port(1)
    endpoints = await up.start("--no-admin", "--metrics-port", str(port), **environment)
    readiness = Readiness([port, port + 1])
    await readiness.measure_recovery()
    connection = await connect(endpoints.nats, name="test")
    try:
        yield readiness, connection
    finally:
        await connection.close()


@asynccontextmanager
async def keep_deleted(jetstream: JetStreamContext, durable: str) -> AsyncIterator[None]:
    """Delete a durable of `LOG` whenever it exists; the process creates it again at each of its checks."""

    async def delete() -> None:
        while True:
            with suppress(NotFoundError):
                await jetstream.delete_consumer(LOG, durable)
            await asyncio.sleep(0.1)

    deletion = asyncio.create_task(delete())
    try:
        yield
    finally:
        deletion.cancel()


@pytest.mark.long
@pytest.mark.timeout(400)
async def test_deleted_paused_and_blocked_durable_makes_the_process_unready(
    up: Up, record_property: Record
) -> None:
    async with ready_stack(up) as (readiness, connection):
        assert up.endpoints
        jetstream = connection.jetstream()
        async with keep_deleted(jetstream, PERSIST):
            failure, reason = await readiness.measure_failure("the consumer persist does not exist")
        assert "`mnemon provision`" in reason
        record_property("deleted", (failure, await readiness.measure_recovery()))

        end = datetime.now(UTC) + timedelta(hours=1)
        await jetstream.pause_consumer(LOG, PERSIST, f"{end:%Y-%m-%dT%H:%M:%SZ}")
        failure, reason = await readiness.measure_failure("persist was paused by hand")
        assert "`nats consumer resume LOG persist`" in reason
        assert (await list_status_faults(up))[PERSIST] == "paused"
        await jetstream.resume_consumer(LOG, PERSIST)
        record_property("paused", (failure, await readiness.measure_recovery()))

        with psycopg.connect(up.endpoints.database) as database:
            database.execute(f"LOCK TABLE {stack_schema(up.data)}.messages IN EXCLUSIVE MODE")
            seq = await Stock(connection).say("waits for a lock")
            failure, reason = await readiness.measure_failure("persist has stood still at position 0")
            assert "find the cause in the log messages of persist" in reason
            assert (await list_status_faults(up))[PERSIST] == "standstill"
            database.rollback()
        record_property("standstill", (failure, await readiness.measure_recovery()))
        assert await read_applied_position(jetstream) >= seq


@pytest.mark.long
@pytest.mark.timeout(400)
async def test_refused_model_key_makes_the_process_unready(up: Up, record_property: Record) -> None:
    with ProviderServer() as server:
        server.state.key = "another"
        environment = {"MNEMON_MODEL_URL": server.openai_url, "MNEMON_MODEL_API_KEY": KEY}
        async with ready_stack(up, **environment) as (readiness, connection):
            extraction = {"provider": "openai", "model": "m", "mode": "online", "idle_seconds": 1.0}
            values = {f"extraction__{name}": value for name, value in extraction.items()}
            await change_settings(connection, setting(**values))
            await Stock(connection).say("My sister's name is Vera.")
            failure, reason = await readiness.measure_failure("openai/m refuses requests")
            assert "check MNEMON_MODEL_API_KEY" in reason
            assert "`extraction.model`" in reason
            server.state.key = KEY
            record_property("refused key", (failure, await readiness.measure_recovery()))


class FaultyPersist:
    """`persist` in a process that gets faults by signals, and a NATS server whose state can be exchanged."""

    def __init__(self, folder: Path, database_url: str) -> None:
        self.server = NatsServer(folder, None)
        self.port = free_port()
        self.readiness = Readiness([self.port])
        self._nats, self._copy = folder / "nats", folder / "copy"
        self._output = folder / "persist.log"
        self._variables = {
            "DATABASE_URL": database_url,
            "MNEMON_DATABASE_SCHEMA": f"test_{uuid4().hex[:12]}",
            "MNEMON_METRICS_PORT": str(self.port),
        }
        self.process: asyncio.subprocess.Process | None = None

    async def prepare(self) -> Client:
        """Start the server, create streams and tables, and return a connection."""
        await self.server.start()
        deployment = Deployment(
            database_dsn=self._variables["DATABASE_URL"],
            database_schema=self._variables["MNEMON_DATABASE_SCHEMA"],
        )
        create_schema(deployment.database_url, deployment.database_schema)
        connection = await connect(self.server.url, name="test")
        await provision(connection)
        return connection

    async def start(self) -> None:
        """Start the process; `readiness` tells when it is ready."""
        with self._output.open("ab") as output:
            self.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.support.processes.faulty_persist"),
                env={**os.environ, **self._variables, "MNEMON_NATS_URL": self.server.url},
                stdin=asyncio.subprocess.PIPE,
                stdout=output,
                stderr=output,
            )

    def signal(self, number: signal.Signals) -> None:
        assert self.process
        self.process.send_signal(number)

    def end_hang(self) -> None:
        """Unblock the event loop that SIGUSR1 has blocked."""
        assert self.process
        assert self.process.stdin
        self.process.stdin.write(b"\n")

    async def wait(self) -> None:
        assert self.process
        async with asyncio.timeout(TIMEOUT):
            await self.process.wait()

    async def stop(self) -> None:
        if self.process and self.process.returncode is None:
            self.end_hang()
            self.process.terminate()
            await self.process.wait()
        await self.server.stop()

    @property
    def log(self) -> str:
        """The output of the process."""
        return self._output.read_text()

    async def copy_state(self, source: Path, target: Path) -> None:
        """Stop the server, replace the folder `target` by a copy of `source`, and start the server."""
        await self.server.stop()
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)
        await self.server.start()

    async def keep_state(self) -> None:
        await self.copy_state(self._nats, self._copy)

    async def swap_states(self) -> None:
        """Stop the server, exchange its folder and the copy that `keep_state` made, and start the server."""
        await self.server.stop()
        third = self._nats.with_name("third")
        self._nats.rename(third)
        self._copy.rename(self._nats)
        third.rename(self._copy)
        await self.server.start()


@pytest.fixture
async def faulty(tmp_path: Path, database_url: str) -> AsyncIterator[FaultyPersist]:
    faulty = FaultyPersist(tmp_path, database_url)
    yield faulty
    await faulty.stop()


@pytest.mark.long
@pytest.mark.timeout(400)
async def test_hanging_and_stalled_process_is_unready_until_it_goes_on(
    faulty: FaultyPersist, record_property: Record
) -> None:
    connection = await faulty.prepare()
    await faulty.start()
    await faulty.readiness.measure_recovery()

    faulty.signal(signal.SIGUSR1)
    failure, reason = await faulty.readiness.measure_failure("the event loop has been blocked for 5 s at")
    assert "restart the process" in reason
    status, _ = await asyncio.to_thread(ask_endpoint, faulty.port, "healthz")
    assert status == 503
    faulty.end_hang()
    record_property("event loop", (failure, await faulty.readiness.measure_recovery()))

    faulty.signal(signal.SIGUSR2)
    await until(lambda: "readers forgotten" in faulty.log)
    stock = Stock(connection)
    seq = await stock.say("said to the readers that the server forgot")
    failure, reason = await faulty.readiness.measure_failure("persist has read nothing for")
    assert "its processes subscribe again" in reason
    record_property("stalled", (failure, await faulty.readiness.measure_recovery()))
    assert await AppliedPosition().wait_for(connection.jetstream(), seq, TIMEOUT) == seq
    assert "consumer stalled, subscribing again" in faulty.log
    await connection.close()


@pytest.mark.long
@pytest.mark.timeout(400)
async def test_process_ends_at_an_older_log_and_runs_with_the_newest_again(
    faulty: FaultyPersist, record_property: Record
) -> None:
    connection = await faulty.prepare()
    stock = Stock(connection)
    await stock.say("in both states")
    await faulty.keep_state()
    await faulty.start()
    await faulty.readiness.measure_recovery()
    seq = await stock.say("in the newest state only")
    assert await AppliedPosition().wait_for(connection.jetstream(), seq, TIMEOUT) == seq
    assert await faulty.readiness.load_reasons() == []

    await faulty.swap_states()
    failure, reason = await faulty.readiness.measure_failure("ends at position 1, and had events up to")
    assert "`mnemon restore`" in reason
    await faulty.wait()
    assert "log stream replaced, ending this process" in faulty.log
    await faulty.start()
    await faulty.wait()
    assert "LogLost: the log ends at position 1" in faulty.log

    await faulty.swap_states()
    await faulty.start()
    record_property("older log", (failure, await faulty.readiness.measure_recovery()))
    await connection.close()


@pytest.mark.long
@pytest.mark.timeout(400)
async def test_disk_that_fills_makes_the_processes_unready_and_loses_nothing(
    disk: Disk, record_property: Record
) -> None:
    place = disk(400)
    up = Up(place / "data")
    async with ready_stack(up) as (readiness, _):
        assert up.endpoints
        filler = place / "filler"
        room = read_disk_space(place).free
        filler.write_bytes(bytes(room - LEAST - 8 * 1024 * 1024))  # leaves LEAST + 8 MiB free
        failure, reason = await readiness.measure_failure(f"the disk of {up.data} is nearly full")
        assert "free space on the disk" in reason
        assert "is nearly full" in (await mnemon("status", "--data", up.data)).out

        impatient = Timeouts(publish=1, retry=1)
        async with MemoryClient.connect(up.endpoints.nats, tenant="acme", timeouts=impatient) as memory:
            with filler.open("ab") as rest:
                stored = await publish_until_refused(memory, rest.fileno())
        filler.unlink()
        record_property("disk", (failure, await readiness.measure_recovery()))
        patient = Timeouts(publish=2, retry=TIMEOUT)
        async with MemoryClient.connect(up.endpoints.nats, tenant="acme", timeouts=patient) as memory:
            last = await memory.publish("u1", "user", "said again", id="again")
            history = await memory.history("u1", limit=200, min_seq=last)
        kept = [message.id for message in history.messages]
        assert [each for each in stored if each not in kept] == []
        assert kept[-1] == "again"
    assert await up.stop() == 0


async def publish_until_refused(memory: MemoryClient, descriptor: int) -> list[str]:
    """Publish messages while the disk is kept full, until one fails; return the ids of the stored ones."""
    stored: list[str] = []
    while len(stored) < 100:
        fill_up(descriptor)
        try:
            await memory.publish("u1", "user", "said meanwhile " * 100, id=f"e{len(stored)}")
        except PublishFailed:
            return stored
        stored.append(f"e{len(stored)}")
    raise AssertionError("nothing is refused")


def fill_up(descriptor: int) -> None:
    """Write to the file until the disk has no room."""
    try:
        while True:
            os.write(descriptor, bytes(65_536))
    except OSError:
        return
