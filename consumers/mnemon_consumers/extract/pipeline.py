"""Connects the parts of extraction."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from nats.aio.client import Client

from mnemon_consumers.domain.spending.budget import Budgets
from mnemon_consumers.extract.answers.publication import Answering
from mnemon_consumers.extract.batch.assembly import Pooling
from mnemon_consumers.extract.batch.lifecycle import Batching
from mnemon_consumers.extract.batch.results import Results
from mnemon_consumers.extract.batch.submission import Submitting
from mnemon_consumers.extract.online_requests import Asking
from mnemon_consumers.extract.periodic_scan import Interval
from mnemon_consumers.extract.projection_lag import Projections
from mnemon_consumers.extract.windowing import Cutting
from mnemon_contracts.streams import WORK
from mnemon_contracts.subjects import Owner, work_subject
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.windows.pending import tenants_waiting, users_online
from mnemon_infra.database.windows.window_repository import StoredWindow, reopen
from mnemon_infra.models.language.circuit_breaker import CircuitBreaker
from mnemon_infra.models.language.registry import LanguageModels
from mnemon_infra.settings.store import LiveSettings

WOKEN: Final = 500
"""Approximate number of users that one tick triggers."""


class ExtractionPipeline:
    """The whole of extraction. Every call can be repeated, and several processes can make it.

    All methods raise `DatabaseUnavailable` and `nats.errors.Error`; nothing is lost then.

    Attributes:
        circuit_breaker: circuit breaker of the models.
    """

    def __init__(
        self, database: Database, settings: LiveSettings, models: LanguageModels, deployment: Deployment
    ) -> None:
        self.circuit_breaker = circuit_breaker = CircuitBreaker(models)
        budgets = Budgets(database, settings)
        on_its_way = timedelta(seconds=deployment.extract_resume_seconds)
        self._database = database
        self._projections = Projections(database, settings)
        self._cutting = Cutting(database, settings)
        self._interval = Interval(database, settings, self._cutting)
        self._asking = Asking(
            database, settings, circuit_breaker, budgets, self._projections, deployment.model_requests
        )
        self._batching = Batching(
            database,
            settings,
            circuit_breaker,
            Pooling(database, settings, circuit_breaker, self._asking),
            Submitting(database, settings, circuit_breaker, budgets, on_its_way),
            Results(database, settings, self._projections, Answering(budgets)),
        )

    async def said(self, connection: Client, users: Mapping[Owner, int]) -> set[Owner]:
        """Have the messages of users, each up to a log position, read when they are due.

        Returns:
            The users who have to be checked again a little later.
        """
        await self._projections.reach(connection, max(users.values(), default=0))
        return await self._cutting.said(connection, users)

    async def read(self, connection: Client, owners: Sequence[Owner]) -> set[Owner]:
        """Cut the due messages of users into windows and ask for those that batches do not handle.

        Returns:
            The users who are not done: another process handles them, or there is more, or the projections
            are behind.
        """
        if not await self._projections.ready(connection):
            return set(owners)
        busy = await self._cutting.cut(connection, owners)
        return busy | await self._asking.ask(connection, owners)

    async def reopen(self, given_up: Sequence[StoredWindow]) -> None:
        """Reopen windows that were given up, so that they are asked for once more."""
        async with self._database.transaction() as held:
            await reopen(held, given_up, datetime.now(UTC))

    async def tick(self, connection: Client) -> None:
        """Continue the periodic scan and the batches, and trigger users with windows to ask about."""
        if not await self._projections.ready(connection):
            return
        await self._interval.tick(connection)
        await self._batching.tick(connection)
        await self._wake(connection)

    async def _wake(self, connection: Client) -> None:
        """Trigger users with windows to ask about: a request or batch failed, or no process was running."""
        tenants = [
            (tenant, every)
            for tenant in await self._database.read(tenants_waiting())
            if (every := await self._asking.every(tenant)) is not None
        ]
        async with self._database.transaction(keep=False) as held:
            at_most = max(1, WOKEN // max(1, len(tenants)))
            owners = await users_online(held, tenants, datetime.now(UTC), at_most)
        publish = connection.jetstream().publish
        await asyncio.gather(*(publish(work_subject("extract", *each), b"", stream=WORK) for each in owners))
