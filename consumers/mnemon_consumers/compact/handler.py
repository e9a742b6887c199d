"""Handler of `compact`: publishes triggers for long conversations, and compacts them on the triggers."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import nats.errors
import structlog

from mnemon_consumers.compact.compaction import BUSY_DELAY, Compactor
from mnemon_consumers.compact.in_flight import FairShare, InFlightWork
from mnemon_consumers.domain.spending.budget import Budgets
from mnemon_consumers.model_reports import answer_report_requests
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.streams import WORK
from mnemon_contracts.subjects import InvalidSubject, Owner, build_trigger_subject, parse_conversation
from mnemon_infra.broker.broker import Broker
from mnemon_infra.broker.outcomes import ACK, Dead, DeliveryOutcome, Retry
from mnemon_infra.broker.streams.triggers import decode_users
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseUnavailable
from mnemon_infra.database.messages.uncovered_messages import UncoveredQuery, list_long_conversations
from mnemon_infra.delivery import Delivery
from mnemon_infra.durables import DURABLES
from mnemon_infra.models.language.circuit_breaker import CircuitBreaker
from mnemon_infra.models.language.registry import LanguageModels
from mnemon_infra.settings.store import LiveSettings

log = structlog.get_logger("compact")

TRANSIENT = DatabaseUnavailable, nats.errors.Error

ANY_POSITION: Final = 2**62
"""Position above all log positions, so that the length check counts every message that has a row.

The count may be wrong while earlier events are not projected. The compaction waits until they are projected,
and counts again.
"""

USERS_AT_ONCE: Final = 250
"""Maximum number of users that one query to the database checks."""


class CompactConsumer:
    """Consumer that compacts conversations.

    The consumer has its own database connections, and holds up to half of them while models answer.
    """

    def __init__(self, models: LanguageModels, deployment: Deployment) -> None:
        slots = DURABLES["compact"].get_batch_policy(deployment).overlap
        own_pool = deployment.model_copy(update={"pg_pool_max": 2 * slots})
        self._database = Database(own_pool, name="mnemon-compact-models")
        self._settings = LiveSettings()
        self._circuit_breaker = CircuitBreaker(models)
        budgets = Budgets(self._database, self._settings)
        self._compactor = Compactor(self._database, self._settings, self._circuit_breaker, budgets)
        self._in_flight = InFlightWork()
        self._shares = FairShare(slots)
        self.broker = Broker(deployment, "compact")
        self.broker.subscribe_durable(DURABLES["compact-said"], self.check_lengths)
        self.broker.subscribe_durable(DURABLES["compact"], self.compact_conversations)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Compact conversations until the block ends.

        Raises:
            DatabaseUnavailable: the database does not answer, or has not been migrated.
            mnemon_infra.settings.bucket.SettingsNotProvisioned: the bucket of settings does not exist.
            nats.errors.Error: NATS does not answer.
        """
        async with (
            self._database,
            self.broker.connect() as connection,
            self._settings.watch_bucket(connection),
            answer_report_requests(connection, self._circuit_breaker),
            self.broker.run(),
            self._in_flight.open(),
        ):
            yield

    async def check_lengths(self, deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        """Publish a trigger for each long conversation of the users whom the deliveries name.

        Users of tenants without compaction are skipped.

        Returns:
            An outcome for each delivery.
        """
        outcomes: list[DeliveryOutcome] = []
        users: dict[Owner, None] = {}
        for delivery in deliveries:
            try:
                users |= dict.fromkeys(decode_users(delivery.body))
                outcomes.append(ACK)
            except InvalidBody as error:
                outcomes.append(Dead("invalid_trigger", str(error)))
        queries = [
            UncoveredQuery(tenant, user, compaction.after_messages + 1, ANY_POSITION)
            for tenant, user in users
            if (compaction := self._settings.get_settings(tenant).compaction).enabled
        ]
        try:
            for start in range(0, len(queries), USERS_AT_ONCE):
                await self._trigger_compactions(queries[start : start + USERS_AT_ONCE])
        except TRANSIENT as error:
            log.warning("length check failed, retrying", error=repr(error))
            return [Retry() if outcome is ACK else outcome for outcome in outcomes]
        return outcomes

    async def compact_conversations(self, deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        """Compact the conversation of each trigger; return an outcome for each delivery."""
        return await asyncio.gather(
            *(self._in_flight.await_outcome(self._compact_conversation(each)) for each in deliveries)
        )

    async def _trigger_compactions(self, queries: Sequence[UncoveredQuery]) -> None:
        found = await self._database.run_query(list_long_conversations(queries))
        subjects = [
            build_trigger_subject("compact", query.tenant, query.user, conversation)
            for query, conversations in zip(queries, found, strict=True)
            for conversation in conversations
        ]
        publish = self.broker.stream_context.publish
        await asyncio.gather(*(publish(subject, b"", stream=WORK) for subject in subjects))

    async def _compact_conversation(self, delivery: Delivery) -> DeliveryOutcome:
        try:
            conversation = parse_conversation(delivery.subject)
        except InvalidSubject as error:
            return Dead("invalid_trigger", str(error))
        try:
            with self._shares.reserve(conversation[:2]) as has_room:
                if not has_room:
                    return Retry(BUSY_DELAY)
                return await self._compactor.compact_conversation(self.broker.connection, conversation)
        except TRANSIENT as error:
            log.warning("compaction failed, retrying", tenant=conversation[0], error=repr(error))
        except Exception:
            # Any error concerns this conversation alone; the others continue.
            log.exception("compaction crashed, retrying", tenant=conversation[0])
        return Retry()
