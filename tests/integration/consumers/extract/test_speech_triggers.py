"""Triggers name the users of new messages after these are stored; one trigger names many users."""

import asyncio

from nats.aio.client import Client

from mnemon_consumers.app import run_consumers
from mnemon_contracts.events.chat import MessageV1
from mnemon_contracts.streams import WORK
from mnemon_contracts.subjects import build_memory_subject
from mnemon_infra.broker.streams.applied_position import read_applied_position
from mnemon_infra.broker.streams.triggers import USERS, decode_users
from mnemon_infra.config import Deployment
from mnemon_producers.client import MemoryClient
from mnemon_producers.events import ChatEvent
from tests.support.stock_client import Stock


async def _triggers(connection: Client, pattern: str) -> list[tuple[int, list[tuple[str, str]]]]:
    """Return the waiting triggers: the log position in the subject, and the users of each."""
    stream_context = connection.jetstream()
    info = await stream_context.stream_info(WORK, subjects_filter=pattern)
    waiting = info.state.subjects or {}
    messages = [await stream_context.get_last_msg(WORK, subject) for subject in waiting]
    return [(int(str(each.subject).split(".")[2]), decode_users(each.data or b"")) for each in messages]


async def _applied(connection: Client, seq: int) -> None:
    async with asyncio.timeout(60):
        while await read_applied_position(connection.jetstream()) < seq:
            await asyncio.sleep(0.02)


async def test_trigger_names_only_users_with_new_messages(deployment: Deployment, stock: Stock) -> None:
    for place in ("acme.u1.-", "acme.u2.talk", "globex.u1.-", "acme.u1.-"):
        last = await stock.say("hello", place)
    await stock.publish(build_memory_subject("acme", "u3", "profile.set"), {"fields": {"city": "Oslo"}})
    end = await stock.publish("chat.acme.u4.-.cleared.v1")

    async with run_consumers(["persist"], deployment):
        await _applied(stock.connection, end)

    for consumer in ("compact", "extract"):
        named = await _triggers(stock.connection, f"work.{consumer}.*")
        assert max(seq for seq, _ in named) == last
        users = [user for _, users in named for user in users]
        assert sorted(set(users)) == [("acme", "u1"), ("acme", "u2"), ("globex", "u1")]


async def test_one_trigger_names_many_users(deployment: Deployment, connection: Client) -> None:
    everybody = [f"пользователь {number}" for number in range(USERS * 2 + 1)]
    async with run_consumers(["persist"], deployment):
        await connection.jetstream().pause_consumer("LOG", "persist", pause_until="2099-01-01T00:00:00Z")
        client = MemoryClient(connection, tenant="acme")
        said = (ChatEvent(user, MessageV1(role="user", content="привет")) for user in everybody)
        published = await client.publish_many(said)
        await connection.jetstream().resume_consumer("LOG", "persist")
        await _applied(connection, published.last_seq)

    named = [users for _, users in await _triggers(connection, "work.compact.*")]
    assert sorted(user for users in named for _, user in users) == sorted(everybody)
    assert max(len(users) for users in named) <= USERS
    assert len(named) < len(everybody) / 50
