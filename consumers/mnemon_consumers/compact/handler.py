"""Finds conversations that are long enough and triggers their compaction; compacts each on its trigger."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import nats.errors
import structlog

from mnemon_consumers.compact.compaction import BUSY_DELAY, Compactor
from mnemon_consumers.compact.fair_share import FairShare
from mnemon_consumers.compact.in_flight import InFlightWork
from mnemon_consumers.domain.spending.budget import Budgets
from mnemon_consumers.model_reports import report_models
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.streams import WORK
from mnemon_contracts.subjects import InvalidSubject, Owner, parse_conversation, work_subject
from mnemon_infra.broker.lifetime import build_broker, connected, started
from mnemon_infra.broker.outcomes import ACK, Dead, DeliveryOutcome, Retry
from mnemon_infra.broker.streams.triggers import decode
from mnemon_infra.broker.subscriptions import consume_stream
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseUnavailable
from mnemon_infra.database.messages.unsummarised import UnsummarisedQuery, long_uncovered
from mnemon_infra.delivery import Delivery
from mnemon_infra.models.language.circuit_breaker import CircuitBreaker
from mnemon_infra.models.language.registry import LanguageModels
from mnemon_infra.settings.store import LiveSettings

log = structlog.get_logger("compact")

LATER = DatabaseUnavailable, nats.errors.Error

ANY_POSITION: Final = 2**62
"""The length check may see unsettled positions: compaction itself waits until all of them are settled."""

USERS_AT_ONCE: Final = 250
"""Users that one query to the database checks."""

MOST_AT_ONCE: Final = 16
"""Most conversations of one process. Each holds a connection to the database while a model answers."""


@asynccontextmanager
async def consuming(models: LanguageModels, deployment: Deployment) -> AsyncIterator[None]:
    """Compact conversations until the block ends.

    The consumer has database connections of its own: half of them are held while models think.

    Raises:
        DatabaseUnavailable: the database does not answer.
        mnemon_infra.settings.store.SettingsNotProvisioned: the streams and buckets do not exist.
    """
    broker = build_broker(deployment, "compact")
    settings = LiveSettings()
    at_once = min(deployment.model_requests, MOST_AT_ONCE)
    database = Database(
        deployment.model_copy(update={"pg_pool_max": 2 * at_once}), name="mnemon-compact-models"
    )
    patience = CircuitBreaker(models)
    compacting = Compactor(database, settings, patience, Budgets(database, settings))
    working, shares = InFlightWork(), FairShare(at_once)

    async def look(deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        outcomes: list[DeliveryOutcome] = []
        users: dict[Owner, None] = {}
        for delivery in deliveries:
            try:
                users |= dict.fromkeys(decode(delivery.body))
                outcomes.append(ACK)
            except InvalidBody as error:
                outcomes.append(Dead("invalid_trigger", str(error)))
        wanted = [
            UnsummarisedQuery(tenant, user, compaction.after_messages + 1, ANY_POSITION)
            for tenant, user in users
            if (compaction := settings.of(tenant).compaction).enabled
        ]
        try:
            for start in range(0, len(wanted), USERS_AT_ONCE):
                await trigger(wanted[start : start + USERS_AT_ONCE])
        except LATER as error:
            log.warning("compaction scan failed, retrying", error=repr(error))
            return [Retry() if outcome is ACK else outcome for outcome in outcomes]
        return outcomes

    async def trigger(wanted: Sequence[UnsummarisedQuery]) -> None:
        """Publish a trigger for each conversation that is long enough."""
        publish = broker.config.connection_state.stream.publish
        found = await database.read(long_uncovered(wanted))
        subjects = [
            work_subject("compact", whose.tenant, whose.user, conversation)
            for whose, conversations in zip(wanted, found, strict=True)
            for conversation in conversations
        ]
        await asyncio.gather(*(publish(subject, b"", stream=WORK) for subject in subjects))

    async def compact(deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        return await asyncio.gather(*(working.ended(compact_one(each)) for each in deliveries))

    async def compact_one(delivery: Delivery) -> DeliveryOutcome:
        try:
            place = parse_conversation(delivery.subject)
        except InvalidSubject as error:
            return Dead("invalid_trigger", str(error))
        try:
            with shares.taken(place[:2]) as is_room:
                if not is_room:
                    return Retry(BUSY_DELAY)
                return await compacting.compact(broker.config.connection_state.connection, place)
        except LATER as error:
            log.warning("compaction failed, retrying", error=repr(error))
        except Exception:
            # Any error concerns this conversation alone.
            log.exception("compaction crashed, retrying", tenant=place[0])
        return Retry()

    consume_stream(
        broker,
        stream=WORK,
        durable="compact-said",
        batch=100,
        linger=0.2,
        overlap=1,
        consume=look,
        dead_limit=deployment.dead_limit,
    )
    consume_stream(
        broker,
        stream=WORK,
        durable="compact",
        batch=1,
        linger=1,
        overlap=at_once,
        consume=compact,
        dead_limit=deployment.dead_limit,
    )
    try:
        await database.open()
        async with (
            connected(broker) as connection,
            settings.watched(connection),
            report_models(connection, patience),
            started(broker, (WORK, "compact-said"), (WORK, "compact")),
            working,
        ):
            yield
    finally:
        await database.close()
