"""Lifecycle of batches, from the claim of their windows until their results are read, or the batch fails.

One process at a time handles a batch.
"""

import asyncio
import traceback
from datetime import UTC, datetime, timedelta
from typing import Final

import nats.errors
import structlog
from nats.aio.client import Client

from mnemon_consumers.extract.answers.publication import build_retry
from mnemon_consumers.extract.batch.assembly import BatchAssembler
from mnemon_consumers.extract.batch.results import BatchResults
from mnemon_consumers.extract.batch.submission import (
    BatchSubmitter,
    build_user_events,
    require_batches,
    selects_batch,
)
from mnemon_contracts.events.memory import BatchFailedV1
from mnemon_infra.broker.streams.log_writer import append_events
from mnemon_infra.database.engine import Database, DatabaseUnavailable
from mnemon_infra.database.locks import try_lock
from mnemon_infra.database.windows.batches import StoredBatch, list_open_batches, load_batch, update_batch
from mnemon_infra.database.windows.window_repository import (
    FailedWindow,
    StoredWindow,
    count_windows_by_user,
    load_batch_windows,
    requeue_windows,
)
from mnemon_infra.models.language.circuit_breaker import CircuitBreaker
from mnemon_infra.models.language.port import (
    BatchApi,
    BatchProgress,
    LanguageModel,
    ModelRefused,
    ModelUnavailable,
)
from mnemon_infra.settings.store import LiveSettings

log = structlog.get_logger("extract")

BATCHES_AT_ONCE: Final = 2
"""Maximum number of batches that a process handles at the same time."""

AGE_DIVISOR: Final = 20
"""Divisor of the time since a batch was submitted: a twentieth of this time is the pause after a check that
finds the batch running."""

LONGEST_PAUSE: Final = 60.0
"""Maximum pause in seconds after a check of a batch, except after a failed reading of its results. The first
periodic trigger after the pause starts a new check."""

MOST_READINGS: Final = 8
"""Maximum number of failed attempts to read the results of a batch.

After the last attempt, the batch is completed without the results that were not read.
"""

MOST_CHECKS_OF_UNKNOWN_BATCH: Final = 60
"""Maximum number of checks in a row, a minute apart, that do not find a batch at its provider.

After the last one, the batch fails.
"""

GRACE: Final = timedelta(hours=1)
"""Maximum time for which a process that finds an overdue batch checks it before giving it up: the batch may
have ended while no process was running."""


