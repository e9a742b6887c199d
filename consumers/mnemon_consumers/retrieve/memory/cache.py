"""Cache of the parts of users' memory that were read. A change of a user's memory drops the user's parts."""

import sys
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

from cachetools import LRUCache

from mnemon_consumers.retrieve.context.coverage import CountedMessages
from mnemon_consumers.retrieve.memory.hit_rows import ROW_BYTES, HitRows, estimate_memory
from mnemon_contracts.subjects import Owner
from mnemon_infra.database.memory.user_memory import ConversationView

COUNTED_CONVERSATIONS: Final = 10_000
"""Maximum number of conversations whose counts are cached; each takes a few hundred bytes."""

FOUND_ROWS: Final = 64 * 1024 * 1024
"""Maximum number of bytes of rows that searches of all users looked up."""

NEWEST_MESSAGES: Final = 256 * 1024 * 1024
"""Maximum number of bytes of the newest messages; usually enough for 50 messages of 7,000 users."""

REVISED_TENANTS: Final = 10_000
"""Maximum number of tenants whose revisions are cached; see `UserCache.get_revision`."""

Cached = TypeVar("Cached")
Entry = TypeVar("Entry")
Key = TypeVar("Key")
Value = TypeVar("Value")

UserEntry = dict[Hashable, Any]
"""Cached parts of one user's memory, by key."""

HitEntry = dict[type[HitRows[Any, Any]], HitRows[Any, Any]]
"""Rows that searches of one user looked up, by kind."""


@dataclass(frozen=True, slots=True)
class PositionedValue(Generic[Cached]):
    """A value, and the log position that it reflects."""

    value: Cached
    seq: int


class MeasuredView(NamedTuple):
    """The newest messages of a conversation, and the approximate number of bytes that they take."""

    view: PositionedValue[ConversationView]
    byte_count: int


MessageEntry = dict[str | None, MeasuredView]
"""Newest messages of one user's conversations, by id; None is the current conversation."""


class _UserEntries(LRUCache[Owner, UserEntry]):
    """LRU cache of users' entries. An eviction also evicts the user's messages, and the rows of searches."""

    def __init__(self, users: int, *further_entries: LRUCache[Owner, Any]) -> None:
        super().__init__(users)
        self._further_entries = further_entries

    def popitem(self) -> tuple[Owner, UserEntry]:
        owner, entry = super().popitem()
        for entries in self._further_entries:
            entries.pop(owner, None)
        return owner, entry


class _MeasuredEntries(LRUCache[Owner, Entry]):
    """LRU cache of users' entries, limited by their total number of bytes."""

    def weigh(self, owner: Owner, entry: Entry) -> None:
        """Measure an entry that has grown, and evict other users' entries until it fits.

        An entry larger than the whole cache is dropped. An entry that is no longer in the cache is ignored.
        """
        if self.get(owner) is entry:
            del self[owner]
            if self.getsizeof(entry) <= self.maxsize:
                self[owner] = entry


