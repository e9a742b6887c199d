"""Cuts conversations into windows and builds the events of answers. No I/O, no clock, no randomness."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple
from zoneinfo import ZoneInfo

from mnemon_consumers.extract.answer_parser import ParsedAnswer
from mnemon_consumers.extract.prompt import BEGINNING, ENDING, PROMPT_VERSION
from mnemon_contracts.events.chat import FROM_MEMORY, Role
from mnemon_contracts.events.fact_comparison import FactComparedV1
from mnemon_contracts.events.memory import FactProposedV1, Lineage, WindowAnsweredV1
from mnemon_contracts.fact_pairs import FactPair, Relation
from mnemon_contracts.function_tools import TOOLS
from mnemon_contracts.identity import derive_id
from mnemon_contracts.settings.language_models import Extraction
from mnemon_contracts.subjects import build_memory_subject
from mnemon_infra.broker.streams.log_writer import LogEvent
from mnemon_infra.database.messages.message_ranges import SpokenRow
from mnemon_infra.database.messages.uncovered_messages import MessageOutline
from mnemon_infra.database.windows.window_repository import StoredWindow
from mnemon_infra.models.language.port import PromptMessage
from mnemon_infra.models.language.prompt_text import shorten_text

EXTRACTOR: Final = "extract"
"""Name of this consumer in the lineage of a proposal."""

_READ_ROLES: Final = "user", "assistant"

WindowOutcome = Literal["proposed", "nothing", "gone", "dead"]


class WindowRange(NamedTuple):
    """A window as a range of log positions in a conversation: the messages that one request reads.

    Attributes:
        from_seq: log position of the first message.
        to_seq: log position of the last message.
        messages: the messages that may be worth reading; without such messages, no model is asked.
    """

    from_seq: int
    to_seq: int
    messages: Sequence[MessageOutline]


class WindowCut(NamedTuple):
    """Windows to read now, and the time of the next check; the time is None if no message is left over."""

    ranges: Sequence[WindowRange]
    check_at: datetime | None


def is_worth_reading(
    role: Role, content: str, metadata: Mapping[str, Any] | None = None, name: str | None = None
) -> bool:
    """Return whether a message may hold new facts.

    Such a message is from a user or an assistant, has a letter, and is not from memory (`is_from_memory`).
    """
    return (
        role in _READ_ROLES
        and any(character.isalpha() for character in content)
        and not is_from_memory(content, metadata, name)
    )


def cut_windows(
    messages: Sequence[MessageOutline], now: datetime, settings: Extraction, *, all_due: bool = False
) -> WindowCut:
    """Cut the new messages of a conversation into windows, oldest first.

    A conversation is idle once `idle_seconds` have passed since its last message. Then all of its messages
    are due. Before that, windows are due if the conversation has at least `after_messages` messages: all full
    windows, and a last window of at least `after_messages` messages. Only messages that may be
    worth reading count. Messages between windows belong to the window before them, so that each message is
    read once.

    Args:
        messages: the messages of the conversation that belong to no window, oldest first.
        now: the current time.
        settings: the tenant's settings for extraction.
        all_due: whether all messages are due even if the conversation is not idle yet.
    """
    if not messages:
        return WindowCut((), None)
    worthy = [place for place, message in enumerate(messages) if _may_be_worth_reading(message)]
    size, enough = settings.window_messages, settings.after_messages
    first = range(0, len(worthy), size)
    begins = [worthy[place] for place in first]
    idle_at = _find_idle_time(messages[-1].sent_at, now, settings)
    if all_due or idle_at <= now:
        return WindowCut(_build_ranges(messages, begins or [0], len(messages)), None)
    if len(worthy) < enough:
        return WindowCut((), idle_at)
    if len(worthy) - first[-1] < min(size, enough):
        *begins, end = begins
        return WindowCut(_build_ranges(messages, begins, end), idle_at)
    return WindowCut(_build_ranges(messages, begins, len(messages)), None)


def build_prompt_messages(messages: Sequence[SpokenRow], zone: str) -> list[PromptMessage]:
    """Return messages as a model is shown them: long texts shortened, times in the time zone `zone`."""
    local = ZoneInfo(zone)
    return [
        PromptMessage(
            message.seq,
            message.role,
            shorten_text(message.content, BEGINNING, ENDING),
            message.sent_at.astimezone(local),
            message.name,
        )
        for message in messages
    ]


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


def _may_be_worth_reading(message: MessageOutline) -> bool:
    """Return whether a message is worth reading, as far as its beginning shows.

    Letters may follow the beginning of a long message. So may a context of memory: the request for the window
    leaves such a message out, because it is built from the whole content.
    """
    text = message.beginning
    has_words = not message.is_whole or any(character.isalpha() for character in text)
    is_excluded = message.is_from_memory or is_from_memory(text, name=message.name)
    return message.role in _READ_ROLES and has_words and not is_excluded


def _find_idle_time(last: datetime, now: datetime, settings: Extraction) -> datetime:
    """Return the time at which a conversation becomes idle; `last` is the time of its last message."""
    idle = timedelta(seconds=settings.idle_seconds)
    # A bot whose clock is ahead by more than `idle` would keep the conversation from ever being idle.
    return last + idle if last <= now + idle else now


def _build_ranges(messages: Sequence[MessageOutline], begins: Sequence[int], end: int) -> list[WindowRange]:
    """Return a window from each index in `begins` to the next index; the last window ends before `end`.

    The first window always begins with the first message.
    """
    ranges = []
    for begin, following in pairwise([0, *begins[1:], end]):
        part = messages[begin:following]
        read = [message for message in part if _may_be_worth_reading(message)]
        ranges.append(WindowRange(part[0].seq, part[-1].seq, read))
    return ranges


def _derive_id(window: StoredWindow, what: str) -> str:
    part = window.conversation, str(window.from_seq), str(window.to_seq)
    return derive_id(window.tenant, window.user, EXTRACTOR, *part, what)


_RENDERED: Final = re.compile(
    r"</?(?:key_facts|user_data|working_memory|history_summary|recent_messages|relevant_memory"
    r"|relevant_messages|relevant_documents)>"
    r"|\[(?:PROFILE MEMORY|WORKING MEMORY|RELEVANT MEMORY FOR THIS TURN|USER DATA|CONVERSATION SUMMARY"
    r"|RELEVANT DOCUMENTS|EARLIER MESSAGES|RECENT MESSAGES)\]"
    r"|^## (?:Key facts|Working memory|Relevant memory|User data|Relevant documents|Summary|Earlier messages"
    r"|Recent messages)\n\n- "
    r"|^## (?:Ключевые факты|Рабочая память|Воспоминания по теме|Данные пользователя|Документы по теме"
    r"|Краткое содержание|Прежние сообщения|Последние сообщения)\n\n- "
    r"|\A(?:Key facts|Previous context summary|Working memory|Relevant memory|Relevant conversation memory)"
    r":(?: |\n- \[|\nNo saved information\.)"
    r"|\A(?:Ключевые факты|Краткое содержание предыдущего разговора|Рабочая память|Воспоминания по теме"
    r"|Прежние сообщения по теме):(?: |\n- \[|\nНет сохранённой информации\.)"
    r"|\A(?:User data|Relevant documents|Данные пользователя|Документы по теме):\n- "
    r"|\A(?:No saved information|Нет сохранённой информации)\."
    r"|\[id:(?:pf|wk|ar)_\d+\]",
    re.MULTILINE,
)
"""Pattern of the fixed text of a context, in every format and language, and of a fact's line. A test renders
every format."""


def is_from_memory(content: str, metadata: Mapping[str, Any] | None = None, name: str | None = None) -> bool:
    """Return whether a message is marked as memory, holds a context, or is the result of a memory tool."""
    if metadata and metadata.get(FROM_MEMORY) is True:
        return True
    return name in TOOLS or _RENDERED.search(content) is not None
