"""Failed logins, counted by address: each failure beyond `FREE_ATTEMPTS` makes the address wait."""

import time
from typing import Final

from cachetools import TTLCache

FREE_ATTEMPTS: Final = 5
"""Number of failed attempts that cause no wait."""

LONGEST_WAIT: Final = 60.0
"""Upper limit of a wait, in seconds."""

_ADDRESSES: Final = 10_000
_REMEMBERED_SECONDS: Final = 3600


class LoginAttempts:
    """Failed attempts of up to 10,000 addresses, remembered for an hour after the last one.

    Each wait is twice as long as the previous one, up to `LONGEST_WAIT` seconds.
    """

    def __init__(self) -> None:
        self._failures: TTLCache[str, tuple[int, float]] = TTLCache(_ADDRESSES, _REMEMBERED_SECONDS)

    def get_wait(self, address: str) -> float:
        """Return the seconds until an address may try again; 0 if it may try now."""
        _, until = self._failures.get(address, (0, 0.0))
        return max(0.0, until - time.monotonic())

    def record_failure(self, address: str) -> None:
        """Count a failed attempt."""
        failures = self._failures.get(address, (0, 0.0))[0] + 1
        wait = min(2.0 ** (failures - FREE_ATTEMPTS), LONGEST_WAIT) if failures > FREE_ATTEMPTS else 0.0
        self._failures[address] = failures, time.monotonic() + wait

    def record_success(self, address: str) -> None:
        """Forget the failures of an address."""
        self._failures.pop(address, None)
