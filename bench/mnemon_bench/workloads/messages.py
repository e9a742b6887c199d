"""Generated messages of a thousand users, with ids and about 130 bytes each."""

from itertools import islice
from uuid import uuid4
from zlib import crc32

from nats.aio.client import Client

from mnemon_infra.broker.streams.log_writer import BATCH, LogEvent, append_events

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
    """Append messages to the log, and return the log position of the last message; 0 without messages.

    `messages` is the number of messages to append, and `first` the number of the first message.
    """
    numbers = iter(range(first, first + messages))
    last = 0
    while page := [
        LogEvent(make_subject(number), make_body(number), uuid4().hex) for number in islice(numbers, BATCH)
    ]:
        last = (await append_events(connection, page))[-1].seq
    return last
