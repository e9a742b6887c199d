"""Selection of the stored content that a bot is shown. No I/O, no clock."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeVar

from mnemon_consumers.retrieve.context.contents import (
    Context,
    ContextFact,
    ContextMessage,
    ContextSummary,
    CurrentTime,
    Passage,
    build_messages,
    build_user_data,
)
from mnemon_consumers.retrieve.context.coverage import ConversationExtent, CountedMessages, is_covered
from mnemon_consumers.retrieve.context.language import detect_language
from mnemon_consumers.retrieve.context.text import add_time_stamp, format_tools_used, stamp_message
from mnemon_consumers.retrieve.context.wording import WORDINGS, ContextLanguage
from mnemon_consumers.retrieve.history_reply import HistoryMessage
from mnemon_consumers.retrieve.search.facts.ranking import HIGH
from mnemon_consumers.retrieve.search.hits import RankedHit
from mnemon_contracts.events.chat import Role
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_infra.database.facts.fact_repository import FactRecord
from mnemon_infra.database.memory.documents import StoredDocument
from mnemon_infra.database.memory.summaries import StoredSummary
from mnemon_infra.database.memory.user_memory import ConversationView, StoredRow
from mnemon_infra.database.messages.lookup import VisibleMessage

ContextItem = TypeVar("ContextItem", ContextFact, ContextMessage)

DETECTED_MESSAGES: Final = 50
"""Maximum number of newest messages from which the language is detected; a read loads at least as many."""


@dataclass(frozen=True, slots=True)
class ContextSources:
    """Sources of a context: the parts of memory that were read for it.

    Attributes:
        view: the newest messages of the conversation; None if they could not be read.
        counted: counts of the messages before a log position, some of which `view` may have; None if they
            could not be counted.
        profile: the user's data.
        facts: all facts of the user, including expired facts.
        summaries: the newest live summaries of the conversation, oldest first.
        hits: facts, messages and documents found for this turn, best first.
        incomplete: whether a part could not be read or searched, or was searched by words only.
    """

    view: ConversationView | None = None
    counted: CountedMessages | None = None
    profile: Mapping[str, Any] = field(default_factory=dict)
    facts: Sequence[FactRecord] = ()
    summaries: Sequence[StoredSummary] = ()
    hits: Sequence[RankedHit] = ()
    incomplete: bool = False


def build_history(rows: Sequence[StoredRow], limit: int) -> list[HistoryMessage]:
    """Return the newest messages, each followed by an entry that names its tools if it used any.

    At most `limit` entries are returned. The first entry is a message, so that a request for the messages
    before it misses none. If the limit has room for an entry with tools but not for its message, both are
    left out. With a limit of 1, the newest message is returned without its tools.
    """
    shown: list[HistoryMessage] = []
    for row in rows[-limit:]:
        shown.append(_build_history_message(row, row.role, row.content, row.name))
        if row.tool_calls:
            shown.append(_build_history_message(row, "system", format_tools_used(row.tool_calls), None))
    newest, older = shown[-limit:], shown[:-limit]
    if older and older[-1].seq == newest[0].seq:
        return newest[1:] or older[-1:]
    return newest


def build_context(known: ContextSources, settings: SettingsV1, now: datetime) -> Context:
    """Return the items that a model may be shown under the settings, without facts expired by `now`."""
    shown, stamps = settings.context, settings.time_stamps
    rows = known.view.messages if known.view else ()
    current = select_unexpired_facts(known.facts, now)
    language = _choose_language(rows, current, known.summaries, settings)
    profile = [_build_fact(fact) for fact in current if fact.tier == "profile"]
    facts = [fact for fact in profile if shown.key_facts == "all" or fact.importance >= HIGH]
    working = [_build_fact(fact) for fact in current if fact.tier == "working"]
    due = select_due_messages(rows, known.summaries, settings.recent_messages)
    recent_rows = due if shown.recent_limit is None else due[-shown.recent_limit :]
    recent = build_messages(recent_rows, stamps, WORDINGS[language])
    newest = known.summaries[max(0, len(known.summaries) - shown.summaries) :]
    extent = _build_extent(known)
    facts_found = (
        _build_fact(hit.source, hit.score) for hit in known.hits if isinstance(hit.source, FactRecord)
    )
    messages_found = (
        ContextMessage(hit.id, hit.source.role, stamp_message(hit.source, stamps), hit.source.name)
        for hit in known.hits
        if isinstance(hit.source, VisibleMessage)
    )
    relevant = _select_best(facts_found, {fact.id for fact in (*facts, *working)}, settings.retrieval.limit)
    given = {fact.id for fact in (*facts, *relevant)}
    return Context(
        facts=facts,
        summaries=[ContextSummary(each.text, each.from_seq, each.to_seq) for each in newest],
        user_data=build_user_data(known.profile),
        working=working,
        recent=recent,
        relevant=relevant,
        documents=_build_passages(known.hits, settings.retrieval.limit),
        conversation=_select_best(messages_found, {each.id for each in recent}, shown.conversation_hits),
        current_time=CurrentTime(clock) if (clock := format_current_time(settings, now)) else None,
        language=language,
        incomplete=known.incomplete,
        extent=extent,
        conversation_limit=shown.conversation_hits,
        not_considered={
            "facts": sum(fact.id not in given for fact in profile),
            "summaries": len(known.summaries) - len(newest),
            "recent": (extent.count_unread(due) if extent else 0) + len(due) - len(recent_rows),
        },
    )


def select_unexpired_facts(facts: Iterable[FactRecord], at: datetime) -> list[FactRecord]:
    """Return the facts that expire after `at`, or never."""
    return [fact for fact in facts if fact.expires_at is None or fact.expires_at > at]


def select_due_messages(
    rows: Sequence[StoredRow], summaries: Sequence[StoredSummary], at_least: int
) -> list[StoredRow]:
    """Return the messages for `recent`: the newest `at_least` messages, and others that no summary covers."""
    first_newest = len(rows) - at_least
    return [
        row for place, row in enumerate(rows) if place >= first_newest or not is_covered(row.seq, summaries)
    ]


def format_current_time(settings: SettingsV1, now: datetime) -> str | None:
    """Return the date and time in the form that a context shows; None if the settings hide it."""
    return add_time_stamp(now, "", settings.time_stamps).strip() if settings.context.current_time else None


def find_last_user_message(rows: Sequence[StoredRow]) -> str | None:
    """Return the user's last message in these rows; None if no row is of the user."""
    return next((row.content for row in reversed(rows) if row.role == "user"), None)


