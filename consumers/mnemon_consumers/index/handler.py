"""Indexes messages, documents and summaries in batches, and triggers sweeps of the users' points."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import nats.errors
import structlog
from nats.aio.client import Client

from mnemon_consumers.index.decide import plan_batch
from mnemon_consumers.index.point_writer import write_batch
from mnemon_consumers.index.sweep import sweep_points
from mnemon_contracts.streams import LOG, WORK
from mnemon_contracts.subjects import InvalidSubject, parse_owner, work_subject
from mnemon_infra.broker.lifetime import build_broker, connected, started
from mnemon_infra.broker.outcomes import ACK, Dead, DeliveryOutcome, Retry
from mnemon_infra.broker.streams.applied_position import delivered_position
from mnemon_infra.broker.subscriptions import consume_stream
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseUnavailable
from mnemon_infra.delivery import Delivery
from mnemon_infra.models.embedding import EmbeddingUnavailable
from mnemon_infra.process.request_priority import give_way
from mnemon_infra.vectors.port import VectorsUnavailable
from mnemon_infra.vectors.vector_index import VectorIndex

log = structlog.get_logger("index")


@asynccontextmanager
async def consuming(database: Database, finding: VectorIndex, deployment: Deployment) -> AsyncIterator[None]:
    """Index the log and sweep points until the block ends."""
    seen = newest = 0

    def look_again() -> None:
        # A server that was killed may have lost its count of deliveries.
        nonlocal seen
        seen = max(seen, newest)

    broker = build_broker(deployment, "index", on_gap=look_again)

    async def index(deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        nonlocal newest
        batch = plan_batch(deliveries, seen)
        newest = max(newest, deliveries[-1].sequence)
        try:
            async with finding.gate.passed():
                await write_batch(finding, batch)
        except (EmbeddingUnavailable, VectorsUnavailable) as error:
            log.warning("indexing failed, retrying", events=len(deliveries), error=str(error))
            return [Retry() if outcome is ACK else outcome for outcome in batch.outcomes]
        publish = broker.config.connection_state.stream.publish
        for owner, seq in batch.sweeps.items():
            await publish(work_subject("index", *owner), str(seq).encode(), stream=WORK)
        return batch.outcomes

    async def sweep_users(deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        connection = broker.config.connection_state.connection
        return [await sweep_user(connection, delivery) for delivery in deliveries]

    async def sweep_user(connection: Client, delivery: Delivery) -> DeliveryOutcome:
        await give_way()
        try:
            owner = parse_owner(delivery.subject)
            async with finding.gate.passed():
                done = await sweep_points(connection, database, finding, owner, int(delivery.body or b"0"))
        except (InvalidSubject, ValueError) as error:
            return Dead("invalid_trigger", str(error))
        except (DatabaseUnavailable, EmbeddingUnavailable, VectorsUnavailable, nats.errors.Error):
            return Retry()
        return ACK if done else Retry(0.2)

    consume_stream(
        broker,
        stream=LOG,
        durable="index",
        batch=deployment.index_batch,
        linger=deployment.index_linger_ms / 1000,
        overlap=deployment.index_writers,
        consume=index,
        dead_limit=deployment.dead_limit,
    )
    consume_stream(
        broker,
        stream=WORK,
        durable="index-sweep",
        batch=20,
        linger=0.1,
        overlap=1,
        consume=sweep_users,
        dead_limit=deployment.dead_limit,
    )
    async with connected(broker) as connection:
        seen = await delivered_position(connection.jetstream(), "index")
        async with started(broker, (LOG, "index"), (WORK, "index-sweep")):
            yield
