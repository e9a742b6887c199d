"""Submits a claimed batch to its provider exactly once, even after interrupted attempts."""

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

import structlog
from nats.aio.client import Client

from mnemon_consumers.domain.spending.budget import Budgets, Reservations
from mnemon_consumers.domain.spending.calls import estimate_cost
from mnemon_consumers.extract.answers.window_outcome import build_gone_event, convert_window
from mnemon_consumers.extract.window_requests import AskedPairs, WindowRequest, build_window_requests
from mnemon_contracts.events.memory import BatchIntendedV1, BatchSubmittedV1, Window
from mnemon_contracts.identity import derive_id
from mnemon_contracts.settings.language_models import Extraction
from mnemon_contracts.subjects import Owner, build_memory_subject
from mnemon_infra.broker.streams.applied_position import AppliedPosition
from mnemon_infra.broker.streams.log_writer import LogEvent, append_events
from mnemon_infra.database.engine import Database
from mnemon_infra.database.windows.batches import BatchState, StoredBatch, update_batch
from mnemon_infra.database.windows.window_repository import (
    FailedWindow,
    StoredWindow,
    load_batch_windows,
    mark_answered,
    requeue_windows,
)
from mnemon_infra.models.language.circuit_breaker import CircuitBreaker
from mnemon_infra.models.language.port import (
    BatchApi,
    BatchRequest,
    LanguageModel,
    ModelRefused,
    ModelRequest,
    ModelUnavailable,
)
from mnemon_infra.settings.store import LiveSettings

log = structlog.get_logger("extract")

MOST_BYTES: Final = 100_000_000
"""Maximum number of bytes of a batch, even if the provider accepts more: submission holds them in memory."""

PAGE: Final = 25
"""Number of windows to read at a time, so that other work of the process does not wait long."""

LINE_OVERHEAD: Final = 2000
"""Maximum number of bytes of a line besides the content of its request."""

MOST_WINDOWS: Final = 40
"""Maximum number of windows that one event names. The ids of the pairs of a window take up to 20 kB, and
an event has to fit in one message of NATS."""


PROJECTION_WAIT: Final = 5.0
"""Maximum wait for the projections, in seconds, after the windows of a batch were appended to the log."""


class _AskedWindow(NamedTuple):
    """A window that a batch includes.

    `usd` is the estimated cost of the window's request in US dollars; None if the tenant has no budget set.
    """

    window: Window
    usd: float | None