class UserCache:
    """Cache of parts of the memory of the most recently requested users, with one entry per user.

    A read first takes the user's entry, and later puts the result into that entry. If the user's memory
    changes meanwhile, the cache drops the entry, so a result that may be old goes to an entry that is no
    longer used. The newest messages have separate entries, because their size depends on the bots, and so do
    rows that searches looked up, because their number depends on the searches.
    """

    def __init__(self, users: int) -> None:
        self._hit_entries: _MeasuredEntries[HitEntry] = _MeasuredEntries(
            FOUND_ROWS, getsizeof=estimate_memory
        )
        self._message_entries: _MeasuredEntries[MessageEntry] = _MeasuredEntries(
            NEWEST_MESSAGES, getsizeof=_measure_entry
        )
        self._entries: LRUCache[Owner, UserEntry] = _UserEntries(
            users, self._hit_entries, self._message_entries
        )
        self._revisions: LRUCache[str, object] = LRUCache(REVISED_TENANTS)

    def get_entry(self, owner: Owner) -> UserEntry:
        """Return the user's entry, empty if nothing is cached."""
        entry: UserEntry | None = self._entries.get(owner)
        if entry is None:
            entry = self._entries[owner] = {}
        return entry

    def get_message_entry(self, owner: Owner) -> MessageEntry:
        """Return the user's entry of newest messages, empty if none are cached."""
        return self._get_further_entry(self._message_entries, owner)

    def keep_messages(
        self,
        owner: Owner,
        entry: MessageEntry,
        conversation: str | None,
        view: PositionedValue[ConversationView],
    ) -> None:
        """Put messages into an entry, and evict other users' entries until it fits.

        An entry larger than the whole cache is dropped. An entry that has left the cache stays outside.
        """
        entry[conversation] = MeasuredView(view, _measure_messages(view.value))
        self._message_entries.weigh(owner, entry)

    def get_hit_entry(self, owner: Owner) -> HitEntry:
        """Return the user's entry of rows that searches looked up, empty if none are cached."""
        return self._get_further_entry(self._hit_entries, owner)

    def weigh_hit_entry(self, owner: Owner, entry: HitEntry) -> None:
        """Measure an entry that has grown, and evict other users' entries until it fits.

        An entry larger than the whole cache is dropped. An entry that is no longer in the cache is ignored.
        """
        self._hit_entries.weigh(owner, entry)

    def get_revision(self, tenant: str) -> object:
        """Return an object that is replaced whenever the memory of a user of the tenant may have changed."""
        revision: object = self._revisions.setdefault(tenant, object())
        return revision

    def drop_user(self, owner: Owner) -> None:
        """Drop the cached parts of a user whose memory has changed."""
        tenant, _ = owner
        self._entries.pop(owner, None)
        self._message_entries.pop(owner, None)
        self._hit_entries.pop(owner, None)
        self._revisions.pop(tenant, None)

    def clear(self) -> None:
        """Drop all entries and revisions."""
        self._entries.clear()
        self._message_entries.clear()
        self._hit_entries.clear()
        self._revisions.clear()

    def _get_further_entry(
        self, entries: _MeasuredEntries[dict[Key, Value]], owner: Owner
    ) -> dict[Key, Value]:
        self.get_entry(owner)  # the eviction of this entry evicts the further entry too
        entry: dict[Key, Value] | None = entries.get(owner)
        if entry is None:
            entry = entries[owner] = {}
        return entry


class CountCache:
    """Cache of message counts of recently requested conversations. New messages do not drop the counts.

    Projected messages stay the same until they are cleared, discarded or erased together with all messages
    before them. Counts are not used if the view of the conversation lacks messages after the counted ones.
    `Memory.drop_all` replaces the cache, so each read has to use one and the same cache throughout.
    """

    def __init__(self) -> None:
        self._counted: LRUCache[tuple[Owner, str], CountedMessages] = LRUCache(COUNTED_CONVERSATIONS)
        self._many_unsummarised: LRUCache[tuple[Owner, str | None], bool] = LRUCache(COUNTED_CONVERSATIONS)

    def find_counts(
        self, owner: Owner, view: ConversationView, edges: tuple[int, ...]
    ) -> CountedMessages | None:
        """Return counts of older messages for a view; empty if the view has all messages.

        Return None if no cached counts fit the view and the edges, see `CountedMessages.is_usable`.
        """
        if view.is_whole:
            return CountedMessages()
        counted = self._counted.get((owner, view.conversation))
        return counted if counted and counted.is_usable(view, edges) else None

    def record_counts(
        self, owner: Owner, view: ConversationView, counted: CountedMessages, settled: int
    ) -> None:
        """Cache the counts if all counted messages are at or below the log position `settled`.

        Both the view and the counts reflect the log up to `settled`.
        """
        if counted.below <= settled:
            self._counted[owner, view.conversation] = counted

    def has_many_unsummarised(self, owner: Owner, conversation: str | None) -> bool:
        """Return whether the last request for a conversation found many messages after the newest summary.

        The conversation None is the current conversation.
        """
        return self._many_unsummarised.get((owner, conversation), False)

    def record_unsummarised(self, owner: Owner, conversation: str | None, *, is_many: bool) -> None:
        """Record whether a conversation has many messages after its newest summary.

        The conversation None is the current conversation.
        """
        if is_many or (owner, conversation) in self._many_unsummarised:
            self._many_unsummarised[owner, conversation] = is_many


def _measure_entry(entry: Mapping[str | None, MeasuredView]) -> int:
    return ROW_BYTES + sum(each.byte_count for each in entry.values())


def _measure_messages(view: ConversationView) -> int:
    """Estimate the bytes that messages take."""
    return sum(
        ROW_BYTES + sys.getsizeof(each.content) + (len(str(each.tool_calls)) if each.tool_calls else 0)
        for each in view.messages
    )
