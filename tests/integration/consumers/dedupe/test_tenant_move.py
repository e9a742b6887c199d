"""Proposals of a tenant that moves are decided after the end of the move."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from nats.aio.client import Client

from mnemon_consumers.dedupe.handler import DedupeConsumer
from mnemon_contracts.events.memory import FactProposedV1
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import build_memory_subject, build_thing_filter
from mnemon_infra.broker.streams.log_reader import read_event_pages
from mnemon_infra.broker.streams.log_writer import LogEvent, append_events
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.settings.residence import Residence, ResidenceState, write_residence
from mnemon_infra.vectors.engines import open_vectors
from mnemon_infra.vectors.vector_index import VectorIndex
from tests.support.servers.qdrant import locate_vectors

TENANT = "acme"
TIMEOUT = 60.0


@pytest_asyncio.fixture
async def revision(
    connection: Client, deployment: Deployment, database: Database, tmp_path: Path
) -> AsyncIterator[int]:
    """Deliver a proposal to `dedupe` in the tenant's write pause; yield the revision of the residence."""
    revision = await put_state(connection, "leaving", 0)
    located = locate_vectors(deployment, tmp_path / "vectors")
    async with (
        open_vectors(located, model="none", dimension=None) as vectors,
        DedupeConsumer(database, VectorIndex(vectors, None), located).run(),
    ):
        body = FactProposedV1.create_strict(text="Her sister is called Vera.").encode_body()
        await append_events(
            connection, [LogEvent(build_memory_subject(TENANT, "u1", "fact.proposed"), body, "proposal")]
        )
        async with asyncio.timeout(TIMEOUT):
            while await count_deliveries(connection) < 2:
                await asyncio.sleep(0.05)
        yield revision


async def put_state(connection: Client, state: ResidenceState, last: int) -> int:
    return await write_residence(connection, TENANT, Residence(state, "m1", "nats://new:4222"), last)


async def count_deliveries(connection: Client) -> int:
    delivered = (await connection.jetstream().consumer_info(LOG, "dedupe")).delivered
    return delivered.consumer_seq if delivered else 0


async def list_facts(connection: Client) -> list[str]:
    pages = [page async for page in read_event_pages(connection, build_thing_filter(TENANT, "u1", "fact"), 0)]
    return [each.subject for page in pages for each in page if "proposed" not in each.subject]


async def test_proposal_is_decided_here_after_a_failed_switch(connection: Client, revision: int) -> None:
    assert await list_facts(connection) == []
    await put_state(connection, "copying", revision)
    async with asyncio.timeout(TIMEOUT):
        while not await list_facts(connection):
            await asyncio.sleep(0.05)


async def test_proposal_is_acknowledged_once_the_tenant_has_moved(connection: Client, revision: int) -> None:
    await put_state(connection, "moved", revision)
    async with asyncio.timeout(TIMEOUT):
        while (await connection.jetstream().consumer_info(LOG, "dedupe")).num_ack_pending:
            await asyncio.sleep(0.05)
    assert await list_facts(connection) == []