class BatchLifecycle:
    """Advances open batches: submits them, checks their progress, and reads their results."""

    def __init__(
        self,
        database: Database,
        settings: LiveSettings,
        circuit_breaker: CircuitBreaker,
        assembler: BatchAssembler,
        submitter: BatchSubmitter,
        results: BatchResults,
    ) -> None:
        self._database = database
        self._settings = settings
        self._circuit_breaker = circuit_breaker
        self._assembler = assembler
        self._submitter = submitter
        self._results = results
        self._room = asyncio.Semaphore(BATCHES_AT_ONCE)
        self._since: dict[str, datetime] = {}
        self._not_before: dict[str, datetime] = {}
        self._readings: dict[str, int] = {}
        self._checks_of_unknown: dict[str, int] = {}

    async def advance_batches(self, connection: Client) -> None:
        """Claim due windows, and advance every open batch that is due and that no other process handles.

        Raises:
            DatabaseUnavailable: the database does not answer. The call can be repeated.
        """
        await self._assembler.claim_batches()
        found = await self._database.run_query(list_open_batches())
        for gone in self._since.keys() - set(found):
            del self._since[gone]
            self._not_before.pop(gone, None)
            self._readings.pop(gone, None)
            self._checks_of_unknown.pop(gone, None)
        await asyncio.gather(*(self._advance_under_lock(connection, batch_id) for batch_id in found))

    async def _advance_under_lock(self, connection: Client, batch_id: str) -> None:
        async with self._room:
            try:
                async with try_lock(self._database, "batch", batch_id) as is_mine:
                    batch = await self._database.run_query(load_batch(batch_id)) if is_mine else None
                    if batch is not None:
                        await self._advance_batch(connection, batch)
            except (ModelUnavailable, DatabaseUnavailable, nats.errors.Error) as error:
                self._postpone_check(
                    batch_id, LONGEST_PAUSE if isinstance(error, ModelRefused) else LONGEST_PAUSE / 4
                )
                log.warning("batch check failed, retrying", batch=batch_id, error=repr(error))
            except Exception as error:
                # Any error concerns this batch alone; the others continue. Its text is not logged: it may
                # quote people's messages.
                self._postpone_check(batch_id, LONGEST_PAUSE)
                place = traceback.extract_tb(error.__traceback__)[-1]
                log.error(
                    "batch check crashed, retrying",
                    batch=batch_id,
                    error=type(error).__name__,
                    file=place.filename,
                    line=place.lineno,
                    function=place.name,
                )

    async def _advance_batch(self, connection: Client, batch: StoredBatch) -> None:
        if await self._give_up_overdue(connection, batch):
            return
        if self._not_before.get(batch.batch_id, batch.created_at) > datetime.now(UTC):
            return
        model = await self._circuit_breaker.open_model(batch.provider, batch.model)
        if model is None:
            return
        try:
            match batch.state:
                case "claimed":
                    await self._submitter.submit_batch(connection, batch, model)
                case "intended":
                    await self._submitter.resume_submission(connection, batch, model)
                case "submitted":
                    await self._check_progress(connection, batch, model)
        except ModelRefused as error:
            if model.batches is not None:
                raise
            # The provider does not support batches: from now on its windows are requested one by one.
            await self._fail_batch(connection, batch, str(error))

    async def _check_progress(self, connection: Client, batch: StoredBatch, model: LanguageModel) -> None:
        batches = require_batches(model)
        if not await self._database.run_query(count_windows_by_user(batch.batch_id)):
            await batches.cancel(str(batch.provider_batch_id))
            await self._fail_batch(connection, batch, "all windows of the batch are erased")
            return
        progress = await batches.load_progress(str(batch.provider_batch_id))
        if progress.state != "unknown":
            self._checks_of_unknown.pop(batch.batch_id, None)
        match progress.state:
            case "failed":
                await self._fail_batch(
                    connection, batch, progress.error or "the provider gave no reason", blame=True
                )
            case "unknown":
                await self._retry_unknown_batch(connection, batch)
            case "ended":
                await self._read_results(connection, batch, batches, progress)
            case "running":
                now = datetime.now(UTC)
                self._postpone_check(
                    batch.batch_id, min((now - batch.changed_at).total_seconds() / AGE_DIVISOR, LONGEST_PAUSE)
                )
                if now > batch.deadline_at:
                    log.warning("batch timed out, cancelling", batch=batch.batch_id)
                    await batches.cancel(str(batch.provider_batch_id))
                    self._postpone_check(batch.batch_id, 0)

    async def _read_results(
        self, connection: Client, batch: StoredBatch, batches: BatchApi, progress: BatchProgress
    ) -> None:
        try:
            await self._results.read_results(connection, batch, batches, progress)
        except ModelUnavailable as error:
            readings = self._readings[batch.batch_id] = self._readings.get(batch.batch_id, 0) + 1
            if readings < MOST_READINGS:
                self._postpone_check(batch.batch_id, 2.0**readings)
                log.warning("batch results not read, retrying", batch=batch.batch_id, error=str(error))
                return
            await self._results.complete_batch(connection, batch, progress, {})

    async def _retry_unknown_batch(self, connection: Client, batch: StoredBatch) -> None:
        """Check an unknown batch again later; fail it after `MOST_CHECKS_OF_UNKNOWN_BATCH` checks.

        Each process counts its own checks. Until the last one, an operator can correct the key, which may be
        another account's.
        """
        error = f"{batch.provider} has no batch {batch.provider_batch_id}"
        checks = self._checks_of_unknown[batch.batch_id] = self._checks_of_unknown.get(batch.batch_id, 0) + 1
        if checks < MOST_CHECKS_OF_UNKNOWN_BATCH:
            self._postpone_check(batch.batch_id, LONGEST_PAUSE)
            log.warning(
                "batch not found at provider, checking again later", batch=batch.batch_id, error=error
            )
        else:
            await self._fail_batch(connection, batch, error, is_online=True)

    async def _give_up_overdue(self, connection: Client, batch: StoredBatch) -> bool:
        """Give up a batch that is overdue, or that its provider has not taken; return whether it is given up.

        An overdue batch is older than twice the time from its creation to its deadline; each process first
        checks such a batch for up to `GRACE`. A batch that its provider has not taken is given up after the
        deadline, or if the settings no longer select it.
        """
        now = datetime.now(UTC)
        time = batch.deadline_at - batch.created_at
        since = self._since.setdefault(batch.batch_id, now)
        if now > max(batch.deadline_at + time, since + min(time, GRACE)):
            await self._fail_batch(connection, batch, "the batch exceeded its deadline", is_online=True)
            return True
        never_taken = batch.state == "claimed" or (batch.state == "intended" and batch.error is not None)
        if never_taken and (now > batch.deadline_at or not await self._is_wanted(batch)):
            await self._fail_batch(connection, batch, batch.error or "the batch was not submitted")
            return True
        return False

    async def _is_wanted(self, batch: StoredBatch) -> bool:
        """Return whether the settings of any tenant of the batch still select batches with its model."""
        of = await self._database.run_query(count_windows_by_user(batch.batch_id))
        return any(selects_batch(batch, self._settings.get_settings(tenant).extraction) for tenant, _ in of)

    async def _fail_batch(
        self,
        connection: Client,
        batch: StoredBatch,
        error: str,
        *,
        blame: bool = False,
        is_online: bool = False,
    ) -> None:
        """Record that a batch failed, and release its windows, so that other requests read them.

        With `blame`, the content of a window may be the cause, so each window counts a failure. With
        `is_online`, each window gets an online request.
        """
        now = datetime.now(UTC)
        owners = await self._database.run_query(count_windows_by_user(batch.batch_id))
        event = BatchFailedV1(batch_id=batch.batch_id, error=error)
        await append_events(connection, build_user_events(batch, owners, "batch.failed", event.encode_body()))
        left = await self._database.run_query(load_batch_windows(batch.batch_id))
        async with self._database.transaction() as held:
            if blame:
                await requeue_windows(held, [self._count_failure(window, now) for window in left])
            else:
                await requeue_windows(
                    held, [FailedWindow(each, each.attempts, now, is_online) for each in left]
                )
            await update_batch(held, batch, "failed", now, error=error)
        log.warning("batch failed, windows requeued", batch=batch.batch_id, error=error)

    def _count_failure(self, window: StoredWindow, now: datetime) -> FailedWindow:
        """Count a failure for a window whose batch failed without naming the line that caused it.

        After the last attempt the window gets a request of its own, which shows whether the window is the
        cause.
        """
        most = self._settings.get_settings(window.tenant).extraction.attempts
        attempts = min(window.attempts + 1, most - 1)
        return build_retry(window, now, attempts=attempts)._replace(is_online=window.attempts + 1 >= most)

    def _postpone_check(self, batch_id: str, seconds: float) -> None:
        self._not_before[batch_id] = datetime.now(UTC) + timedelta(seconds=seconds)
