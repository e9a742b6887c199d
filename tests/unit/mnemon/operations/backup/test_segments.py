"""Segments keep every event as the log has it."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.aio.client import Client
from nats.aio.msg import Msg

from mnemon.operations.backup.manifest import BackupUnusable
from mnemon.operations.backup.segments import (
    EncodedSegment,
    LogRecord,
    SegmentEncoder,
    build_record,
    decode_segment,
)

RECORDS = st.builds(
    LogRecord,
    seq=st.integers(1, 2**53),
    at=st.integers(0, 2**62),
    subject=st.text(min_size=1),
    headers=st.dictionaries(st.text(), st.text(), max_size=3),
    body=st.text(),
    raw=st.just(b"") | st.binary(),
)


def encode_segment(records: list[LogRecord]) -> EncodedSegment:
    encoder = SegmentEncoder()
    for record in records:
        encoder.add(record)
    return encoder.take_segment()


def delivered(body: bytes, headers: dict[str, str] | None = None, domain: str = "") -> Msg:
    reply = f"$JS.ACK.{domain}LOG.reader.1.42.7.1700000000123456789.0"
    return Msg(Client(), subject="chat.acme.u1.-.message.v1", reply=reply, data=body, headers=headers)


@pytest.mark.long
@given(st.lists(RECORDS, min_size=1, max_size=20))
def test_decoding_reverses_encoding(records: list[LogRecord]) -> None:
    segment = encode_segment(records)
    assert decode_segment(segment.body, "x") == records
    assert (segment.first, segment.last, segment.events) == (records[0].seq, records[-1].seq, len(records))
    assert segment.last_stored_at == records[-1].at


@given(st.binary())
def test_a_body_of_any_bytes_is_kept(body: bytes) -> None:
    record = build_record(delivered(body))
    (kept,) = decode_segment(encode_segment([record]).body, "x")
    assert kept.payload == body


def test_the_same_events_give_the_same_file() -> None:
    record = LogRecord(1, 2, "chat.a", {"Nats-Msg-Id": "x"}, "{}")
    assert encode_segment([record]).body == encode_segment([record]).body


def test_a_line_is_readable_without_mnemon() -> None:
    segment = encode_segment([LogRecord(1, 2, "chat.a", {"Nats-Msg-Id": "x"}, "Анна")])
    assert json.loads(gzip.decompress(segment.body)) == {
        "seq": 1,
        "at": 2,
        "subject": "chat.a",
        "headers": {"Nats-Msg-Id": "x"},
        "body": "Анна",
    }


@pytest.mark.parametrize("domain", ["", "hub.hash."])
def test_time_and_position_are_those_of_the_log(domain: str) -> None:
    record = build_record(delivered(b"{}", domain=domain))
    assert (record.seq, record.at) == (42, 1700000000123456789)


@pytest.mark.parametrize(
    ("value", "at"),
    [("42:7", 7), ("41:7", 1700000000123456789), ("42:", 1700000000123456789), ("x", 1700000000123456789)],
)
def test_a_restored_time_counts_at_its_position(value: str, at: int) -> None:
    record = build_record(delivered(b"{}", {"Mnemon-Stored-At": value}))
    assert (record.at, record.headers) == (at, {})


def test_headers_of_storage_are_left_out() -> None:
    headers = {
        "Nats-Msg-Id": "x",
        "traceparent": "t",
        "Nats-Batch-Id": "b",
        "Nats-Batch-Commit": "1",
        "Nats-Expected-Last-Sequence": "3",
    }
    assert build_record(delivered(b"", headers)).headers == {"Nats-Msg-Id": "x", "traceparent": "t"}


def test_a_segment_ends_at_its_limits() -> None:
    encoder = SegmentEncoder(max_events=2, max_bytes=10_000)
    encoder.add(LogRecord(1, 1, "a"))
    assert not encoder.is_full
    encoder.add(LogRecord(2, 1, "a"))
    assert encoder.is_full
    assert encoder.take_segment().is_full
    encoder.add(LogRecord(3, 1, "a", body="x" * 10_000))
    assert encoder.is_full
    encoder.take_segment()
    assert encoder.is_empty


DAMAGED = {
    "empty": b"",
    "text": b"no gzip",
    "no JSON": gzip.compress(b"{", mtime=0),
    "cut off": gzip.compress(b"{}\n", mtime=0)[:-4],
}


@pytest.mark.parametrize("body", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_segment_is_named(body: bytes) -> None:
    with pytest.raises(BackupUnusable, match=r"segments/1\.gz is damaged"):
        decode_segment(body, "segments/1.gz")
