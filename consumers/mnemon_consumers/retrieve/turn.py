"""Turn of a context: the request, and the parts of the user's memory that are read for it."""

import asyncio
from collections.abc import Awaitable
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeVar

import nats.errors
import structlog

from mnemon_consumers.retrieve.context.contents import SectionKind
from mnemon_consumers.retrieve.context.coverage import (
    CountedMessages,
    find_count_edges,
    find_last_covered,
    has_all_unsummarised,
)
from mnemon_consumers.retrieve.memory.cache import PositionedValue
from mnemon_consumers.retrieve.memory.memory import LOADED, Memory
from mnemon_consumers.retrieve.search.service import Search
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.subjects import Owner
from mnemon_contracts.verbs.ask import ContextV1
from mnemon_contracts.verbs.tools import Scope
from mnemon_infra.database.engine import DatabaseRefused, DatabaseUnavailable
from mnemon_infra.database.facts.fact_repository import FactRecord
from mnemon_infra.database.memory.summaries import StoredSummary
from mnemon_infra.database.memory.user_memory import ConversationView
from mnemon_infra.database.messages.counts import CountedConversation

log = structlog.get_logger("context")

TOKENS_PER_MESSAGE: Final = 10
"""Number of tokens of a short message: a timestamp alone has as many. The budget divided by this number
limits the messages without a summary that are read, see `read_unsummarised_messages`."""

MOST_READ: Final = 1000
"""Maximum number of messages to read, for any budget."""

TurnT = TypeVar("TurnT")
Missing = dict[str, Exception]
"""Sections that could not be read, each with its error."""

_EXPECTED: Final = (DatabaseUnavailable, DatabaseRefused, nats.errors.Error, TimeoutError)


