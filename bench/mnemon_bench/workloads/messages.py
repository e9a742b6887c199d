"""Generated messages of a thousand users, with ids and about 130 bytes each."""

import asyncio
from uuid import uuid4
from zlib import crc32

from nats.aio.client import Client

BATCH = 1000
USERS = 1000
_WORDS = ("about", "the", "weather,", "the", "children,", "a", "recipe,", "the", "train", "at", "seven")


def make_body(number: int) -> bytes:
    """Return the body of a message, of about 130 bytes."""
    words = " ".join(_WORDS[(number * 7 + offset) % len(_WORDS)] for offset in range(12))
    return b'{"role":"user","content":"%d: %b","sent_at":"2026-11-21T10:00:00Z"}' % (number, words.encode())


def make_subject(number: int) -> str:
    """Return the subject of a message; 1,000 consecutive messages come from about 600 users."""
    return f"chat.bench.u{crc32(b'%d' % number) % USERS}.-.message.v1"


async def fill_log(connection: Client, messages: int, first: int = 0) -> int:
    """Append messages to the log, in atomic batches, and return the last position of the log.

    `messages` is the number of messages to append, and `first` the number of the first.

    Raises:
        RuntimeError: the last position of the log is below `messages` afterwards.
    """
    last = b"{}"
    for start in range(first, first + messages, BATCH):
        batch = uuid4().hex
        numbers = range(start, min(start + BATCH, first + messages))
        for place, number in enumerate(numbers, 1):
            headers = {"Nats-Msg-Id": uuid4().hex, "Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(place)}
            if number == numbers[-1]:
                headers["Nats-Batch-Commit"] = "1"
                last = (
                    await connection.request(
                        make_subject(number), make_body(number), headers=headers, timeout=30
                    )
                ).data
            else:
                await connection.publish(make_subject(number), make_body(number), headers=headers)
        await asyncio.sleep(0)
    info = await connection.jetstream().stream_info("LOG")
    if info.state.last_seq < messages:
        raise RuntimeError(
            f"the log has {info.state.last_seq} of {messages} messages; the last answer of the server is "
            f"{last.decode()}; run the bench again"
        )
    return info.state.last_seq
