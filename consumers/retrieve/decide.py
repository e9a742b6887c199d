"""What a bot is shown of what is stored. No I/O, no clock."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from consumers.retrieve.context.text import stamped, tools_used
from consumers.retrieve.context.value import Context, Fact, Said, Summary, said, user_data
from consumers.retrieve.fast_history import FastMessage
from consumers.retrieve.search.service import Hit
from consumers.retrieve.verbs.shown import unexpired
from contracts.chat import Role
from contracts.settings import SettingsV1
from infra.database.facts import StoredFact
from infra.database.found import VisibleMessage
from infra.database.reading import StoredRow
from infra.database.summaries import StoredSummary

Shown = TypeVar("Shown", Fact, Said)


@dataclass(frozen=True, slots=True)
class Known:
    """What there is to make a context of.

    Attributes:
        rows: the newest messages of the conversation, oldest first.
        profile: the user's data.
        facts: all of the user's, those past their date among them.
        summaries: of the conversation, oldest first.
        hits: facts and messages found for this turn, best first.
        incomplete: something of all this could not be read.
    """

    rows: Sequence[StoredRow] = ()
    profile: Mapping[str, Any] = field(default_factory=dict)
    facts: Sequence[StoredFact] = ()
    summaries: Sequence[StoredSummary] = ()
    hits: Sequence[Hit] = ()
    incomplete: bool = False


def history(rows: Sequence[StoredRow], limit: int) -> list[FastMessage]:
    """The last `limit` messages as they were said, with a line after each answer that used tools."""
    shown: list[FastMessage] = []
    for row in rows[-limit:]:
        shown.append(_stored(row, row.role, row.content, row.name))
        if row.tool_calls:
            shown.append(_stored(row, "system", tools_used(row.tool_calls), None))
    return shown[-limit:]


def context(known: Known, settings: SettingsV1, now: datetime) -> Context:
    """All that may be put before a model; what is due by `now` has expired."""
    stamps = settings.time_stamps
    current = unexpired(known.facts, now)
    facts = [_fact(fact) for fact in current if fact.tier == "profile"]
    working = [_fact(fact) for fact in current if fact.tier == "working"]
    recent = said(known.rows, settings.recent_messages, stamps)
    facts_found = (_fact(hit.source, hit.score) for hit in known.hits if isinstance(hit.source, StoredFact))
    messages_found = (
        Said(hit.id, hit.source.role, stamped(hit.source, stamps), hit.source.name)
        for hit in known.hits
        if isinstance(hit.source, VisibleMessage)
    )
    return Context(
        facts=facts,
        summaries=[Summary(summary.text) for summary in known.summaries],
        user_data=user_data(known.profile),
        working=working,
        recent=recent,
        relevant=_best(facts_found, {fact.id for fact in (*facts, *working)}, settings.retrieval.limit),
        conversation=_best(messages_found, {each.id for each in recent}, settings.context.conversation_hits),
        incomplete=known.incomplete,
    )


def last_user_message(rows: Sequence[StoredRow]) -> str | None:
    """What the user said last, if it is there."""
    return next((row.content for row in reversed(rows) if row.role == "user"), None)


def _best(found: Iterable[Shown], elsewhere: set[str], limit: int) -> list[Shown]:
    """The first ones, of which `limit` are new: what is known already may find no room where it belongs."""
    best: list[Shown] = []
    for item in found:
        if item.id not in elsewhere:
            if limit == 0:
                break
            limit -= 1
        best.append(item)
    return best


def _fact(fact: StoredFact, score: float = 0.0) -> Fact:
    return Fact(fact.id, fact.text, fact.kind, fact.importance, fact.changed_at, fact.expires_at, score)


def _stored(row: StoredRow, role: Role, content: str, name: str | None) -> FastMessage:
    return FastMessage(
        role=role,
        content=content,
        name=name,
        seq=row.seq,
        id=row.event_id,
        sent_at=row.sent_at,
        task_id=row.task_id,
    )
