"""Caps the concurrent conversations of one user so that others keep some capacity free."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from mnemon_contracts.subjects import Owner


class FairShare:
    """Gives one user at most half of the capacity, and at least one conversation.

    Args:
        room: conversations that the process compacts at the same time.
    """

    def __init__(self, room: int) -> None:
        self._limit = max(1, room // 2)
        self._held: Counter[Owner] = Counter()

    @contextmanager
    def taken(self, owner: Owner) -> Iterator[bool]:
        """Yield whether the user may have one more conversation in progress, until the block ends."""
        if self._held[owner] >= self._limit:
            yield False
            return
        self._held[owner] += 1
        try:
            yield True
        finally:
            self._held[owner] -= 1
            if not self._held[owner]:
                del self._held[owner]
