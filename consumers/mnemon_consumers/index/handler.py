"""Handler of `index`: indexes messages, documents and summaries in batches, and sweeps users' points."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import nats.errors
import structlog

from mnemon_consumers.index.decide import plan_batch
from mnemon_consumers.index.point_writer import write_batch
from mnemon_consumers.index.sweep import sweep_points
from mnemon_contracts.streams import WORK
from mnemon_contracts.subjects import build_trigger_subject, parse_owner
from mnemon_infra.broker.broker import Broker
from mnemon_infra.broker.outcomes import ACK, Dead, DeliveryOutcome, Retry
from mnemon_infra.broker.streams.applied_position import read_delivered_position
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseUnavailable
from mnemon_infra.delivery import Delivery
from mnemon_infra.durables import DURABLES
from mnemon_infra.models.embedding import EmbeddingUnavailable
from mnemon_infra.process.request_priority import yield_to_requests
from mnemon_infra.vectors.port import VectorsUnavailable
from mnemon_infra.vectors.vector_index import VectorIndex

log = structlog.get_logger("index")


class IndexConsumer:
    """Consumer that indexes the log for search, and sweeps points."""

    def __init__(self, database: Database, vector_index: VectorIndex, deployment: Deployment) -> None:
        self._database = database
        self._vector_index = vector_index
        self._known_position = self._newest_position = 0
        self.broker = Broker(deployment, "index", on_gap=self._distrust_positions)
        self.broker.subscribe_durable(DURABLES["index"], self.index_events)
        self.broker.subscribe_durable(DURABLES["index-sweep"], self.sweep_users)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Index events and sweep points until the block ends."""
        async with self.broker.connect():
            self._known_position = await read_delivered_position(self.broker.stream_context, "index")
            async with self.broker.run():
                yield

    async def index_events(self, deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        """Write the points of events, then trigger sweeps of users whose points may be outdated.

        Returns:
            An outcome for each delivery.
        """
        batch = plan_batch(deliveries, self._known_position)
        self._newest_position = max(self._newest_position, deliveries[-1].sequence)
        try:
            async with self._vector_index.gate.enter():
                await write_batch(self._vector_index, batch)
        except (EmbeddingUnavailable, VectorsUnavailable) as error:
            log.warning("indexing failed, retrying", events=len(deliveries), error=str(error))
            return [Retry() if outcome is ACK else outcome for outcome in batch.outcomes]
        for owner, seq in batch.sweeps.items():
            subject = build_trigger_subject("index", *owner)
            await self.broker.stream_context.publish(subject, str(seq).encode(), stream=WORK)
        return batch.outcomes

    async def sweep_users(self, deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        """Sweep users' points, so that they agree with the rows; return an outcome for each delivery."""
        return [await self._sweep_user(delivery) for delivery in deliveries]

    async def _sweep_user(self, delivery: Delivery) -> DeliveryOutcome:
        await yield_to_requests()
        try:
            owner, position = parse_owner(delivery.subject), int(delivery.body or b"0")
        except ValueError as error:  # also of an invalid subject
            return Dead("invalid_trigger", str(error))
        try:
            async with self._vector_index.gate.enter():
                done = await sweep_points(
                    self.broker.connection, self._database, self._vector_index, owner, position
                )
        except (DatabaseUnavailable, EmbeddingUnavailable, VectorsUnavailable, nats.errors.Error) as error:
            log.warning("sweep failed, retrying", tenant=owner[0], error=str(error))
            return Retry()
        return ACK if done else Retry(0.2)

    def _distrust_positions(self) -> None:
        """Treat every event so far as one that may have been indexed before.

        A server that was killed may have lost its delivery counts.
        """
        self._known_position = max(self._known_position, self._newest_position)
