"""Counts of all dead letters, and the log positions of their originals, from their headers."""

from collections import Counter
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from sys import intern

from nats.aio.client import Client

from mnemon_contracts.streams import DEAD, LOG
from mnemon_infra.broker.streams.stream_reader import read_stream


@dataclass(slots=True)
class LetterSummary:
    """Numbers of dead letters, and the events that they are about.

    Attributes:
        counts: the number of letters, by consumer and reason.
        log_reasons: for each consumer, the log positions of the events in its letters, each with the reason.
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    log_reasons: dict[str, dict[int, str]] = field(default_factory=dict)

    def add_letter(self, headers: Mapping[str, str]) -> None:
        """Count a dead letter, given by its headers, and record the log position of its event."""
        consumer, reason = (intern(headers.get(name, "?")) for name in ("Mnemon-Consumer", "Mnemon-Reason"))
        self.counts[consumer, reason] += 1
        if headers.get("Mnemon-Stream") == LOG and headers.get("Mnemon-Sequence", "").isdecimal():
            self.log_reasons.setdefault(consumer, {})[int(headers["Mnemon-Sequence"])] = reason


async def summarise_letters(connection: Client) -> LetterSummary:
    """Count all dead letters, and list the log positions of the events among their originals.

    Bodies are not read.

    Raises:
        nats.errors.Error: the server does not answer, or the stream of dead letters is absent.
    """
    last = (await connection.jetstream().stream_info(DEAD)).state.last_seq
    found = LetterSummary()
    async with aclosing(read_stream(connection, DEAD, up_to=last, headers_only=True)) as pages:
        async for page in pages:
            for message, _ in page:
                found.add_letter(message.headers or {})
    return found
