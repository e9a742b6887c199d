"""Compaction of one conversation, under its lock, one step at a time, until no step is due.

After `TURN_SECONDS` no further step begins, so that other conversations are compacted too.

This module writes summaries to the log only. Each step waits until the projections have the user's chat
events, summaries and erasures, then reads them. Before the outcome is appended to the log, the step is
compared with the projections again, because the model may answer late. If messages are cleared or
discarded after this comparison, the messages and the summary are below the watermark, so neither is shown.
If the user or the conversation is erased after this comparison, `persist` removes the summary from the log.
"""

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from typing import Final
from uuid import uuid4

import nats.errors
import structlog
from cachetools import TTLCache
from nats.aio.client import Client

from mnemon_consumers.compact.answer import SummaryRejection, check_summary, correct_request
from mnemon_consumers.compact.decide import (
    CompactionStep,
    ConversationKey,
    SummaryStep,
    build_summary_event,
    choose_next_step,
)
from mnemon_consumers.compact.prompt import build_message_request, build_summary_request, shorten_content
from mnemon_consumers.domain.spending.budget import Budgets
from mnemon_consumers.domain.spending.calls import build_call_event, compute_cost, estimate_cost
from mnemon_consumers.domain.spending.counters import count_usage
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.settings.language_models import Compaction
from mnemon_contracts.subjects import Owner, build_thing_filter, build_user_filters
from mnemon_infra.broker.outcomes import ACK, Ack, Dead, DeliveryOutcome, Retry
from mnemon_infra.broker.streams.applied_position import AppliedPosition
from mnemon_infra.broker.streams.log_reader import read_last_position
from mnemon_infra.broker.streams.log_writer import LogEvent, append_events, retry_store
from mnemon_infra.broker.streams.trace_context import read_trace
from mnemon_infra.database.engine import Connection, Database, DatabaseUnavailable
from mnemon_infra.database.locks import try_lock
from mnemon_infra.database.memory.summaries import load_newest_summaries
from mnemon_infra.database.memory.user_memory import NewestMessagesQuery
from mnemon_infra.database.messages.message_ranges import MessageRange, SpokenRow, stream_messages
from mnemon_infra.database.messages.uncovered_messages import UncoveredQuery, load_uncovered_messages
from mnemon_infra.models.language.circuit_breaker import CircuitBreaker
from mnemon_infra.models.language.offline.model import PROVIDER as RULES
from mnemon_infra.models.language.offline.model import build_offline_model
from mnemon_infra.models.language.port import (
    LanguageModel,
    ModelRequest,
    ModelUnavailable,
    RequestRefused,
    Usage,
)
from mnemon_infra.settings.store import LiveSettings
from mnemon_infra.telemetry import tracing

log = structlog.get_logger("compact")

TURN_SECONDS: Final = 10.0
"""Seconds after which a conversation begins no further step. Its trigger is redelivered, so that other
conversations have their turn."""

PROJECTION_WAIT: Final = 2.0
"""Maximum wait for the projections, in seconds. If they are still behind, the trigger is redelivered
after as many seconds."""

ANSWER_WAIT: Final = 30.0
"""Maximum wait for the projections, in seconds, after a model has answered. The wait is long, because the
answer is paid for."""

BUSY_DELAY: Final = 1.0
"""Seconds before the next attempt at a conversation that is being compacted already, that had its turn, or
whose user has too many compactions in progress; also the minimum delay while a model is paused.

The delay is not zero, because the server redelivers messages before those that it has not delivered yet."""

BUDGET_DELAY: Final = 300.0
"""Seconds before a tenant's budget is checked again."""

MOST_REQUESTS: Final = 2
"""Maximum number of requests to a model for one summary. If both answers are rejected, the offline model
writes the summary by rules."""

MOST_ATTEMPTS: Final = 3
"""Number of refusals of a step by providers, in one process, that make a dead letter of its trigger."""

GIVE_UP_SECONDS: Final = 3600.0
"""Seconds during which a process does not repeat a step that became a dead letter there, unless the settings
change. Without this pause, each new message would lead to another paid attempt."""

APPEND_PAUSE: Final = 1.0
"""Seconds between attempts to append an answer to the log, which may be unreachable for a moment."""

MOST_GIVEN_UP: Final = 100_000
"""Maximum number of refused steps that a process remembers."""

MOST_STORED: Final = 1000
"""Maximum number of summaries to read if a conversation has more than the setting `merge_above` allows, which
happens after the setting was lowered."""

_OFF: Final = Ack("compaction is switched off")
_IS_DEAD: Final = Ack("the step has a dead letter already")


_Failing = tuple[ConversationKey, str, Compaction]
"""A step that providers refused: its conversation, its name, and the settings under which it was tried."""


