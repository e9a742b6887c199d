"""Online requests: each asks a model about one window, without a batch."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

import structlog
from nats.aio.client import Client

from mnemon_consumers.domain.spending.budget import Budgets, Reservations
from mnemon_consumers.domain.spending.calls import estimate_cost
from mnemon_consumers.extract.answers.publication import AnswerPublisher, build_retry
from mnemon_consumers.extract.answers.window_outcome import AnsweringModel, WindowJudgement
from mnemon_consumers.extract.projection_lag import ProjectionLag
from mnemon_consumers.extract.window_requests import AskedPairs, WindowRequest, build_window_requests
from mnemon_contracts.subjects import Owner
from mnemon_infra.broker.streams.log_writer import retry_store
from mnemon_infra.broker.streams.trace_context import read_trace
from mnemon_infra.database.engine import Connection, Database, DatabaseUnavailable
from mnemon_infra.database.erasure.users import drop_erased_windows
from mnemon_infra.database.messages.message_ranges import check_ranges
from mnemon_infra.database.windows.answered_windows import find_answered_windows
from mnemon_infra.database.windows.pending import lock_windows_of_users
from mnemon_infra.database.windows.window_repository import (
    FailedWindow,
    StoredWindow,
    delete_windows,
    mark_answered,
    requeue_windows,
)
from mnemon_infra.models.language.circuit_breaker import CircuitBreaker
from mnemon_infra.models.language.port import (
    LineFailed,
    ModelAnswer,
    ModelBusy,
    ModelRefused,
    ModelUnavailable,
    RequestRefused,
)
from mnemon_infra.settings.store import LiveSettings
from mnemon_infra.telemetry import tracing

log = structlog.get_logger("extract")

TURN_SECONDS: Final = 10.0
"""Seconds after which no further request for the same users begins, because other users wait."""

APPEND_PAUSE: Final = 2.0
"""Seconds between attempts to append an answer to the log, which may be unreachable for a moment."""

ModelKey = tuple[str, str]
"""A provider and its model."""


@dataclass(frozen=True, slots=True)
class _WindowResponse:
    """Answer of a model, or the reason for its absence; `model` is None if no model was asked."""

    question: WindowRequest
    model: ModelKey | None
    outcome: ModelAnswer | LineFailed | ModelUnavailable


class OnlineRequester:
    """Asks a model about the windows of conversations, for each conversation one window at a time.

    A transaction holds the windows of open requests. If the process ends, the transaction ends too, and
    another process asks about these windows, except windows whose answer is in the log already.

    The windows are requested in rounds, with one request to the model per window. `at_once` is the maximum
    number of windows of a round, in equal shares for its users; each share has at least one window.

    All methods may raise `DatabaseUnavailable`, and `request_windows` also `nats.errors.Error`. The next call
    asks again about windows without an answer.
    """

    def __init__(
        self,
        database: Database,
        settings: LiveSettings,
        circuit_breaker: CircuitBreaker,
        budgets: Budgets,
        projections: ProjectionLag,
        at_once: int,
    ) -> None:
        self._database = database
        self._settings = settings
        self._circuit_breaker = circuit_breaker
        self._budgets = budgets
        self._projections = projections
        self._publisher = AnswerPublisher(budgets)
        self._at_once = at_once

    async def request_windows(self, connection: Client, owners: Sequence[Owner]) -> set[Owner]:
        """Ask a model about due windows of some users; return the users who may have more windows.

        After `TURN_SECONDS` no further round begins.
        """
        begun = time.monotonic()
        left = set(owners)
        while left and time.monotonic() - begun < TURN_SECONDS:
            left = await self._request_next_windows(connection, left)
        return left

    async def selects_all_windows(self, tenant: str) -> bool | None:
        """Return which windows of a tenant get online requests.

        Returns:
            True for all windows; False for only those marked online, such as those that a batch left without
            an answer; None if no requests are made for the tenant now.
        """
        extraction = self._settings.get_settings(tenant).extraction
        if not extraction.enabled or not await self._budgets.has_budget(tenant):
            return None
        model = await self._circuit_breaker.open_model(extraction.provider, extraction.model)
        return None if model is None else extraction.mode == "online" or model.batches is None

    async def _request_next_windows(self, connection: Client, owners: Iterable[Owner]) -> set[Owner]:
        """Ask a model about one due window of each conversation, up to a limit for each user.

        Returns:
            The users who had a due window and whose answers in the log are projected.
        """
        wanted = [
            (owner, every)
            for owner in owners
            if (every := await self.selects_all_windows(owner[0])) is not None
        ]
        if not wanted:
            return set()
        at_most = max(1, self._at_once // len(wanted))
        async with self._database.transaction() as transaction:
            taken = await lock_windows_of_users(transaction, wanted, datetime.now(UTC), at_most)
            # A process that ended may have appended an answer already.
            known = await self._projections.find_answered_users(
                connection, {window.owner for window in taken}
            )
            taken = [window for window in taken if window.owner in known]
            done = await find_answered_windows(taken)(transaction)
            await mark_answered(transaction, done)
            to_ask = [window for window in taken if window not in done]
            asked = await build_window_requests(
                transaction, to_ask, self._settings, datetime.now(UTC), AskedPairs()
            )
            with self._budgets.open_reservations() as reservations:
                asking = (self._request_answer(connection, question, reservations) for question in asked)
                await self._settle_answers(connection, transaction, await asyncio.gather(*asking))
        return {window.owner for window in taken}

    async def _request_answer(
        self, connection: Client, question: WindowRequest, reservations: Reservations
    ) -> _WindowResponse:
        if not question.messages:
            return _WindowResponse(question, None, LineFailed("the window has no messages to read"))
        of = question.settings.extraction
        model = await self._circuit_breaker.open_model(of.provider, of.model)
        if model is None:
            return _WindowResponse(
                question, None, ModelUnavailable("the circuit breaker is open for the model")
            )
        outcome: ModelAnswer | LineFailed | ModelUnavailable
        try:
            request = question.build_model_request()
            usd = estimate_cost(request, model, question.settings.spending, in_batch=False)
            if not await reservations.reserve_call(question.window.tenant, usd):
                return _WindowResponse(
                    question, None, ModelUnavailable("requests in progress may take the whole budget")
                )
            with tracing.trace_block("extract ask", await read_trace(connection, question.window.to_seq)):
                outcome = await model.complete(request)
            self._circuit_breaker.record_answer(of.provider, of.model)
        except RequestRefused as error:
            outcome = LineFailed(str(error), is_refused=True, usage=error.usage)
        except ModelUnavailable as error:
            self._circuit_breaker.record_failure(of.provider, of.model, error)
            outcome = error
        except DatabaseUnavailable as error:
            return _WindowResponse(question, None, ModelUnavailable(str(error)))
        except Exception as error:
            # Any error concerns this window alone. Its text is not logged: it may quote people's messages.
            log.error("window request failed", tenant=question.window.tenant, error=type(error).__name__)
            outcome = LineFailed(f"the request for the window failed: {type(error).__name__}")
        return _WindowResponse(question, (model.provider, model.model), outcome)

    async def _settle_answers(
        self, connection: Client, transaction: Connection, responses: Sequence[_WindowResponse]
    ) -> None:
        """Publish answers, requeue failed windows, and delete windows that are erased.

        The deletion also ends a window that was cut while `persist` finished the erasure.
        """
        now = datetime.now(UTC)
        answering = {each.model for each in responses if isinstance(each.outcome, ModelAnswer)}
        failed: list[FailedWindow] = []
        by_model: dict[ModelKey, list[tuple[WindowRequest, ModelAnswer | LineFailed]]] = {}
        for each in responses:
            outcome = each.outcome
            if isinstance(outcome, ModelUnavailable):
                if isinstance(outcome, ModelRefused | ModelBusy) or each.model not in answering:
                    failed.append(
                        build_retry(each.question.window, now, attempts=each.question.window.attempts)
                    )
                    continue
                # The model answers other requests, so this request may be the cause.
                outcome = LineFailed(str(outcome))
            by_model.setdefault(each.model or ("", ""), []).append((each.question, outcome))
        answered: list[StoredWindow] = []
        for (provider, model), answers in by_model.items():
            answering_model = AnsweringModel(provider, model)
            published = await retry_store(  # the answers are paid for
                partial(self._publish_answers, connection, transaction, answers, answering_model),
                APPEND_PAUSE,
            )
            kept = {question.window for question, _ in published}
            await delete_windows(transaction, {question.window for question, _ in answers} - kept)
            for question, judged in published:
                if judged.is_answered:
                    answered.append(question.window)
                else:
                    failed.append(build_retry(question.window, now))
        await mark_answered(transaction, answered)
        await requeue_windows(transaction, failed)

    async def _drop_removed_content(
        self,
        connection: Client,
        transaction: Connection,
        answers: Sequence[tuple[WindowRequest, ModelAnswer | LineFailed]],
    ) -> list[tuple[WindowRequest, ModelAnswer | LineFailed]]:
        """Drop answers about windows erased meanwhile, and the messages of cleared or discarded windows."""
        owners = {question.window.owner for question, _ in answers}
        await self._projections.await_clears(connection, owners)
        remaining = set(await drop_erased_windows([question.window for question, _ in answers])(transaction))
        answers = [each for each in answers if each[0].window in remaining]
        ranges = [question.window.message_range for question, _ in answers]
        filled = await check_ranges(ranges)(transaction)
        return [
            (question if has_messages else replace(question, messages=()), outcome)
            for (question, outcome), has_messages in zip(answers, filled, strict=True)
        ]

    async def _publish_answers(
        self,
        connection: Client,
        transaction: Connection,
        answers: Sequence[tuple[WindowRequest, ModelAnswer | LineFailed]],
        answering_model: AnsweringModel,
    ) -> list[tuple[WindowRequest, WindowJudgement]]:
        """Publish answers, except those about windows erased meanwhile; return the published ones."""
        remaining = await self._drop_removed_content(connection, transaction, answers)
        return await self._publisher.publish_answers(connection, remaining, answering_model)
