"""Consumers end when the server's log has an older state, before they handle a position twice."""

import asyncio
from uuid import uuid4

import pytest

from mnemon_consumers.app import run_consumers
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.provisioning import presence
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.broker.streams.applied_position import AppliedPosition
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.health import probe
from mnemon_infra.health.probe import ProcessProbe
from mnemon_infra.process.fault import take_fault
from tests.support.servers.log_server import LogServer, await_reconnection
from tests.support.servers.schemas import create_schema
from tests.support.stock_client import Stock

TIMEOUT = 60.0


@pytest.mark.long
@pytest.mark.parametrize("written", [0, 3], ids=["shorter", "rewritten"])
async def test_consumers_end_when_the_log_has_an_older_state(
    log_server: LogServer,
    database_url: str,
    terminated: asyncio.Event,
    monkeypatch: pytest.MonkeyPatch,
    written: int,
) -> None:
    monkeypatch.setattr(presence, "CHECK_INTERVAL", 2.0)
    monkeypatch.setattr(probe, "CHECK_INTERVAL", 0.0)
    deployment = Deployment(
        nats_url=log_server.server.url,
        database_dsn=database_url,
        database_schema=f"test_{uuid4().hex[:12]}",
    )
    create_schema(deployment.database_url, deployment.database_schema)
    connection = await connect(log_server.server.url, name="test")
    await provision(connection)
    stock = Stock(connection)
    await stock.say("in the older state")
    await log_server.keep_state()
    await await_reconnection(connection)
    watching = ProcessProbe(("persist",), deployment, lambda: ())
    async with (
        run_consumers(["persist"], deployment),
        Database(deployment) as database,
        watching.report_running(connection, database, None),
    ):
        lost = [await stock.say(f"lost {number}") for number in range(2)]
        await AppliedPosition().wait_for(connection.jetstream(), lost[-1], TIMEOUT)
        assert await watching.check() == []
        await log_server.restore_state()
        await await_reconnection(connection)
        for number in range(written):
            await stock.say(f"written at a position of a lost event {number}")
        reasons = await watching.check()
        await asyncio.wait_for(terminated.wait(), TIMEOUT)
    fault = take_fault() or ""
    shorter = "the log on its leader mnemon ends at position 1, and had events up to position 3"
    rewritten = "the log on its leader mnemon has another event at position 3 than before"
    assert fault.startswith((shorter, rewritten))  # the check may precede the new events
    assert "`mnemon restore`" in fault
    assert any(reason.startswith(rewritten if written else shorter) for reason in reasons)
    await connection.close()
