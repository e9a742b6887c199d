"""Samples of the live status, taken while a browser shows the page."""

import asyncio
import time
from collections import deque
from typing import Final, NamedTuple

from mnemon.admin.connections import ServerConnections
from mnemon.operations.health.lag import (
    SAMPLE_INTERVAL,
    DurableSample,
    StreamState,
    read_stream_states,
    sample_durables,
)
from mnemon.operations.health.report import examine_deployment
from mnemon.operations.health.services import ServiceCounts, sum_service_counts
from mnemon.operations.health.state import Health
from mnemon_contracts.streams import DEAD

SPAN: Final = 300.0
"""Seconds for which samples are kept for the plots."""

LEAST_SPAN: Final = 60.0
"""Minimum number of seconds that a plot covers, even if there are fewer samples."""

_FRESH: Final = 1.0
"""Seconds for which all requests share one sample."""

_HEALTH_FRESH: Final = 15.0
"""Seconds for which all requests share one health report, which takes longer than a sample."""

_SERVICE: Final = "mnemon"


class StatusSample(NamedTuple):
    """A sample of streams, durables and request counts; `consumers.at` is its time on the monotonic clock."""

    streams: dict[str, StreamState]
    consumers: DurableSample
    requests: ServiceCounts

    @property
    def dead_letters(self) -> int:
        """Number of messages in the stream `DEAD`; 0 if the stream is missing."""
        return self.streams[DEAD].messages if DEAD in self.streams else 0


class LiveStatus:
    """Sampler of the live status; it takes samples on request, and keeps those of the last `SPAN` seconds."""

    def __init__(self, parts: ServerConnections) -> None:
        self._parts = parts
        self._samples: deque[StatusSample] = deque()
        self._health: tuple[float, Health] | None = None
        self._looking = asyncio.Lock()
        self._examining = asyncio.Lock()

    async def get_samples(self) -> list[StatusSample]:
        """Return at least two samples, oldest first; the last sample is at most 1 second old.

        Raises:
            BrokerUnreachable, nats.errors.Error: the broker does not answer.
        """
        async with self._looking:
            now = time.monotonic()
            while self._samples and now - self._samples[0].consumers.at > SPAN:
                self._samples.popleft()
            if not self._samples:
                self._samples.append(await self._take_sample())
                await asyncio.sleep(SAMPLE_INTERVAL)
            if now - self._samples[-1].consumers.at > _FRESH or len(self._samples) == 1:
                self._samples.append(await self._take_sample())
            return list(self._samples)

    async def get_health(self) -> Health:
        """Return the report of `mnemon status`, which also names servers that do not answer."""
        async with self._examining:
            if self._health is None or time.monotonic() - self._health[0] > _HEALTH_FRESH:
                health = await examine_deployment(self._parts.deployment, self._parts.data)
                self._health = time.monotonic(), health
            return self._health[1]

    async def _take_sample(self) -> StatusSample:
        connection = await self._parts.get_broker()
        stream_context = connection.jetstream()
        streams = await read_stream_states(stream_context)
        seen, answered = await asyncio.gather(
            sample_durables(stream_context, streams), sum_service_counts(connection, _SERVICE)
        )
        return StatusSample(streams, seen, answered)
