"""Who is let in to ask: so that no user's and no tenant's questions keep those of others waiting."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mnemon_contracts.subjects import Address, Owner

AT_ONCE: Final = 8
"""Requests of one user that are worked on at the same time. What else the user asks waits behind them, and
what others ask does not."""

BURST: Final = 1.0
"""Seconds of its rate that a tenant may ask at once after it was silent."""

TENANTS: Final = 100_000
"""Whose last second is remembered; then it is begun anew, which lets everybody ask."""


class Bounds(NamedTuple):
    """How much is answered of a tenant by one process.

    Attributes:
        per_second: requests of all its users; None for any number.
        per_user: requests of one user that are in hand, those that wait for their turn among them.
    """

    per_second: float | None
    per_user: int


@dataclass(slots=True)
class _InHand:
    number: int = 0
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))


class _Bucket(NamedTuple):
    left: float
    at: float


class Admission:
    """Counts what is asked, and says what is too much.

    Args:
        bounds: those of a tenant, as they are now.
        clock: seconds.
    """

    def __init__(self, bounds: Callable[[str], Bounds], clock: Callable[[], float] = time.monotonic) -> None:
        self._bounds = bounds
        self._clock = clock
        self._in_hand: dict[Owner, _InHand] = {}
        self._buckets: dict[str, _Bucket] = {}

    def refusal(self, address: Address) -> str | None:
        """Why a request is not answered now; None if it is, and then it counts."""
        bounds = self._bounds(address.tenant)
        in_hand = self._in_hand.get((address.tenant, address.user))
        if in_hand and in_hand.number >= bounds.per_user:
            return (
                f"{bounds.per_user} requests of this user are in hand already: ask again when one of them is "
                "answered (rates.requests_per_user)"
            )
        if bounds.per_second is not None and not self._has_left(address.tenant, bounds.per_second):
            return (
                f"more than {bounds.per_second:g} requests a second of this tenant: ask again in a second "
                "(rates.requests_per_second)"
            )
        return None

    def begin(self, address: Address) -> asyncio.Semaphore:
        """A request is in hand from now on; returns what it is to hold while it is worked on."""
        in_hand = self._in_hand.setdefault((address.tenant, address.user), _InHand())
        in_hand.number += 1
        return in_hand.turns

    def end(self, address: Address) -> None:
        """It is answered."""
        owner = address.tenant, address.user
        self._in_hand[owner].number -= 1
        if not self._in_hand[owner].number:
            del self._in_hand[owner]

    def _has_left(self, tenant: str, rate: float) -> bool:
        now = self._clock()
        most = max(1.0, rate * BURST)
        if len(self._buckets) >= TENANTS:
            self._buckets.clear()
        bucket = self._buckets.get(tenant, _Bucket(most, now))
        left = min(most, bucket.left + (now - bucket.at) * rate)
        self._buckets[tenant] = _Bucket(left - 1 if left >= 1 else left, now)
        return left >= 1
