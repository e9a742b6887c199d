"""Restoration of the log on the server: events are written at their exact former positions.

A mark in the stream keeps processes from starting on the log until all events are written.
"""

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from uuid import uuid4

import nats.errors
from nats.aio.client import Client
from nats.js.api import StreamConfig, StreamInfo
from nats.js.errors import APIError, NotFoundError

from mnemon_contracts.identity import MESSAGE_ID
from mnemon_contracts.streams import API_KEYS, LOG, SETTINGS
from mnemon_infra.broker.provisioning.topology import STREAMS, provision_buckets
from mnemon_infra.broker.streams.log_writer import BATCH, DUPLICATE_ID, is_duplicate
from mnemon_infra.broker.streams.restored_log import (
    FILLER_SUBJECT,
    LEFT_OUT,
    RESTORED,
    RESTORED_END,
    UNFINISHED,
)
from mnemon_infra.broker.streams.stream_lists import list_consumers

BATCH_BYTES: Final = 4 * 1024 * 1024
"""Maximum bytes of a batch with more than one message."""

TIMEOUT: Final = 10.0
"""Maximum seconds for the server to store a batch, or to answer another request."""

TRIES: Final = 30
"""Maximum number of attempts to store a batch: a cluster may be about to elect a leader."""

PAUSE: Final = 0.5
"""Seconds between two attempts."""

BATCH_HEADROOM: Final = 160
"""Maximum bytes of the headers of a batch: `Nats-Batch-Id`, `Nats-Batch-Sequence`, `Nats-Batch-Commit`."""

_DUPLICATE_WINDOW: Final = 0.1
"""Duplicate window of the log in seconds during a restore; the server takes no less.

Copies of an event share its id, and a restore has to write them all.
"""


class LogNotEmpty(Exception):
    """The servers have data already, or a consumer runs; the message has the next step."""


class ForeignEvent(Exception):
    """Another client wrote to the log during a restore."""

    def __init__(self, position: int) -> None:
        super().__init__(
            f"another client wrote to {LOG} at position {position:,} during the restore. Stop all bots and "
            f"consumers, delete the stream (nats stream rm {LOG}) or the new folder (--data DIR), then run "
            "the restore again"
        )


class MessageTooLarge(Exception):
    """An event of a backup or of a moved tenant is larger than the NATS server accepts (`max_payload`)."""

    def __init__(self, position: int, size: int, most: int) -> None:
        needed = max(8, math.ceil(size / 2**20))
        super().__init__(
            f"the event at position {position:,} has {size:,} bytes, and the NATS server accepts at most "
            f"{most:,}. Set `max_payload: {needed}MB` in the server's configuration, reload it, and run the "
            "same command again. The limit of the server of `mnemon up` is fixed: use another NATS server"
        )


