"""What models say goes into the log: of each stretch all that follows from it, or nothing."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import structlog
from nats.aio.client import Client

from mnemon_consumers.domain.policy.secrets.long_texts import secret_in_long_text
from mnemon_consumers.domain.spending.budget import Budgets
from mnemon_consumers.domain.spending.calls import cost
from mnemon_consumers.domain.spending.counters import count
from mnemon_consumers.extract.answers.window_outcome import AnsweringModel, Judged, event_window, judge
from mnemon_consumers.extract.window_requests import WindowRequest
from mnemon_contracts.subjects import parse
from mnemon_infra.broker.dead_letters.writer import bury
from mnemon_infra.broker.streams.log_writer import append_groups
from mnemon_infra.broker.streams.trace_context import trace_at
from mnemon_infra.database.windows.window_repository import Failed, StoredWindow
from mnemon_infra.models.language.port import LineFailed, ModelAnswer
from mnemon_infra.process.request_priority import give_way
from mnemon_infra.telemetry import tracing

log = structlog.get_logger("extract")

AnsweredRequest = tuple[WindowRequest, ModelAnswer | LineFailed]

PAUSES: Final = (30.0, 120.0, 600.0)
"""Seconds before a stretch is asked for again, by how often it failed; the last one for all later ones."""


class Answering:
    """Puts answers into the log, and counts what they cost."""

    def __init__(self, budgets: Budgets) -> None:
        self._budgets = budgets

    async def take(
        self, connection: Client, answers: Sequence[AnsweredRequest], asked: AnsweringModel
    ) -> list[tuple[WindowRequest, Judged]]:
        """Put answers into the log, each user's in the order of what was said; returns what they were worth.

        Doing it again with the same answers changes nothing.

        Raises:
            nats.errors.Error: not all of it may be in the log.
        """
        judged: list[tuple[WindowRequest, Judged]] = []
        await give_way()
        for question, outcome in sorted(answers, key=lambda each: each[0].window):
            await asyncio.sleep(0)  # whoever else waits goes first: a bot, perhaps
            with tracing.span("extract answer", await trace_at(connection, question.window.to_seq)):
                each = _traced(_judged(question, outcome, asked))
                judged.append((question, each))
                if each.dead is not None:
                    await self._bury(connection, question, outcome, each, asked)
        await append_groups(connection, [each.events for _, each in judged])
        for question, outcome in answers:
            if outcome.usage is not None:
                in_batch = asked.batch_id is not None
                usd = cost(outcome.usage, asked.model, question.settings.spending, in_batch=in_batch)
                self._budgets.spent(question.window.tenant, usd)
                count(asked.provider, "extract", outcome.usage, usd)
        return judged

    async def _bury(
        self,
        connection: Client,
        question: WindowRequest,
        outcome: ModelAnswer | LineFailed,
        judged: Judged,
        asked: AnsweringModel,
    ) -> None:
        assert judged.dead is not None, "looked at before"
        end = next(each for each in judged.events if parse(each.subject).name == "window.answered")
        letter = event_window(question.window).model_dump(mode="json", exclude_none=True, exclude={"pairs"})
        said = outcome.text if isinstance(outcome, ModelAnswer) else None
        said = said if judged.kept is None else judged.kept
        letter |= {"attempts": question.window.attempts, "batch_id": asked.batch_id}
        letter |= {"model": f"{asked.provider}/{asked.model}", "answer": said}
        policy = question.settings.policy
        if said is not None and (what := secret_in_long_text(said, policy)) is not None:
            letter |= {"answer": None, "withheld": f"The answer looks like {what}."}
        model = f"{asked.provider}/{asked.model}"
        await bury(connection, "extract", end.subject, judged.dead, letter, end.id, model)


def _judged(question: WindowRequest, outcome: ModelAnswer | LineFailed, asked: AnsweringModel) -> Judged:
    try:
        return judge(question, outcome, asked)
    except Exception as error:
        # Whatever it is, it is this one's. Not its words: there may be people's messages in them.
        name = type(error).__name__
        log.error("answer rejected", tenant=question.window.tenant, error=name)
        return judge(question, LineFailed(f"the answer cannot be used: {name}"), asked)


def _traced(judged: Judged) -> Judged:
    """As part of the trace that it is judged in."""
    traceparent = tracing.current()
    if traceparent is None:
        return judged
    return replace(judged, events=[replace(event, traceparent=traceparent) for event in judged.events])


def again(window: StoredWindow, now: datetime, *, attempts: int | None = None) -> Failed:
    """It failed once more, and is asked for again after a while.

    Args:
        window: what was asked for.
        now: the time.
        attempts: that count, where this one does not.
    """
    failed = window.attempts + 1 if attempts is None else attempts
    pause = PAUSES[min(max(failed, 1), len(PAUSES)) - 1]
    return Failed(window, failed, now + timedelta(seconds=pause))
