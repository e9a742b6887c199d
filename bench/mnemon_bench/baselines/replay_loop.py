"""The bare loop that `bench rebuild` compares with, in a separate process: stock nats-py and psycopg.

It fetches up to 1,000 events, decodes, inserts and commits them. Every event, of any kind, is a row of one
table with the key and the index of memory events. The loop checks nothing, sweeps nothing and records no
progress.
"""

import asyncio
import json
import sys
import time

import nats
import psutil
import psycopg
from nats.aio.msg import Msg
from nats.js.api import AckPolicy, ConsumerConfig

PAGE = 1000
_INSERT = """
    INSERT INTO memory_events (tenant, user_id, event_id, seq, at, event, conversation, body)
    SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::bigint[], %s::timestamptz[], %s::text[],
                         %s::text[], %s::jsonb[])
    ON CONFLICT DO NOTHING
"""


async def measure_replay(nats_url: str, database_url: str, schema: str, events: int) -> None:
    """Write events of the log to PostgreSQL, then print seconds and resident bytes as JSON.

    Args:
        nats_url: address of the server with the log.
        database_url: address of the database.
        schema: database schema with the table to write.
        events: number of events to write.
    """
    connection = await nats.connect(nats_url)
    database = await psycopg.AsyncConnection.connect(database_url, options=f"-csearch_path={schema}")
    config = ConsumerConfig(ack_policy=AckPolicy.NONE, mem_storage=True)
    subscription = await connection.jetstream().pull_subscribe("", stream="LOG", config=config)
    written = 0
    begun = time.perf_counter()
    while written < events:
        page = await subscription.fetch(PAGE, timeout=5)
        await database.execute(_INSERT, read_columns(page))
        await database.commit()
        written += len(page)
    seconds = time.perf_counter() - begun
    await database.close()
    await connection.close()
    print(json.dumps({"seconds": seconds, "resident_bytes": psutil.Process().memory_info().rss}))


def read_columns(page: list[Msg]) -> tuple[list[object], ...]:
    """Return the values to insert for a page of events: one list per column."""
    columns: tuple[list[object], ...] = ([], [], [], [], [], [], [], [])
    for message in page:
        json.loads(message.data)
        _, tenant, user, *rest = message.subject.split(".")
        metadata = message.metadata
        row = (
            tenant,
            user,
            (message.headers or {})["Nats-Msg-Id"],
            metadata.sequence.stream,
            metadata.timestamp,
            ".".join(rest),
            None,
            message.data.decode(),
        )
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    return columns


if __name__ == "__main__":
    nats_url, database_url, schema, events = sys.argv[1:]
    asyncio.run(measure_replay(nats_url, database_url, schema, int(events)))
