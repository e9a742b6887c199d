"""Who is let in to ask: so that no user's and no tenant's questions keep those of others waiting."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

from contracts.subjects import Address

Owner = tuple[str, str]

BURST: Final = 1.0
"""Seconds of its rate that a tenant may ask at once after it was silent."""

TENANTS: Final = 100_000
"""Whose last second is remembered; then it is begun anew, which lets everybody ask."""


class Bounds(NamedTuple):
    """How much is answered of a tenant by one process.

    Attributes:
        per_second: requests of all its users; None for any number.
        per_user: requests of one user at the same time.
    """

    per_second: float | None
    per_user: int


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
        self._waiting: Counter[Owner] = Counter()
        self._buckets: dict[str, _Bucket] = {}

    def refusal(self, address: Address) -> str | None:
        """Why a request is not answered now; None if it is, and then it counts."""
        bounds = self._bounds(address.tenant)
        if self._waiting[address.tenant, address.user] >= bounds.per_user:
            return (
                f"{bounds.per_user} requests of this user are being answered already: ask again when one of "
                "them is (rates.requests_per_user)"
            )
        if bounds.per_second is not None and not self._has_left(address.tenant, bounds.per_second):
            return (
                f"more than {bounds.per_second:g} requests a second of this tenant: ask again in a second "
                "(rates.requests_per_second)"
            )
        return None

    def begin(self, address: Address) -> None:
        """The user waits for an answer from now on."""
        self._waiting[address.tenant, address.user] += 1

    def end(self, address: Address) -> None:
        """There is the answer."""
        owner = address.tenant, address.user
        self._waiting[owner] -= 1
        if not self._waiting[owner]:
            del self._waiting[owner]

    def _has_left(self, tenant: str, rate: float) -> bool:
        now = self._clock()
        most = max(1.0, rate * BURST)
        if len(self._buckets) >= TENANTS:
            self._buckets.clear()
        bucket = self._buckets.get(tenant, _Bucket(most, now))
        left = min(most, bucket.left + (now - bucket.at) * rate)
        self._buckets[tenant] = _Bucket(left - 1 if left >= 1 else left, now)
        return left >= 1
