"""Handler of `persist`: writes each batch of events in a transaction.

Then it publishes the triggers and notices that follow, and acknowledges the deliveries.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import nats.errors
import structlog

from mnemon_consumers.persist.decide import plan_batch
from mnemon_consumers.persist.erasure import remove_late_summaries, settle_erasures
from mnemon_contracts.streams import WORK
from mnemon_contracts.subjects import (
    InvalidSubject,
    Owner,
    build_notice_subject,
    build_trigger_subject,
    parse_owner,
)
from mnemon_infra.broker.broker import Broker
from mnemon_infra.broker.bulk_publish import publish_core_messages
from mnemon_infra.broker.outcomes import ACK, Dead, DeliveryOutcome, Retry
from mnemon_infra.broker.streams.applied_position import read_applied_position
from mnemon_infra.broker.streams.triggers import publish_user_triggers
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseRefused, DatabaseUnavailable
from mnemon_infra.database.projections.rows import Rows
from mnemon_infra.database.projections.sweep import load_last_watermark, sweep_owner
from mnemon_infra.database.projections.writer import write_rows
from mnemon_infra.delivery import Delivery
from mnemon_infra.durables import DURABLES
from mnemon_infra.storage.erasure_register import ErasureRegister
from mnemon_infra.storage.object_store import StoreUnavailable

log = structlog.get_logger("persist")

TRIGGERED: Final = "compact", "extract"
"""Consumers that get a trigger for users with new messages, except for users whose events a move copies."""


class PersistConsumer:
    """Consumer that projects the log into PostgreSQL, sweeps rows, and finishes erasures."""

    def __init__(self, database: Database, deployment: Deployment) -> None:
        self._database = database
        self._register = ErasureRegister.open_configured(deployment)
        self.broker = Broker(deployment, "persist")
        self.broker.subscribe_durable(DURABLES["persist"], self.write_events)
        self.broker.subscribe_durable(DURABLES["persist-sweep"], self.sweep_users)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Write the rows of events, and sweep rows, until the block ends."""
        async with self.broker.connect(), self.broker.run():
            yield

    async def write_events(self, deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        """Write the rows of events, then publish the triggers and notices that follow from them.

        An event that the database refuses becomes a dead letter; the other events of the batch are written.
        Summaries of erased messages are removed from the log.

        Returns:
            An outcome for each delivery.
        """
        batch = plan_batch(deliveries)
        try:
            await write_rows(self._database, batch.rows)
            await remove_late_summaries(self.broker.connection, self._database, batch.rows)
        except DatabaseUnavailable as error:
            log.warning("row write failed, retrying", events=len(deliveries), error=str(error))
            return [Retry() if outcome is ACK else outcome for outcome in batch.outcomes]
        except DatabaseRefused as error:
            if len(deliveries) == 1:
                return [Dead("refused_by_database", str(error))]
            # The database refuses an event: halving the batch finds this event and writes the others.
            half = len(deliveries) // 2
            return [*await self.write_events(deliveries[:half]), *await self.write_events(deliveries[half:])]
        await self._publish_changes(batch.rows, batch.moved)
        return batch.outcomes

    async def sweep_users(self, deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        """Finish erasures of users and of their conversations, and sweep the users' rows.

        Returns:
            An outcome for each delivery.
        """
        position = await read_applied_position(self.broker.stream_context)
        # A user with many changes has many triggers at the same time: one sweep serves them all.
        subjects = dict.fromkeys(delivery.subject for delivery in deliveries)
        outcomes = {subject: await self._sweep_user(subject, position) for subject in subjects}
        return [outcomes[delivery.subject] for delivery in deliveries]

    async def _publish_changes(self, rows: Rows, moved: set[Owner]) -> None:
        publish = self.broker.stream_context.publish
        for tenant, user in rows.find_watermarked_owners():
            await publish(build_trigger_subject("persist", tenant, user), stream=WORK)
        for tenant, user in rows.find_discarding_owners():
            await publish(build_trigger_subject("dedupe", tenant, user), stream=WORK)
        changed = rows.map_owners()
        # Most batches consist of messages only; then the senders are the users who changed.
        users = Rows(rows.messages).map_owners() if rows.memories or rows.events else changed
        notices = [(build_notice_subject(*owner), b'{"seq":%d}' % seq) for owner, seq in changed.items()]
        # The move triggers its users when this log has all of their events.
        users = {owner: users[owner] for owner in users.keys() - moved} if moved else users
        await publish_user_triggers(self.broker.connection, TRIGGERED, users)
        await publish_core_messages(self.broker.connection, notices)

    async def _sweep_user(self, subject: str, position: int) -> DeliveryOutcome:
        database = self._database
        try:
            owner = parse_owner(subject)
        except InvalidSubject as error:
            return Dead("invalid_trigger", str(error))
        try:
            is_settled = await settle_erasures(
                self.broker.connection, database, owner, position, self._register
            )
            # The sweep comes second, because finishing an erasure may write rows that have to be swept.
            await sweep_owner(database, *owner, up_to=position)
            is_swept = is_settled and await load_last_watermark(database, *owner) <= position
            return ACK if is_swept else Retry(0.2)
        except StoreUnavailable as error:
            log.error("erasure register write failed, retrying", tenant=owner[0], error=str(error))
            return Retry()
        except (DatabaseUnavailable, nats.errors.Error) as error:
            log.warning("sweep failed, retrying", tenant=owner[0], error=str(error))
            return Retry()