class Compactor:
    """Compacts conversations, any number at the same time.

    Up to half of the connections of `database` are held while models answer.
    """

    def __init__(
        self,
        database: Database,
        settings: LiveSettings,
        circuit_breaker: CircuitBreaker,
        budgets: Budgets,
    ) -> None:
        self._database = database
        self._settings = settings
        self._circuit_breaker = circuit_breaker
        self._budgets = budgets
        self._position = AppliedPosition()
        self._failed: TTLCache[_Failing, int] = TTLCache(MOST_GIVEN_UP, GIVE_UP_SECONDS)

    async def compact_conversation(self, connection: Client, place: ConversationKey) -> DeliveryOutcome:
        """Compact a conversation until no step is due; begin no step after `TURN_SECONDS`.

        Returns:
            The outcome of the conversation's trigger.

        Raises:
            DatabaseUnavailable, nats.errors.Error: PostgreSQL or NATS does not answer. Nothing is lost, and
                the call can be repeated.
        """
        begun = time.monotonic()
        async with try_lock(self._database, *place, "compact") as is_mine:
            if not is_mine:
                return Retry(BUSY_DELAY)
            while time.monotonic() - begun < TURN_SECONDS:
                ended = await self._take_step(connection, place)
                if ended is not None:
                    return ended
        return Retry(BUSY_DELAY)

    async def _take_step(self, connection: Client, place: ConversationKey) -> DeliveryOutcome | None:
        """Take one step. Return None if another step may follow, else the outcome of the trigger."""
        tenant, user, _ = place
        settings = self._settings.get_settings(tenant)
        compaction = settings.compaction
        if not compaction.enabled:
            return _OFF
        if not await self._await_projections(connection, (tenant, user), PROJECTION_WAIT):
            return Retry(PROJECTION_WAIT)
        step = await self._find_due_step(place, compaction)
        if step is None:
            return ACK
        if self._failed.get((place, step.name, compaction), 0) >= MOST_ATTEMPTS:
            return _IS_DEAD
        model = await self._circuit_breaker.open_model(compaction.provider, compaction.model)
        if model is None:
            return Retry(
                max(BUSY_DELAY, self._circuit_breaker.measure_pause(compaction.provider, compaction.model))
            )
        request = await self._build_request(place, step, settings)
        if request is None:
            return None  # messages were removed meanwhile
        usd = MOST_REQUESTS * estimate_cost(request, model, settings.spending, in_batch=False)
        try:
            with self._budgets.open_reservations() as reservations:
                if not await reservations.reserve_call(tenant, usd):
                    return Retry(BUDGET_DELAY)
                with tracing.trace_block("compact", await read_trace(connection, step.covers[1])):
                    await self._append_summary(connection, place, step, request, model, settings)
                    return None
        except RequestRefused as error:
            if error.usage is not None:
                await _append_events(
                    connection, self._record_call((tenant, user), error.usage, model, settings)
                )
            return self._record_failure(
                (place, step.name, compaction), step, f"the model refuses the request: {error}"
            )
        except ModelUnavailable as error:
            self._circuit_breaker.record_failure(compaction.provider, compaction.model, error)
            return Retry(self._circuit_breaker.measure_pause(compaction.provider, compaction.model) or None)

    async def _build_request(
        self, place: ConversationKey, step: CompactionStep, settings: SettingsV1
    ) -> ModelRequest | None:
        """Return the request of a step; None if a message that the step covers is no longer visible."""
        if not isinstance(step, SummaryStep):
            return build_summary_request(step.summaries, settings)
        messages = await self._load_messages(place, step)
        if [each.seq for each in messages] != list(step.messages):
            return None
        return build_message_request(messages, settings)

    async def _append_summary(
        self,
        connection: Client,
        place: ConversationKey,
        step: CompactionStep,
        request: ModelRequest,
        model: LanguageModel,
        settings: SettingsV1,
    ) -> None:
        """Ask a model, and append its summary to the log if the step is still due."""
        tenant, user, _ = place
        compaction = settings.compaction
        written_by, text, paid = await self._ask_for_summary(
            connection, (tenant, user), request, model, settings
        )
        try:
            is_projected = await self._await_projections(connection, (tenant, user), ANSWER_WAIT)
            # The deployment that serves the tenant writes the summary.
            is_moving = self._settings.is_suspended(tenant)
            is_wanted = (
                is_projected and not is_moving and await self._find_due_step(place, compaction) == step
            )
        except (DatabaseUnavailable, nats.errors.Error, asyncio.CancelledError):
            await _append_events(connection, *paid)
            raise
        if not is_wanted:
            reason = (
                "the projections are behind"
                if not is_projected
                else "the tenant moves or has moved"
                if is_moving
                else "the step is no longer due"
            )
            log.info("summary discarded", tenant=tenant, reason=reason)
            await _append_events(connection, *paid)
            return
        written = build_summary_event(place, step, text, written_by)
        await _append_events(connection, written, *paid)
        self._failed.pop((place, step.name, compaction), None)

    async def _ask_for_summary(
        self,
        connection: Client,
        owner: Owner,
        request: ModelRequest,
        model: LanguageModel,
        settings: SettingsV1,
    ) -> tuple[str, str, Sequence[LogEvent]]:
        """Ask a model for a summary, and ask again if the answer is rejected.

        Returns:
            The provider and model that wrote the summary, the summary, and the events of paid calls that are
            not in the log yet.
        """
        asked = request
        for _ in range(MOST_REQUESTS):
            answer = await model.complete(asked)
            paid = self._record_call(owner, answer.usage, model, settings)
            checked = answer.text if model.provider == RULES else check_summary(answer, request)
            if not isinstance(checked, SummaryRejection):
                return f"{model.provider}/{model.model}", checked, [paid]
            log.warning("summary rejected", tenant=owner[0], model=model.model, reason=checked.reason)
            await _append_events(connection, paid)  # counted now: asking the model again may fail
            asked = correct_request(request, checked)
        rules = build_offline_model()
        return f"{rules.provider}/{rules.model}", (await rules.complete(request)).text, []

    def _record_call(
        self, owner: Owner, usage: Usage, model: LanguageModel, settings: SettingsV1
    ) -> LogEvent:
        """Count a call and return its event. Each call is paid for, so each event has an id of its own."""
        self._circuit_breaker.record_answer(settings.compaction.provider, settings.compaction.model)
        usd = compute_cost(usage, model.model, settings.spending, in_batch=False)
        self._budgets.record_spending(owner[0], usd)
        count_usage(model.provider, "compact", usage, usd)
        of = model.provider, model.model
        return build_call_event(owner, usage, *of, "compact", None, settings.spending, uuid4().hex)

    async def _await_projections(self, connection: Client, owner: Owner, timeout_seconds: float) -> bool:
        """Wait until the projections have the user's chat events, summaries and erasures.

        Returns:
            False if the projections lack one of them after the timeout.
        """
        said, _ = build_user_filters(*owner)
        patterns = said, build_thing_filter(*owner, "summary"), build_thing_filter(*owner, "user")
        last = await read_last_position(connection, *patterns)
        return await self._position.wait_for(connection.jetstream(), last, timeout_seconds) >= last

    async def _find_due_step(self, place: ConversationKey, compaction: Compaction) -> CompactionStep | None:
        tenant, user, conversation = place
        uncovered = UncoveredQuery(
            tenant, user, compaction.after_messages + 1, self._position.value, conversation
        )
        newest = NewestMessagesQuery(tenant, user, conversation, compaction.merge_above + 1)

        async def find_step(connection: Connection) -> CompactionStep | None:
            (conversations,) = await load_uncovered_messages([uncovered], "summaries")(connection)
            (summaries,) = await load_newest_summaries([newest])(connection)
            if len(summaries) > compaction.merge_above:  # a lowered limit leaves more summaries
                (summaries,) = await load_newest_summaries([newest._replace(limit=MOST_STORED)])(connection)
            messages = conversations[0].messages if conversations else ()
            return choose_next_step([each.seq for each in messages], summaries, compaction)

        return await self._database.run_query(find_step)

    async def _load_messages(self, place: ConversationKey, step: SummaryStep) -> list[SpokenRow]:
        """Return the visible messages of a step, with shortened contents; see `shorten_content`."""

        async def load_contents(connection: Connection) -> list[SpokenRow]:
            pages = stream_messages(connection, [MessageRange(*place, *step.covers)])
            return [shorten_content(each) async for _, rows in pages for each in rows]

        return await self._database.run_query(load_contents)

    def _record_failure(self, failing: _Failing, step: CompactionStep, problem: str) -> DeliveryOutcome:
        """Count a refusal of a step; return a dead letter after `MOST_ATTEMPTS` refusals, else a retry."""
        attempts = self._failed[failing] = self._failed.get(failing, 0) + 1
        (tenant, _, conversation), _, _ = failing
        from_seq, to_seq = step.covers
        if attempts >= MOST_ATTEMPTS:
            return Dead(
                "no_summary", f"conversation {conversation}, log positions {from_seq} to {to_seq}: {problem}"
            )
        log.warning(
            "summary failed, retrying",
            tenant=tenant,
            conversation=conversation,
            from_seq=from_seq,
            to_seq=to_seq,
            error=problem,
        )
        return Retry()


async def _append_events(connection: Client, *events: LogEvent) -> None:
    await retry_store(partial(append_events, connection, events), APPEND_PAUSE)
