"""What is read for facts, when, and what becomes of an answer. No I/O, no clock, no randomness."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple
from zoneinfo import ZoneInfo

from mnemon_consumers.extract.answers.parser import Extracted
from mnemon_consumers.extract.prompt import PROMPT_VERSION
from mnemon_consumers.extract.recalled_text import is_from_memory
from mnemon_contracts.events.chat import Role
from mnemon_contracts.events.memory import FactProposedV1, Lineage, Window, WindowAnsweredV1
from mnemon_contracts.events.merging import FactComparedV1
from mnemon_contracts.fact_pairs import FactPair, Relation
from mnemon_contracts.identity import derived_id
from mnemon_contracts.settings.models import Extraction
from mnemon_contracts.subjects import memory_subject
from mnemon_infra.broker.streams.log_writer import LogEvent
from mnemon_infra.database.messages.unsummarised import SpokenRow
from mnemon_infra.models.language.port import PromptMessage

EXTRACTOR: Final = "extract"
"""What the lineage of a proposal calls it."""

WindowOutcome = Literal["proposed", "nothing", "gone", "dead"]


class Range(NamedTuple):
    """A stretch of a conversation, by log position: what one request reads.

    Attributes:
        from_seq: its first message.
        to_seq: its last message.
        read: what is worth reading in it; where that is nothing, nobody is asked.
    """

    from_seq: int
    to_seq: int
    read: Sequence[SpokenRow]


class WindowCut(NamedTuple):
    """What is to be read now, and when to look again; None where nothing is left."""

    ranges: Sequence[Range]
    look_at: datetime | None


def worth_reading(
    role: Role, content: str, metadata: Mapping[str, Any] | None = None, name: str | None = None
) -> bool:
    """Whether a message may teach something: words of a user or an assistant that are not out of memory."""
    return (
        role in ("user", "assistant")
        and any(character.isalpha() for character in content)
        and not is_from_memory(content, metadata, name)
    )


def cut(
    messages: Sequence[SpokenRow], now: datetime, settings: Extraction, *, rested: bool = False
) -> WindowCut:
    """Cut what is new in a conversation into stretches, oldest first.

    Once the conversation rests, all of it is due. Before that, from `after_messages` on, full stretches are,
    and a last one of so many. Only what is worth reading counts; what lies between belongs to the stretch
    before it, so that no message is left out or read twice.

    Args:
        messages: those that no stretch has, oldest first.
        now: what the rest is measured by.
        settings: of the tenant.
        rested: it is due in any case.
    """
    if not messages:
        return WindowCut((), None)
    worthy = [place for place, message in enumerate(messages) if _is_worth_reading(message)]
    size, enough = settings.window_messages, settings.after_messages
    first = range(0, len(worthy), size)
    begins = [worthy[place] for place in first]
    rests_at = _rests_at(messages[-1].sent_at, now, settings)
    if rested or rests_at <= now:
        return WindowCut(_ranges(messages, begins or [0], len(messages)), None)
    if len(worthy) < enough:
        return WindowCut((), rests_at)
    if len(worthy) - first[-1] < min(size, enough):
        *begins, end = begins
        return WindowCut(_ranges(messages, begins, end), rests_at)
    return WindowCut(_ranges(messages, begins, len(messages)), None)


def said(messages: Sequence[SpokenRow], zone: str) -> list[PromptMessage]:
    """Messages as a model is told of them, at the times of the user's zone."""
    local = ZoneInfo(zone)
    return [
        PromptMessage(
            message.seq, message.role, message.content, message.sent_at.astimezone(local), message.name
        )
        for message in messages
    ]


