"""The bare loop that `bench ingest` compares with, in a separate process: stock nats-py and psycopg.

It fetches up to 500 messages, decodes them, runs `INSERT ... SELECT unnest(...) ON CONFLICT DO NOTHING`,
commits and acknowledges. It assigns no conversations, and has no watermarks, dead letters or notices. It
writes into a table with the same columns and indexes as the table of `persist`.
"""

import asyncio
import json
import sys
import time

import nats
import psutil
import psycopg

_INSERT = """
    INSERT INTO messages (tenant, user_id, conversation, seq, event_id, role, content, sent_at)
    SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::bigint[], %s::text[], %s::text[], %s::text[],
                         %s::timestamptz[])
    ON CONFLICT DO NOTHING
"""


async def measure_persisting(
    nats_url: str, database_url: str, schema: str, durable: str, messages: int
) -> None:
    """Write messages of the log to PostgreSQL, then print seconds and resident bytes as JSON.

    Args:
        nats_url: address of the server with the log.
        database_url: address of the database.
        schema: database schema with the table to write.
        durable: name of the durable that delivers the messages.
        messages: number of messages to write.
    """
    connection = await nats.connect(nats_url)
    subscription = await connection.jetstream().pull_subscribe_bind(durable, "LOG")
    database = await psycopg.AsyncConnection.connect(database_url, options=f"-csearch_path={schema}")
    written = 0
    begun = time.perf_counter()
    while written < messages:
        batch = await subscription.fetch(500, timeout=5)
        columns: tuple[list[object], ...] = ([], [], [], [], [], [], [], [])
        for message in batch:
            body = json.loads(message.data)
            _, tenant, user, conversation, *_ = message.subject.split(".")
            metadata = message.metadata
            row = (
                tenant,
                user,
                None if conversation == "-" else conversation,
                metadata.sequence.stream,
                (message.headers or {})["Nats-Msg-Id"],
                body["role"],
                body["content"],
                body.get("sent_at") or metadata.timestamp,
            )
            for column, value in zip(columns, row, strict=True):
                column.append(value)
        await database.execute(_INSERT, columns)
        await database.commit()
        for message in batch:
            await message.ack()
        written += len(batch)
    await connection.flush()
    seconds = time.perf_counter() - begun
    await database.close()
    await connection.close()
    print(json.dumps({"seconds": seconds, "resident_bytes": psutil.Process().memory_info().rss}))


if __name__ == "__main__":
    nats_url, database_url, schema, durable, messages = sys.argv[1:]
    asyncio.run(measure_persisting(nats_url, database_url, schema, durable, int(messages)))
