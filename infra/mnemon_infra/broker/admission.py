"""Admission of requests: limits per user and per tenant, so that no user or tenant delays the others."""

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mnemon_contracts.subjects import Address, Owner
from mnemon_contracts.verbs.ask import AskError

AT_ONCE: Final = 8
"""Maximum number of requests of one user that a process handles at the same time.

Further requests of the user wait for these; requests of other users do not.
"""

BURST: Final = 1.0
"""Size of a tenant's token bucket, in seconds of its rate; a full bucket has at least one token."""

TENANTS: Final = 100_000
"""Maximum number of token buckets. At this number all buckets are removed; a new bucket starts full."""


class RequestLimits(NamedTuple):
    """Limits on the requests of one tenant, for each process that answers requests.

    Attributes:
        per_second: maximum number of requests per second of all users of the tenant; None sets no limit.
        per_user: maximum number of unanswered requests of one user, including requests that wait.
    """

    per_second: float | None
    per_user: int


@dataclass(slots=True)
class _UnansweredRequests:
    number: int = 0
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))


class _Bucket(NamedTuple):
    tokens: float
    at: float


class Admission:
    """Admission control of one process: it counts unanswered requests, and refuses those beyond the limits.

    Args:
        bounds: returns the current limits of a tenant.
        clock: returns the seconds of a monotonic clock.
    """

    def __init__(
        self, bounds: Callable[[str], RequestLimits], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._bounds = bounds
        self._clock = clock
        self._unanswered: dict[Owner, _UnansweredRequests] = {}
        self._buckets: dict[str, _Bucket] = {}

    def check_limits(self, address: Address) -> AskError | None:
        """Return the error for a request that exceeds a limit; None if the request is admitted.

        An admitted request counts toward the tenant's rate.
        """
        bounds = self._bounds(address.tenant)
        unanswered = self._unanswered.get(address.owner)
        if unanswered and unanswered.number >= bounds.per_user:
            return _build_error(
                f"{bounds.per_user} requests of this user are pending: ask again when one of them is "
                "answered",
                "rates.requests_per_user",
            )
        if bounds.per_second is not None and (wait := self._take_token(address.tenant, bounds.per_second)):
            return _build_error(
                f"more than {bounds.per_second:g} requests a second of this tenant: ask again in "
                f"{math.ceil(wait):,} s",
                "rates.requests_per_second",
            )
        return None

    def begin_request(self, address: Address) -> asyncio.Semaphore:
        """Count a request as unanswered. Return the semaphore to hold while the request is handled."""
        unanswered = self._unanswered.setdefault(address.owner, _UnansweredRequests())
        unanswered.number += 1
        return unanswered.turns

    def end_request(self, address: Address) -> None:
        """Stop counting a request as unanswered, so that its user may send another one."""
        owner = address.owner
        self._unanswered[owner].number -= 1
        if not self._unanswered[owner].number:
            del self._unanswered[owner]

    def _take_token(self, tenant: str, rate: float) -> float:
        """Take a token of the tenant and return 0.0; if there is none, return the seconds until there is."""
        now = self._clock()
        most = max(1.0, rate * BURST)
        if len(self._buckets) >= TENANTS:
            self._buckets.clear()
        bucket = self._buckets.get(tenant, _Bucket(most, now))
        left = min(most, bucket.tokens + (now - bucket.at) * rate)
        self._buckets[tenant] = _Bucket(left - 1 if left >= 1 else left, now)
        return max(0.0, 1 - left) / rate


def _build_error(message: str, limit: str) -> AskError:
    return AskError(code="unavailable", message=f"{message} ({limit})", retryable=True, limit=limit)
