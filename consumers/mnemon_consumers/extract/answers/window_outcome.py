"""Decides the outcome of a window from the answer or failure of a model. No I/O, no clock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mnemon_consumers.domain.policy.refusal import find_refusal
from mnemon_consumers.domain.spending.calls import build_call_event
from mnemon_consumers.extract.answer_parser import (
    MOST_FACTS,
    ParsedAnswer,
    ProposedFact,
    UnreadableAnswer,
    parse_answer,
)
from mnemon_consumers.extract.answers.answer_events import (
    EXTRACTOR,
    Death,
    build_answered_event,
    build_comparisons,
    build_proposals,
)
from mnemon_consumers.extract.answers.grounding import find_unsupported_terms
from mnemon_consumers.extract.window_requests import WindowRequest
from mnemon_contracts.events.memory import Window
from mnemon_contracts.fact_pairs import FactPair, Relation
from mnemon_contracts.identity import derive_id
from mnemon_infra.broker.outcomes import Dead
from mnemon_infra.broker.streams.log_writer import LogEvent
from mnemon_infra.database.windows.window_repository import StoredWindow
from mnemon_infra.models.language.port import LineFailed, ModelAnswer, PromptFact, PromptMessage

MOST_IMPORTANCE: Final = 5
"""Maximum importance of a fact with terms that its sources lack (`find_unsupported_terms`). Such a fact
without an importance gets this one."""


MOST_REFUSALS: Final = 1
"""Number of earlier failed attempts at a window after which a refusal by the model ends the attempts."""


@dataclass(frozen=True, slots=True)
class AnsweringModel:
    """The model that answered. `batch_id` is the batch of the request; None for an online request."""

    provider: str
    model: str
    batch_id: str | None = None

    @property
    def name(self) -> str:
        """Return the provider and the model, such as `openai/gpt-5-mini`."""
        return f"{self.provider}/{self.model}"


@dataclass(frozen=True, slots=True)
class WindowJudgement:
    """Decision on a window: its events, and whether the window is complete, retried or given up.

    Attributes:
        events: events for the log, which stores all of them or none; see `append_groups`.
        is_answered: whether the window is complete or given up, so that it is not retried.
        dead: reason why the window or some of its facts are given up; the dead letter keeps the answer,
            unless the answer looks like a secret.
        kept: the part of the answer that the dead letter keeps; None keeps all of it.
        error: the failure after which the window is retried; None if the window is not retried, if no request
            reached the model, or if the model refused a request of a batch and is asked online next.
    """

    events: Sequence[LogEvent]
    is_answered: bool = True
    dead: Dead | None = None
    kept: str | None = None
    error: str | None = None


def judge_answer(
    question: WindowRequest, outcome: ModelAnswer | LineFailed, answering_model: AnsweringModel
) -> WindowJudgement:
    """Decide from a model's answer or failure whether a window is complete, retried or given up.

    The window is given up after the attempts that the settings allow, or sooner after a refusal. A window
    without messages ends with the outcome `gone`, whatever the answer.
    """
    window, paid = question.window, _build_call_events(question, outcome, answering_model)
    unanswered = _build_comparisons(question, {}, answering_model)
    if not question.messages:
        return WindowJudgement([build_gone_event(window, answering_model.batch_id), *paid])
    is_last = window.attempts + 1 >= question.settings.extraction.attempts
    match outcome:
        case LineFailed(is_unasked=True):
            return WindowJudgement((), is_answered=False)
        case LineFailed(is_refused=True, is_adapted=is_adapted) if answering_model.batch_id and not (
            is_adapted and not is_last
        ):
            return WindowJudgement((), is_answered=False)
        case LineFailed(error, is_refused, is_adapted):
            dead = Dead("refused" if is_refused else "no_answer", error)
            is_last = is_last or (is_refused and not is_adapted)
        case ModelAnswer(is_refused=True, problem=problem):
            dead = Dead("refused", str(problem))
            is_last = is_last or window.attempts >= MOST_REFUSALS
        case ModelAnswer(problem=str(problem)):
            dead = Dead("unreadable", problem)
        case ModelAnswer(is_cut=True) if not is_last:
            # The last attempt uses the complete part of the answer; before that, the model is asked again.
            dead = Dead("cut_off", "the answer was cut off at the limit of tokens or the end of the context")
        case ModelAnswer():
            shown = question.shown_facts
            try:
                extracted = parse_answer(outcome, question.messages, shown, question.pairs)
            except UnreadableAnswer as error:
                dead = Dead("unreadable", str(error))
            else:
                checked, marks = _check_facts(extracted, question.messages, shown)
                events = build_proposals(
                    window, checked, answering_model.name, answering_model.batch_id, marks
                )
                compared = _build_comparisons(question, extracted.relations, answering_model)
                too_many, kept = _report_excess(checked, question)
                return WindowJudgement([*events, *compared, *paid], dead=too_many, kept=kept)
    if not is_last:
        return WindowJudgement([*unanswered, *paid], is_answered=False, error=dead.error)
    death = Death(dead.reason, answering_model.name, window.attempts)
    end = build_answered_event(window, "dead", batch_id=answering_model.batch_id, death=death)
    return WindowJudgement([end, *unanswered, *paid], dead=dead)


def _check_facts(
    extracted: ParsedAnswer, messages: Sequence[PromptMessage], shown: Sequence[PromptFact]
) -> tuple[ParsedAnswer, list[list[str]]]:
    """Return the answer, and for each fact the terms that its sources lack; see `find_unsupported_terms`.

    A fact with such terms may be made up. The fact is proposed, but replaces no other fact, and its
    importance is at most `MOST_IMPORTANCE`.
    """
    marks = [find_unsupported_terms(fact.text, fact.sources, messages, shown) for fact in extracted.facts]
    facts = [_weaken_fact(fact) if mark else fact for fact, mark in zip(extracted.facts, marks, strict=True)]
    return extracted._replace(facts=tuple(facts)), marks


def _weaken_fact(fact: ProposedFact) -> ProposedFact:
    importance = min(MOST_IMPORTANCE if fact.importance is None else fact.importance, MOST_IMPORTANCE)
    return fact.model_copy(update={"supersedes": None, "importance": importance})


def _report_excess(extracted: ParsedAnswer, question: WindowRequest) -> tuple[Dead | None, str | None]:
    """Return the reason why facts beyond the limit are left out, and the texts of these facts.

    Texts that hold a secret are omitted.

    Returns:
        None and None if no fact is beyond the limit.
    """
    left = extracted.beyond_limit
    if not left:
        return None, None
    policy = question.settings.policy
    kept = [
        fact.text
        for fact in left
        if (refused := find_refusal(fact.text, policy)) is None or refused[0] != "secret"
    ]
    error = (
        f"the answer has {MOST_FACTS + len(left)} facts: {MOST_FACTS} are proposed, and the dead letter has "
        "the others, except secrets"
    )
    return Dead("too_many_facts", error), "\n".join(kept)


def build_gone_event(window: StoredWindow, batch_id: str | None = None) -> LogEvent:
    """Return the event that ends a window with the outcome `gone`.

    A window ends so if its messages were removed, or none of them is worth reading.
    """
    return build_answered_event(window, "gone", batch_id=batch_id)


def convert_window(window: StoredWindow, pairs: Sequence[FactPair] = ()) -> Window:
    """Convert a stored window into the window of an event.

    The window's request asks about `pairs`.
    """
    return Window(
        tenant=window.tenant,
        user=window.user,
        conversation=window.conversation,
        from_seq=window.from_seq,
        to_seq=window.to_seq,
        line=window.line,
        pairs=tuple(pairs),
    )


def _build_comparisons(
    question: WindowRequest, relations: Mapping[FactPair, Relation], answering_model: AnsweringModel
) -> list[LogEvent]:
    return build_comparisons(
        question.window, question.pairs, relations, answering_model.name, answering_model.batch_id
    )


def _build_call_events(
    question: WindowRequest, outcome: ModelAnswer | LineFailed, answering_model: AnsweringModel
) -> list[LogEvent]:
    if outcome.usage is None:
        return []
    window = question.window
    place = window.conversation, str(window.from_seq), str(window.to_seq), str(window.attempts)
    event_id = derive_id(*window.owner, EXTRACTOR, "called", answering_model.batch_id or "", *place)
    spending = question.settings.spending
    return [
        build_call_event(
            window.owner,
            outcome.usage,
            answering_model.provider,
            answering_model.model,
            "extract",
            answering_model.batch_id,
            spending,
            event_id,
        )
    ]
