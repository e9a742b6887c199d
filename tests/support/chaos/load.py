"""Test under load: many users talk while processes are killed; then every message is stored once, in order.

The test suite runs it with few users. With many: `python -m tests.support.chaos.load`.
"""

import argparse
import asyncio
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg import sql

from mnemon_contracts.events.chat import MessageV1
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.streams.applied_position import AppliedPosition
from mnemon_producers.client import MemoryClient
from mnemon_producers.events import ChatEvent
from mnemon_producers.publisher import Published
from mnemon_producers.timeouts import Timeouts
from tests.support.processes.runner import Runner, running
from tests.support.processes.stack import TIMEOUT, Up, until
from tests.support.servers.ports import free_port

TENANT = "acme"
TIMEOUTS = Timeouts(publish=2.0, retry=TIMEOUT, ask=30.0)

Death = Callable[[], Awaitable[None]]
"""Function that kills a process or a server, and returns when its replacement runs."""


@dataclass
class ConversationLoad:
    """Messages to publish: one of each user in each turn, half with `publish`, and half with `publish_many`.

    Attributes:
        stored: number of messages that the log has acknowledged.
        last_seq: the highest of their log positions.
    """

    users: int
    turns: int
    stored: int = 0
    last_seq: int = 0
    _change: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def messages(self) -> int:
        return self.users * self.turns

    @property
    def said(self) -> list[str]:
        """Texts of the messages of each user, in order."""
        return [f"turn {turn}" for turn in range(self.turns)]

    async def published(self, memory: MemoryClient) -> None:
        """Publish all messages. A turn begins when the log has the messages of the previous turn."""
        for content in self.said:
            live = (self._said_by(memory, f"u{user}", content) for user in range(0, self.users, 2))
            await asyncio.gather(self._imported(memory, content), *live)

    async def has_stored(self, count: int) -> None:
        """Wait until the log has acknowledged `count` messages."""
        async with self._change:
            await self._change.wait_for(lambda: self.stored >= count)

    async def _said_by(self, memory: MemoryClient, user: str, content: str) -> None:
        await self._count(1, await memory.publish(user, "user", content))

    async def _imported(self, memory: MemoryClient, content: str) -> None:
        message = MessageV1(role="user", content=content)
        done: Published = await memory.publish_many(
            ChatEvent(f"u{user}", message) for user in range(1, self.users, 2)
        )
        await self._count(done.count, done.last_seq)

    async def _count(self, stored: int, seq: int) -> None:
        async with self._change:
            self.stored += stored
            self.last_seq = max(self.last_seq, seq)
            self._change.notify_all()


