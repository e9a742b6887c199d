"""Entries of key-value buckets, read without the end mark of nats-py, which can come too early."""

import asyncio
from contextlib import suppress
from typing import Final

import nats.errors
from nats.js.kv import KeyValue

TIMEOUT: Final = 5.0
"""Maximum seconds for the server to answer, or to send all entries of a watch."""


async def read_present_entries(watcher: KeyValue.KeyWatcher) -> list[KeyValue.Entry]:
    """Return the entries that exist when a watch begins.

    nats-py sets its end mark too early if the server has sent all entries and the last entry has not arrived
    yet. So this function ignores the marks, and reads the number of remaining entries from each entry.
    """
    assert watcher._sub is not None
    consumer = await watcher._sub.consumer_info()
    sent = consumer.delivered.consumer_seq if consumer.delivered else 0
    found: list[KeyValue.Entry] = []
    if not sent and not consumer.num_pending:
        return found
    try:
        async with asyncio.timeout(TIMEOUT):
            async for entry in watcher:
                if entry is not None:
                    found.append(entry)
                    if not entry.delta:
                        break
    except TimeoutError as error:
        raise nats.errors.TimeoutError from error
    return found


async def stop_watch(watcher: KeyValue.KeyWatcher) -> None:
    """End a watch, even if its connection has ended already."""
    with suppress(nats.errors.Error):
        await watcher.stop()  # type: ignore[no-untyped-call]
