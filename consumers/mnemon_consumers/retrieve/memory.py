"""Reads a user's memory from the cache, from the projections, or from the log beyond them."""

import asyncio
import json
from collections.abc import Hashable, Sequence
from typing import Any, TypeVar

from cachetools import LRUCache
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from mnemon_consumers.retrieve.cache import CountCache, Seen, Shelf, UserCache
from mnemon_consumers.retrieve.hit_rows import HitDocuments, HitMessages, HitRows
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.decode import UnknownEvent
from mnemon_contracts.subjects import Owner, parse_owner
from mnemon_infra.broker.streams.applied_position import Position, read_log_end
from mnemon_infra.broker.streams.log_reader import TAIL_LIMIT, read_user_tail
from mnemon_infra.database.engine import Database, Query, in_time
from mnemon_infra.database.facts import fact_repository as facts
from mnemon_infra.database.facts.fact_repository import FactHistory, FactRecord
from mnemon_infra.database.memory import documents, summaries, tasks, user_memory
from mnemon_infra.database.memory.documents import DocumentEntry, StoredDocument
from mnemon_infra.database.memory.summaries import ConversationSummary, StoredSummary
from mnemon_infra.database.memory.tasks import StoredTask
from mnemon_infra.database.memory.user_memory import ConversationView, NewestMessages, OfTask, UserCounts
from mnemon_infra.database.messages import counts as message_counts
from mnemon_infra.database.messages import lookup
from mnemon_infra.database.messages.counts import CountedConversation, MessageCount
from mnemon_infra.database.messages.lookup import Surroundings
from mnemon_infra.database.projections.rows import Rows, row_of
from mnemon_infra.database.projections.writer import suppose
from mnemon_infra.database.query_batcher import QueryBatcher
from mnemon_infra.settings.store import LiveSettings
from mnemon_infra.telemetry.metrics import CACHE

LOADED = 50
"""Least number of messages that are read, so that a somewhat larger request finds them in the cache."""

MemoryQueryT = TypeVar("MemoryQueryT")
MemoryT = TypeVar("MemoryT")


