"""Handler of `maintain`: expires facts, checks limits of facts and removes finished work, on schedules."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import nats.errors
import structlog

from mnemon_consumers.maintain.decide import build_expiries, exceeds_limits, find_smallest_limit
from mnemon_consumers.maintain.retention import RetentionEnforcer
from mnemon_contracts.settings.groups import FactLimits
from mnemon_contracts.streams import WORK
from mnemon_contracts.subjects import Owner, build_thing_filter, build_trigger_subject
from mnemon_infra.broker.broker import Broker
from mnemon_infra.broker.outcomes import ACK, DeliveryOutcome, Retry
from mnemon_infra.broker.streams.applied_position import read_applied_position
from mnemon_infra.broker.streams.log_reader import read_last_position
from mnemon_infra.broker.streams.log_writer import append_events
from mnemon_infra.broker.streams.schedules import schedule_every
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseUnavailable
from mnemon_infra.database.facts.fact_repository import load_facts
from mnemon_infra.database.locks import hold_lock
from mnemon_infra.database.projections.sweep_candidates import (
    count_excess_facts,
    list_owners_of_expired_facts,
)
from mnemon_infra.delivery import Delivery
from mnemon_infra.durables import DURABLES, MAINTAIN
from mnemon_infra.health.clock_skew import compare_clocks
from mnemon_infra.settings.store import LiveSettings

log = structlog.get_logger("maintain")

EXPIRE, LIMITS, RETENTION = f"{MAINTAIN}.expire", f"{MAINTAIN}.limits", f"{MAINTAIN}.retention"
LIMITS_SECONDS = 3600.0
"""Seconds between scheduled checks of limits.

`dedupe` keeps the limits, but a lowered setting or an import may leave too many facts.
"""

RETENTION_SECONDS = 3600.0
"""Seconds between removals of finished work. The settings `retention` count in days."""


class MaintainConsumer:
    """Consumer that expires facts, checks the limits of facts, and removes finished work."""

    def __init__(self, database: Database, deployment: Deployment) -> None:
        self._database = database
        self._expire_seconds = deployment.maintain_seconds
        self._settings = LiveSettings()
        self._retention = RetentionEnforcer(database, self._settings)
        self._checked_limits: list[FactLimits] = []
        self.broker = Broker(deployment, "maintain")
        self.broker.subscribe_durable(DURABLES["maintain"], self.maintain_facts)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Expire facts, check limits and remove finished work until the block ends.

        Raises:
            mnemon_infra.settings.bucket.SettingsNotProvisioned: the bucket of settings does not exist.
            nats.errors.Error: NATS does not answer.
        """
        async with (
            self.broker.connect() as connection,
            self._settings.watch_bucket(connection),
            self.broker.run(),
        ):
            await schedule_every(connection, "schedule.expire", self._expire_seconds, EXPIRE)
            await schedule_every(connection, "schedule.limits", LIMITS_SECONDS, LIMITS)
            await schedule_every(connection, "schedule.retention", RETENTION_SECONDS, RETENTION)
            yield

    async def maintain_facts(self, deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        """Expire facts, check limits or remove finished work, as the triggers say.

        Limits are also checked on the first call, and if a setting has changed them since the last check.

        Returns:
            An outcome for each delivery.
        """
        limits = [each.limits for each in self._settings.list_settings()]
        try:
            if stamps := [each.stored_at for each in deliveries if each.subject == EXPIRE]:
                await self._expire_facts(datetime.fromtimestamp(max(stamps), UTC))
            # Any trigger leads to a check of limits that a setting has changed.
            if limits != self._checked_limits or any(each.subject == LIMITS for each in deliveries):
                await self._trigger_evictions()
                self._checked_limits = limits
            if stamps := [each.stored_at for each in deliveries if each.subject == RETENTION]:
                await self._remove_finished_work(datetime.fromtimestamp(max(stamps), UTC))
        except (DatabaseUnavailable, nats.errors.Error):
            return [Retry()] * len(deliveries)
        return [ACK] * len(deliveries)

    async def _expire_facts(self, now: datetime) -> None:
        """Expire the facts whose `expires_at` has passed at `now`, a time of the log.

        An expired fact does not come back, so no fact is expired while the clocks of broker, database and
        this process differ.
        """
        if problem := (await compare_clocks(self.broker.connection, self._database)).problem:
            log.error("expiry skipped, clocks differ", problem=problem)
            return
        for owner in await self._database.run_query(list_owners_of_expired_facts(now)):
            if self._settings.is_suspended(owner[0]):
                continue
            try:
                await self._expire_user_facts(owner, now)
            except DatabaseUnavailable as error:
                # Another process may hold this user's lock; the other users do not wait for it.
                log.warning("expiry failed, retrying", tenant=owner[0], error=str(error))

    async def _expire_user_facts(self, owner: Owner, now: datetime) -> None:
        # The lock prevents other processes from giving one of these facts a later date meanwhile.
        async with hold_lock(self._database, *owner):
            if not await self._has_projected_facts(owner):
                return  # a fact may have a later date; the next trigger expires the facts
            (facts,) = await self._database.run_query(load_facts([owner]))
            if events := build_expiries(owner, facts, now):
                await append_events(self.broker.connection, events)

    async def _has_projected_facts(self, owner: Owner) -> bool:
        """Return whether the rows have all events of the log about the user's facts and erasures."""
        patterns = (build_thing_filter(*owner, thing) for thing in ("fact", "user"))
        last = await read_last_position(self.broker.connection, *patterns)
        return await read_applied_position(self.broker.stream_context) >= last

    async def _remove_finished_work(self, now: datetime) -> None:
        """Remove finished work; trigger another round if one kind of work reaches its limit.

        `now` is a time of the log. Nothing is removed while the clocks of broker, database and this process
        differ.
        """
        if problem := (await compare_clocks(self.broker.connection, self._database)).problem:
            log.error("retention skipped, clocks differ", problem=problem)
            return
        if await self._retention.remove_old_work(self.broker.connection, now):
            await self.broker.stream_context.publish(RETENTION, b"", stream=WORK)

    async def _trigger_evictions(self) -> None:
        """Trigger `dedupe` for users with more facts than their limits allow."""
        least = min(find_smallest_limit(each.limits) for each in self._settings.list_settings())
        for counts in await self._database.run_query(count_excess_facts(least)):
            if exceeds_limits(counts, self._settings.get_settings(counts.tenant).limits):
                subject = build_trigger_subject("dedupe", counts.tenant, counts.user)
                await self.broker.stream_context.publish(subject, b"", stream=WORK)