class ExactMessage(NamedTuple):
    """A message that a restore or a move writes at an exact position of the log."""

    subject: str
    headers: Mapping[str, str]
    body: bytes

    def encode_headers(self, others: Mapping[str, str] | None = None) -> bytes:
        """Return these headers and `others` as a header block of the NATS protocol."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in {**self.headers, **(others or {})}.items())
        return f"NATS/1.0\r\n{lines}\r\n".encode()


FILLER: Final = ExactMessage(FILLER_SUBJECT, {}, b"")
"""Message at a position without an event."""


class RestoreState(NamedTuple):
    """Progress of a restore into the log.

    Attributes:
        last: last position that is written.
        is_finished: whether the log was released.
        left_out: number of events of the backup that the log lacks, because they were erased later; 0 before
            the release, or if an earlier version restored the log.
    """

    last: int
    is_finished: bool
    left_out: int = 0


async def open_restored_log(connection: Client, mark: str, first: int, replicas: int) -> RestoreState:
    """Create the log with the mark of a restore, or find one with the same mark; return the progress.

    A log without events is deleted and created again.

    Args:
        connection: connection of an operator.
        mark: identifies the backup; it ends with a colon and the last position of the backup.
        first: position of the first event.
        replicas: number of servers that keep a copy.

    Raises:
        LogNotEmpty: the log, the settings or the API keys have data of another origin, the log has received
            events since the restore, or a consumer runs.
        nats.errors.Error: the server does not answer.
    """
    stream_context = connection.jetstream()
    try:
        info = await stream_context.stream_info(LOG)
    except NotFoundError:
        info = None
    if info is not None:
        metadata = info.config.metadata or {}
        if metadata.get(UNFINISHED) == mark:
            return RestoreState(info.state.last_seq, is_finished=False)
        if metadata.get(RESTORED) == mark:
            _require_no_newer_events(info)
            return RestoreState(
                info.state.last_seq, is_finished=True, left_out=int(metadata.get(LEFT_OUT, 0))
            )
        await _require_empty(connection, info)
    await _require_no_entries(connection)
    if info is not None:
        await stream_context.delete_stream(LOG)
    await stream_context.add_stream(
        _find_log_config().evolve(
            num_replicas=replicas,
            subjects=[*(_find_log_config().subjects or ()), FILLER_SUBJECT],
            duplicate_window=_DUPLICATE_WINDOW,
            first_seq=first if first > 1 else None,
            metadata={UNFINISHED: mark},
        )
    )
    return RestoreState(first - 1, is_finished=False)


async def is_restored(connection: Client, mark: str) -> bool:
    """Return whether a restore with this mark has ended."""
    try:
        info = await connection.jetstream().stream_info(LOG)
    except NotFoundError:
        return False
    return (info.config.metadata or {}).get(RESTORED) == mark


async def remove_fillers(connection: Client) -> None:
    """Remove the fillers from the log. Their positions stay without an event."""
    await connection.jetstream(timeout=TIMEOUT).purge_stream(LOG, subject=FILLER_SUBJECT)


async def release_log(connection: Client, mark: str, left_out: int) -> None:
    """Mark the restore as finished, so that processes can start on the log.

    Args:
        connection: connection of an operator.
        mark: identifies the backup, as in `open_restored_log`.
        left_out: number of events of the backup that the log lacks, because they were erased later.
    """
    stream_context = connection.jetstream(timeout=TIMEOUT)
    info = await stream_context.stream_info(LOG)
    actual = info.config
    metadata = {name: value for name, value in (actual.metadata or {}).items() if name != UNFINISHED}
    usual = _find_log_config()
    await stream_context.update_stream(
        actual.evolve(
            subjects=usual.subjects,
            duplicate_window=usual.duplicate_window,
            metadata={
                **metadata,
                RESTORED: mark,
                LEFT_OUT: str(left_out),
                RESTORED_END: str(info.state.last_seq),
            },
        )
    )


async def write_entries(
    connection: Client, bucket: str, messages: Sequence[ExactMessage], replicas: int
) -> None:
    """Write `messages`, the entries of a bucket, oldest first, and create the bucket if it is absent.

    Entries that an interrupted call has written are left out. `replicas` is the number of servers that keep a
    copy of each bucket.
    """
    await provision_buckets(connection, replicas)
    stream_context = connection.jetstream(timeout=TIMEOUT)
    written = (await stream_context.stream_info(f"KV_{bucket}")).state.last_seq
    for subject, headers, body in messages[written:]:
        await stream_context.publish(subject, body, headers=dict(headers))


class ExactWriter:
    """Writer of messages to the log at exact positions, in atomic batches.

    Attributes:
        last: the last position that is stored; the next message gets the position after it.
    """

    def __init__(self, connection: Client, last: int) -> None:
        self.last = last
        self._connection = connection
        self._batch: list[ExactMessage] = []
        self._ids: set[str] = set()
        self._bytes = 0

    async def write(self, message: ExactMessage) -> None:
        """Add a message for the next position to the batch.

        A batch that is full, or has a message with the same event id, is stored first. A message that is too
        large for a batch is stored alone.

        Raises:
            ForeignEvent: another client wrote to the log.
            MessageTooLarge: the server does not take the message.
            nats.errors.Error: the server does not answer, or refuses the batch.
        """
        most = self._connection.max_payload
        position = self.last + len(self._batch) + 1
        size = len(message.body) + len(message.encode_headers(_build_position_header(position - 1)))
        if size > most:
            raise MessageTooLarge(position, size, most)
        is_alone = size + BATCH_HEADROOM > most
        event_id = message.headers.get(MESSAGE_ID, "")
        is_full = len(self._batch) >= BATCH or self._bytes + size > BATCH_BYTES
        if self._batch and (is_alone or is_full or event_id in self._ids):
            await self.flush()
        self._batch.append(message)
        self._bytes += size
        if event_id:
            self._ids.add(event_id)
        if is_alone:
            await self.flush()

    async def flush(self) -> None:
        """Store the messages of the batch.

        Raises:
            ForeignEvent: another client wrote to the log.
            nats.errors.Error: the server does not answer, or refuses the batch.
        """
        if self._batch:
            await self._store_batch()
        self._batch, self._ids, self._bytes = [], set(), 0

    async def _store_batch(self) -> None:
        """Store the batch, with up to `TRIES` attempts. After an error, the batch has what is not stored."""
        fault: Exception = nats.errors.TimeoutError()
        for _ in range(TRIES):
            try:
                self.last = await store_batch(self._connection, self._batch, self.last)
                return
            except (nats.errors.Error, TimeoutError) as error:
                fault = error
            await asyncio.sleep(PAUSE if not is_duplicate(fault) else 2 * _DUPLICATE_WINDOW)
            try:
                last = (await self._connection.jetstream().stream_info(LOG)).state.last_seq
                stored = last - self.last
                if 0 < stored <= len(self._batch) and await self._has_stored(self._batch[stored - 1], last):
                    # The acknowledgement was lost, or a server without room stored the beginning.
                    self.last, self._batch = last, self._batch[stored:]
                elif stored:
                    raise ForeignEvent(self.last + 1)
            except (nats.errors.Error, TimeoutError) as error:
                fault = error
            if not self._batch:
                return
        raise fault

    async def _has_stored(self, message: ExactMessage, position: int) -> bool:
        """Return whether the log has the message at a position."""
        found = await self._connection.jetstream().get_msg(LOG, position)
        return (found.subject, found.data or b"") == (message.subject, message.body)


async def store_batch(connection: Client, batch: Sequence[ExactMessage], last: int | None = None) -> int:
    """Store an atomic batch of at most `BATCH` messages; return the position of its last message.

    `last` is the last position that the log must have; None for any. A single message is stored without the
    headers of a batch, so it may be as large as the server accepts.

    Raises:
        nats.js.errors.APIError: the server refuses the batch.
        nats.errors.Error: it is unknown whether the batch is stored.
    """
    if not connection.is_connected:
        raise nats.errors.ConnectionReconnectingError
    inbox = connection.new_inbox()
    answers = await connection.subscribe(inbox)
    try:
        await connection._send_command(_encode_batch(batch, last, inbox))
        await connection._flush_pending()
        message = await answers.next_msg(TIMEOUT)
    finally:
        await answers.unsubscribe()
    if not message.data:  # a status: no server leads the log now
        raise nats.errors.NoRespondersError
    answer = json.loads(message.data)
    if "error" in answer:
        raise APIError.from_error(answer["error"])
    if answer.get("duplicate"):  # a single message: a batch with a known id is refused
        raise APIError(code=400, err_code=DUPLICATE_ID, description="the log knows the id of the message")
    return int(answer["seq"])


def _encode_batch(batch: Sequence[ExactMessage], last: int | None, inbox: str) -> bytes:
    """Return an atomic batch in the protocol of NATS.

    nats-py's `publish` refuses subjects that servers take, and checks and flushes each message.
    """
    batch_id = uuid4().hex
    parts = []
    for place, message in enumerate(batch, 1):
        others = {}
        if place == 1 and last is not None:
            others = _build_position_header(last)
        if len(batch) > 1:
            others |= {"Nats-Batch-Id": batch_id, "Nats-Batch-Sequence": str(place)}
        reply = b""
        if place == len(batch):
            reply = f"{inbox} ".encode()
            if len(batch) > 1:
                others["Nats-Batch-Commit"] = "1"
        headers = message.encode_headers(others)
        size = len(headers) + len(message.body)
        parts.append(
            b"HPUB %b %b%d %d\r\n%b%b\r\n"
            % (message.subject.encode(), reply, len(headers), size, headers, message.body)
        )
    return b"".join(parts)


def _build_position_header(last: int) -> dict[str, str]:
    return {"Nats-Expected-Last-Sequence": str(last)}


def _find_log_config() -> StreamConfig:
    return next(config for config in STREAMS if config.name == LOG)


def _require_no_newer_events(info: StreamInfo) -> None:
    """Check that a log has received no events since its restore, so that another run may continue the replay.

    A log without `RESTORED_END`, which an earlier version restored, passes.
    """
    last = info.state.last_seq
    newer = last - int((info.config.metadata or {}).get(RESTORED_END, last))
    if newer:
        raise LogNotEmpty(
            f"{LOG} already has this backup and {newer:,} newer {'event' if newer == 1 else 'events'}, so "
            "nothing was written: to return to the state of the backup, restore into a new folder (--data "
            "DIR), or into servers without the stream"
        )


async def _require_empty(connection: Client, info: StreamInfo) -> None:
    if UNFINISHED in (info.config.metadata or {}):
        raise LogNotEmpty(
            f"a restore of another backup into {LOG} has not ended: delete the stream (nats stream rm "
            f"{LOG}), or restore into a new folder (--data DIR), or into other servers"
        )
    if info.state.last_seq:
        raise LogNotEmpty(
            f"{LOG} has events up to position {info.state.last_seq:,}: restore into a new folder "
            "(--data DIR), or into servers without the stream"
        )
    for consumer in await list_consumers(connection.jetstream(), LOG):
        if consumer.num_waiting:
            raise LogNotEmpty(f"the consumer {consumer.name} is running: stop all consumers, then restore")


async def _require_no_entries(connection: Client) -> None:
    for bucket, content in (SETTINGS, "settings"), (API_KEYS, "API keys"):
        try:
            info = await connection.jetstream().stream_info(f"KV_{bucket}")
        except NotFoundError:
            continue
        if info.state.last_seq:
            raise LogNotEmpty(
                f"the servers have {content} already: delete the bucket (nats kv del {bucket}), or restore "
                "into a new folder (--data DIR), or into other servers"
            )
