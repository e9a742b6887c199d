"""Messages that cannot be stored become dead letters with the reason; others of the batch are stored."""

import json
from collections.abc import Mapping
from typing import NamedTuple

import pytest
from nats.aio.client import Client
from nats.js.api import RawStreamMsg
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from mnemon_bench.workloads.messages import fill_log
from mnemon_consumers.app import run_consumers
from mnemon_contracts.streams import DEAD, LOG, WORK
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.config import Deployment
from tests.support.stock_client import Stock, handled

MESSAGE = "chat.acme.u1.-.message.v1"
TWO_MEGABYTES = b'{"role":"user","content":"%b"}' % (b"x" * 2_000_000)


class Poison(NamedTuple):
    """A message that cannot be stored, and the reason and a part of the error of its dead letter."""

    subject: str
    body: bytes
    reason: str
    names: str


POISON = (
    Poison(MESSAGE, b'{"role":"user","content":\xff', "invalid_body", "JSON"),
    Poison(MESSAGE, b'{"role":"narrator","content":"x"}', "invalid_body", "role"),
    Poison(MESSAGE, TWO_MEGABYTES, "invalid_body", "2,000,028 bytes"),
    Poison("chat.acme.u1.-.whispered.v1", b'{"role":"user","content":"x"}', "unknown_event", "whispered"),
    Poison("chat.acme.u1.-.message.v9", b'{"role":"user","content":"x"}', "unknown_event", "v9"),
)

REFUSED = b'{"role":"user","content":"x","later":1e300000}'
"""A message that satisfies the contract, but that PostgreSQL cannot store."""


def stored(deployment: Deployment) -> list[str]:
    """Return the content of every message, in log order."""
    assert deployment.database_url is not None
    engine = create_engine(deployment.database_url, poolclass=NullPool)
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(
            f"SELECT content FROM {deployment.database_schema}.messages ORDER BY seq"
        )
        return [row[0] for row in rows]


async def letters(connection: Client) -> list[RawStreamMsg]:
    jetstream = connection.jetstream()
    state = (await jetstream.stream_info(DEAD)).state
    return [await jetstream.get_msg(DEAD, seq) for seq in range(1, state.last_seq + 1)]


def headers(letter: RawStreamMsg) -> Mapping[str, str]:
    assert letter.headers is not None
    return letter.headers


async def test_five_poison_messages_among_a_thousand_become_letters(
    connection: Client, stock: Stock, deployment: Deployment
) -> None:
    """The consumer starts when the log is complete: each batch is full and has one of the poison messages."""
    positions = []
    for number, poison in enumerate(POISON):
        await fill_log(connection, 200, first=200 * number)
        positions.append(
            await stock.publish(poison.subject, poison.body, Nats_Msg_Id=f"p{number}", X_Bot="Пётр")
        )

    async with run_consumers(("persist",), deployment):
        await handled(connection, "persist")

    assert [content.partition(":")[0] for content in stored(deployment)] == [str(n) for n in range(1000)]
    found = sorted(await letters(connection), key=lambda letter: int(headers(letter)["Mnemon-Sequence"]))
    assert len(found) == 5
    for number, (poison, position, letter) in enumerate(zip(POISON, positions, found, strict=True)):
        assert letter.subject == f"dead.persist.{poison.subject}"
        assert letter.data == poison.body
        says = headers(letter)
        assert says["Mnemon-Consumer"] == "persist"
        assert says["Mnemon-Reason"] == poison.reason
        assert poison.names in says["Mnemon-Error"]
        assert says["Mnemon-Subject"] == poison.subject
        assert (says["Mnemon-Stream"], says["Mnemon-Sequence"]) == (LOG, str(position))
        original = json.loads(says["Mnemon-Headers"])
        assert (original["Nats-Msg-Id"], original["X-Bot"]) == (f"p{number}", "Пётр")


@pytest.mark.long
async def test_redelivered_poison_makes_no_second_letter(
    connection: Client, stock: Stock, deployment: Deployment
) -> None:
    for poison in POISON:
        await stock.publish(poison.subject, poison.body)
    await stock.say("good")
    for _ in range(2):
        async with run_consumers(("persist",), deployment):
            await handled(connection, "persist")
        # The new durable delivers all events again, as if none had been acknowledged.
        await connection.jetstream().delete_consumer(LOG, "persist")
        await provision(connection)
    assert stored(deployment) == ["good"]
    assert len(await letters(connection)) == 5


async def test_event_refused_by_the_database_becomes_a_letter(
    connection: Client, stock: Stock, deployment: Deployment
) -> None:
    await fill_log(connection, 200)
    await stock.publish(MESSAGE, REFUSED)
    await fill_log(connection, 200, first=200)

    async with run_consumers(("persist",), deployment):
        await handled(connection, "persist")

    assert [content.partition(":")[0] for content in stored(deployment)] == [str(n) for n in range(400)]
    [letter] = await letters(connection)
    assert headers(letter)["Mnemon-Reason"] == "refused_by_database"
    assert headers(letter)["Mnemon-Error"]
    assert letter.data == REFUSED


async def test_largest_poison_message_becomes_a_letter(
    connection: Client, stock: Stock, deployment: Deployment
) -> None:
    """With its headers, the dead letter would exceed the server's maximum, and end the connection."""
    await stock.publish(MESSAGE, b"x" * connection.max_payload)
    await stock.say("good")

    async with run_consumers(("persist",), deployment):
        await handled(connection, "persist")

    assert stored(deployment) == ["good"]
    [letter] = await letters(connection)
    assert headers(letter)["Mnemon-Reason"] == "invalid_body"
    assert headers(letter)["Mnemon-Sequence"] == "1"
    assert headers(letter)["Mnemon-Left-Out"] == "headers and body"
    assert not letter.data


async def test_poison_with_longest_subject_becomes_a_letter(
    connection: Client, stock: Stock, deployment: Deployment
) -> None:
    """With the prefix `dead.persist.`, the subject exceeds the longest command that the server accepts."""
    subject = f"chat.acme.u1.{'c' * 4000}.message.v1"
    await stock.publish(subject, {"role": "user", "content": "x"})
    await stock.say("good")

    async with run_consumers(("persist",), deployment):
        await handled(connection, "persist")

    assert stored(deployment) == ["good"]
    [letter] = await letters(connection)
    assert str(letter.subject).startswith("dead.persist.chat.acme.u1.ccc")
    assert headers(letter)["Mnemon-Reason"] == "invalid_subject"
    assert headers(letter)["Mnemon-Subject"] == subject


async def test_trigger_without_user_becomes_a_letter(connection: Client, deployment: Deployment) -> None:
    buried = await connection.subscribe("dead.>")
    await connection.jetstream().publish("work.persist.acme.u1.more", stream=WORK)

    async with run_consumers(("persist",), deployment):
        letter = await buried.next_msg(timeout=60)

    assert letter.subject == "dead.persist-sweep.work.persist.acme.u1.more"
    assert letter.headers
    assert letter.headers["Mnemon-Reason"] == "invalid_trigger"
    assert "expected changed." in letter.headers["Mnemon-Error"]