async def talk_while_dying(talk: ConversationLoad, url: str, deaths: Sequence[Death]) -> None:
    """Publish all messages, and call the functions `deaths` in turn, spread evenly over the messages."""

    async def die() -> None:
        for number, death in enumerate(deaths, 1):
            await talk.has_stored(number * talk.messages // (len(deaths) + 1))
            await death()

    async with (
        MemoryClient.connect(url, tenant=TENANT, timeouts=TIMEOUTS) as memory,
        asyncio.TaskGroup() as group,
    ):
        group.create_task(talk.published(memory))
        group.create_task(die())


async def is_persisted(talk: ConversationLoad, url: str) -> None:
    """Wait until `persist` has handled all messages of `talk`."""
    connection = await connect(url, name="test")
    position = await AppliedPosition().wait_for(connection.jetstream(), talk.last_seq, TIMEOUT)
    await connection.close()
    assert position >= talk.last_seq, f"after {TIMEOUT} s the log is persisted up to {position} only"


def stored_rows(database: str, schema: str = "mnemon", tenant: str = TENANT) -> tuple[int, int]:
    """Return the number of message rows of a tenant, and the number of different messages in them."""
    statement = sql.SQL(
        "SELECT count(*), count(DISTINCT (user_id, content)) FROM {}.messages WHERE tenant = %s"
    )
    with psycopg.connect(database) as connection:
        found = connection.execute(statement.format(sql.Identifier(schema)), (tenant,)).fetchone()
    assert found is not None
    return found


async def users_that_miss_something(talk: ConversationLoad, url: str, users: Sequence[int]) -> list[str]:
    """Return the users whose history differs from their published messages, or has another order."""
    wrong = []
    async with MemoryClient.connect(url, tenant=TENANT, timeouts=TIMEOUTS) as memory:
        for user in (f"u{number}" for number in users):
            messages = (await memory.history(user, limit=1000, min_seq=talk.last_seq)).messages
            positions = [message.seq for message in messages]
            if [message.content for message in messages] != talk.said or positions != sorted(positions):
                wrong.append(user)
    return wrong


class DyingUp:
    """`mnemon up` on a free port, with functions that kill it, its background process or its servers."""

    def __init__(self, up: Up, *arguments: str, **environment: str) -> None:
        self.up = up
        self._arguments = ("--nats-port", str(free_port()), *arguments)
        self._environment = environment

    async def start(self) -> None:
        await self.up.start(*self._arguments, **self._environment)

    async def killed(self) -> None:
        """Kill `mnemon up` with SIGKILL, and start it again; the new process ends the old servers."""
        await self.up.kill()
        await self.start()

    async def background_killed(self) -> None:
        """Kill the background process with SIGKILL, and wait until another one runs."""
        await until(lambda: self.up.beside() is not None)
        first = self.up.beside()
        assert first is not None
        first.kill()

        def another() -> bool:
            now = self.up.beside()
            return now is not None and now.pid != first.pid

        await until(another)

    def of_server(self, name: str, number: signal.Signals = signal.SIGKILL) -> Death:
        pid = self.up.data / "run" / f"{name}.pid"

        async def death() -> None:
            before = pid.read_text()
            os.kill(int(before), number)
            await until(lambda: pid.read_text() != before)
            await self.up.ready()

        return death


async def up_is_killed(up: Up, talk: ConversationLoad, kills: int) -> None:
    """Publish `talk`; kill `mnemon up` `kills` times, and each of its servers once; check the result."""
    dying = DyingUp(up)
    await dying.start()
    servers = [dying.of_server("nats-server"), dying.of_server("postgres")]
    await _rehearse(dying, talk, [*servers, *[dying.killed] * kills])


async def runners_are_killed(up: Up, talk: ConversationLoad, kills: int) -> None:
    """Publish `talk`; kill `persist` processes `kills` times, stop PostgreSQL twice; check the result."""
    dying = DyingUp(up, "--only", "retrieve")
    await dying.start()
    runners = [
        Runner(["persist"], up.data.parent / f"runner-{number}.log", "--data", up.data) for number in (1, 2)
    ]
    async with running(runners):
        chance = random.Random(talk.users)
        killed = [chance.choice(runners).killed for _ in range(kills)]
        database = [dying.of_server("postgres", signal.SIGINT), dying.of_server("postgres")]
        half = kills // 2
        await _rehearse(dying, talk, [*killed[:half], *database, *killed[half:]])


async def _rehearse(dying: DyingUp, talk: ConversationLoad, deaths: Sequence[Death]) -> None:
    endpoints = await dying.up.ready()
    begun = time.monotonic()
    await talk_while_dying(talk, endpoints.nats, deaths)
    said = time.monotonic()
    await is_persisted(talk, endpoints.nats)
    print(
        f"{talk.messages:,} messages of {talk.users:,} users, {len(deaths)} deaths: "
        f"published in {said - begun:.1f} s, persisted {time.monotonic() - said:.1f} s later"
    )
    rows = stored_rows(endpoints.database, dying.up.schema)
    assert rows == (talk.messages, talk.messages), f"{rows[0]:,} rows of {rows[1]:,} messages"
    wrong = await users_that_miss_something(talk, endpoints.nats, range(talk.users))
    assert not wrong, f"{len(wrong)} of {talk.users} histories are not what was said: {wrong[:5]}"


async def _in_full(users: int, turns: int, kills: int) -> None:
    for rehearsal in (up_is_killed, runners_are_killed):
        parent = Path(tempfile.mkdtemp(prefix="mnemon-load-"))
        up = Up(parent / "data")
        try:
            print(rehearsal.__doc__)
            await rehearsal(up, ConversationLoad(users, turns), kills)
            print("every message is stored once, and every history is what was said")
        finally:
            await up.stop()
            shutil.rmtree(parent)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--users", type=int, default=1000)
    arguments.add_argument("--turns", type=int, default=50, help="messages of each user")
    arguments.add_argument("--kills", type=int, default=5)
    asyncio.run(_in_full(**vars(arguments.parse_args())))