class BatchSubmitter:
    """Submits claimed batches to their providers.

    `delivery_time` is the time during which an earlier request may still reach the provider. All methods may
    raise `ModelUnavailable`, `DatabaseUnavailable` and `nats.errors.Error`. After an error, repeat the call.
    """

    def __init__(
        self,
        database: Database,
        settings: LiveSettings,
        circuit_breaker: CircuitBreaker,
        budgets: Budgets,
        delivery_time: timedelta,
    ) -> None:
        self._database = database
        self._settings = settings
        self._circuit_breaker = circuit_breaker
        self._budgets = budgets
        self._delivery_time = delivery_time
        self._position = AppliedPosition()

    async def resume_submission(self, connection: Client, batch: StoredBatch, model: LanguageModel) -> None:
        """Continue the submission of a batch that may have been interrupted.

        If the provider refused the batch, the method submits it again. Else the method first asks the
        provider whether it has the batch. If not, the method submits the batch, unless an earlier request can
        still reach the provider.
        """
        if batch.error is None:
            found = await require_batches(model).find(batch.batch_id, batch.lines, batch.created_at)
            if found is not None:
                log.info("batch found at provider", batch=batch.batch_id, provider=batch.provider)
                await self._record_submission(connection, batch, found)
                return
            if datetime.now(UTC) - batch.changed_at < self._delivery_time:
                return
        await self.submit_batch(connection, batch, model)

    async def submit_batch(self, connection: Client, batch: StoredBatch, model: LanguageModel) -> None:
        """Submit a batch that the provider does not have.

        The windows of the batch are appended to the log first. If the process ends after that, the log
        shows that the provider may have the batch. A window leaves the batch if it has no message left to
        read, if its request cannot be built or does not fit, or if the settings or the budget of its tenant
        no longer allow the request. If no window is left, the batch is completed instead.

        Raises:
            ModelRefused: the provider does not support batches, or refuses the batch.
            ModelUnavailable: the provider gives no usable answer; it may have the batch.
        """
        with self._budgets.open_reservations() as reservations:
            await self._submit_within_budget(connection, batch, model, reservations)

    async def _submit_within_budget(
        self, connection: Client, batch: StoredBatch, model: LanguageModel, reservations: Reservations
    ) -> None:
        batches = require_batches(model)
        asked, lines = await self._collect_lines(connection, batch, model, reservations)
        if not lines:
            await self._change_state(batch, "completed")
            return
        batch = replace(batch, lines=len(lines))
        if batch.state == "claimed":
            appended = await append_events(connection, _build_intention_events(batch, asked))
            # Once projected, the estimated cost is reserved in the database for every process.
            await self._position.wait_for(
                connection.jetstream(), max(each.seq for each in appended), PROJECTION_WAIT
            )
        await self._change_state(batch, "intended")
        self._budgets.invalidate_cache()
        try:
            provider_batch_id = await batches.submit(batch.batch_id, lines)
        except ModelRefused as error:
            # The provider does not have the batch: there is nothing to search for.
            await self._change_state(batch, "intended", error=str(error))
            if model.batches is not None:
                self._circuit_breaker.record_failure(batch.provider, batch.model, error)
            raise
        except ModelUnavailable as error:
            # The provider may have the batch or still receive it: `delivery_time` starts now.
            await self._change_state(batch, "intended")
            self._circuit_breaker.record_failure(batch.provider, batch.model, error)
            raise
        self._circuit_breaker.record_answer(batch.provider, batch.model)
        await self._record_submission(connection, batch, provider_batch_id)

    async def _record_submission(
        self, connection: Client, batch: StoredBatch, provider_batch_id: str
    ) -> None:
        owners = {
            window.owner for window in await self._database.run_query(load_batch_windows(batch.batch_id))
        }
        event = BatchSubmittedV1(batch_id=batch.batch_id, provider_batch_id=provider_batch_id)
        await append_events(
            connection, build_user_events(batch, owners, "batch.submitted", event.encode_body())
        )
        await self._change_state(batch, "submitted", provider_batch_id=provider_batch_id)
        log.info("batch submitted", batch=batch.batch_id, lines=batch.lines, provider=batch.provider)

    async def _collect_lines(
        self, connection: Client, batch: StoredBatch, model: LanguageModel, reservations: Reservations
    ) -> tuple[list[_AskedWindow], list[BatchRequest]]:
        """Return the windows of the batch with their requests.

        A window leaves the batch if it has no message left to read, if its request cannot be built or
        exceeds the batch's limits, or if its tenant's settings or budget no longer allow the request.
        """
        batches = require_batches(model)
        most_lines, most_bytes = batches.most_lines, min(batches.most_bytes, MOST_BYTES)
        room = most_bytes
        asked: list[_AskedWindow] = []
        asked_pairs = AskedPairs(batch.batch_id)
        lines: list[BatchRequest] = []
        cleared: list[StoredWindow] = []
        over: list[FailedWindow] = []
        held_by = await self._database.run_query(load_batch_windows(batch.batch_id))
        staying = {
            tenant
            for tenant in {window.tenant for window in held_by}
            if await self._may_include_tenant(batch, tenant)
        }
        now = datetime.now(UTC)
        over += [FailedWindow(each, each.attempts, now) for each in held_by if each.tenant not in staying]
        windows = iter([window for window in held_by if window.tenant in staying])
        while page := list(islice(windows, PAGE)):
            for question in await self._build_requests(page, asked_pairs):
                await asyncio.sleep(0)  # let other tasks run, such as a bot's request
                window = question.window
                if not question.messages:
                    cleared.append(window)
                    continue
                request = _build_request(question)
                size = most_bytes + 1 if request is None else _estimate_size(request)
                if request is None or size > room or len(lines) == most_lines:
                    over.append(FailedWindow(window, window.attempts, now, is_online=size > most_bytes))
                    continue
                usd = self._estimate_cost(model, question, request)
                if batch.state == "claimed" and not await reservations.reserve_call(
                    window.tenant, usd or 0.0
                ):
                    over.append(FailedWindow(window, window.attempts, now))
                    continue
                room -= size
                asked.append(_AskedWindow(convert_window(window, question.pairs), usd))
                lines.append(BatchRequest(f"{batch.batch_id}-{window.line}", request))
        await append_events(connection, [build_gone_event(window, batch.batch_id) for window in cleared])
        async with self._database.transaction() as held:
            await mark_answered(held, cleared)
            await requeue_windows(held, over)
        return asked, lines

    async def _may_include_tenant(self, batch: StoredBatch, tenant: str) -> bool:
        """Return whether a tenant has not spent its budget, and its settings still select this batch."""
        is_reserved = batch.state == "intended"
        return selects_batch(
            batch, self._settings.get_settings(tenant).extraction
        ) and await self._budgets.has_budget(tenant, is_reserved=is_reserved)

    def _estimate_cost(
        self, model: LanguageModel, question: WindowRequest, request: ModelRequest
    ) -> float | None:
        """Return the estimated cost of a line in US dollars; None if its tenant has no budget set."""
        if not self._budgets.is_limited(question.window.tenant):
            return None
        return estimate_cost(request, model, question.settings.spending, in_batch=True)

    async def _build_requests(
        self, windows: Sequence[StoredWindow], asked_pairs: AskedPairs
    ) -> list[WindowRequest]:
        asking = partial(
            build_window_requests,
            windows=windows,
            settings=self._settings,
            now=datetime.now(UTC),
            asked_pairs=asked_pairs,
        )
        return await self._database.run_query(asking)

    async def _change_state(
        self,
        batch: StoredBatch,
        state: BatchState,
        *,
        provider_batch_id: str | None = None,
        error: str | None = None,
    ) -> None:
        async with self._database.transaction() as held:
            await update_batch(
                held, batch, state, datetime.now(UTC), provider_batch_id=provider_batch_id, error=error
            )


