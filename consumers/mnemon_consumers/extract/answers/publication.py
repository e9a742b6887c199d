"""Publishes answers of models: the events of a window form one group of the log (see `append_groups`)."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import structlog
from nats.aio.client import Client

from mnemon_consumers.domain.policy.secrets.long_texts import find_secret_in_long_text
from mnemon_consumers.domain.spending.budget import Budgets
from mnemon_consumers.domain.spending.calls import compute_cost
from mnemon_consumers.domain.spending.counters import count_usage
from mnemon_consumers.extract.answers.window_outcome import (
    AnsweringModel,
    WindowJudgement,
    convert_window,
    judge_answer,
)
from mnemon_consumers.extract.window_requests import WindowRequest
from mnemon_contracts.subjects import parse_subject
from mnemon_infra.broker.dead_letters.writer import store_letter
from mnemon_infra.broker.streams.log_writer import append_groups
from mnemon_infra.broker.streams.trace_context import read_trace
from mnemon_infra.database.windows.window_repository import FailedWindow, StoredWindow
from mnemon_infra.models.language.port import LineFailed, ModelAnswer
from mnemon_infra.process.request_priority import yield_to_requests
from mnemon_infra.telemetry import tracing

log = structlog.get_logger("extract")

AnsweredRequest = tuple[WindowRequest, ModelAnswer | LineFailed]
"""A request about a window, and the answer or the failure of the model."""

RETRY_PAUSES: Final = (30.0, 120.0, 600.0)
"""Seconds before a window is retried, by number of failures; the last pause serves all later failures."""


class AnswerPublisher:
    """Appends the events of answers to the log and counts their cost."""

    def __init__(self, budgets: Budgets) -> None:
        self._budgets = budgets

    async def publish_answers(
        self, connection: Client, answers: Sequence[AnsweredRequest], answering_model: AnsweringModel
    ) -> list[tuple[WindowRequest, WindowJudgement]]:
        """Append the events of answers to the log, in the order of the windows; return each window's outcome.

        A window that is given up becomes a dead letter. After an error the call can be repeated: an event
        that the log has already is not appended again.

        Raises:
            nats.errors.Error: NATS does not answer. The log may lack some of the events.
        """
        judged: list[tuple[WindowRequest, WindowJudgement]] = []
        await yield_to_requests()
        for question, outcome in sorted(answers, key=lambda each: each[0].window):
            await asyncio.sleep(0)  # let other tasks run, such as a bot's request
            with tracing.trace_block("extract answer", await read_trace(connection, question.window.to_seq)):
                each = _mark_trace(_judge_answer_safely(question, outcome, answering_model))
                judged.append((question, each))
                if each.dead is not None:
                    await self._store_dead_letter(connection, question, outcome, each, answering_model)
        await append_groups(connection, [each.events for _, each in judged])
        for question, outcome in answers:
            if outcome.usage is not None:
                in_batch = answering_model.batch_id is not None
                usd = compute_cost(
                    outcome.usage, answering_model.model, question.settings.spending, in_batch=in_batch
                )
                self._budgets.record_spending(question.window.tenant, usd)
                count_usage(answering_model.provider, "extract", outcome.usage, usd)
        return judged

    async def _store_dead_letter(
        self,
        connection: Client,
        question: WindowRequest,
        outcome: ModelAnswer | LineFailed,
        judged: WindowJudgement,
        answering_model: AnsweringModel,
    ) -> None:
        """Store the dead letter of a window that is given up, or of which some facts are given up."""
        assert judged.dead is not None, "the caller checks it"
        end = next(each for each in judged.events if parse_subject(each.subject).name == "window.answered")
        letter = convert_window(question.window).model_dump(mode="json", exclude_none=True, exclude={"pairs"})
        said = outcome.text if isinstance(outcome, ModelAnswer) else None
        said = said if judged.kept is None else judged.kept
        letter |= {"attempts": question.window.attempts, "batch_id": answering_model.batch_id}
        letter |= {"model": answering_model.name, "answer": said}
        policy = question.settings.policy
        if said is not None and (what := find_secret_in_long_text(said, policy)) is not None:
            letter |= {"answer": None, "withheld": f"The answer looks like {what}."}
        await store_letter(
            connection, "extract", end.subject, judged.dead, letter, end.id, answering_model.name
        )


def _judge_answer_safely(
    question: WindowRequest, outcome: ModelAnswer | LineFailed, answering_model: AnsweringModel
) -> WindowJudgement:
    """Decide the outcome of a window; an unexpected error counts as a failed attempt of this window."""
    try:
        return judge_answer(question, outcome, answering_model)
    except Exception as error:
        # Any error concerns this window alone. Its text is not logged: it may quote people's messages.
        name = type(error).__name__
        log.error("answer rejected", tenant=question.window.tenant, error=name)
        return judge_answer(question, LineFailed(f"the answer cannot be used: {name}"), answering_model)


def _mark_trace(judged: WindowJudgement) -> WindowJudgement:
    """Return the outcome with its events marked as part of the current trace."""
    traceparent = tracing.get_traceparent()
    if traceparent is None:
        return judged
    return replace(judged, events=[replace(event, traceparent=traceparent) for event in judged.events])


def build_retry(window: StoredWindow, now: datetime, *, attempts: int | None = None) -> FailedWindow:
    """Return the record of a window that failed and is retried after a pause.

    `attempts` is the number of failed attempts to record. Default: one more than those of `window`.
    """
    failed = window.attempts + 1 if attempts is None else attempts
    pause = RETRY_PAUSES[min(max(failed, 1), len(RETRY_PAUSES)) - 1]
    return FailedWindow(window, failed, now + timedelta(seconds=pause))