class Memory:
    """The memory of each user, from the cache or the database. Methods `*_at_hand` read only the cache.

    Args:
        database: the database of the projections.
        settings: settings of all tenants.
        users: most users whose parts are cached.

    Attributes:
        count_cache: counts of messages from earlier requests.
    """

    def __init__(self, database: Database, settings: LiveSettings, users: int) -> None:
        self._database = database
        self._messages = QueryBatcher(database, user_memory.newest_messages)
        self._profiles = QueryBatcher(database, user_memory.profiles)
        self._counts = QueryBatcher(database, user_memory.counts)
        self._facts = QueryBatcher(database, facts.live_facts)
        self._histories = QueryBatcher(database, facts.histories)
        self._summaries = QueryBatcher(database, summaries.newest_summaries)
        self._tasks = QueryBatcher(database, tasks.tasks)
        self._task_results = QueryBatcher(database, user_memory.task_results)
        self._documents = QueryBatcher(database, documents.documents)
        self._facts_by_id = QueryBatcher(database, facts.facts_by_id)
        self._documents_by_id = QueryBatcher(database, documents.documents_by_id)
        self._summaries_by_id = QueryBatcher(database, summaries.summaries_by_id)
        self._surroundings = QueryBatcher(database, lookup.surroundings)
        self._message_counts = QueryBatcher(database, message_counts.message_counts)
        self._settings = settings
        self._cache = UserCache(users)
        self.count_cache = CountCache()
        self._position = Position()
        self._indexed = Position("index")
        self._noticed: LRUCache[Owner, int] = LRUCache(users)
        self._is_following = False
        self._connection: Client
        self._stream_context: JetStreamContext

    async def follow(self, connection: Client) -> None:
        """Subscribe to changes, and drop the cached parts of users who change.

        Raises:
            nats.errors.Error: the server does not answer.
        """
        self._connection = connection
        self._is_following = True
        self._stream_context = connection.jetstream()
        # The subscription bypasses FastStream, because a busy log has a notice for nearly every message.
        await connection.subscribe("changed.*.*", cb=self._changed)
        await connection.flush()
        await self._position.refresh(self._stream_context)
        await self._indexed.refresh(self._stream_context)

    def stand_at(self, position: int) -> None:
        """Fix both positions instead of following the log: all up to here is indexed, nothing follows."""
        self._position.value = self._indexed.value = position

    @property
    def applied_position(self) -> int:
        """The log position up to which every event has ended, as far as this process knows."""
        return self._position.value

    def revision(self, tenant: str) -> object:
        """Return an object that is replaced by another after each change of a user of the tenant."""
        return self._cache.revision(tenant)

    def forget(self) -> None:
        """Drop everything cached, after missed notices or a switch of generations."""
        self._cache.clear()
        self.count_cache = CountCache()

    def drop(self, owner: Owner) -> None:
        """Drop the cached parts of a user after a write."""
        self._cache.drop(owner)

    def messages_at_hand(
        self, owner: Owner, conversation: str | None, limit: int, min_seq: int | None
    ) -> Seen[ConversationView] | None:
        """Return the newest messages, if they are cached."""
        seen: Seen[ConversationView] | None = self._at_hand(owner, ("messages", conversation), min_seq)
        if seen is None:
            return None
        return seen if seen.value.complete or len(seen.value.messages) >= limit else None

    def profile_at_hand(self, owner: Owner, min_seq: int | None) -> Seen[dict[str, Any]] | None:
        """Return the user's data, if they are cached."""
        return self._at_hand(owner, "profile", min_seq)

    def facts_at_hand(self, owner: Owner, min_seq: int | None) -> Seen[list[FactRecord]] | None:
        """Return all facts, if they are cached."""
        return self._at_hand(owner, "facts", min_seq)

    def summaries_at_hand(
        self, owner: Owner, conversation: str | None, limit: int, min_seq: int | None
    ) -> Seen[list[StoredSummary]] | None:
        """Return the newest summaries, if they are cached."""
        return self._at_hand(owner, ("summaries", conversation, limit), min_seq)

    def shelf(self, owner: Owner) -> Shelf:
        """Return the user's shelf, which also has room for values that are made from cached parts."""
        return self._cache.shelf(owner)

    async def messages(
        self, owner: Owner, conversation: str | None, limit: int, min_seq: int | None
    ) -> Seen[ConversationView]:
        """Return the newest messages of a conversation.

        Raises:
            DatabaseUnavailable: the projections cannot be read now.
            nats.errors.Error: `min_seq` is given and the log cannot be read now.
        """
        at_hand = self.messages_at_hand(owner, conversation, limit, min_seq)
        if at_hand is not None:
            return at_hand

        wanted = NewestMessages(*owner, conversation, max(limit, LOADED))
        return await self._read(owner, ("messages", conversation), self._messages, wanted, min_seq)

    async def profile(self, owner: Owner, min_seq: int | None) -> Seen[dict[str, Any]]:
        """Return the user's data; raises as `messages` does."""
        return await self._kept(owner, "profile", self._profiles, owner, min_seq)

    async def facts(self, owner: Owner, min_seq: int | None) -> Seen[list[FactRecord]]:
        """Return all facts by id, including expired ones; raises as `messages` does."""
        return await self._kept(owner, "facts", self._facts, owner, min_seq)

    async def fact(self, owner: Owner, fact_id: str, min_seq: int | None) -> Seen[FactHistory | None]:
        """Return one fact with its former versions; raises as `messages` does."""
        return await self._read(owner, None, self._histories, (owner, fact_id), min_seq)

    async def summaries(
        self, owner: Owner, conversation: str | None, limit: int, min_seq: int | None
    ) -> Seen[list[StoredSummary]]:
        """Return the newest summaries of a conversation, oldest first; raises as `messages` does."""
        wanted = NewestMessages(*owner, conversation, limit)
        return await self._kept(owner, ("summaries", conversation, limit), self._summaries, wanted, min_seq)

    async def message_counts(
        self, owner: Owner, wanted: CountedConversation, min_seq: int | None
    ) -> Seen[list[MessageCount]]:
        """Count messages; does not wait for `min_seq`, and raises as `messages` does."""
        return await self._read(owner, None, self._message_counts, wanted, min_seq, wait=False)

    async def task_results(
        self, owner: Owner, task_id: str, limit: int, min_seq: int | None
    ) -> Seen[list[str]]:
        """Return the beginnings of a task's newest results, oldest first; raises as `messages` does."""
        wanted = OfTask(*owner, task_id, limit)
        return await self._kept(owner, ("task results", task_id, limit), self._task_results, wanted, min_seq)

    async def tasks(self, owner: Owner, min_seq: int | None) -> Seen[list[StoredTask]]:
        """Return the tasks, oldest first; raises as `messages` does."""
        return await self._kept(owner, "tasks", self._tasks, owner, min_seq)

    async def documents(self, owner: Owner, min_seq: int | None) -> Seen[list[DocumentEntry]]:
        """Return the documents without their texts, by id; raises as `messages` does."""
        return await self._read(owner, None, self._documents, owner, min_seq)

    async def facts_by_id(
        self, owner: Owner, ids: Sequence[str], min_seq: int | None
    ) -> Seen[list[FactRecord]]:
        """Return some facts in the order of the ids; raises as `messages` does.

        This method and the three below do not wait for `min_seq`, because the search before them has waited.
        """
        at_hand = self.facts_at_hand(owner, min_seq)
        if at_hand is not None:
            known = {fact.id: fact for fact in at_hand.value}
            return Seen([known[each] for each in dict.fromkeys(ids) if each in known], at_hand.seq)
        return await self._read(owner, None, self._facts_by_id, (owner, ids), min_seq, wait=False)

    async def documents_by_id(
        self, owner: Owner, ids: Sequence[str], min_seq: int | None
    ) -> Seen[list[StoredDocument]]:
        """Return some documents with their texts; raises as `messages` does."""
        return await self._look_up(owner, HitDocuments, self._documents_by_id, (owner, ids), min_seq)

    async def summaries_by_id(
        self, owner: Owner, ids: Sequence[str], min_seq: int | None
    ) -> Seen[list[ConversationSummary]]:
        """Return some live summaries of any conversation; raises as `messages` does."""
        return await self._read(owner, None, self._summaries_by_id, (owner, ids), min_seq, wait=False)

    async def surroundings(
        self, owner: Owner, wanted: lookup.MessageLookup, min_seq: int | None
    ) -> Seen[Surroundings]:
        """Return some messages and the messages around them; raises as `messages` does."""
        return await self._look_up(owner, HitMessages, self._surroundings, wanted, min_seq)

    async def indexed(self, owner: Owner, min_seq: int | None) -> int:
        """Return the log position up to which everything can be searched.

        The method waits a limited time until `min_seq` is projected and indexed.

        Raises:
            nats.errors.Error: the log does not answer.
        """
        indexed, _ = await asyncio.gather(
            self._reached(self._indexed, owner, min_seq), self._reached(self._position, owner, min_seq)
        )
        return indexed

    async def counts(self, owner: Owner, min_seq: int | None) -> Seen[UserCounts]:
        """Return how much is stored; raises as `messages` does."""
        # Events without a row, such as dead letters, have no notice: ask for the position.
        await self._position.refresh(self._stream_context)
        return await self._read(owner, None, self._counts, owner, min_seq)

    def _at_hand(self, owner: Owner, part: Hashable, min_seq: int | None) -> Seen[Any] | None:
        seen: Seen[Any] | None = self._cache.shelf(owner).get(part)
        if seen is None or (min_seq or 0) > seen.seq:
            CACHE.add("part", "miss")
            return None
        CACHE.add("part", "hit")
        return seen

    async def _kept(
        self,
        owner: Owner,
        part: Hashable,
        questions: QueryBatcher[MemoryQueryT, MemoryT],
        wanted: MemoryQueryT,
        min_seq: int | None,
    ) -> Seen[MemoryT]:
        at_hand = self._at_hand(owner, part, min_seq)
        return at_hand or await self._read(owner, part, questions, wanted, min_seq)

    async def _read(
        self,
        owner: Owner,
        part: Hashable | None,
        questions: QueryBatcher[MemoryQueryT, MemoryT],
        wanted: MemoryQueryT,
        min_seq: int | None,
        *,
        wait: bool = True,
    ) -> Seen[MemoryT]:
        position = await self._reached(self._position, owner, min_seq, wait=wait)
        shelf = self._cache.shelf(owner)
        seen, is_settled = await self._ask(owner, questions, wanted, min_seq, position)
        if part is not None and is_settled:
            shelf[part] = seen
        return seen

    async def _look_up(
        self,
        owner: Owner,
        kind: type[HitRows[MemoryQueryT, MemoryT]],
        questions: QueryBatcher[MemoryQueryT, MemoryT],
        wanted: MemoryQueryT,
        min_seq: int | None,
    ) -> Seen[MemoryT]:
        """Look up rows for a search; PostgreSQL is asked only for those that are not cached."""
        shelf = self._cache.found_shelf(owner)
        rows: HitRows[MemoryQueryT, MemoryT] = shelf.get(kind) or kind()
        if (min_seq or 0) > (rows.seq or 0):
            rows = kind()
        missing = rows.missing(wanted)
        if missing is None:
            CACHE.add("part", "hit")
        else:
            CACHE.add("part", "miss")
            position = await self._reached(self._position, owner, min_seq, wait=False)
            seen, is_settled = await self._ask(owner, questions, missing, min_seq, position)
            rows = rows.joined(missing, seen.value, seen.seq)
            if is_settled:
                shelf[kind] = rows.held(wanted)
                self._cache.weigh_found_shelf(owner, shelf)
        return Seen(rows.answer(wanted), rows.seq or 0)

    async def _ask(
        self,
        owner: Owner,
        questions: QueryBatcher[MemoryQueryT, MemoryT],
        wanted: MemoryQueryT,
        min_seq: int | None,
        position: int,
    ) -> tuple[Seen[MemoryT], bool]:
        """Ask PostgreSQL, and apply events beyond the position if `min_seq` requires it.

        Returns:
            The answer, and whether it may be cached until the user changes.
        """
        # Position 0 is unknown: rows may exist before the first acknowledgement.
        if (min_seq is not None and position < min_seq) or (not position and self._is_following):
            return await self._read_beyond(owner, questions.query([wanted]), position), False
        seen = Seen(await questions.ask(wanted), position)
        # Between a commit and its acknowledgement the value is already right, but the position lags behind.
        return seen, position >= self._noticed.get(owner, 0)

    async def _reached(
        self, position: Position, owner: Owner, min_seq: int | None, *, wait: bool = True
    ) -> int:
        behind = position.is_behind or position.value < (min_seq or 0)
        if wait and min_seq is not None and position.value < min_seq:
            tenant, _ = owner
            patience = self._settings.of(tenant).wait_for_log_ms / 1000
            return await position.reach(self._stream_context, min_seq, patience)
        if behind:
            return await position.refresh(self._stream_context)
        return position.value

    async def _read_beyond(self, owner: Owner, query: Query[list[MemoryT]], position: int) -> Seen[MemoryT]:
        """Read as if the user's events beyond the position were already projected."""
        end = await read_log_end(self._stream_context)
        tail = await read_user_tail(self._connection, *owner, after=position)
        rows = Rows()
        for delivery in tail:
            try:
                row = row_of(delivery)
            except (InvalidBody, UnknownEvent):
                continue  # persist will make a dead letter of it
            if row is not None:
                rows.add(row)
        (value,) = await in_time(suppose(self._database, rows, query))
        return Seen(value, tail[-1].sequence if len(tail) == TAIL_LIMIT else max(position, end))

    async def _changed(self, message: Msg) -> None:
        owner = parse_owner(message.subject)
        self._cache.drop(owner)
        if message.data:
            seq = json.loads(message.data)["seq"]
            self._noticed[owner] = max(seq, self._noticed.get(owner, 0))
            self._position.notice(seq)
            self._indexed.notice(seq)
