"""Memory of each user, for verbs and searches: read from the cache, or loaded."""

import asyncio
from collections.abc import Hashable, Sequence
from typing import Any

from nats.aio.client import Client

from mnemon_consumers.retrieve.memory.cache import CountCache, PositionedValue, UserCache, UserEntry
from mnemon_consumers.retrieve.memory.hit_rows import HitDocuments, HitMessages, HitRows
from mnemon_consumers.retrieve.memory.log_follower import LogFollower
from mnemon_consumers.retrieve.memory.projection_reader import MemoryQueryT, MemoryT, ProjectionReader
from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Database
from mnemon_infra.database.facts.fact_repository import FactHistory, FactRecord
from mnemon_infra.database.memory.documents import DocumentEntry, StoredDocument
from mnemon_infra.database.memory.summaries import ConversationSummary, StoredSummary
from mnemon_infra.database.memory.tasks import StoredTask
from mnemon_infra.database.memory.user_memory import (
    ConversationView,
    NewestMessagesQuery,
    TaskResultsQuery,
    UserCounts,
)
from mnemon_infra.database.messages import lookup
from mnemon_infra.database.messages.counts import CountedConversation, MessageCount
from mnemon_infra.database.messages.lookup import Surroundings
from mnemon_infra.database.query_batcher import QueryBatcher
from mnemon_infra.settings.store import LiveSettings
from mnemon_infra.telemetry.metrics import CACHE

LOADED = 50
"""Minimum number of messages to read, so that a slightly larger request finds them in the cache."""


