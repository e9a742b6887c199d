"""What was read of each user, until it changes."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from cachetools import LRUCache

from infra.database.reading import Owner

Value = TypeVar("Value")

Shelf = dict[Hashable, Any]
"""What is known of one user, part by part."""


@dataclass(frozen=True, slots=True)
class Seen(Generic[Value]):
    """A value, and the log position it reflects."""

    value: Value
    seq: int


class UserCache:
    """Keeps the shelves of the users asked for last.

    A read begins by taking the user's shelf, and puts its result on it. When the user changes meanwhile, the
    shelf is dropped, and the result, which may be old, lands on a shelf that nobody looks at any more.
    """

    def __init__(self, users: int) -> None:
        self._shelves: LRUCache[Owner, Shelf] = LRUCache(users)

    def shelf(self, owner: Owner) -> Shelf:
        """The user's shelf; an empty one when nothing is known."""
        shelf: Shelf | None = self._shelves.get(owner)
        if shelf is None:
            shelf = self._shelves[owner] = {}
        return shelf

    def drop(self, owner: Owner) -> None:
        """The user has changed."""
        self._shelves.pop(owner, None)

    def clear(self) -> None:
        """Notices may have been missed: anybody may have changed."""
        self._shelves.clear()
