"""A cluster of three nats-servers: the death of one loses no acknowledged event; consumers keep running."""

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio
from nats.aio.client import Client

from mnemon_bench.provider_server.server import ProviderServer
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import build_chat_subject
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.streams.log_reader import read_user_tail
from tests.support.chaos.erasure_under_load import SECRET, Forgetting, found_in
from tests.support.chaos.erasure_under_load import TENANT as OTHERS
from tests.support.chaos.load import (
    TENANT,
    ConversationLoad,
    is_persisted,
    stored_rows,
    talk_while_dying,
    users_that_miss_something,
)
from tests.support.processes.runner import Runner, running
from tests.support.processes.stack import TIMEOUT, mnemon
from tests.support.servers.nats_cluster import SERVERS, Cluster, cluster

pytestmark = pytest.mark.long

DEATHS = 3


@pytest_asyncio.fixture
async def three() -> AsyncIterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="mnemon-test-") as folder:
        async with cluster(Path(folder)) as servers:
            yield servers


async def test_cluster_raises_copies_to_three_and_keeps_acknowledged_events(three: Cluster) -> None:
    assert (await mnemon("provision", MNEMON_NATS_URL=three.url)).code == 0
    assert set((await three.copies()).values()) == {1}
    environment = {"MNEMON_NATS_URL": three.url, "MNEMON_REPLICAS": str(SERVERS)}
    changes = json.loads((await mnemon("provision", "--json", **environment)).out)
    updated = {change["what"]: change["detail"] for change in changes if change["action"] == "updated"}
    assert updated.keys() == {
        *("stream LOG", "stream WORK", "stream DEAD"),
        *("bucket settings", "bucket api_keys"),
    }
    assert set(updated.values()) == {"num_replicas: 1 should be 3"}
    async with asyncio.timeout(TIMEOUT):
        while set((await three.copies()).values()) != {SERVERS}:
            await asyncio.sleep(0.1)

    connections = [await connect(url, name="test") for url in three.url.split(",")]
    await three.is_whole()
    busy = asyncio.create_task(_keep_busy(connections[0]))
    for number in range(100):
        for place, connection in enumerate(connections):
            user = f"u{place}-{number}"
            subject = build_chat_subject("acme", user, None, "message")
            said = await connection.jetstream().publish(subject, b"{}", stream=LOG)
            assert [each.sequence for each in await read_user_tail(connection, "acme", user, 0)] == [said.seq]
    busy.cancel()
    for connection in connections:
        await connection.close()


async def _keep_busy(connection: Client) -> None:
    """Publish messages without end, so that the servers always replicate."""
    while True:
        subject = build_chat_subject("acme", "busy", None, "message")
        await asyncio.gather(*(connection.jetstream().publish(subject, bytes(300)) for _ in range(50)))


async def test_cluster_keeps_erasure_over_three_leader_deaths(
    three: Cluster, database_url: str, tmp_path: Path
) -> None:
    schema = f"test_{uuid4().hex[:12]}"
    environment = {
        "MNEMON_NATS_URL": three.url,
        "MNEMON_REPLICAS": str(SERVERS),
        "DATABASE_URL": database_url,
        "MNEMON_DATABASE_SCHEMA": schema,
    }
    for command in ("provision", "migrate"):
        assert (await mnemon(command, **environment)).code == 0
    await three.is_whole()
    talk = ConversationLoad(users=60, turns=60)
    with ProviderServer() as server:
        async with await connect(three.url, name="test") as connection:
            forgetting = Forgetting(connection, three.url, server)
            await forgetting.set()
            consumers = [
                Runner([name], tmp_path / f"{name}.log", **environment, **forgetting.environment)
                for name in ("persist", "retrieve", "extract")
            ]
            async with running(consumers):
                await forgetting.told()
                assert found_in(three.folders, SECRET), "it is looked for in the right place"
                deaths = [three.leader_killed] * DEATHS
                await talk_while_dying(talk, three.url, [deaths[0], forgetting.erased, *deaths[1:]])
                await forgetting.answered()
                await is_persisted(talk, three.url)
                assert len(three.killed) == DEATHS
                assert stored_rows(database_url, schema, TENANT) == (talk.messages, talk.messages)
                assert not await users_that_miss_something(talk, three.url, range(talk.users))
                assert all(consumer.is_alive for consumer in consumers), "somebody had to be started again"
                await forgetting.is_gone()
        rebuilt = await mnemon("rebuild", "--json", **environment)
        assert rebuilt.code == 0, rebuilt.err
        replayed = json.loads(rebuilt.out)
        assert replayed["events"] < replayed["position"], "nothing is where the erased events were"
        assert stored_rows(database_url, schema, OTHERS) == (1, 1), "of the one who stays"
        # Messages of the servers' system account remain until the next snapshot, after at most two minutes.
        assert all("$SYS" in path.parts for path in found_in(three.folders, SECRET))
