"""How much of what a process does at the same time one user may have: somebody else's may come any moment."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from mnemon_contracts.subjects import Owner


class Shares:
    """Gives a user half of the room at most.

    Args:
        room: conversations that are in hand at the same time.
    """

    def __init__(self, room: int) -> None:
        self._most = max(1, room // 2)
        self._in_hand: Counter[Owner] = Counter()

    @contextmanager
    def taken(self, owner: Owner) -> Iterator[bool]:
        """Whether the user may have one more in hand, which lasts as long as the block."""
        if self._in_hand[owner] >= self._most:
            yield False
            return
        self._in_hand[owner] += 1
        try:
            yield True
        finally:
            self._in_hand[owner] -= 1
            if not self._in_hand[owner]:
                del self._in_hand[owner]
