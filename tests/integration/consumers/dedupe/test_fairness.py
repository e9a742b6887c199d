"""Many proposals of one user do not make other users wait for all of them."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from nats.aio.client import Client

from mnemon_bench.provider_server.server import ProviderServer
from mnemon_consumers.app import run_consumers
from mnemon_consumers.dedupe.handler import DedupeConsumer
from mnemon_contracts.events.memory import FactProposedV1
from mnemon_contracts.settings.groups import FactLimits, Rates, SettingsV1
from mnemon_contracts.subjects import build_memory_subject, build_thing_filter
from mnemon_infra.broker.streams.applied_position import read_applied_position
from mnemon_infra.broker.streams.log_reader import read_event_pages
from mnemon_infra.broker.streams.log_writer import LogEvent, append_events
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.delivery import Delivery
from mnemon_infra.settings.store import write_settings
from mnemon_infra.vectors.engines import open_vectors
from mnemon_infra.vectors.vector_index import VectorIndex
from tests.support.pipelines.compaction import CompactionHarness
from tests.support.servers.qdrant import locate_vectors
from tests.support.stock_client import Stock

FLOOD = 250
TIMEOUT = 60.0


def proposals(user: str, number: int) -> list[LogEvent]:
    """Build proposals for a user, all with different texts."""
    subject = build_memory_subject("acme", user, "fact.proposed")
    texts = [f"{user} keeps a notebook with the number {each}" for each in range(number)]
    return [
        LogEvent(subject, FactProposedV1.create_strict(text=text).encode_body(), f"{user}:{text}")
        for text in texts
    ]


async def decisions(connection: Client, user: str, number: int) -> Sequence[Delivery]:
    """Wait until a user's facts have the given number of decisions; return their events."""
    async with asyncio.timeout(TIMEOUT):
        while True:
            found = [
                page
                async for page in read_event_pages(connection, build_thing_filter("acme", user, "fact"), 0)
            ]
            decided = [each for page in found for each in page if "proposed" not in each.subject]
            if len(decided) >= number:
                return decided
            await asyncio.sleep(0.05)


@pytest.mark.long
async def test_fact_is_decided_during_the_flood_of_another_user(
    connection: Client, deployment: Deployment, database: Database, tmp_path: Path
) -> None:
    await write_settings(connection, SettingsV1(limits=FactLimits(per_user=FLOOD)))
    appended = await append_events(connection, [*proposals("flood", FLOOD), *proposals("quiet", 1)])
    located = locate_vectors(deployment, tmp_path / "vectors")
    async with (
        open_vectors(located, model="none", dimension=None) as vectors,
        DedupeConsumer(database, VectorIndex(vectors, None), located).run(),
    ):
        (quiet,) = await decisions(connection, "quiet", 1)
        flood = await decisions(connection, "flood", FLOOD)
        assert quiet.sequence < flood[-1].sequence
        # Each proposal of the flood is decided once, in order, and acknowledged.
        saved = [json.loads(each.body)["fact"]["text"] for each in flood]
        assert saved == [f"flood keeps a notebook with the number {each}" for each in range(FLOOD)]
        async with asyncio.timeout(TIMEOUT):
            while await read_applied_position(connection.jetstream(), "dedupe") < appended[-1].seq:
                await asyncio.sleep(0.05)
        assert len(await decisions(connection, "flood", FLOOD)) == len(flood)


async def test_only_the_user_with_too_many_requests_is_refused(stock: Stock, deployment: Deployment) -> None:
    await write_settings(
        stock.connection, SettingsV1(rates=Rates(requests_per_user=2), wait_for_log_ms=10_000)
    )
    seq = await stock.say("something that nobody has persisted yet")
    async with run_consumers(("retrieve",), deployment):
        asking = [asyncio.create_task(stock.ask("history", min_seq=seq)) for _ in range(3)]
        done, waiting = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED, timeout=TIMEOUT)
        (refused,) = [each.result()["error"] for each in done]
        assert (refused["code"], refused["retryable"]) == ("unavailable", True)
        assert refused["limit"] == "rates.requests_per_user"
        assert await stock.contents("acme.u2") == []
        async with run_consumers(("persist",), deployment):
            assert [len(reply["messages"]) for reply in await asyncio.gather(*waiting)] == [1, 1]
        assert len(await stock.contents(min_seq=seq)) == 1


async def test_user_with_many_conversations_takes_half_of_the_slots(
    stock: Stock, deployment: Deployment
) -> None:
    room = deployment.model_requests
    with ProviderServer() as server:
        released = server.state.hold_answers()
        compacting = await CompactionHarness.on(stock, deployment, server)
        flood = room // 2 + 1
        for number in range(flood):
            await compacting.talk(17, ("flood",), conversation=f"c{number}")
        async with compacting.running("persist", "compact"):
            await compacting.is_asked(room // 2)
            await compacting.talk(17, [f"u{number}" for number in range(room)])
            await compacting.is_asked(room)
            assert sum("flood says" in question.text for question in server.state.in_flight) == room // 2
            released.set()
            await compacting.has(flood + room, "summary.written")
            assert len(await compacting.log_of("summary.written", "flood")) == flood