class Memory:
    """The memory of each user, from the cache, or from the projections and the log tail.

    The methods `find_cached_*` read only the cache. In all methods, `min_seq` is the log position that the
    result has to reflect, None for any, and the conversation None is the current conversation. `users` is the
    maximum number of users with cached parts.

    Attributes:
        count_cache: counts of messages from earlier requests.
    """

    def __init__(self, database: Database, settings: LiveSettings, users: int) -> None:
        self._cache = UserCache(users)
        self.count_cache = CountCache()
        self._follower = LogFollower(settings, users)
        self._reader = ProjectionReader(database, self._follower)

    async def follow_changes(self, connection: Client) -> None:
        """Subscribe to notices of changes, and drop the cached parts of users whose memory changes.

        Raises:
            nats.errors.Error: the server does not answer.
        """
        await self._follower.follow_changes(connection, self.drop_user)

    def fix_position(self, position: int) -> None:
        """Set the applied positions of `persist` and `index`, for a snapshot, which follows no log."""
        self._follower.fix_position(position)

    @property
    def applied_position(self) -> int:
        """Return the applied position of `persist`, as far as this process knows."""
        return self._follower.applied_position

    def get_revision(self, tenant: str) -> object:
        """Return an object that is replaced whenever the memory of a user of the tenant may have changed."""
        return self._cache.get_revision(tenant)

    def drop_all(self) -> None:
        """Drop everything cached. Call this after missed notices or a swap."""
        self._cache.clear()
        self.count_cache = CountCache()

    def drop_user(self, owner: Owner) -> None:
        """Drop the cached parts of a user whose memory has changed."""
        self._cache.drop_user(owner)

    def find_cached_messages(
        self, owner: Owner, conversation: str | None, limit: int, min_seq: int | None
    ) -> PositionedValue[ConversationView] | None:
        """Return at least the `limit` newest messages, or all if there are fewer.

        Older messages that the view leaves out because the newer ones are long (`left_out`) count too. Return
        None if the cache lacks some messages, or reflects a log position before `min_seq`.
        """
        measured = self._cache.get_message_entry(owner).get(conversation)
        seen = _select_current(measured.view if measured else None, min_seq)
        if seen is None:
            return None
        view = seen.value
        return seen if view.complete or len(view.messages) + view.left_out >= limit else None

    def find_cached_profile(
        self, owner: Owner, min_seq: int | None
    ) -> PositionedValue[dict[str, Any]] | None:
        """Return the user's data; None if not cached, or cached as of a position before `min_seq`."""
        return self._find_cached_part(owner, "profile", min_seq)

    def find_cached_facts(
        self, owner: Owner, min_seq: int | None
    ) -> PositionedValue[list[FactRecord]] | None:
        """Return all facts; None if not cached, or cached as of a position before `min_seq`."""
        return self._find_cached_part(owner, "facts", min_seq)

    def find_cached_summaries(
        self, owner: Owner, conversation: str | None, limit: int, min_seq: int | None
    ) -> PositionedValue[list[StoredSummary]] | None:
        """Return the newest summaries; None if not cached, or cached as of a position before `min_seq`."""
        return self._find_cached_part(owner, ("summaries", conversation, limit), min_seq)

    def get_entry(self, owner: Owner) -> UserEntry:
        """Return the user's entry in the cache. Callers may add values that they make from cached parts."""
        return self._cache.get_entry(owner)

    async def load_messages(
        self, owner: Owner, conversation: str | None, limit: int, min_seq: int | None
    ) -> PositionedValue[ConversationView]:
        """Return at least the `limit` newest messages of a conversation, or all if there are fewer.

        Old messages are left out if the newer ones are very long, see `VIEW_BYTES`.

        Raises:
            DatabaseUnavailable: the projections cannot be read now.
            DatabaseRefused: the database refuses a value, such as one of an event beyond the applied
                position.
            nats.errors.Error: the applied position or the log is needed, and cannot be read now.
        """
        cached = self.find_cached_messages(owner, conversation, limit, min_seq)
        if cached is not None:
            return cached

        query = NewestMessagesQuery(*owner, conversation, max(limit, LOADED))
        position = await self._follower.await_applied_position(owner, min_seq)
        entry = self._cache.get_message_entry(owner)
        reading = await self._reader.read_part(owner, self._reader.messages, query, min_seq, position)
        if reading.is_settled:
            self._cache.keep_messages(owner, entry, conversation, reading.result)
        return reading.result

    async def load_messages_before(
        self, owner: Owner, conversation: str | None, limit: int, before: int, min_seq: int | None
    ) -> PositionedValue[ConversationView]:
        """Return the newest messages before a log position; raises as `load_messages` does."""
        query = NewestMessagesQuery(*owner, conversation, limit, before)
        return await self._load_part(owner, self._reader.messages, query, min_seq)

    async def load_profile(self, owner: Owner, min_seq: int | None) -> PositionedValue[dict[str, Any]]:
        """Return the user's data; raises as `load_messages` does."""
        return await self._find_or_load_part(owner, "profile", self._reader.profiles, owner, min_seq)

    async def load_facts(self, owner: Owner, min_seq: int | None) -> PositionedValue[list[FactRecord]]:
        """Return all facts, expired facts included, ordered by id; raises as `load_messages` does."""
        return await self._find_or_load_part(owner, "facts", self._reader.facts, owner, min_seq)

    async def load_fact_history(
        self, owner: Owner, fact_id: str, min_seq: int | None
    ) -> PositionedValue[FactHistory | None]:
        """Return a fact with its newest former versions; raises as `load_messages` does.

        The result is None for a fact that was never saved or has ended.
        """
        return await self._load_part(owner, self._reader.histories, (owner, fact_id), min_seq)

    async def load_summaries(
        self, owner: Owner, conversation: str | None, limit: int, min_seq: int | None
    ) -> PositionedValue[list[StoredSummary]]:
        """Return the newest summaries of a conversation, oldest first; raises as `load_messages` does."""
        query = NewestMessagesQuery(*owner, conversation, limit)
        return await self._find_or_load_part(
            owner, ("summaries", conversation, limit), self._reader.summaries, query, min_seq
        )

    async def load_message_counts(
        self, owner: Owner, query: CountedConversation, min_seq: int | None
    ) -> PositionedValue[list[MessageCount]]:
        """Return counts of older messages without a wait for `min_seq`; raises as `load_messages` does."""
        return await self._load_part(owner, self._reader.message_counts, query, min_seq, wait=False)

    async def load_task_results(
        self, owner: Owner, task_id: str, limit: int, min_seq: int | None
    ) -> PositionedValue[list[str]]:
        """Return the beginnings of a task's newest results, oldest first; raises as `load_messages` does."""
        query = TaskResultsQuery(*owner, task_id, limit)
        return await self._find_or_load_part(
            owner, ("task results", task_id, limit), self._reader.task_results, query, min_seq
        )

    async def load_tasks(self, owner: Owner, min_seq: int | None) -> PositionedValue[list[StoredTask]]:
        """Return the tasks, oldest first; raises as `load_messages` does."""
        return await self._find_or_load_part(owner, "tasks", self._reader.tasks, owner, min_seq)

    async def load_documents(self, owner: Owner, min_seq: int | None) -> PositionedValue[list[DocumentEntry]]:
        """Return the documents without their texts, ordered by id; raises as `load_messages` does."""
        return await self._load_part(owner, self._reader.documents, owner, min_seq)

    async def load_facts_by_id(
        self, owner: Owner, ids: Sequence[str], min_seq: int | None
    ) -> PositionedValue[list[FactRecord]]:
        """Return the facts with these ids, in the order of the ids; raises as `load_messages` does.

        Like the other lookups of a search (`load_documents_by_id`, `load_summaries_by_id`,
        `load_surroundings` and `load_messages_of_period`), this method does not wait for `min_seq`: the verb
        waits before the search. Events that are missing are read from the log.
        """
        cached = self.find_cached_facts(owner, min_seq)
        if cached is not None:
            known = {fact.id: fact for fact in cached.value}
            return PositionedValue([known[each] for each in dict.fromkeys(ids) if each in known], cached.seq)
        return await self._load_part(owner, self._reader.facts_by_id, (owner, ids), min_seq, wait=False)

    async def load_documents_by_id(
        self, owner: Owner, ids: Sequence[str], min_seq: int | None
    ) -> PositionedValue[list[StoredDocument]]:
        """Return documents by id, texts included, ordered by id; raises as `load_messages` does."""
        return await self._load_hits(owner, HitDocuments, self._reader.documents_by_id, (owner, ids), min_seq)

    async def load_summaries_by_id(
        self, owner: Owner, ids: Sequence[str], min_seq: int | None
    ) -> PositionedValue[list[ConversationSummary]]:
        """Return the current summaries with these ids, in log order; raises as `load_messages` does."""
        return await self._load_part(owner, self._reader.summaries_by_id, (owner, ids), min_seq, wait=False)

    async def load_surroundings(
        self, owner: Owner, query: lookup.MessageLookup, min_seq: int | None
    ) -> PositionedValue[Surroundings]:
        """Return visible messages by id, and messages around the anchors; raises as `load_messages` does."""
        return await self._load_hits(owner, HitMessages, self._reader.surroundings, query, min_seq)

    async def load_messages_of_period(
        self, owner: Owner, query: lookup.PeriodLookup, min_seq: int | None
    ) -> PositionedValue[list[lookup.VisibleMessage]]:
        """Return visible messages of a period, at most `query.limit`; raises as `load_messages` does."""
        return await self._load_part(owner, self._reader.messages_of_periods, query, min_seq, wait=False)

    async def await_indexed_position(self, owner: Owner, min_seq: int | None) -> int:
        """Return the log position up to which all events are indexed for search.

        The method waits a limited time until `min_seq` is projected and indexed.

        Raises:
            nats.errors.Error: the log does not answer.
        """
        indexed, _ = await asyncio.gather(
            self._follower.await_indexed_position(owner, min_seq),
            self._follower.await_applied_position(owner, min_seq),
        )
        return indexed

    async def load_counts(self, owner: Owner, min_seq: int | None) -> PositionedValue[UserCounts]:
        """Return counts of messages and conversations; raises as `load_messages` does."""
        # Events without a row, such as dead letters, cause no notice, so the server is asked for the
        # position.
        await self._follower.refresh_applied_position()
        return await self._load_part(owner, self._reader.counts, owner, min_seq)

    def _find_cached_part(
        self, owner: Owner, key: Hashable, min_seq: int | None
    ) -> PositionedValue[Any] | None:
        return _select_current(self._cache.get_entry(owner).get(key), min_seq)

    async def _find_or_load_part(
        self,
        owner: Owner,
        key: Hashable,
        part: QueryBatcher[MemoryQueryT, MemoryT],
        query: MemoryQueryT,
        min_seq: int | None,
    ) -> PositionedValue[MemoryT]:
        cached = self._find_cached_part(owner, key, min_seq)
        return cached or await self._load_part(owner, part, query, min_seq, key=key)

    async def _load_part(
        self,
        owner: Owner,
        part: QueryBatcher[MemoryQueryT, MemoryT],
        query: MemoryQueryT,
        min_seq: int | None,
        *,
        key: Hashable | None = None,
        wait: bool = True,
    ) -> PositionedValue[MemoryT]:
        """Read a part from the projections; cache a settled part if a key is given."""
        position = await self._follower.await_applied_position(owner, min_seq, wait=wait)
        entry = self._cache.get_entry(owner)
        reading = await self._reader.read_part(owner, part, query, min_seq, position)
        if key is not None and reading.is_settled:
            entry[key] = reading.result
        return reading.result

    async def _load_hits(
        self,
        owner: Owner,
        kind: type[HitRows[MemoryQueryT, MemoryT]],
        part: QueryBatcher[MemoryQueryT, MemoryT],
        query: MemoryQueryT,
        min_seq: int | None,
    ) -> PositionedValue[MemoryT]:
        """Return rows for a search; read only rows that are not cached."""
        entry = self._cache.get_hit_entry(owner)
        rows: HitRows[MemoryQueryT, MemoryT] = entry.get(kind) or kind()
        if (min_seq or 0) > (rows.seq or 0):
            rows = kind()
        missing = rows.find_missing(query)
        if missing is None:
            CACHE.add("part", "hit")
            return PositionedValue(rows.select(query), rows.seq or 0)
        CACHE.add("part", "miss")
        position = await self._follower.await_applied_position(owner, min_seq, wait=False)
        reading = await self._reader.read_part(owner, part, missing, min_seq, position)
        merged = rows.merge(missing, reading.result.value, reading.result.seq)
        if reading.is_settled:
            entry[kind] = merged.trim(query)
            self._cache.weigh_hit_entry(owner, entry)
        if rows.seq is None:  # nothing was cached, so everything was read
            return reading.result
        return PositionedValue(merged.select(query), merged.seq or 0)


def _select_current(
    seen: PositionedValue[MemoryT] | None, min_seq: int | None
) -> PositionedValue[MemoryT] | None:
    """Return a cached part, and count the hit or miss.

    Returns:
        None if the part is not cached, or reflects a log position before `min_seq`.
    """
    if seen is None or (min_seq or 0) > seen.seq:
        CACHE.add("part", "miss")
        return None
    CACHE.add("part", "hit")
    return seen
