"""Cache of the parts of users' memory that were read. A change of a user drops the user's parts."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from cachetools import LRUCache

from mnemon_consumers.retrieve.context.coverage import CountedMessages
from mnemon_consumers.retrieve.memory.hit_rows import HitRows, measure_memory
from mnemon_contracts.subjects import Owner
from mnemon_infra.database.memory.user_memory import ConversationView

COUNTED_CONVERSATIONS: Final = 10_000
"""Maximum number of conversations whose counts are cached; each takes some hundred bytes."""

FOUND_ROWS: Final = 64 * 1024 * 1024
"""Maximum number of bytes of rows that searches looked up; usually enough for over 1,000 users."""

REVISED_TENANTS: Final = 10_000
"""Maximum number of tenants whose revisions are kept."""

Cached = TypeVar("Cached")

Shelf = dict[Hashable, Any]
"""Cached parts of one user's memory."""

HitShelf = dict[type[HitRows[Any, Any]], HitRows[Any, Any]]
"""Rows that searches of one user looked up, by kind."""


@dataclass(frozen=True, slots=True)
class PositionedValue(Generic[Cached]):
    """A value, and the log position that it reflects."""

    value: Cached
    seq: int


class _Shelves(LRUCache[Owner, Shelf]):
    """LRU cache of shelves. The eviction of a shelf also evicts the user's looked-up rows."""

    def __init__(self, users: int, hit_shelves: LRUCache[Owner, HitShelf]) -> None:
        super().__init__(users)
        self._hit_shelves = hit_shelves

    def popitem(self) -> tuple[Owner, Shelf]:
        owner, shelf = super().popitem()
        self._hit_shelves.pop(owner, None)
        return owner, shelf


class UserCache:
    """Keeps a shelf of cached parts for each of the most recently requested users.

    A read first takes the user's shelf, and later puts its result on that shelf. If the user changes
    meanwhile, the cache drops the shelf, so a result that may be old goes to a shelf that is no longer used.
    Rows that searches looked up have separate shelves, because their number depends on the searches.
    """

    def __init__(self, users: int) -> None:
        self._hit_shelves: LRUCache[Owner, HitShelf] = LRUCache(FOUND_ROWS, getsizeof=measure_memory)
        self._shelves: LRUCache[Owner, Shelf] = _Shelves(users, self._hit_shelves)
        self._revisions: LRUCache[str, object] = LRUCache(REVISED_TENANTS)

    def get_shelf(self, owner: Owner) -> Shelf:
        """Return the user's shelf; an empty shelf if nothing is cached."""
        shelf: Shelf | None = self._shelves.get(owner)
        if shelf is None:
            shelf = self._shelves[owner] = {}
        return shelf

    def get_hit_shelf(self, owner: Owner) -> HitShelf:
        """Return the user's shelf of rows that searches looked up."""
        self.get_shelf(owner)  # both shelves of a user are evicted together
        shelf: HitShelf | None = self._hit_shelves.get(owner)
        if shelf is None:
            shelf = self._hit_shelves[owner] = {}
        return shelf

    def weigh_hit_shelf(self, owner: Owner, shelf: HitShelf) -> None:
        """Measure a shelf that has grown, and evict other shelves until it fits."""
        if self._hit_shelves.get(owner) is shelf:
            del self._hit_shelves[owner]
            if measure_memory(shelf) <= self._hit_shelves.maxsize:
                self._hit_shelves[owner] = shelf

    def get_revision(self, tenant: str) -> object:
        """Return an object for the state of the tenant's users, which every change of a user replaces."""
        revision: object = self._revisions.setdefault(tenant, object())
        return revision

    def drop(self, owner: Owner) -> None:
        """Drop the cached parts of a user who has changed."""
        tenant, _ = owner
        self._shelves.pop(owner, None)
        self._hit_shelves.pop(owner, None)
        self._revisions.pop(tenant, None)

    def clear(self) -> None:
        """Drop all entries, because notices of changes may have been missed."""
        self._shelves.clear()
        self._hit_shelves.clear()
        self._revisions.clear()


class CountCache:
    """Counts of messages in recently requested conversations, which a change of the user keeps.

    A read takes the cache only once, like a shelf, because a swap replaces the cache. Settled
    messages stay the same until they are cleared or erased together with all messages before them. A
    count is not used if the view lacks messages after it.
    """

    def __init__(self) -> None:
        self._counted: LRUCache[tuple[Owner, str], CountedMessages] = LRUCache(COUNTED_CONVERSATIONS)
        self._long_tails: LRUCache[tuple[Owner, str | None], bool] = LRUCache(COUNTED_CONVERSATIONS)

    def find(self, owner: Owner, view: ConversationView, edges: tuple[int, ...]) -> CountedMessages | None:
        """Return the counts of the messages that the view lacks; None if they have to be counted."""
        if view.complete:
            return CountedMessages()
        counted = self._counted.get((owner, view.conversation))
        return counted if counted and counted.is_usable(view, edges) else None

    def keep(self, owner: Owner, view: ConversationView, counted: CountedMessages, settled: int) -> None:
        """Cache the counts if all counted messages are settled: at or below the log position `settled`."""
        if counted.below <= settled:
            self._counted[owner, view.conversation] = counted

    def has_long_tail(self, owner: Owner, conversation: str | None) -> bool:
        """Return whether the last request needed more messages; the next request then reads them at once."""
        return self._long_tails.get((owner, conversation), False)

    def note_tail(self, owner: Owner, conversation: str | None, *, is_long: bool) -> None:
        """Record whether summaries are behind; the conversation None is the current conversation."""
        if is_long or (owner, conversation) in self._long_tails:
            self._long_tails[owner, conversation] = is_long
