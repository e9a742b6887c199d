"""Events of a window's answer: proposals, comparisons and the end of the window. No I/O, no clock."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from mnemon_consumers.extract.answer_parser import ParsedAnswer
from mnemon_consumers.extract.prompt import PROMPT_VERSION
from mnemon_contracts.events.fact_comparison import FactComparedV1
from mnemon_contracts.events.memory import FactProposedV1, Lineage, WindowAnsweredV1
from mnemon_contracts.fact_pairs import FactPair, Relation
from mnemon_contracts.identity import derive_id
from mnemon_contracts.subjects import build_memory_subject
from mnemon_infra.broker.streams.log_writer import LogEvent
from mnemon_infra.database.windows.window_repository import StoredWindow

EXTRACTOR: Final = "extract"
"""Name of this consumer in the lineage of a proposal."""

WindowOutcome = Literal["proposed", "nothing", "gone", "dead"]


def build_proposals(
    window: StoredWindow,
    extracted: ParsedAnswer,
    model: str,
    batch_id: str | None,
    unsupported: Sequence[Sequence[str]] = (),
) -> list[LogEvent]:
    """Return the events of an answer: its proposals, then the event that the window is answered.

    The window determines the ids of the events, so only one answer counts if several processes publish one.

    Args:
        window: the window that was read.
        extracted: the content of the answer.
        model: the provider and its model, such as `openai/gpt-5-mini`.
        batch_id: the batch of the answer; None for a single request.
        unsupported: for each fact its names, numbers and dates that its sources lack.
    """
    marks = unsupported or [()] * len(extracted.facts)
    proposed = [
        LogEvent(
            build_memory_subject(window.tenant, window.user, "fact.proposed"),
            FactProposedV1(
                text=fact.text,
                kind=fact.memory_type,
                tier=fact.tier,
                importance=fact.importance,
                expires_at=fact.expires_at,
                supersedes=fact.supersedes,
                names=fact.names,
                lineage=Lineage(
                    sources=tuple(seq for seq in fact.sources if window.from_seq <= seq <= window.to_seq),
                    conversation=window.conversation,
                    extractor=EXTRACTOR,
                    prompt_version=PROMPT_VERSION,
                    model=model,
                    batch_id=batch_id,
                    answer=_derive_id(window, "answered"),
                    unsupported=tuple(mark) or None,
                ),
            ).encode_body(),
            _derive_id(window, f"fact {place}"),
            omitted_if_known=_derive_id(window, "answered"),
        )
        for place, (fact, mark) in enumerate(zip(extracted.facts, marks, strict=True))
    ]
    outcome: WindowOutcome = "proposed" if proposed else "nothing"
    end = build_answered_event(window, outcome, len(proposed), extracted, batch_id=batch_id)
    return [*proposed, end]


def build_comparisons(
    window: StoredWindow,
    pairs: Iterable[FactPair],
    relations: Mapping[FactPair, Relation],
    model: str,
    batch_id: str | None,
) -> list[LogEvent]:
    """Return an event for each pair that a request asked about, with or without an answer.

    The pair and the versions that were shown determine the id of an answered event, so the first answer
    counts. The window determines the id of an event without an answer, so that such events can be counted.

    `batch_id` is None for a single request.
    """
    lineage = Lineage(extractor=EXTRACTOR, prompt_version=PROMPT_VERSION, model=model, batch_id=batch_id)
    events = []
    for pair in pairs:
        relation = relations.get(pair)
        event = FactComparedV1(**pair.model_dump(), relation=relation, lineage=lineage)
        shown = pair.fact_id, pair.version, pair.other_id, pair.other_version
        event_id = (
            _derive_id(window, "\0".join(("unanswered", batch_id or "", *shown)))
            if relation is None
            else derive_id(window.tenant, window.user, EXTRACTOR, "compared", *shown)
        )
        subject = build_memory_subject(window.tenant, window.user, "fact.compared")
        events.append(LogEvent(subject, event.encode_body(), event_id))
    return events


class Death(NamedTuple):
    """End of a window that is given up: the reason, the model asked last, the number of earlier failures."""

    reason: str
    model: str
    attempts: int


def build_answered_event(
    window: StoredWindow,
    outcome: WindowOutcome,
    proposed: int = 0,
    extracted: ParsedAnswer | None = None,
    *,
    batch_id: str | None = None,
    death: Death | None = None,
) -> LogEvent:
    """Return the event that completes a window; `extracted` is the content of the answer.

    `death` is None unless the window is given up. A window that was given up and reopened may end again, so
    each end has an id of its own.
    """
    held = extracted or ParsedAnswer(())
    too_many = len(held.beyond_limit)
    event = WindowAnsweredV1(
        conversation=window.conversation,
        from_seq=window.from_seq,
        to_seq=window.to_seq,
        outcome=outcome,
        proposed=proposed,
        repaired=held.repaired,
        unusable=(held.left_out - too_many) or None,
        beyond_limit=too_many or None,
        batch_id=batch_id,
        reason=death and death.reason,
        model=death and death.model,
        attempts=None if death is None else death.attempts,
    )
    subject = build_memory_subject(window.tenant, window.user, "window.answered")
    end = "answered" if death is None else f"dead {death.attempts}"
    return LogEvent(subject, event.encode_body(), _derive_id(window, end))


def _derive_id(window: StoredWindow, what: str) -> str:
    part = window.conversation, str(window.from_seq), str(window.to_seq)
    return derive_id(window.tenant, window.user, EXTRACTOR, *part, what)
