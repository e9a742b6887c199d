"""Outcomes of messages: acknowledgement, redelivery, and dead letters that fit the server's limit."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import RawStreamMsg
from structlog.testing import capture_logs

from mnemon_contracts.streams import DEAD, LOG
from mnemon_infra.broker.outcomes import ACK, HEADROOM, Ack, Dead, DeliveryOutcome, Retry, settle_batch
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.delivery import Delivery
from mnemon_infra.durables import ACK_WAIT
from mnemon_infra.embedded.nats_server import NatsServer

SUBJECT = "chat.acme.u1.-.message.v1"
POISON = Dead("invalid_body", "no JSON")
SOON = 9.0
"""Seconds within which a message is redelivered; less than half of `ACK_WAIT`."""


@dataclass
class PersistWorker:
    """A worker that fetches messages of the durable `persist` and reports their outcomes."""

    connection: Client
    subscription: JetStreamContext.PullSubscription

    async def take(self, count: int = 1) -> list[Msg]:
        taken: list[Msg] = []
        while len(taken) < count:
            taken += await self.subscription.fetch(count - len(taken), timeout=SOON)
        return taken

    async def end(self, messages: list[Msg], *outcomes: DeliveryOutcome) -> None:
        deliveries = [Delivery.from_message(each) for each in messages]
        await settle_batch(self.connection, "persist", zip(messages, deliveries, outcomes, strict=True))

    async def open(self) -> tuple[int, int]:
        """Return the number of messages without an outcome and the number of undelivered messages."""
        await self.connection.flush()
        info = await self.connection.jetstream().consumer_info(LOG, "persist")
        return info.num_ack_pending or 0, info.num_pending or 0


@pytest_asyncio.fixture
async def nats_url(tmp_path: Path) -> AsyncIterator[str]:
    """Server with a limit of 1 MiB for a message, so that the largest message is sent quickly."""
    server = NatsServer(tmp_path, None, max_payload=1024 * 1024)
    await server.start()
    yield server.url
    await server.stop()


@pytest.fixture
async def durable(connection: Client) -> PersistWorker:
    assert ACK_WAIT > 2 * SOON
    return PersistWorker(connection, await connection.jetstream().pull_subscribe_bind("persist", LOG))


async def say(connection: Client, *bodies: bytes) -> None:
    for body in bodies:
        await connection.jetstream().publish(SUBJECT, body, stream=LOG)


async def letters(connection: Client) -> list[RawStreamMsg]:
    jetstream = connection.jetstream()
    state = (await jetstream.stream_info(DEAD)).state
    return [await jetstream.get_msg(DEAD, seq) for seq in range(1, state.last_seq + 1)]


async def nothing_open(durable: PersistWorker) -> None:
    async with asyncio.timeout(SOON):
        while await durable.open() != (0, 0):
            await asyncio.sleep(0.01)


async def test_unburied_message_is_redelivered_and_buried_later(
    connection: Client, durable: PersistWorker
) -> None:
    await connection.jetstream().delete_stream(DEAD)
    await say(connection, b"{", b"[")
    with capture_logs() as logged:
        await durable.end(await durable.take(2), POISON, POISON)
    assert [line["event"] for line in logged] == ["dead letter store failed, retrying"] * 2

    again = await durable.take(2)
    assert sorted(Delivery.from_message(each).sequence for each in again) == [1, 2]
    assert {Delivery.from_message(each).deliveries for each in again} == {2}

    await provision(connection)
    await durable.end(again, POISON, POISON)
    await nothing_open(durable)
    assert sorted(each.data or b"" for each in await letters(connection)) == [b"[", b"{"]


async def test_unburied_message_blocks_no_other(connection: Client, durable: PersistWorker) -> None:
    await connection.jetstream().delete_stream(DEAD)
    await say(connection, b"1", b"2", b"3", b"4")
    await durable.end(await durable.take(4), ACK, POISON, Ack("no reason to"), Retry(0.0))
    again = await durable.take(2)
    assert sorted(Delivery.from_message(each).sequence for each in again) == [2, 4]


async def test_each_outcome_ends_its_own_message(connection: Client, durable: PersistWorker) -> None:
    await say(connection, b"1", b"2", b"3", b"4", b"5")
    await durable.end(await durable.take(5), POISON, ACK, Retry(0.0), Ack("no reason to"), POISON)
    (again,) = await durable.take()
    assert Delivery.from_message(again).sequence == 3
    await durable.end([again], ACK)
    await nothing_open(durable)
    assert sorted(each.data or b"" for each in await letters(connection)) == [b"1", b"5"]


async def test_retry_is_redelivered_after_its_delay(connection: Client, durable: PersistWorker) -> None:
    await say(connection, b"1", b"2")
    await durable.end(await durable.take(2), Retry(3600.0), Retry())
    (again,) = await durable.take()
    assert Delivery.from_message(again).sequence == 2
    await say(connection, b"3")
    await durable.end([again], ACK)
    (new,) = await durable.take()
    assert Delivery.from_message(new).sequence == 3
    await durable.end([new], ACK)
    async with asyncio.timeout(SOON):
        while await durable.open() != (1, 0):
            await asyncio.sleep(0.01)


async def test_many_dead_letters_are_stored_in_groups(connection: Client, durable: PersistWorker) -> None:
    count = 150
    await say(connection, *(str(number).encode() for number in range(count)))
    await durable.end(await durable.take(count), *([POISON] * count))
    await nothing_open(durable)
    found = await letters(connection)
    assert sorted(int(each.data or b"") for each in found) == [*range(count)]


async def test_a_letter_holds_the_message_unless_it_exceeds_the_limit_of_the_server(
    connection: Client, durable: PersistWorker
) -> None:
    """A larger letter would make the server close the client's connection."""
    await say(connection, b"x")
    [message] = await durable.take()
    await durable.end([message], POISON)
    [letter] = await letters(connection)
    own = {name: value for name, value in (letter.headers or {}).items() if name != "Nats-Expected-Stream"}
    assert json.loads(own["Mnemon-Headers"]) == dict(message.headers or {})
    room = connection.max_payload - sum(len(name) + len(value) + 4 for name, value in own.items())

    for size in (room - HEADROOM, room - HEADROOM + 1, room - 30, room):
        await say(connection, b"x" * size)
        await durable.end(await durable.take(), POISON)
    await nothing_open(durable)

    assert connection.is_connected
    _, whole, *others = await letters(connection)
    assert len(whole.data or b"") == room - HEADROOM
    assert "Mnemon-Left-Out" not in (whole.headers or {})
    assert len(others) == 3
    for letter in others:
        assert not letter.data
        assert (letter.headers or {})["Mnemon-Left-Out"] == "headers and body"
        assert "Mnemon-Headers" not in (letter.headers or {})


async def test_a_confidential_letter_has_neither_headers_nor_body(
    connection: Client, durable: PersistWorker
) -> None:
    await connection.jetstream().publish(SUBJECT, b"my password", stream=LOG, headers={"X-Bot": "secret"})
    await durable.end(await durable.take(), Dead("invalid_body", "no JSON", is_confidential=True))
    [letter] = await letters(connection)
    assert not letter.data
    assert (letter.headers or {})["Mnemon-Left-Out"] == "headers and body"
    assert "secret" not in str(letter.headers)
