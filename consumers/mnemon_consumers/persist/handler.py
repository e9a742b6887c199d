"""Writes each batch of the log in a transaction, publishes who changed and who spoke, acknowledges it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import nats.errors

from mnemon_consumers.persist.decide import find_senders, plan_batch
from mnemon_consumers.persist.erasure import settle_erasures
from mnemon_contracts.streams import LOG, WORK
from mnemon_contracts.subjects import InvalidSubject, changed_subject, parse_owner, work_subject
from mnemon_infra.broker.bulk_publish import publish_all
from mnemon_infra.broker.lifetime import build_broker, connected, started
from mnemon_infra.broker.outcomes import ACK, Dead, DeliveryOutcome, Retry
from mnemon_infra.broker.streams.applied_position import applied_position
from mnemon_infra.broker.streams.triggers import publish_said
from mnemon_infra.broker.subscriptions import consume_stream
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseRefused, DatabaseUnavailable
from mnemon_infra.database.projections.rows import Rows
from mnemon_infra.database.projections.sweep import last_watermark, sweep
from mnemon_infra.database.projections.writer import write
from mnemon_infra.delivery import Delivery

TOLD: Final = "compact", "extract"
"""Consumers that are told which users sent messages."""


@asynccontextmanager
async def consuming(database: Database, deployment: Deployment) -> AsyncIterator[None]:
    """Persist the log and sweep cleared content until the block ends."""
    broker = build_broker(deployment, "persist")

    async def persist(deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        batch = plan_batch(deliveries)
        try:
            await write(database, batch.rows)
        except DatabaseUnavailable:
            return [Retry() if outcome is ACK else outcome for outcome in batch.outcomes]
        except DatabaseRefused as error:
            if len(deliveries) == 1:
                return [Dead("refused_by_database", str(error))]
            # One event is refused: halving the batch finds it and writes the others.
            half = len(deliveries) // 2
            return [*await persist(deliveries[:half]), *await persist(deliveries[half:])]
        await follow_up(batch.rows)
        return batch.outcomes

    async def follow_up(rows: Rows) -> None:
        publish = broker.config.connection_state.stream.publish
        for tenant, user in rows.watermarked():
            await publish(work_subject("persist", tenant, user), stream=WORK)
        for tenant, user in rows.discarded():
            await publish(work_subject("dedupe", tenant, user), stream=WORK)
        changed = rows.changed()
        # Most batches consist of messages only; then the users who spoke are those who changed.
        users = find_senders(rows.messages.values()) if rows.memories or rows.events else changed
        notices = [(changed_subject(*owner), b'{"seq":%d}' % seq) for owner, seq in changed.items()]
        connection = broker.config.connection_state.connection
        await publish_said(connection, TOLD, users)
        await publish_all(connection, notices)

    async def sweep_users(deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        position = await applied_position(broker.config.connection_state.stream)
        # A user with many changes has many triggers at the same time: one sweep serves them all.
        subjects = dict.fromkeys(delivery.subject for delivery in deliveries)
        ends = {subject: await sweep_user(subject, position) for subject in subjects}
        return [ends[delivery.subject] for delivery in deliveries]

    async def sweep_user(subject: str, position: int) -> DeliveryOutcome:
        try:
            owner = parse_owner(subject)
            is_settled = await settle_erasures(
                broker.config.connection_state.connection, database, owner, position
            )
            # The sweep comes second, because finishing an erasure may write rows that have to be swept.
            await sweep(database, *owner, up_to=position)
            is_swept = is_settled and await last_watermark(database, *owner) <= position
            return ACK if is_swept else Retry(0.2)
        except InvalidSubject as error:
            return Dead("invalid_subject", str(error))
        except (DatabaseUnavailable, nats.errors.Error):
            return Retry()

    consume_stream(
        broker,
        stream=LOG,
        durable="persist",
        batch=deployment.persist_batch,
        linger=deployment.persist_linger_ms / 1000,
        overlap=deployment.persist_writers,
        consume=persist,
        dead_limit=deployment.dead_limit,
    )
    consume_stream(
        broker,
        stream=WORK,
        durable="persist-sweep",
        batch=100,
        linger=0.5,
        overlap=1,
        consume=sweep_users,
        dead_limit=deployment.dead_limit,
    )
    async with connected(broker), started(broker, (LOG, "persist"), (WORK, "persist-sweep")):
        yield
