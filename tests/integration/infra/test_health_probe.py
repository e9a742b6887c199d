"""The health probe of a process: readiness of its servers, and its lag."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio
from nats.aio.client import Client

from mnemon.operations.health.report import examine_deployment
from mnemon_consumers.app import run_consumers
from mnemon_contracts.streams import DEAD, LOG
from mnemon_infra.broker.provisioning.presence import StreamsMissing
from mnemon_infra.broker.streams.applied_position import AppliedPosition
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, list_pools
from mnemon_infra.database.generations.generation_repository import create_generation
from mnemon_infra.health import probe
from mnemon_infra.health.fault import describe_missing
from mnemon_infra.health.probe import ProcessProbe
from mnemon_infra.telemetry import metrics
from tests.support.stock_client import Stock


@pytest_asyncio.fixture
async def watching(
    deployment: Deployment, connection: Client, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ProcessProbe]:
    """Probe of a process with `persist` and `retrieve`, before its consumers run."""
    monkeypatch.setattr(probe, "CHECK_INTERVAL", 0.0)
    yield ProcessProbe(("persist", "retrieve"), deployment, lambda: ())


async def test_probe_names_why_it_is_not_ready(
    watching: ProcessProbe, deployment: Deployment, connection: Client, stock: Stock
) -> None:
    assert await watching.check() == ["the process is starting"]
    async with run_consumers(("persist", "retrieve"), deployment), Database(deployment) as database:
        async with watching.report_running(connection, database, None):
            assert await watching.check() == []
            assert metrics.READY.values == {(): 1}
            until = f"{datetime.now(UTC) + timedelta(minutes=5):%Y-%m-%dT%H:%M:%SZ}"
            await connection.jetstream().pause_consumer(LOG, "persist", until)
            (reason,) = await watching.check()
            assert reason.startswith("persist was paused by hand until")
            assert reason.endswith(": run `nats consumer resume LOG persist`")
            assert metrics.FAULTS.values == {("paused", "persist"): 1}
            await stock.say("said while it is stopped")
            async with asyncio.timeout(60):  # the server counts an event shortly after its publication
                while not metrics.PENDING.values["persist",]:
                    await watching.check()
            assert metrics.PENDING.values["persist",] == 1
            assert metrics.PENDING.values["persist-sweep",] == 0
            assert 0 < metrics.OLDEST.values["persist",] < 120
            await connection.jetstream().delete_consumer(LOG, "persist")
            await connection.jetstream().delete_stream(DEAD)
            assert await watching.check() == [
                f"the stream {DEAD} does not exist: run `mnemon provision`",
                str(describe_missing("persist")),
            ]
            assert metrics.FAULTS.values == {("server", ""): 1, ("missing", "persist"): 1}
            assert metrics.READY.values == {(): 0}
            await database.close()
            assert [reason for reason in await watching.check() if "the database cannot be used" in reason]
        assert await watching.check() == ["the process is ending"]


async def test_probe_advises_to_restore_a_deleted_log(
    watching: ProcessProbe, deployment: Deployment, connection: Client
) -> None:
    async with Database(deployment) as database, watching.report_running(connection, database, None):
        await connection.jetstream().delete_stream(LOG)
        (reason,) = [each for each in await watching.check() if f"the stream {LOG}" in each]
        assert reason == str(StreamsMissing([LOG]))


@pytest.mark.long
async def test_process_is_not_ready_until_a_restored_log_is_replayed(
    watching: ProcessProbe, deployment: Deployment, connection: Client, stock: Stock
) -> None:
    async with Database(deployment) as database, watching.report_running(connection, database, None):
        position = await stock.say("restored")
        log = (await connection.jetstream().stream_info(LOG)).config
        await connection.jetstream().update_stream(
            log.evolve(metadata={"mnemon-restored": f"backup:{position}"})
        )
        (reason,) = await watching.check()
        assert reason.startswith(
            "the log was restored up to position 1, and its rows are written up to position 0"
        )
        (problem,) = [each for each in (await examine_deployment(deployment)).problems if "restored" in each]
        assert problem == reason
        async with run_consumers(("persist",), deployment):
            await AppliedPosition().wait_for(connection.jetstream(), position, 60)
        assert await watching.check() == []


async def test_connections_of_snapshots_are_added(
    watching: ProcessProbe, deployment: Deployment, connection: Client
) -> None:
    async with (
        Database(deployment) as database,
        Database(deployment, name="mnemon-as-of") as snapshot,
        watching.report_running(connection, database, None),
        database.transaction(),
        snapshot.transaction(),
    ):
        await watching.check()
        assert metrics.POOL.values["consumers", "used"] >= 2
        shown = sum(metrics.POOL.values["consumers", state] for state in ("idle", "used"))
        assert shown == sum(pool.connections for pool in list_pools())


async def test_metrics_of_an_absent_server_are_dropped(
    watching: ProcessProbe, deployment: Deployment, connection: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        run_consumers(("persist",), deployment),
        Database(deployment) as database,
        watching.report_running(connection, database, None),
    ):
        await create_generation(database, f"{deployment.database_schema}_next")
        await watching.check()
        assert metrics.PENDING.values
        assert metrics.REBUILT.values == {("rows",): 0}
        assert metrics.DATABASE_BYTES.values["live",] > metrics.DATABASE_BYTES.values["next",] > 0
        monkeypatch.setattr(probe, "ANSWER_WAIT", 0.5)
        await connection.close()
        assert [reason for reason in await watching.check() if "the NATS server does not answer" in reason]
        assert not metrics.PENDING.values
