"""One turn of a context: what is asked for, and what is read of the user for it."""

import asyncio
from collections.abc import Awaitable
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeVar

import nats.errors
import structlog

from consumers.retrieve.cache import Seen
from consumers.retrieve.context.coverage import CountedMessages, count_edges, has_whole_tail, last_covered
from consumers.retrieve.context.value import Section
from consumers.retrieve.memory import LOADED, Memory
from consumers.retrieve.search.service import Search
from contracts.ask import ContextV1
from contracts.settings import SettingsV1
from contracts.tools import Scope
from infra.database.engine import DatabaseRefused, DatabaseUnavailable
from infra.database.facts import StoredFact
from infra.database.message_counts import CountedConversation
from infra.database.reading import ConversationView, Owner
from infra.database.summaries import StoredSummary

log = structlog.get_logger("context")

TOKENS_PER_MESSAGE: Final = 10
"""Few messages take less of the budget: a time stamp alone has as many. So a budget says how many are read at
most where no summary covers them; those before them are counted."""

MOST_READ: Final = 1000
"""Messages that are read at most, whatever the budget."""

Value = TypeVar("Value")
Missing = dict[str, Exception]
"""Sections that something failed for, and what it was."""

_EXPECTED: Final = (DatabaseUnavailable, DatabaseRefused, nats.errors.Error, TimeoutError)


class Turn(NamedTuple):
    """What is asked for, under which settings, and when; whom it is asked of.

    Without `search` nothing relevant is looked for.
    """

    owner: Owner
    request: ContextV1
    settings: SettingsV1
    now: datetime
    memory: Memory
    search: Search | None

    @property
    def messages(self) -> tuple[Owner, str | None, int, int | None]:
        return self.owner, self.request.conversation, self.settings.recent_messages, self.request.min_seq

    @property
    def tail(self) -> tuple[Owner, str | None, int, int | None]:
        budget = self.request.budget or self.settings.context.budget
        limit = min(MOST_READ, max(LOADED, budget // TOKENS_PER_MESSAGE, self.settings.recent_messages))
        return self.owner, self.request.conversation, limit, self.request.min_seq

    @property
    def summaries(self) -> tuple[Owner, str | None, int, int | None]:
        """All that count, and not only those that are shown: the others are accounted for."""
        limit = max(self.settings.context.summaries, self.settings.compaction.merge_above) + 1
        return self.owner, self.request.conversation, limit, self.request.min_seq

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Where to look for what is relevant: nowhere for what is not to be shown."""
        shown = self.settings.context
        scopes: list[Scope] = []
        if shown.sections.relevant:
            scopes.append("memories")
        if shown.sections.conversation and shown.conversation_hits:
            scopes.append("messages")
        if shown.sections.documents:
            scopes.append("documents")
        return tuple(scopes)


class Parts(NamedTuple):
    """What was read; None where that failed, or is yet to come."""

    messages: Seen[ConversationView] | None
    profile: Seen[dict[str, Any]] | None
    facts: Seen[list[StoredFact]] | None
    summaries: Seen[list[StoredSummary]] | None
    counted: CountedMessages | None = None


def cached_parts(turn: Turn) -> Parts | None:
    """All parts from the cache, without a query; None where one of them is not there."""
    owner, request, memory = turn.owner, turn.request, turn.memory
    messages = memory.messages_at_hand(*turn.messages)
    profile = memory.profile_at_hand(owner, request.min_seq)
    facts = memory.facts_at_hand(owner, request.min_seq)
    summaries = memory.summaries_at_hand(*turn.summaries)
    if messages is None or profile is None or facts is None or summaries is None:
        return None
    if not has_whole_tail(messages.value, summaries.value):
        messages = memory.messages_at_hand(*turn.tail)
        if messages is None:
            return None
    counted = memory.count_cache.find(owner, messages.value, count_edges(summaries.value))
    return None if counted is None else Parts(messages, profile, facts, summaries, counted)


async def read_parts(turn: Turn, until: float, missing: Missing) -> Parts:
    """Read all parts until then, a time of the loop, but for `counted`; those that fail are in `missing`."""
    owner, min_seq, memory = turn.owner, turn.request.min_seq, turn.memory
    has_long_tail = memory.count_cache.has_long_tail(owner, turn.request.conversation)
    wanted = turn.tail if has_long_tail else turn.messages
    return Parts(
        *await asyncio.gather(
            attempt(memory.messages(*wanted), until, missing, "recent"),
            attempt(memory.profile(owner, min_seq), until, missing, "user_data"),
            attempt(memory.facts(owner, min_seq), until, missing, "facts", "working"),
            attempt(memory.summaries(*turn.summaries), until, missing, "summaries"),
        )
    )


async def read_tail(turn: Turn, parts: Parts, until: float, missing: Missing) -> Parts:
    """Read on until messages are covered by summaries, and count those that are not read."""
    messages, memory = parts.messages, turn.memory
    if messages is None:
        return parts
    summaries = parts.summaries.value if parts.summaries else []
    if not has_whole_tail(messages.value, summaries):
        # Rare: summaries are behind, or switched off.
        messages = await attempt(memory.messages(*turn.tail), until, missing, "recent") or messages
    end = last_covered(summaries)
    tail = sum(row.seq > end for row in messages.value.messages)
    memory.count_cache.note_tail(turn.owner, turn.request.conversation, is_long=tail >= LOADED)
    counting = _count_unread(turn, messages, count_edges(summaries))
    return parts._replace(messages=messages, counted=await attempt(counting, until, missing, "recent"))


async def _count_unread(turn: Turn, seen: Seen[ConversationView], edges: tuple[int, ...]) -> CountedMessages:
    """Count the messages that the view lacks, unless they were counted before."""
    owner, view, memory = turn.owner, seen.value, turn.memory
    counted = memory.count_cache.find(owner, view, edges)
    if counted is None:
        # To the middle of what was read, so that the number serves for as many messages more.
        below = view.messages[len(view.messages) // 2].seq
        wanted = CountedConversation(*owner, view.conversation, edges, below)
        counts = await memory.message_counts(owner, wanted, turn.request.min_seq)
        counted = CountedMessages(below, edges, counts.value)
        memory.count_cache.keep(owner, view, counted, min(seen.seq, counts.seq))
    return counted


async def attempt(read: Awaitable[Value], until: float, missing: Missing, *sections: Section) -> Value | None:
    """What is read until then, a time of the loop; after a failure of any kind its sections are missing."""
    try:
        async with asyncio.timeout_at(until):
            return await read
    except Exception as error:
        expected = isinstance(error, _EXPECTED)
        log.warning(
            "a part of the context is missing",
            sections=sections,
            error=repr(error),
            exc_info=None if expected else error,
        )
        missing.update(dict.fromkeys(sections, error))
        return None
