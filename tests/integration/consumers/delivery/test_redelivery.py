"""Late redelivery of messages that a killed worker has received: removed content stays removed."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from mnemon_consumers.app import run_consumers
from mnemon_consumers.persist.decide import plan_batch
from mnemon_contracts.streams import LOG, WORK
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.projections.writer import write_rows
from mnemon_infra.delivery import Delivery
from tests.support.log.projected_state import texts_of
from tests.support.stock_client import Stock, handled

TIMEOUT = 60.0

WATERMARKS = [
    pytest.param("-", "-", "cleared", {}, id="the current conversation is cleared"),
    pytest.param("trip", "trip", "cleared", {}, id="a named conversation is cleared"),
    pytest.param("-", "-", "started", {"discard_previous": True}, id="all is discarded"),
    pytest.param("trip", "work", "started", {"discard_previous": True}, id="all is discarded, elsewhere too"),
]


async def take(connection: Client, count: int) -> Sequence[Msg]:
    """Receive messages as a worker that is killed before it acknowledges them."""
    subscription = await connection.jetstream().pull_subscribe_bind("persist", LOG)
    taken: list[Msg] = []
    while len(taken) < count:
        taken += await subscription.fetch(count - len(taken), TIMEOUT)
    await subscription.unsubscribe()
    return taken


async def give_back(messages: Sequence[Msg]) -> None:
    """Redeliver messages, as the server does when a worker has not acknowledged them in time."""
    for message in messages:
        await message.nak()


async def swept(connection: Client) -> None:
    """Wait until every triggered sweep is done."""
    stream_context = connection.jetstream()
    async with asyncio.timeout(TIMEOUT):
        while (await stream_context.stream_info(WORK, subjects_filter="work.persist.>")).state.subjects:
            pass


def rows(deployment: Deployment, columns: str) -> list[Any]:
    """Return the given columns of all messages, in log order."""
    assert deployment.database_url is not None
    engine = create_engine(deployment.database_url, poolclass=NullPool)
    with engine.connect() as connection:
        statement = f"SELECT {columns} FROM {deployment.database_schema}.messages ORDER BY seq"
        return [tuple(row) for row in connection.exec_driver_sql(statement)]


@pytest.mark.parametrize(("place", "marked", "event", "body"), WATERMARKS)
async def test_redelivered_message_below_the_watermark_stays_gone(
    connection: Client,
    stock: Stock,
    deployment: Deployment,
    place: str,
    marked: str,
    event: str,
    body: dict[str, Any],
) -> None:
    for content in ("old", "older"):
        await stock.say(content, f"acme.u1.{place}", name="Anna", task_id="t1", metadata={"a": 1})
    taken = await take(connection, 2)
    await stock.publish(f"chat.acme.u1.{marked}.{event}.v1", body)
    last = await stock.say("new", f"acme.u1.{marked}")
    changes = await connection.subscribe("changed.acme.u1")

    async with run_consumers(("persist", "retrieve"), deployment):
        while json.loads((await changes.next_msg(TIMEOUT)).data)["seq"] < last:
            pass
        assert rows(deployment, "content") == [("new",)], "the watermark is there first"
        assert await stock.contents(min_seq=last) == ["new"]
        await give_back(taken)
        await handled(connection, "persist")
        assert await stock.contents(min_seq=last) == ["new"]
        if place != "-":
            expected = ["new"] if place == marked else []
            assert await stock.contents(conversation=place, min_seq=last) == expected
        await swept(connection)

    gone = (None,) * 6
    assert rows(deployment, "role, content, name, task_id, tool_calls, metadata") == [
        gone,
        gone,
        ("user", "new", None, None, None, None),
    ]


async def test_redelivery_after_the_sweep_restores_no_content(
    connection: Client, stock: Stock, deployment: Deployment
) -> None:
    await stock.say("old", id="m1")
    await stock.publish("chat.acme.u1.-.cleared.v1")
    for _ in range(2):
        async with run_consumers(("persist", "retrieve"), deployment):
            await handled(connection, "persist")
            await swept(connection)
            assert await stock.contents() == []
        assert rows(deployment, "content") == [(None,)]
        # Deliver the whole log again, and publish a copy of the message after the watermark.
        await connection.jetstream().delete_consumer(LOG, "persist")
        await provision(connection)
        await stock.say("old", id="m1")


async def test_event_of_worker_that_died_before_ack_is_applied_once(
    connection: Client, stock: Stock, deployment: Deployment
) -> None:
    await stock.say("one")
    await stock.publish("chat.acme.u1.trip.started.v1")
    await stock.say("two")
    await stock.publish("memory.acme.u1.profile.set.v1", {"fields": {"city": "Kazan"}})
    taken = await take(connection, 4)
    database = Database(deployment)
    await database.open()
    await write_rows(database, plan_batch([Delivery.from_message(message) for message in taken]).rows)
    await database.close()
    before = rows(deployment, "*")
    assert len(before) == 2
    await give_back(taken)

    async with run_consumers(("persist", "retrieve"), deployment):
        await handled(connection, "persist")
        assert await stock.contents() == ["two"]
        assert (await stock.ask("profile"))["profile"] == {"city": "Kazan"}
    assert rows(deployment, "*") == before


async def test_rows_exposed_by_an_erasure_are_swept(
    stock: Stock, connection: Client, deployment: Deployment
) -> None:
    """The copy has the id of an erased event: it is stored once this is seen; the forget must still apply."""
    saved = {"id": "e", "fact_id": "f", "fact": {"text": "old"}, "decision": {"proposal_id": "p"}}
    await stock.publish("memory.acme.u1.fact.saved.v1", saved)
    await stock.publish("memory.acme.u1.user.erased.v1", {"up_to_seq": 2})
    await stock.publish("memory.acme.u1.fact.saved.v1", saved)
    await stock.publish("memory.acme.u1.fact.forgotten.v1", {"fact_id": "f"})
    async with run_consumers(["persist"], deployment), Database(deployment) as database:
        await handled(connection, "persist")
        await swept(connection)
        assert await texts_of(database) == set()
