"""The position of `index` that a log follower returns after a reset: 0 until the log is read again."""

import asyncio
import json

from nats.aio.client import Client

from mnemon_consumers.retrieve.memory.log_follower import LogFollower
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import Owner
from mnemon_infra.broker.provisioning.topology import reset_durable
from mnemon_infra.settings.store import LiveSettings
from tests.support.stock_client import Stock, acknowledge_messages

OWNER: Owner = ("acme", "u1")


async def test_reset_of_index_makes_requests_wait_until_it_has_read_the_log_again(
    connection: Client,
) -> None:
    stock = Stock(connection)
    follower, changed = LogFollower(LiveSettings(), users=10), asyncio.Event()
    seq = await stock.say("before the reset")
    await acknowledge_messages(connection, "index", 1)
    await follower.follow_changes(connection, lambda _: changed.set())
    assert await follower.await_indexed_position(OWNER, seq) == seq

    await reset_durable(connection, LOG, "index")
    newer = await stock.say("after the reset")
    await connection.publish("changed.acme.u1", json.dumps({"seq": newer}).encode())
    await asyncio.wait_for(changed.wait(), 60)
    assert await follower.await_indexed_position(OWNER, seq) == 0
    await acknowledge_messages(connection, "index", 1)
    assert await follower.await_indexed_position(OWNER, seq) == seq