class ContextTurn(NamedTuple):
    """A request for a context, with the settings and the time that apply to its answer.

    Without `search`, the sections that a search fills stay empty.
    """

    owner: Owner
    request: ContextV1
    settings: SettingsV1
    now: datetime
    memory: Memory
    search: Search | None

    @property
    def messages(self) -> tuple[Owner, str | None, int, int | None]:
        """Return the arguments of `Memory.load_messages` that read the newest messages."""
        return self.owner, self.request.conversation, self.settings.recent_messages, self.request.min_seq

    @property
    def unsummarised(self) -> tuple[Owner, str | None, int, int | None]:
        """Return the arguments of `Memory.load_messages` that read the messages without a summary.

        The maximum number of messages depends on the budget, see `read_unsummarised_messages`.
        """
        budget = self.request.budget or self.settings.context.budget
        limit = min(MOST_READ, max(LOADED, budget // TOKENS_PER_MESSAGE, self.settings.recent_messages))
        return self.owner, self.request.conversation, limit, self.request.min_seq

    @property
    def summaries(self) -> tuple[Owner, str | None, int, int | None]:
        """Return the arguments of `Memory.load_summaries` that read the newest summaries.

        The maximum number of summaries is one more than the greater of the settings `context.summaries` and
        `compaction.merge_above`.
        """
        limit = max(self.settings.context.summaries, self.settings.compaction.merge_above) + 1
        return self.owner, self.request.conversation, limit, self.request.min_seq

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Return the scopes to search: the scopes of the sections that may be shown."""
        shown = self.settings.context
        scopes: list[Scope] = []
        if shown.sections.relevant:
            scopes.append("memories")
        if shown.sections.conversation and shown.conversation_hits:
            scopes.append("messages")
        if shown.sections.documents:
            scopes.append("documents")
        return tuple(scopes)


class ContextParts(NamedTuple):
    """Parts of a user's memory; None for a part that failed or is not read yet."""

    messages: PositionedValue[ConversationView] | None
    profile: PositionedValue[dict[str, Any]] | None
    facts: PositionedValue[list[FactRecord]] | None
    summaries: PositionedValue[list[StoredSummary]] | None
    counted: CountedMessages | None = None


def find_cached_parts(turn: ContextTurn) -> ContextParts | None:
    """Read all parts from the cache, without a query to the database; return None if a part is missing."""
    owner, request, memory = turn.owner, turn.request, turn.memory
    messages = memory.find_cached_messages(*turn.messages)
    profile = memory.find_cached_profile(owner, request.min_seq)
    facts = memory.find_cached_facts(owner, request.min_seq)
    summaries = memory.find_cached_summaries(*turn.summaries)
    if messages is None or profile is None or facts is None or summaries is None:
        return None
    if not has_all_unsummarised(messages.value, summaries.value):
        messages = memory.find_cached_messages(*turn.unsummarised)
        if messages is None:
            return None
    counted = memory.count_cache.find_counts(owner, messages.value, find_count_edges(summaries.value))
    return None if counted is None else ContextParts(messages, profile, facts, summaries, counted)


async def read_parts(turn: ContextTurn, until: float, missing: Missing) -> ContextParts:
    """Read all parts except `counted`.

    A part that fails, or is not read by the time `until` of the event loop, is None and added to `missing`.
    """
    owner, min_seq, memory = turn.owner, turn.request.min_seq, turn.memory
    has_many_unsummarised = memory.count_cache.has_many_unsummarised(owner, turn.request.conversation)
    wanted = turn.unsummarised if has_many_unsummarised else turn.messages
    return ContextParts(
        *await asyncio.gather(
            await_read(memory.load_messages(*wanted), until, missing, "recent"),
            await_read(memory.load_profile(owner, min_seq), until, missing, "user_data"),
            await_read(memory.load_facts(owner, min_seq), until, missing, "facts", "working"),
            await_read(memory.load_summaries(*turn.summaries), until, missing, "summaries"),
        )
    )


async def read_unsummarised_messages(
    turn: ContextTurn, parts: ContextParts, until: float, missing: Missing
) -> ContextParts:
    """Return the parts with the messages after the newest summary, and with counts of older messages.

    The maximum number of messages to read is the budget divided by `TOKENS_PER_MESSAGE`, but at least
    `LOADED` and the setting `recent_messages`, and at most `MOST_READ`. Earlier messages are only counted.
    A read that fails, or has not ended by the time `until` of the event loop, leaves its part as it was, and
    is added to `missing`. Parts without messages are returned unchanged.
    """
    messages, memory = parts.messages, turn.memory
    if messages is None:
        return parts
    summaries = parts.summaries.value if parts.summaries else []
    if not has_all_unsummarised(messages.value, summaries):
        # Rare: summaries are behind, or switched off.
        messages = (
            await await_read(memory.load_messages(*turn.unsummarised), until, missing, "recent") or messages
        )
    end = find_last_covered(summaries)
    unsummarised = sum(row.seq > end for row in messages.value.messages)
    memory.count_cache.record_unsummarised(
        turn.owner, turn.request.conversation, is_many=unsummarised >= LOADED
    )
    counting = _count_unread(turn, messages, find_count_edges(summaries))
    return parts._replace(messages=messages, counted=await await_read(counting, until, missing, "recent"))


async def _count_unread(
    turn: ContextTurn, seen: PositionedValue[ConversationView], edges: tuple[int, ...]
) -> CountedMessages:
    """Return counts of older messages, from the cache or the projections; `seen` may have some of these.

    `edges` are the log positions at which the counts begin, see `find_count_edges`.
    """
    owner, view, memory, cache = turn.owner, seen.value, turn.memory, turn.memory.count_cache
    counted = cache.find_counts(owner, view, edges)
    if counted is None:
        # The count ends in the middle of the view, so that it stays usable until as many new messages have
        # arrived.
        below = view.messages[len(view.messages) // 2].seq
        wanted = CountedConversation(*owner, view.conversation, edges, below)
        counts = await memory.load_message_counts(owner, wanted, turn.request.min_seq)
        counted = CountedMessages(below, edges, counts.value)
        cache.record_counts(owner, view, counted, min(seen.seq, counts.seq))
    return counted


async def await_read(
    read: Awaitable[TurnT], until: float, missing: Missing, *sections: SectionKind
) -> TurnT | None:
    """Wait for a read, until the time `until` of the event loop.

    On failure, add `sections` to `missing` and return None.
    """
    try:
        async with asyncio.timeout_at(until):
            return await read
    except Exception as error:
        expected = isinstance(error, _EXPECTED)
        log.warning(
            "context read failed",
            sections=sections,
            error=repr(error),
            exc_info=None if expected else error,
        )
        missing.update(dict.fromkeys(sections, error))
        return None
