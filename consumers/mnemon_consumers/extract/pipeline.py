"""Pipeline of `extract`: connects scan, windows, batches, online requests and answers."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from nats.aio.client import Client

from mnemon_consumers.domain.spending.budget import Budgets
from mnemon_consumers.extract.answers.publication import AnswerPublisher
from mnemon_consumers.extract.batch.assembly import BatchAssembler
from mnemon_consumers.extract.batch.lifecycle import BatchLifecycle
from mnemon_consumers.extract.batch.results import BatchResults
from mnemon_consumers.extract.batch.submission import BatchSubmitter
from mnemon_consumers.extract.online_requests import OnlineRequester
from mnemon_consumers.extract.periodic_scan import PeriodicScan
from mnemon_consumers.extract.projection_lag import ProjectionLag
from mnemon_consumers.extract.windowing import WindowCutter
from mnemon_contracts.streams import WORK
from mnemon_contracts.subjects import Owner, build_trigger_subject
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.windows.pending import list_online_users, list_waiting_tenants
from mnemon_infra.database.windows.window_repository import StoredWindow, reopen_windows
from mnemon_infra.models.language.circuit_breaker import CircuitBreaker
from mnemon_infra.models.language.registry import LanguageModels
from mnemon_infra.settings.store import LiveSettings

MOST_TRIGGERED: Final = 500
"""Approximate maximum number of users that one call of `run_tick` triggers."""


class ExtractionPipeline:
    """Scan, windows, batches, online requests and answers of `extract`, connected to each other.

    Every call can be repeated, and several processes can make the same call. All methods may raise
    `DatabaseUnavailable` and `nats.errors.Error`; nothing is lost then.
    """

    def __init__(
        self, database: Database, settings: LiveSettings, models: LanguageModels, deployment: Deployment
    ) -> None:
        self.circuit_breaker = circuit_breaker = CircuitBreaker(models)
        budgets = Budgets(database, settings)
        delivery_time = timedelta(seconds=deployment.extract_resume_seconds)
        self._database = database
        self._projections = ProjectionLag(database, settings)
        self._cutter = WindowCutter(database, settings)
        self._scan = PeriodicScan(database, settings, self._cutter)
        self._online_requests = OnlineRequester(
            database, settings, circuit_breaker, budgets, self._projections, deployment.model_requests
        )
        self._batches = BatchLifecycle(
            database,
            settings,
            circuit_breaker,
            BatchAssembler(database, settings, circuit_breaker, self._online_requests),
            BatchSubmitter(database, settings, circuit_breaker, budgets, delivery_time),
            BatchResults(database, settings, self._projections, AnswerPublisher(budgets)),
        )

    async def schedule_reading(self, connection: Client, users: Mapping[Owner, int]) -> set[Owner]:
        """Schedule the reading of users' messages, for each user up to a log position.

        Returns:
            The users who have to be checked again after `CHECK_PAUSE`, see `WindowCutter.schedule_reading`.
        """
        await self._projections.await_position(connection, max(users.values(), default=0))
        return await self._cutter.schedule_reading(connection, users)

    async def read_due_messages(self, connection: Client, owners: Sequence[Owner]) -> set[Owner]:
        """Cut the due messages of users into windows, and send online requests for windows without a batch.

        Returns:
            The users who are not done: users whose messages another process is cutting, users who may have
            more windows, or all users while the projections lack events of earlier processes.
        """
        if not await self._projections.is_ready(connection):
            return set(owners)
        busy = await self._cutter.cut_messages(connection, owners)
        return busy | await self._online_requests.request_windows(connection, owners)

    async def reopen_windows(self, given_up: Sequence[StoredWindow]) -> None:
        """Reopen windows that were given up, so that they are retried."""
        async with self._database.transaction() as held:
            await reopen_windows(held, given_up, datetime.now(UTC))

    async def run_tick(self, connection: Client) -> None:
        """Act on a periodic trigger: continue the scan and the batches, and trigger users with due windows.

        The call does nothing while the projections lack events of earlier processes.
        """
        if not await self._projections.is_ready(connection):
            return
        await self._scan.continue_scans(connection)
        await self._batches.advance_batches(connection)
        await self._trigger_waiting_users(connection)

    async def _trigger_waiting_users(self, connection: Client) -> None:
        """Trigger users whose windows are due because a request or batch failed or no process was running."""
        tenants = [
            (tenant, every)
            for tenant in await self._database.run_query(list_waiting_tenants())
            if (every := await self._online_requests.selects_all_windows(tenant)) is not None
        ]
        async with self._database.transaction(keep=False) as held:
            at_most = max(1, MOST_TRIGGERED // max(1, len(tenants)))
            owners = await list_online_users(held, tenants, datetime.now(UTC), at_most)
        publish = connection.jetstream().publish
        await asyncio.gather(
            *(publish(build_trigger_subject("extract", *each), b"", stream=WORK) for each in owners)
        )
