"""A set of log positions."""


class PositionSet:
    """Set of positions from 0 to `limit`, one bit for each: a hundred million take 12 MB."""

    def __init__(self, limit: int) -> None:
        self._bits = bytearray(limit // 8 + 1)
        self._count = 0

    def add(self, position: int) -> None:
        """Add a position."""
        bit = 1 << (position & 7)
        self._count += not self._bits[position >> 3] & bit
        self._bits[position >> 3] |= bit

    def __contains__(self, position: int) -> bool:
        return bool(self._bits[position >> 3] & 1 << (position & 7))

    def __len__(self) -> int:
        return self._count
