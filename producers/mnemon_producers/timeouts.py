"""Timeouts of a bot's requests."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts of a bot's requests, in seconds.

    Args:
        publish: for the log's answer to one attempt at publishing.
        retry: for all attempts at publishing together.
        ask: for a reply.
        save: until a fact is decided on, changed or removed, or a user is erased; the memory itself waits
            up to 5 s for it.
    """

    publish: float = 5.0
    retry: float = 30.0
    ask: float = 3.0
    save: float = 7.0


DEFAULTS = Timeouts()
