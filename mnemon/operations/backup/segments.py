"""Segments of a backup: events of the log as compressed lines of JSON. No I/O."""

import gzip
import zlib
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec
from nats.aio.msg import Msg

from mnemon.operations.backup.manifest import SEGMENT_BYTES, SEGMENT_EVENTS, BackupUnusable
from mnemon_contracts.identity import MESSAGE_ID
from mnemon_infra.delivery import STORED_AT, read_storage_time

SUFFIX: Final = ".jsonl.gz"

_COMPRESSION: Final = 5


class LogRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event of the log, or an entry of a bucket, as a backup keeps it.

    Attributes:
        at: time at which the log or the bucket stored the message, in nanoseconds since 1970.
        headers: headers of the message, without those that `select_headers` leaves out.
        body: body of the message, if valid UTF-8; otherwise empty.
        raw: body of the message, if not valid UTF-8, as Base64 in JSON; otherwise empty.
    """

    seq: int
    at: int
    subject: str
    headers: dict[str, str] = {}
    body: str = ""
    raw: bytes = b""

    @property
    def payload(self) -> bytes:
        """The body of the message, in bytes as the log or the bucket has it."""
        return self.raw or self.body.encode()


class EncodedSegment(NamedTuple):
    """A segment that is ready to be stored.

    Attributes:
        first: position of the first event.
        last: position of the last event.
        last_stored_at: time at which the log stored the last event, in nanoseconds since 1970.
        is_full: whether no later event belongs in this segment.
        body: the compressed lines of JSON.
    """

    first: int
    last: int
    last_stored_at: int
    events: int
    is_full: bool
    body: bytes


def build_record(message: Msg) -> LogRecord:
    """Build the record of a message that a consumer of a stream delivered."""
    fields = message.reply.split(".")
    if len(fields) > 9:  # with a domain, as in `Delivery.from_message`
        fields = fields[2:]
    sequence, nanoseconds = int(fields[5]), int(fields[7])
    try:
        text, raw = message.data.decode(), b""
    except UnicodeDecodeError:
        text, raw = "", message.data
    return LogRecord(
        sequence,
        read_storage_time(message.headers, sequence, nanoseconds),
        message.subject,
        select_headers(message.headers or {}),
        text,
        raw,
    )


def select_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that a copy keeps: all but `STORED_AT` and `Nats-*`; `Nats-Msg-Id` stays."""
    return {
        name: value
        for name, value in headers.items()
        if name == MESSAGE_ID or not (name.startswith("Nats-") or name == STORED_AT)
    }


class SegmentEncoder:
    """Encoder of a segment, which collects records in log order until they fill the segment."""

    def __init__(self, max_events: int = SEGMENT_EVENTS, max_bytes: int = SEGMENT_BYTES) -> None:
        self._encoder = msgspec.json.Encoder()
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._lines: list[bytes] = []
        self._bytes = 0
        self._first: LogRecord | None = None
        self._last: LogRecord | None = None

    @property
    def is_full(self) -> bool:
        """True if the next record belongs in another segment."""
        return len(self._lines) >= self._max_events or self._bytes >= self._max_bytes

    @property
    def is_empty(self) -> bool:
        """True if there are no records."""
        return not self._lines

    def add(self, record: LogRecord) -> None:
        """Add the next record."""
        line = self._encoder.encode(record)
        self._first = self._first or record
        self._last = record
        self._lines.append(line)
        self._bytes += len(line) + 1

    def take_segment(self) -> EncodedSegment:
        """Encode the collected records, at least one, as a segment, and remove them from the encoder."""
        assert self._first is not None
        assert self._last is not None
        body = b"".join(b"%b\n" % line for line in self._lines)
        # Without a time in the header of gzip, the same events give the same file.
        segment = EncodedSegment(
            self._first.seq,
            self._last.seq,
            self._last.at,
            len(self._lines),
            self.is_full,
            gzip.compress(body, _COMPRESSION, mtime=0),
        )
        self._lines, self._bytes, self._first, self._last = [], 0, None, None
        return segment


def decode_segment(body: bytes, name: str) -> list[LogRecord]:
    """Return the records of a segment, at least one; `name` is the name of its file, for the error.

    Raises:
        BackupUnusable: the file is damaged.
    """
    try:
        if records := msgspec.json.Decoder(LogRecord).decode_lines(gzip.decompress(body)):
            return records
        raise EOFError
    except (OSError, EOFError, zlib.error, msgspec.DecodeError) as error:
        raise BackupUnusable(f"{name} is damaged: use another copy of the backup") from error