def _select_best(items: Iterable[ContextItem], shown_ids: set[str], limit: int) -> list[ContextItem]:
    """Return the first items, up to `limit` of them besides the items whose ids are in `shown_ids`."""
    best: list[ContextItem] = []
    for item in items:
        if item.id not in shown_ids:
            if limit == 0:
                break
            limit -= 1
        best.append(item)
    return best


def _build_passages(hits: Iterable[RankedHit], limit: int) -> list[Passage]:
    passages = [
        Passage(hit.text, hit.source.title or hit.id, hit.source.source)
        for hit in hits
        if isinstance(hit.source, StoredDocument)
    ]
    return passages[:limit]


def _choose_language(
    rows: Sequence[StoredRow],
    facts: Iterable[FactRecord],
    summaries: Iterable[StoredSummary],
    settings: SettingsV1,
) -> ContextLanguage:
    if settings.context.language != "auto":
        return settings.context.language
    said_lately = [row.content for row in rows[-DETECTED_MESSAGES:] if row.role == "user"]
    return detect_language(
        said_lately, [*(fact.text for fact in facts), *(summary.text for summary in summaries)]
    )


def _build_extent(known: ContextSources) -> ConversationExtent | None:
    if known.view is None or known.counted is None:
        return None
    found = {
        hit.id: hit.source.seq
        for hit in known.hits
        if isinstance(hit.source, VisibleMessage) and hit.source.conversation == known.view.conversation
    }
    return ConversationExtent.combine(known.view, known.summaries, known.counted, found)


def _build_fact(fact: FactRecord, score: float = 0.0) -> ContextFact:
    return ContextFact(
        fact.id, fact.text, fact.kind, fact.importance, fact.changed_at, fact.expires_at, score
    )


def _build_history_message(row: StoredRow, role: Role, content: str, name: str | None) -> HistoryMessage:
    return HistoryMessage(
        role=role,
        content=content,
        name=name,
        seq=row.seq,
        id=row.event_id,
        sent_at=row.sent_at,
        task_id=row.task_id,
    )
