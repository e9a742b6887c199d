"""Timeouts of a bot's requests."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts of a bot's requests, in seconds.

    Args:
        publish: timeout of one attempt at publishing.
        retry: time for further attempts at publishing, from the first failure on.
        ask: timeout of a request, except those with the timeout `save`.
        save: timeout of `save`, `update`, `forget` and `erase`. `retrieve` itself waits up to 5 s for the
            decision on a saved fact, and up to 6 s for the stores of an erasure. Also the time for which
            `publish` with `wait` asks whether the message is applied.
    """

    publish: float = 5.0
    retry: float = 30.0
    ask: float = 3.0
    save: float = 7.0


DEFAULTS = Timeouts()
