"""Reads the results of a batch, a few lines at a time, and skips lines that were read before."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import structlog
from nats.aio.client import Client

from mnemon_consumers.extract.answers.publication import AnswerPublisher, build_retry
from mnemon_consumers.extract.answers.window_outcome import AnsweringModel
from mnemon_consumers.extract.batch.submission import build_user_events
from mnemon_consumers.extract.projection_lag import ProjectionLag
from mnemon_consumers.extract.window_requests import build_window_requests
from mnemon_contracts.events.memory import BatchCompletedV1
from mnemon_infra.broker.streams.log_writer import append_events
from mnemon_infra.database.engine import Database
from mnemon_infra.database.erasure.users import drop_erased_windows
from mnemon_infra.database.facts.undecided_pairs import load_batch_pairs
from mnemon_infra.database.windows.answered_windows import find_answered_windows
from mnemon_infra.database.windows.batches import StoredBatch, update_batch
from mnemon_infra.database.windows.window_repository import (
    FailedWindow,
    StoredWindow,
    count_windows_by_user,
    load_batch_windows,
    lock_windows_by_line,
    mark_answered,
    requeue_windows,
)
from mnemon_infra.models.language.port import (
    BatchApi,
    BatchProgress,
    LineFailed,
    ModelAnswer,
    ModelUnavailable,
)
from mnemon_infra.settings.store import LiveSettings

log = structlog.get_logger("extract")

LINES_AT_ONCE: Final = 20
"""Number of lines to read at a time, so that other work of the process does not wait long."""

Outcomes = Mapping[int, ModelAnswer | LineFailed]
"""The answer or failure of each line, by line number."""


class BatchResults:
    """Results of batches: reads them, publishes the answers, and completes the batches.

    All methods may raise `DatabaseUnavailable` and `nats.errors.Error`, and `read_results` may raise
    `ModelUnavailable`. After an error, repeat the call; it skips stored results.
    """

    def __init__(
        self,
        database: Database,
        settings: LiveSettings,
        projections: ProjectionLag,
        publisher: AnswerPublisher,
    ) -> None:
        self._database = database
        self._settings = settings
        self._projections = projections
        self._publisher = publisher

    async def read_results(
        self, connection: Client, batch: StoredBatch, batches: BatchApi, progress: BatchProgress
    ) -> None:
        """Read the results of a batch that has ended, publish the answers, and complete the batch.

        Windows without a usable answer are retried or become dead letters.
        """
        failed: dict[StoredWindow, FailedWindow] = {}
        page: dict[int, ModelAnswer | LineFailed] = {}
        try:
            async for result in batches.read_results(str(batch.provider_batch_id)):
                line = _parse_line(batch, result.line_id)
                if line is None or line in page:
                    continue
                page[line] = result.outcome
                if len(page) == LINES_AT_ONCE:
                    failed |= await self._publish_lines(connection, batch, page)
                    page = {}
        except ModelUnavailable:
            await self._publish_lines(connection, batch, page)
            raise
        failed |= await self._publish_lines(connection, batch, page)
        await self.complete_batch(connection, batch, progress, failed)

    async def complete_batch(
        self,
        connection: Client,
        batch: StoredBatch,
        progress: BatchProgress,
        failed: Mapping[StoredWindow, FailedWindow],
    ) -> None:
        """Complete a batch, and release the windows without a result.

        Args:
            connection: connection to the log.
            batch: the batch.
            progress: the state of the batch. If the provider did not reach all lines, or the deadline has
                passed, windows without a result are requested online; else each counts a failed attempt.
            failed: windows to retry because of their results, which were read before this call.
        """
        retried = dict(failed)
        now = datetime.now(UTC)
        left = await self._database.run_query(load_batch_windows(batch.batch_id))
        missing = [window for window in left if window not in retried]
        if progress.done < batch.lines or now > batch.deadline_at:
            # The provider did not reach these lines. Another batch would take as long.
            retried |= {each: _build_online_retry(each, now) for each in missing}
        else:
            nothing = LineFailed("the results have no line for the window")
            for begin in range(0, len(missing), LINES_AT_ONCE):
                page = missing[begin : begin + LINES_AT_ONCE]
                retried |= await self._publish_lines(
                    connection, batch, {each.line or 0: nothing for each in page}
                )
        of = await self._database.run_query(count_windows_by_user(batch.batch_id))
        for owner, (answered, all_) in of.items():
            event = BatchCompletedV1(batch_id=batch.batch_id, answered=answered, failed=all_ - answered)
            await append_events(
                connection, build_user_events(batch, [owner], "batch.completed", event.encode_body())
            )
        async with self._database.transaction() as held:
            await requeue_windows(held, retried.values())
            await update_batch(held, batch, "completed", datetime.now(UTC))
        log.info(
            "batch completed",
            batch=batch.batch_id,
            answered=sum(answered for answered, _ in of.values()),
            retried=len(retried),
        )

    async def _publish_lines(
        self, connection: Client, batch: StoredBatch, page: Outcomes
    ) -> dict[StoredWindow, FailedWindow]:
        """Publish the answers of lines that were not read before; return the windows to retry."""
        now = datetime.now(UTC)
        by = AnsweringModel(batch.provider, batch.model, batch.batch_id)
        async with self._database.transaction() as held:
            # An erasure is not finished while its windows are locked, so it also removes these answers.
            windows = await lock_windows_by_line(held, batch.batch_id, page)
            done = await find_answered_windows(windows)(held)
            left = [window for window in windows if window not in done]
            await self._projections.await_clears(connection, {window.owner for window in left})
            # Users who were erased meanwhile get no events, not even an event that the window is answered.
            left = await drop_erased_windows(left)(held)
            asked = await build_window_requests(held, left, self._settings, now)
            owners = {question.window.owner for question in asked}
            pairs = await load_batch_pairs(batch.batch_id, owners)(held)
            asked = [question.with_batch_pairs(pairs) for question in asked]
            answers = [(question, page[question.window.line or 0]) for question in asked]
            judged = await self._publisher.publish_answers(connection, answers, by)
            answered = [question.window for question, each in judged if each.is_answered]
            await mark_answered(held, [*done, *answered])
        return {
            question.window: _build_online_retry(question.window, now)
            if each.error is None
            else build_retry(question.window, now)
            for question, each in judged
            if not each.is_answered
        }


def _build_online_retry(window: StoredWindow, now: datetime) -> FailedWindow:
    """Return the record that requests a window online after its batch left the window without an answer.

    No failure is counted.
    """
    return FailedWindow(window, window.attempts, now, is_online=True)


def _parse_line(batch: StoredBatch, line_id: str) -> int | None:
    """Return the number of a line of this batch; None for any other line id."""
    number = line_id.removeprefix(f"{batch.batch_id}-")
    return int(number) if number != line_id and number.isdecimal() and len(number) < 10 else None
