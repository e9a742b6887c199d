"""Consumers handle deliveries whose reply subjects name a JetStream domain and an account."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from nats.aio.client import Client

from mnemon.operations.audit.run import run_audit
from mnemon_consumers.app import run_consumers
from mnemon_contracts.streams import LOG
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.broker.streams.stream_reader import read_stream
from mnemon_infra.config import Deployment
from mnemon_infra.database.audit.events import UserSample
from mnemon_infra.database.engine import Database
from mnemon_infra.delivery import Delivery
from mnemon_infra.embedded.nats_server import NatsServer
from tests.support.log.dead_letters import bury_next, kept
from tests.support.stock_client import Stock, handled


class _InDomain(NatsServer):
    async def prepare(self) -> None:
        await super().prepare()
        path = Path(self.mark)
        configuration = path.read_text().replace("jetstream {", 'jetstream {\n  domain: "hub"', 1)
        path.write_text(f"{configuration}\nfeature_flags {{ js_ack_fc_v2: true }}\n")


@pytest_asyncio.fixture
async def nats_url(tmp_path: Path) -> AsyncIterator[str]:
    server = _InDomain(tmp_path, None)
    await server.start()
    yield server.url
    await server.stop()


@pytest_asyncio.fixture
async def connection(nats_url: str) -> AsyncIterator[Client]:
    async with await connect(nats_url, name="test") as connection:
        await provision(connection)
        yield connection


async def test_acknowledgement_names_the_domain(connection: Client, stock: Stock) -> None:
    said = await stock.say("hello")
    subscription = await connection.jetstream().pull_subscribe_bind("persist", LOG)
    [message] = await subscription.fetch(1, 60)
    assert message.reply.startswith("$JS.ACK.hub.")
    assert (Delivery.from_message(message).stream, Delivery.from_message(message).sequence) == (LOG, said)


async def test_the_log_is_read_page_by_page(connection: Client, stock: Stock) -> None:
    for number in range(25):
        await stock.say(str(number))
    pages = [
        [each.sequence for _, each in page] async for page in read_stream(connection, LOG, up_to=25, page=10)
    ]
    assert [seq for page in pages for seq in page] == [*range(1, 26)]
    assert len(pages) == 3


async def test_domain_deliveries_are_stored_or_buried(
    connection: Client, stock: Stock, deployment: Deployment
) -> None:
    await stock.say("hello")
    letter = await bury_next(connection)
    assert (letter.stream, letter.sequence) == (LOG, 1)
    await stock.publish("chat.acme.u1.-.message.v1", b"{")
    last = await stock.say("good bye")
    async with run_consumers(("persist", "retrieve"), deployment):
        await handled(connection, "persist")
        assert await stock.contents(min_seq=last) == ["good bye"]
        async with Database(deployment) as database:
            audit = await run_audit(connection, database, UserSample(), lambda *_: None)
    assert [each.sequence for each in await kept(connection)] == [1, 2]
    assert audit.faults.named == []