def proposals(
    window: Window,
    extracted: Extracted,
    model: str,
    batch_id: str | None,
    unsupported: Sequence[Sequence[str]] = (),
) -> list[LogEvent]:
    """The events of an answer: what it proposes, and last that the stretch is answered.

    Their ids follow from the stretch: whoever answers it, however often, it is answered once.

    Args:
        window: what was read.
        extracted: what the answer holds.
        model: the provider and its model, such as `openai/gpt-5-mini`.
        batch_id: the batch it came in; None where it was asked by itself.
        unsupported: of each fact the names and numbers that its source messages do not have.
    """
    marks = unsupported or [()] * len(extracted.facts)
    proposed = [
        LogEvent(
            memory_subject(window.tenant, window.user, "fact.proposed"),
            FactProposedV1(
                text=fact.text,
                kind=fact.memory_type,
                tier=fact.tier,
                importance=fact.importance,
                expires_at=fact.expires_at,
                supersedes=fact.supersedes,
                lineage=Lineage(
                    sources=tuple(seq for seq in fact.sources if window.from_seq <= seq <= window.to_seq),
                    conversation=window.conversation,
                    extractor=EXTRACTOR,
                    prompt_version=PROMPT_VERSION,
                    model=model,
                    batch_id=batch_id,
                    answer=_id(window, "answered"),
                    unsupported=tuple(mark) or None,
                ),
            ).body(),
            _id(window, f"fact {place}"),
        )
        for place, (fact, mark) in enumerate(zip(extracted.facts, marks, strict=True))
    ]
    outcome: WindowOutcome = "proposed" if proposed else "nothing"
    end = answered(window, outcome, len(proposed), extracted, batch_id=batch_id)
    return [*proposed, end]


def comparisons(
    window: Window,
    pairs: Iterable[FactPair],
    relations: Mapping[FactPair, Relation],
    model: str,
    batch_id: str | None,
) -> list[LogEvent]:
    """The events of the pairs that were asked about, answered or not.

    The id of an answer follows from the pair and the words that were shown: the first answer counts. That of
    a question without one follows from the stretch that it was asked with, so that questions can be counted.

    Args:
        window: the stretch that the pairs were asked with.
        pairs: those that were asked about.
        relations: the answers.
        model: the provider and its model.
        batch_id: the batch it came in; None where it was asked by itself.
    """
    lineage = Lineage(extractor=EXTRACTOR, prompt_version=PROMPT_VERSION, model=model, batch_id=batch_id)
    events = []
    for pair in pairs:
        relation = relations.get(pair)
        event = FactComparedV1(**pair.model_dump(), relation=relation, lineage=lineage)
        shown = pair.fact_id, pair.version, pair.other_id, pair.other_version
        event_id = (
            _id(window, "\0".join(("unanswered", batch_id or "", *shown)))
            if relation is None
            else derived_id(window.tenant, window.user, EXTRACTOR, "compared", *shown)
        )
        subject = memory_subject(window.tenant, window.user, "fact.compared")
        events.append(LogEvent(subject, event.body(), event_id))
    return events


class Death(NamedTuple):
    """Why a stretch is given up, who was asked last, and how many attempts had failed before."""

    reason: str
    model: str
    attempts: int


def answered(
    window: Window,
    outcome: WindowOutcome,
    proposed: int = 0,
    extracted: Extracted | None = None,
    *,
    batch_id: str | None = None,
    death: Death | None = None,
) -> LogEvent:
    """Return the event that completes a stretch; `extracted` is the content of the answer.

    A stretch that was given up and is asked for again may end once more: each end has an id of its own.
    """
    held = extracted or Extracted(())
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
    subject = memory_subject(window.tenant, window.user, "window.answered")
    end = "answered" if death is None else f"dead {death.attempts}"
    return LogEvent(subject, event.body(), _id(window, end))


def _is_worth_reading(message: SpokenRow) -> bool:
    return worth_reading(message.role, message.content, message.metadata, message.name)


def _rests_at(last: datetime, now: datetime, settings: Extraction) -> datetime:
    """When a conversation rests whose last message is of then."""
    idle = timedelta(seconds=settings.idle_seconds)
    # A bot whose clock is ahead by more than that would never let it rest.
    return last + idle if last <= now + idle else now


def _ranges(messages: Sequence[SpokenRow], begins: Sequence[int], end: int) -> list[Range]:
    """A stretch from each of these places to the next; what lies before the first belongs to it."""
    ranges = []
    for begin, following in pairwise([0, *begins[1:], end]):
        stretch = messages[begin:following]
        read = [message for message in stretch if _is_worth_reading(message)]
        ranges.append(Range(stretch[0].seq, stretch[-1].seq, read))
    return ranges


def _id(window: Window, what: str) -> str:
    stretch = window.conversation, str(window.from_seq), str(window.to_seq)
    return derived_id(window.tenant, window.user, EXTRACTOR, *stretch, what)
