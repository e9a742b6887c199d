"""Warnings about old or many dead letters, which wait for an operator."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from mnemon_contracts.streams import DEAD

OLD_LETTER: Final = timedelta(days=30)
"""Age of the oldest dead letter above which `mnemon status` warns."""

MANY_LETTERS: Final = 1000
"""Number of dead letters at or above which `mnemon status` warns."""


async def find_oldest_letter(stream_context: JetStreamContext) -> datetime | None:
    """Return the time of the oldest dead letter; None if there are no dead letters.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    try:
        # The first message from position 1 on, whatever its subject.
        oldest = await stream_context.get_msg(DEAD, seq=1, subject=">", next=True)
    except NotFoundError:
        return None
    return oldest.time


def warn_of_dead_letters(letters: int, oldest: datetime | None, now: datetime) -> Iterator[str]:
    """Yield a warning if there are `MANY_LETTERS` dead letters or more, or one is older than `OLD_LETTER`."""
    is_old = oldest is not None and oldest < now - OLD_LETTER
    if oldest is None or not (is_old or letters >= MANY_LETTERS):
        return
    yield (
        f"dead letters kept: {letters:,}, the oldest since {oldest.astimezone(UTC):%Y-%m-%d}. "
        "List them with `mnemon dead list`, then redrive or drop them. The setting "
        "retention.dead_letter_days removes old letters"
    )
