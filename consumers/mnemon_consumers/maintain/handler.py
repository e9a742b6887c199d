"""Expires facts, and triggers dedupe for users with too many. The schedules run on the NATS server."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import nats.errors
import structlog
from nats.aio.client import Client

from mnemon_consumers.maintain.decide import build_expiries, exceeds_limits, find_smallest_limit
from mnemon_contracts.settings.groups import FactLimits
from mnemon_contracts.streams import WORK
from mnemon_contracts.subjects import Owner, work_subject
from mnemon_infra.broker.lifetime import build_broker, connected, started
from mnemon_infra.broker.outcomes import ACK, DeliveryOutcome, Retry
from mnemon_infra.broker.provisioning.topology import MAINTAIN
from mnemon_infra.broker.streams.log_writer import append
from mnemon_infra.broker.streams.schedules import every
from mnemon_infra.broker.subscriptions import consume_stream
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseUnavailable
from mnemon_infra.database.facts.fact_repository import live_facts
from mnemon_infra.database.locks import locked
from mnemon_infra.database.projections.sweep_candidates import with_expired_facts, with_more_facts
from mnemon_infra.delivery import Delivery
from mnemon_infra.health.clock_skew import compare_clocks
from mnemon_infra.settings.store import LiveSettings

log = structlog.get_logger("maintain")

EXPIRE, LIMITS = f"{MAINTAIN}.expire", f"{MAINTAIN}.limits"
LIMITS_SECONDS = 3600.0
"""Seconds between checks. Dedupe keeps the limits; only a lowered setting leaves users with too many."""


@asynccontextmanager
async def consuming(database: Database, deployment: Deployment) -> AsyncIterator[None]:
    """Expire facts and check limits until the block ends."""
    broker = build_broker(deployment, "maintain")
    settings = LiveSettings()

    limited: list[FactLimits] = []

    async def maintain(deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        connection = broker.config.connection_state.connection
        limits = [each.limits for each in settings.all()]
        try:
            if stamps := [each.stored_at for each in deliveries if each.subject == EXPIRE]:
                await expire(connection, datetime.fromtimestamp(max(stamps), UTC))
            # Check limits as soon as a setting changes, and on schedule.
            if limits != limited or any(each.subject == LIMITS for each in deliveries):
                await limit(connection)
                limited[:] = limits
        except (DatabaseUnavailable, nats.errors.Error):
            return [Retry()] * len(deliveries)
        return [ACK] * len(deliveries)

    async def expire(connection: Client, now: datetime) -> None:
        """Expire facts by the time of the log. An expired fact does not come back."""
        if problem := (await compare_clocks(connection, database)).problem:
            log.error("expiry stopped", problem=problem)
            return
        for owner in await database.read(with_expired_facts(now)):
            try:
                await expire_of(connection, owner, now)
            except DatabaseUnavailable as error:
                # Another process may hold this user's lock; the other users do not wait for it.
                log.warning("expiry failed, retrying", error=str(error))

    async def expire_of(connection: Client, owner: Owner, now: datetime) -> None:
        # The lock keeps other processes from giving one of these facts a later date meanwhile.
        async with locked(database, *owner):
            (facts,) = await database.read(live_facts([owner]))
            if events := build_expiries(owner, facts, now):
                await append(connection, events)

    async def limit(connection: Client) -> None:
        least = min(find_smallest_limit(each.limits) for each in settings.all())
        for counts in await database.read(with_more_facts(least)):
            if exceeds_limits(counts, settings.of(counts.tenant).limits):
                subject = work_subject("dedupe", counts.tenant, counts.user)
                await connection.jetstream().publish(subject, b"", stream=WORK)

    consume_stream(
        broker,
        stream=WORK,
        durable="maintain",
        batch=10,
        linger=1,
        overlap=1,
        consume=maintain,
        dead_limit=deployment.dead_limit,
    )
    async with (
        connected(broker) as connection,
        settings.watched(connection),
        started(broker, (WORK, "maintain")),
    ):
        await every(connection, "schedule.expire", deployment.maintain_seconds, EXPIRE)
        await every(connection, "schedule.limits", LIMITS_SECONDS, LIMITS)
        yield
