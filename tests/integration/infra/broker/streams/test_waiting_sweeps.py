"""A sweep counts as waiting until its trigger is acknowledged; a killed server may restore the trigger."""

import pytest
from nats.js.errors import NotFoundError

from mnemon_contracts.streams import WORK
from mnemon_contracts.subjects import build_trigger_subject
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.broker.streams.triggers import has_waiting_sweep, list_trigger_subjects
from tests.support.servers.log_server import LogServer, await_reconnection

OWNER, OTHER = ("acme", "u1"), ("acme", "u2")


async def test_handled_sweep_does_not_wait_although_the_server_restored_its_trigger(
    log_server: LogServer,
) -> None:
    connection = await connect(log_server.server.url, name="test")
    stream_context = connection.jetstream()
    await provision(connection)
    await stream_context.publish(build_trigger_subject("index", *OWNER), b"", stream=WORK)
    await log_server.keep_state()
    await await_reconnection(connection)
    assert await has_waiting_sweep(connection, "index", OWNER)

    reader = await stream_context.pull_subscribe_bind("index-sweep", WORK)
    (trigger,) = await reader.fetch(1, timeout=60)
    assert await has_waiting_sweep(connection, "index", OWNER)
    await trigger.ack_sync()
    assert not await has_waiting_sweep(connection, "index")

    await log_server.restore_messages(WORK)
    await await_reconnection(connection)
    assert await list_trigger_subjects(connection, "work.index.>") == [trigger.subject]
    assert not await has_waiting_sweep(connection, "index", OWNER)
    assert not await has_waiting_sweep(connection, "index")

    await stream_context.publish(build_trigger_subject("index", *OTHER), b"", stream=WORK)
    assert await has_waiting_sweep(connection, "index")
    assert await has_waiting_sweep(connection, "index", OTHER)
    assert not await has_waiting_sweep(connection, "index", OWNER)
    await connection.close()


async def test_sweep_of_an_absent_consumer_waits(log_server: LogServer) -> None:
    connection = await connect(log_server.server.url, name="test")
    await provision(connection)
    await connection.jetstream().delete_consumer(WORK, "persist-sweep")
    assert not await has_waiting_sweep(connection, "persist")
    await connection.jetstream().publish(build_trigger_subject("persist", *OWNER), b"", stream=WORK)
    assert await has_waiting_sweep(connection, "persist", OWNER)
    await connection.close()


async def test_without_the_stream_of_triggers_no_sweep_counts_as_done(log_server: LogServer) -> None:
    connection = await connect(log_server.server.url, name="test")
    await provision(connection)
    await connection.jetstream().delete_stream(WORK)
    with pytest.raises(NotFoundError):
        await has_waiting_sweep(connection, "index")
    await connection.close()
