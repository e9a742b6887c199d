"""Caches the parts of a user's memory that were read, until the user changes."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from cachetools import LRUCache

from mnemon_consumers.retrieve.context.coverage import CountedMessages
from mnemon_consumers.retrieve.hit_rows import HitRows, measure_memory
from mnemon_contracts.subjects import Owner
from mnemon_infra.database.memory.user_memory import ConversationView

COUNTED_CONVERSATIONS: Final = 10_000
"""Conversations whose counts are kept; each takes some hundred bytes."""

FOUND_ROWS: Final = 64 * 1024 * 1024
"""Bytes for rows that searches looked up, of all users: usually enough for more than a thousand."""

REVISED_TENANTS: Final = 10_000
"""Tenants whose revisions are kept."""

Cached = TypeVar("Cached")

Shelf = dict[Hashable, Any]
"""Cached parts of one user's memory."""

HitShelf = dict[type[HitRows[Any, Any]], HitRows[Any, Any]]
"""Rows that searches of one user looked up, by kind."""


@dataclass(frozen=True, slots=True)
class PositionedValue(Generic[Cached]):
    """A value, and the log position it reflects."""

    value: Cached
    seq: int


class _Shelves(LRUCache[Owner, Shelf]):
    """LRU cache of shelves. An evicted shelf takes the user's looked-up rows with it."""

    def __init__(self, users: int, hit_shelves: LRUCache[Owner, HitShelf]) -> None:
        super().__init__(users)
        self._hit_shelves = hit_shelves

    def popitem(self) -> tuple[Owner, Shelf]:
        owner, shelf = super().popitem()
        self._hit_shelves.pop(owner, None)
        return owner, shelf


class UserCache:
    """Keeps the shelves of the users that were requested most recently.

    A read begins by taking the user's shelf, and puts its result on it. If the user changes meanwhile, the
    cache drops the shelf, and the result, which may be old, lands on a shelf that is no longer in use. Rows
    that searches looked up have shelves of their own, because their number depends on the searches.
    """

    def __init__(self, users: int) -> None:
        self._hit_shelves: LRUCache[Owner, HitShelf] = LRUCache(FOUND_ROWS, getsizeof=measure_memory)
        self._shelves: LRUCache[Owner, Shelf] = _Shelves(users, self._hit_shelves)
        self._revisions: LRUCache[str, object] = LRUCache(REVISED_TENANTS)

    def get_shelf(self, owner: Owner) -> Shelf:
        """Return the user's shelf; an empty one if nothing is cached."""
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
        """Measure a shelf that has grown, and evict others until there is room for it."""
        if self._hit_shelves.get(owner) is shelf:
            del self._hit_shelves[owner]
            if measure_memory(shelf) <= self._hit_shelves.maxsize:
                self._hit_shelves[owner] = shelf

    def get_revision(self, tenant: str) -> object:
        """Return an object that is replaced by another after each change of a user of the tenant."""
        revision: object = self._revisions.setdefault(tenant, object())
        return revision

    def drop(self, owner: Owner) -> None:
        """Drop the cached parts of a user who has changed."""
        tenant, _ = owner
        self._shelves.pop(owner, None)
        self._hit_shelves.pop(owner, None)
        self._revisions.pop(tenant, None)

    def clear(self) -> None:
        """Drop all entries, after notices of changes may have been missed."""
        self._shelves.clear()
        self._hit_shelves.clear()
        self._revisions.clear()


class CountCache:
    """Counts of messages in recently requested conversations; kept when their users change.

    Like a shelf, the cache is taken once for a read: a switch of generations replaces it. Settled messages
    stay the same until they are cleared or erased together with all messages before them. A count is unused
    once the messages after it are not in the view.
    """

    def __init__(self) -> None:
        self._counted: LRUCache[tuple[Owner, str], CountedMessages] = LRUCache(COUNTED_CONVERSATIONS)
        self._long_tails: LRUCache[tuple[Owner, str | None], bool] = LRUCache(COUNTED_CONVERSATIONS)

    def find(self, owner: Owner, view: ConversationView, edges: tuple[int, ...]) -> CountedMessages | None:
        """Find the counts of the messages that the view lacks; None if they have to be counted."""
        if view.complete:
            return CountedMessages()
        counted = self._counted.get((owner, view.conversation))
        return counted if counted and counted.is_usable(view, edges) else None

    def keep(self, owner: Owner, view: ConversationView, counted: CountedMessages, settled: int) -> None:
        """Keep counts of settled messages: no event at or below the log position `settled` can follow."""
        if counted.below <= settled:
            self._counted[owner, view.conversation] = counted

    def has_long_tail(self, owner: Owner, conversation: str | None) -> bool:
        """Return whether the last request needed more messages; then the next one reads them at once."""
        return self._long_tails.get((owner, conversation), False)

    def note_tail(self, owner: Owner, conversation: str | None, *, is_long: bool) -> None:
        """Remember whether summaries are behind; the conversation None is the current one."""
        if is_long or (owner, conversation) in self._long_tails:
            self._long_tails[owner, conversation] = is_long