def selects_batch(batch: StoredBatch, extraction: Extraction) -> bool:
    """Return whether settings still select the mode `batch`, and the provider and model of a batch."""
    is_same_model = extraction.provider == batch.provider and extraction.model in (None, batch.model)
    return extraction.enabled and extraction.mode == "batch" and is_same_model


def build_user_events(batch: StoredBatch, owners: Iterable[Owner], name: str, body: bytes) -> list[LogEvent]:
    """Return one event with the same name and body for each of the users `owners` of a batch."""
    return [
        LogEvent(build_memory_subject(*owner, name), body, derive_id(*owner, name, batch.batch_id))
        for owner in sorted(owners)
    ]


def _build_intention_events(batch: StoredBatch, asked_windows: Iterable[_AskedWindow]) -> list[LogEvent]:
    """Return the events that announce the submission to the log; each names the windows of one user."""
    by_user: dict[Owner, list[_AskedWindow]] = {}
    for each in asked_windows:
        by_user.setdefault((each.window.tenant, each.window.user), []).append(each)
    events = []
    for owner, windows in by_user.items():
        for begin in range(0, len(windows), MOST_WINDOWS):
            some = windows[begin : begin + MOST_WINDOWS]
            event = BatchIntendedV1(
                batch_id=batch.batch_id,
                provider=batch.provider,
                model=batch.model,
                purpose="extract",
                windows=tuple(each.window for each in some),
                usd=sum(costs) if (costs := [each.usd for each in some if each.usd is not None]) else None,
            )
            event_id = derive_id(*owner, "batch.intended", batch.batch_id, str(begin))
            events.append(
                LogEvent(build_memory_subject(*owner, "batch.intended"), event.encode_body(), event_id)
            )
    return events


def _build_request(question: WindowRequest) -> ModelRequest | None:
    """Return the request for a provider; None if it cannot be built, so that its window leaves the batch."""
    try:
        # Drop the objects from which the text was built: they are not read again.
        return replace(question.build_model_request(), messages=(), known=())
    except Exception as error:
        # The error's text is not logged: it may quote people's messages.
        tenant = question.window.tenant
        log.error("request build failed, window left out of batch", tenant=tenant, error=type(error).__name__)
        return None


def _estimate_size(request: ModelRequest) -> int:
    """Return an upper bound of the size of a line in bytes, for any encoding of its JSON."""
    return len(json.dumps([request.instructions, request.text, request.schema])) + LINE_OVERHEAD


def require_batches(model: LanguageModel) -> BatchApi:
    """Return the batch interface of a model.

    Raises:
        ModelRefused: the provider does not support batches.
    """
    if model.batches is None:
        raise ModelRefused(
            f"the provider {model.provider} does not support batches, so windows are requested online: set "
            "extraction.mode=online, so that no batch is tried after a restart"
        )
    return model.batches
