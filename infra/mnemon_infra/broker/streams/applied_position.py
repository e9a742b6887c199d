"""Applied position: how far the consumers have come in the log."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime

import nats.errors
from nats.js import JetStreamContext
from nats.js.api import ConsumerInfo
from nats.js.errors import NotFoundError, ServiceUnavailableError

from mnemon_contracts.streams import LOG
from mnemon_infra.delivery import read_storage_time
from mnemon_infra.process.cancellation import suppress_task_error

_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.1


async def read_applied_position(
    stream_context: JetStreamContext, consumer: str = "persist", stream: str = LOG
) -> int:
    """Return the position up to which a consumer has handled every message: applied, skipped or dead.

    The position is the `ack_floor` of the durable, for all processes that read it. Some messages beyond the
    position may be handled already. Without the durable, the position is 0.
    """
    info = await _read_info(stream_context, consumer, stream)
    return info.ack_floor.stream_seq if info and info.ack_floor else 0


async def read_delivered_position(stream_context: JetStreamContext, consumer: str) -> int:
    """Return the last log position that was ever delivered to a consumer; 0 without its durable."""
    info = await _read_info(stream_context, consumer)
    return info.delivered.stream_seq if info and info.delivered else 0


async def read_log_end(stream_context: JetStreamContext) -> int:
    """Return the log's last position; 0 when the log is empty or absent."""
    try:
        return (await stream_context.stream_info(LOG)).state.last_seq
    except NotFoundError:
        return 0


async def find_first_event_from(
    stream_context: JetStreamContext,
    position: int,
    pattern: str = ">",
    read_time: Callable[[Mapping[str, str] | None, int, int], int] = read_storage_time,
) -> tuple[int, datetime] | None:
    """Return position and time of the first event of a subject pattern at `position` in the log or beyond.

    `read_time` computes the time, in nanoseconds since 1970, from the headers, the position and the server's
    time of storage. Return None if the log has no such event.
    """
    try:
        found = await stream_context.get_msg(LOG, position, pattern, next=True)
    except NotFoundError:
        return None
    assert found.seq is not None
    assert found.time is not None
    nanoseconds = read_time(found.headers, found.seq, int(found.time.timestamp() * 1e9))
    return found.seq, datetime.fromtimestamp(nanoseconds / 1e9, UTC)


class AppliedPosition:
    """Applied position of a consumer, cached; the server is asked when a caller needs a newer position.

    The position falls only if the durable was reset, that is deleted and created again. A lower position of
    the same durable comes from a server that lags behind the server that answered before.
    """

    def __init__(self, consumer: str = "persist") -> None:
        self.value = 0
        self._consumer = consumer
        self._created: datetime | None = None
        """Time at which the durable was created: the same on all servers, also after a restart."""
        self._noticed = 0
        self._change = asyncio.Event()
        self._asking: asyncio.Task[int] | None = None

    @property
    def is_behind(self) -> bool:
        """True if this process knows of an event beyond the position."""
        return self._noticed > self.value

    def note_event(self, seq: int) -> None:
        """Note that the log has an event at this position, and let `wait_for` ask the server at once."""
        self._noticed = max(self._noticed, seq)
        self._change.set()

    async def refresh(self, stream_context: JetStreamContext) -> int:
        """Ask the server for the position and return it. Concurrent callers share one request."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._update(stream_context))
            self._asking.add_done_callback(suppress_task_error)
        return await asyncio.shield(self._asking)

    async def wait_for(self, stream_context: JetStreamContext, seq: int, timeout_seconds: float) -> int:
        """Wait until the position is `seq` or beyond, or until the timeout. Return the last known position.

        If a server does not answer, the request is repeated: another server may be about to become the
        leader.

        Raises:
            nats.errors.Error: the connection is closed, or the server refuses.
        """
        pause = _FIRST_PAUSE
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                while not await self._has_reached(stream_context, seq):
                    # The acknowledgement comes a moment after the notice of a commit.
                    self._change.clear()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(pause):
                            await self._change.wait()
                    pause = min(pause * 2, _LONGEST_PAUSE)
        return self.value

    async def _update(self, stream_context: JetStreamContext) -> int:
        info = await _read_info(stream_context, self._consumer)
        if info is not None:  # an absent durable keeps its position until it is created again
            position = info.ack_floor.stream_seq if info.ack_floor else 0
            self.value = max(self.value, position) if info.created == self._created else position
            self._created = info.created
        return self.value

    async def _has_reached(self, stream_context: JetStreamContext, seq: int) -> bool:
        # nats-py's TimeoutError is also Python's: it must not count as the end of `timeout_seconds`.
        with suppress(nats.errors.TimeoutError, ServiceUnavailableError):
            return await self.refresh(stream_context) >= seq
        return False


async def _read_info(
    stream_context: JetStreamContext, consumer: str, stream: str = LOG
) -> ConsumerInfo | None:
    """Return the state of a durable, as the server reports it; None if it is absent."""
    try:
        info: ConsumerInfo = await stream_context.consumer_info(stream, consumer)
    except NotFoundError:
        return None
    return info
