"""Reads the results of a batch, a few lines at a time, and skips those that were read before."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Final

import structlog
from nats.aio.client import Client

from mnemon_consumers.extract.answers.publication import Answering, again
from mnemon_consumers.extract.answers.window_outcome import AnsweringModel
from mnemon_consumers.extract.batch.submission import of_users
from mnemon_consumers.extract.projection_lag import Projections
from mnemon_consumers.extract.window_requests import questions
from mnemon_contracts.events.memory import BatchCompletedV1
from mnemon_infra.broker.streams.log_writer import append_events
from mnemon_infra.database.engine import Database
from mnemon_infra.database.erasure.users import not_erased
from mnemon_infra.database.facts.undecided_pairs import pairs_of_batch
from mnemon_infra.database.windows.batches import StoredBatch, change
from mnemon_infra.database.windows.contents import noted
from mnemon_infra.database.windows.window_repository import (
    Failed,
    StoredWindow,
    ask_again,
    counted,
    mark_answered,
    of_batch,
    of_lines,
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

LINES: Final = 20
"""Lines that are taken at a time, so that the other work of the process does not wait long."""

Outcomes = Mapping[int, ModelAnswer | LineFailed]
"""Outcomes by line."""


class Results:
    """Reads the results of batches."""

    def __init__(
        self,
        database: Database,
        settings: LiveSettings,
        projections: Projections,
        answering: Answering,
    ) -> None:
        self._database = database
        self._settings = settings
        self._projections = projections
        self._answering = answering

    async def read(
        self, connection: Client, batch: StoredBatch, batches: BatchApi, progress: BatchProgress
    ) -> None:
        """Read all results of a batch that has ended. Lines without an answer are asked again or given up.

        Raises:
            ModelUnavailable: some results could not be read; those that were are not read again.
            DatabaseUnavailable, nats.errors.Error: likewise.
        """
        failed: dict[StoredWindow, Failed] = {}
        page: dict[int, ModelAnswer | LineFailed] = {}
        try:
            async for result in batches.results(str(batch.provider_batch_id)):
                line = _line(batch, result.line_id)
                if line is None or line in page:
                    continue
                page[line] = result.outcome
                if len(page) == LINES:
                    failed |= await self._take(connection, batch, page)
                    page = {}
        except ModelUnavailable:
            await self._take(connection, batch, page)
            raise
        failed |= await self._take(connection, batch, page)
        await self.end(connection, batch, progress, failed)

    async def end(
        self,
        connection: Client,
        batch: StoredBatch,
        progress: BatchProgress,
        failed: Mapping[StoredWindow, Failed],
    ) -> None:
        """Complete a batch of which nothing is left to read.

        Raises:
            DatabaseUnavailable, nats.errors.Error: the call can be repeated.
        """
        again_ = dict(failed)
        now = datetime.now(UTC)
        left = await self._database.read(of_batch(batch.batch_id))
        missing = [window for window in left if window not in again_]
        if progress.done < batch.lines or now > batch.deadline_at:
            # The provider did not reach these lines. Another batch would take as long.
            again_ |= {each: _unasked(each, now) for each in missing}
        else:
            nothing = LineFailed("the results do not have it")
            for begin in range(0, len(missing), LINES):
                page = missing[begin : begin + LINES]
                again_ |= await self._take(connection, batch, {each.line or 0: nothing for each in page})
        of = await self._database.read(counted(batch.batch_id))
        for owner, (answered, all_) in of.items():
            event = BatchCompletedV1(batch_id=batch.batch_id, answered=answered, failed=all_ - answered)
            await append_events(connection, of_users(batch, [owner], "batch.completed", event.body()))
        async with self._database.transaction() as held:
            await ask_again(held, again_.values())
            await change(held, batch, "completed", datetime.now(UTC))
        log.info(
            "batch results read",
            batch=batch.batch_id,
            answered=sum(answered for answered, _ in of.values()),
            failed=len(again_),
        )

    async def _take(
        self, connection: Client, batch: StoredBatch, page: Outcomes
    ) -> dict[StoredWindow, Failed]:
        """Take lines that were not taken before; return those that have to be asked for again."""
        windows = list((await self._database.read(of_lines(batch.batch_id, page))).values())
        done = await self._database.read(noted(windows))
        left = [window for window in windows if window not in done]
        await self._projections.clears(connection, {window.owner for window in left})
        # Users who were erased meanwhile get no events, not even one that says that there is nothing.
        left = await self._database.read(not_erased(left))
        now = datetime.now(UTC)
        asked = await self._database.read(partial(questions, windows=left, settings=self._settings, now=now))
        owners = {question.window.owner for question in asked}
        pairs = await self._database.read(pairs_of_batch(batch.batch_id, owners))
        asked = [question.with_pairs_of(pairs) for question in asked]
        answers = [(question, page[question.window.line or 0]) for question in asked]
        by = AnsweringModel(batch.provider, batch.model, batch.batch_id)
        judged = await self._answering.take(connection, answers, by)
        answered = [question.window for question, each in judged if each.is_answered]
        async with self._database.transaction() as held:
            await mark_answered(held, [*done, *answered])
        return {
            question.window: _unasked(question.window, now)
            if each.error is None
            else again(question.window, now)
            for question, each in judged
            if not each.is_answered
        }


def _unasked(window: StoredWindow, now: datetime) -> Failed:
    """Have a window asked for on its own that no batch reached. This is no failure."""
    return Failed(window, window.attempts, now, is_online=True)


def _line(batch: StoredBatch, line_id: str) -> int | None:
    """Return the number of a line of this batch; None for any other line id."""
    number = line_id.removeprefix(f"{batch.batch_id}-")
    return int(number) if number != line_id and number.isdecimal() and len(number) < 10 else None
