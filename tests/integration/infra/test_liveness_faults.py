"""Faults of a running process: readiness fails, names the consumer and the next step, and recovers."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.aio.msg import Msg
from structlog.testing import capture_logs

from mnemon.operations.health.report import examine_deployment
from mnemon_consumers.app import run_consumers
from mnemon_contracts.streams import LOG
from mnemon_infra.broker import batch_processor, durable_progress
from mnemon_infra.broker.batch_processor import BatchProcessor
from mnemon_infra.broker.connection import MAX_PAYLOAD
from mnemon_infra.broker.outcomes import Ack, DeliveryOutcome
from mnemon_infra.broker.streams.applied_position import AppliedPosition
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.delivery import Delivery
from mnemon_infra.durables import DURABLES
from mnemon_infra.embedded.nats_server import NatsServer
from mnemon_infra.health import probe
from mnemon_infra.health.probe import ProcessProbe
from mnemon_infra.process.data_folder import replace_file
from mnemon_infra.process.free_space import DiskSpace
from mnemon_infra.telemetry import metrics
from tests.support.stock_client import Stock

TIMEOUT = 60.0
SHORT = 0.3
"""Seconds after which a stall or a standstill counts in these tests."""


@pytest_asyncio.fixture
async def watching(
    deployment: Deployment, connection: Client, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ProcessProbe]:
    """Probe of a process that reports a running `persist`; the tests read messages in place of `persist`."""
    monkeypatch.setattr(probe, "CHECK_INTERVAL", 0.0)
    watching = ProcessProbe(("persist",), deployment, lambda: ())
    async with Database(deployment) as database, watching.report_running(connection, database, None):
        yield watching


async def reason_of(watching: ProcessProbe, words: str) -> str:
    """Wait until a reason contains `words`; return it, and fail if there are other reasons."""
    async with asyncio.timeout(TIMEOUT):
        while True:
            reasons = await watching.check()
            if any(words in reason for reason in reasons):
                (reason,) = reasons
                return reason
            await asyncio.sleep(0.05)


async def take(connection: Client) -> Msg:
    """Fetch a message of `persist` without an acknowledgement, as a process that hangs."""
    subscription = await connection.jetstream().pull_subscribe_bind("persist", LOG)
    (message,) = await subscription.fetch(1, TIMEOUT)
    await subscription.unsubscribe()
    return message


@pytest.mark.long
async def test_stalled_reader_is_named_until_messages_are_delivered(
    watching: ProcessProbe,
    deployment: Deployment,
    connection: Client,
    stock: Stock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(durable_progress, "STALL_SECONDS", SHORT)
    assert await watching.check() == []
    seq = await stock.say("waits")
    reason = await reason_of(watching, "persist has read nothing for")
    assert "1 messages wait: its processes subscribe again within 30 s" in reason
    assert metrics.FAULTS.values == {("stalled", "persist"): 1}
    (fault,) = [each for each in (await examine_deployment(deployment)).faults if each.consumer == "persist"]
    assert (fault.fault, "`mnemon run persist`" in fault.next_step) == ("unread", True)
    async with run_consumers(["persist"], deployment):
        await AppliedPosition().wait_for(connection.jetstream(), seq, TIMEOUT)
        assert await watching.check() == []
    assert metrics.FAULTS.values == {}


@pytest.mark.long
async def test_applied_position_that_stands_still_is_named_until_it_moves(
    watching: ProcessProbe,
    deployment: Deployment,
    connection: Client,
    stock: Stock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(durable_progress, "STANDSTILL_SECONDS", SHORT)
    monkeypatch.setattr("mnemon.operations.health.lag.STANDSTILL_SECONDS", SHORT)
    for text in ("first", "second"):
        await stock.say(text)
    taken = await take(connection)
    reason = await reason_of(watching, "persist has stood still at position 0 for")
    assert "2 messages wait: find the cause in the log messages of persist" in reason
    assert metrics.FAULTS.values == {("standstill", "persist"): 1}
    health = await examine_deployment(deployment)
    (fault,) = [each for each in health.faults if each.consumer == "persist"]
    assert fault.fault == "standstill"
    assert any(each.startswith(fault.problem) and each.endswith(fault.next_step) for each in health.problems)
    await taken.ack()
    async with asyncio.timeout(TIMEOUT):
        while await watching.check():
            await asyncio.sleep(0.02)


async def test_status_names_a_deleted_durable(deployment: Deployment, connection: Client) -> None:
    await connection.jetstream().delete_consumer(LOG, "index")
    health = await examine_deployment(deployment)
    (fault,) = health.faults
    assert (fault.consumer, fault.fault) == ("index", "missing")
    assert [each for each in health.problems if "index" in each] == [f"{fault.problem}: {fault.next_step}"]
    assert "`mnemon provision`" in fault.next_step


async def test_durable_whose_batches_all_raise_is_failing_until_one_ends(
    watching: ProcessProbe, connection: Client, stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_processor, "FAILURE_SECONDS", 0.0)
    await stock.say("fails at first")
    faults: list[Exception] = [RuntimeError("a bug")]

    async def handle(deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        for fault in faults:
            raise fault
        return [Ack()] * len(deliveries)

    processor = BatchProcessor(DURABLES["persist"], handle, 1000)
    await processor.process(connection, [await take(connection)])
    reason = await reason_of(watching, "every batch of persist has failed")
    assert "see `delivery batch failed, retrying` in its log messages" in reason
    faults.clear()
    await processor.process(connection, [await take(connection)])
    assert await watching.check() == []


async def test_nearly_full_disk_is_named_until_there_is_room(
    deployment: Deployment, connection: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "CHECK_INTERVAL", 0.0)
    space = DiskSpace(free=400 * 1024**2, total=10 * 1024**3)
    monkeypatch.setattr(probe, "read_disk_space", lambda _: space)
    ours = deployment.model_copy(update={"vectors_folder": tmp_path / "vectors"})
    watching = ProcessProbe(("persist",), ours, lambda: ())
    async with Database(deployment) as database, watching.report_running(connection, database, None):
        (reason,) = await watching.check()
        figures = "400 MB of 10240 MB are free, 512 MB are needed"
        assert reason.startswith(f"the disk of {tmp_path} is nearly full ({figures}): free space on the disk")
        assert metrics.DISK_FREE.values == {(): space.free}
        space = DiskSpace(free=512 * 1024**2, total=10 * 1024**3)
        assert await watching.check() == []


class _Limited(NatsServer):
    """A server whose account may store 1 MB."""

    async def prepare(self) -> None:
        await super().prepare()
        configuration = Path(self.mark)
        limit = '"jetstream": {"max_file": 1000000, "max_mem": 1000000}'
        replace_file(configuration, configuration.read_text().replace('"jetstream": "enabled"', limit))


@pytest_asyncio.fixture
async def nats_url(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    """Address of a server for one test.

    With the parameter `limited`, its account may store 1 MB; with `low_max_payload`, a message may have 1 MB.
    """
    parameter = getattr(request, "param", None)
    kind = _Limited if parameter == "limited" else NatsServer
    server = kind(tmp_path, None, max_payload=1_000_000 if parameter == "low_max_payload" else MAX_PAYLOAD)
    await server.start()
    yield server.url
    await server.stop()


@pytest.mark.parametrize("nats_url", ["limited"], indirect=True)
async def test_jetstream_account_near_its_limit_is_named_until_there_is_room(
    watching: ProcessProbe, deployment: Deployment, connection: Client
) -> None:
    jetstream = connection.jetstream()
    assert await watching.check() == []
    for _ in range(98):
        await jetstream.publish("dead.test", bytes(9_800))
    (reason,) = await watching.check()
    assert "JetStream has used 9" in reason
    assert "raise `max_file` of the account" in reason
    assert metrics.FAULTS.values == {("disk", ""): 1}
    assert reason in (await examine_deployment(deployment)).problems
    await jetstream.purge_stream("DEAD")
    assert await watching.check() == []
    assert metrics.STORAGE_USED.values[()] < 0.5


@pytest.mark.parametrize("nats_url", ["low_max_payload"], indirect=True)
@pytest.mark.usefixtures("connection")
async def test_low_max_payload_is_named_at_the_start_and_by_status(deployment: Deployment) -> None:
    step = (
        "set `max_payload: 8MB` in the configuration of the NATS server, reload it, and restart consumers, "
        "gateways and bots, which learn the limit when they connect"
    )
    with capture_logs() as lines:
        async with run_consumers(("persist",), deployment):
            warnings = (await examine_deployment(deployment)).warnings
    (warned,) = (each for each in lines if each["event"] == "low max_payload found")
    assert (warned["max_payload"], warned["next_step"]) == (1_000_000, step)
    (warning,) = warnings
    assert warning.startswith("the NATS server accepts at most 1,000,000 bytes: ")
    assert warning.endswith(step)
