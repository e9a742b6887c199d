"""Messages of a restored log: an event or a filler for each position. No I/O."""

from collections.abc import Iterable, Iterator

import msgspec

from mnemon.operations.backup.segments import LogRecord
from mnemon_infra.broker.provisioning.restoration import FILLER, ExactMessage
from mnemon_infra.delivery import STORED_AT, build_restored_time


def build_message(record: LogRecord) -> ExactMessage:
    """Return the message of an event, with its original time in a header."""
    headers = {**record.headers, STORED_AT: build_restored_time(record.seq, record.at)}
    return ExactMessage(record.subject, headers, record.payload)


def renumber_entries(entries: Iterable[LogRecord]) -> Iterator[LogRecord]:
    """Yield the entries of a bucket with their positions in the restored bucket, which has no gaps.

    The original bucket has gaps where its history was cut off. The original time in the header `STORED_AT`
    applies only at the position that the header names.
    """
    for position, entry in enumerate(entries, 1):
        yield msgspec.structs.replace(entry, seq=position)


def plan_messages(records: Iterable[LogRecord], last: int) -> Iterator[ExactMessage]:
    """Yield the events and fillers after the position `last`, in log order, up to the last of the records.

    The log is written up to `last` already, so records up to `last` are skipped.
    """
    for record in records:
        if record.seq <= last:
            continue
        yield from fill_gap(last, record.seq - 1)
        yield build_message(record)
        last = record.seq


def fill_gap(last: int, up_to: int) -> Iterator[ExactMessage]:
    """Yield a filler for each position after `last` and up to `up_to`."""
    for _ in range(up_to - last):
        yield FILLER
