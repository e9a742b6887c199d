"""State of a tenant after all work has ended: rows of the tables, and the answers that its users get.

The state has no log positions, and no values that depend on them, because they differ between two runs.
"""

import asyncio
import json
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import nats.errors
import psycopg
from nats.aio.client import Client

from mnemon_contracts.streams import LOG, WORK
from mnemon_infra.broker.streams.applied_position import read_log_end
from mnemon_producers.client import MemoryClient
from mnemon_producers.errors import AskFailed

SETTLING = 300.0
"""Maximum seconds until all work has ended; messages of a killed process are delivered again after 20 s."""

QUIET = 5.0
"""Seconds without a new event after which work has ended; longer than `idle_seconds` of extraction."""

PERIODIC = frozenset({"maintain", "extract-batches"})
"""Consumers that receive a trigger every few seconds, so that they are never without work."""

READING = 8
"""Maximum number of users whose answers are requested at the same time."""

Rows = list[tuple[Any, ...]]
State = Mapping[str, Rows]
"""Rows by the name of a table, or `answers`; in the order of their keys."""

_TABLES = {
    "messages": """
        SELECT user_id, event_id, conversation, role, content, name, task_id, metadata::text, sent_at
        FROM messages WHERE tenant = %(tenant)s ORDER BY 1, 2""",
    "starts": """
        SELECT user_id, event_id, conversation, discard_previous
        FROM starts WHERE tenant = %(tenant)s ORDER BY 1, 2""",
    "clears": """
        SELECT user_id, event_id, conversation FROM clears WHERE tenant = %(tenant)s ORDER BY 1, 2""",
    # Without ids: a `save` that is repeated after a missing reply is another proposal with other ids.
    "facts": """
        SELECT user_id, body #>> '{fact,text}', body #>> '{fact,tier}', body #>> '{fact,kind}',
            body #>> '{fact,importance}', count(*)
        FROM memory_events WHERE tenant = %(tenant)s AND event = 'fact.saved'
        GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2""",
    # Summaries without a body were cleared: whether one was written before the clear depends on timing.
    "summaries": """
        SELECT user_id, event, body ->> 'text', count(*) FROM memory_events
        WHERE tenant = %(tenant)s AND event IN ('summary.written', 'summary.merged') AND body IS NOT NULL
        GROUP BY 1, 2, 3 ORDER BY 1, 2, 3""",
}


async def state(url: str, database: str, schema: str, tenant: str, users: Iterable[str]) -> State:
    """Return the state of a tenant, with the answers to these users.

    Raises:
        AskFailed: a request of a user has no result.
    """
    found = {}
    async with await psycopg.AsyncConnection.connect(
        database, options=f"-c search_path={schema}"
    ) as connection:
        for name, statement in _TABLES.items():
            found[name] = await (await connection.execute(statement, {"tenant": tenant})).fetchall()
    limit = asyncio.Semaphore(READING)
    async with MemoryClient.connect(url, tenant=tenant) as memory:

        async def answers(user: str) -> tuple[Any, ...]:
            async with limit:
                history = await memory.history(user, limit=1000)
                facts = await memory.read(user, limit=1000)
            said = [(each.role, each.content) for each in history.messages]
            return user, said, sorted(each.text for each in facts.facts)

        found["answers"] = list(await asyncio.gather(*map(answers, sorted(users))))
    return found


async def settled_state(
    connection: Client, url: str, database: str, schema: str, tenant: str, users: list[str]
) -> State:
    """Wait until all work has ended, and return the state of a tenant.

    Raises:
        AssertionError: work is left after `SETTLING` seconds; the message names it.
    """
    known, since, left = -1, time.monotonic(), ""
    try:
        async with asyncio.timeout(SETTLING):
            while True:
                end, left = await _worked_off(connection)
                if end is None or end != known:
                    known, since = -1 if end is None else end, time.monotonic()
                elif time.monotonic() - since > QUIET:
                    with suppress(AskFailed):
                        return await state(url, database, schema, tenant, users)
                await asyncio.sleep(0.2)
    except TimeoutError as error:
        raise AssertionError(f"after {SETTLING} s there is work left: {left}") from error


async def _worked_off(connection: Client) -> tuple[int | None, str]:
    """Return the end of the log, or None while work is left, and a description of the work that is left.

    The messages of the streams do not tell whether work is left: after a kill, a server stores messages again
    that were acknowledged and removed, and delivers them to no consumer.
    """
    stream_context = connection.jetstream()
    try:
        consumers = [each for stream in (LOG, WORK) for each in await stream_context.consumers_info(stream)]
        end = await read_log_end(stream_context)
    except nats.errors.Error as error:
        return None, repr(error)
    left = {
        each.name: (each.num_pending, each.num_ack_pending)
        for each in consumers
        if each.name not in PERIODIC and (each.num_pending or each.num_ack_pending)
    }
    return None if left else end, f"messages not delivered and not acknowledged: {left}"


def differences(one: State, other: State) -> list[str]:
    """Return the differences between two states, one line for each row that only one state has."""
    lines = []
    for name in sorted({*one, *other}):
        ours, theirs = (_spelled(each.get(name, [])) for each in (one, other))
        lines += [f"{name}: only the first has {line}" for line in sorted(ours - theirs)]
        lines += [f"{name}: only the second has {line}" for line in sorted(theirs - ours)]
    return lines


def _spelled(rows: Rows) -> set[str]:
    return {json.dumps(row, default=str, ensure_ascii=False) for row in rows}
