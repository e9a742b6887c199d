"""Rows and queries that a read costs in PostgreSQL, with many stored rows and concurrent readers."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest
from psycopg import AsyncRawCursor
from psycopg.pq import TransactionStatus

from mnemon_consumers.persist.decide import plan_batch
from mnemon_contracts.subjects import build_chat_subject
from mnemon_infra.database.engine import Connection, Database, DatabaseUnavailable, Query
from mnemon_infra.database.memory import user_memory
from mnemon_infra.database.memory.user_memory import ConversationView, NewestMessagesQuery
from mnemon_infra.database.projections.writer import write_rows
from mnemon_infra.database.query_batcher import (
    AT_ONCE,
    ROUND_TRIPS,
    QueryBatcher,
    yield_to_lookups,
)
from mnemon_infra.delivery import Delivery

MANY = 3000


def said(user: str, seq: int, conversation: str | None = None) -> Delivery:
    body = json.dumps({"role": "user", "content": f"{user} says {seq}"}).encode()
    subject = build_chat_subject("acme", user, conversation, "message")
    return Delivery(subject, body, f"e{seq}", "LOG", seq, 1, 1.8e9 + seq)


def touched(plan: dict[str, Any]) -> float:
    """Return the number of rows that a plan's scans of `messages` read, with those that a filter dropped."""
    own = (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    below = sum(touched(part) for part in plan.get("Plans", ()))
    return float(below + (own if plan.get("Relation Name") == "messages" else 0))


@pytest.mark.parametrize("conversation", [None, "talk"])
async def test_read_touches_only_shown_rows(database: Database, conversation: str | None) -> None:
    await write_rows(
        database, plan_batch([said("anna", seq, conversation) for seq in range(1, MANY + 1)]).rows
    )
    wanted = {"of_tenant": "acme", "of_user": "anna", "first": "f", "conversation": None, "at_most": 21}

    async with database.transaction() as connection:
        await connection.execute("ANALYZE messages")
        statement = "EXPLAIN (ANALYZE, FORMAT JSON) " + user_memory._NEWEST_MESSAGES.compiled
        parameters = [json.dumps([{"place": 0, **wanted}])]
        ((explained,),) = await (await AsyncRawCursor(connection).execute(statement, parameters)).fetchall()

    assert 21 <= touched(explained[0]["Plan"]) <= 3 * 21


async def test_concurrent_reads_share_a_query(database: Database) -> None:
    await write_rows(database, plan_batch([said(f"u{seq % 50}", seq) for seq in range(1, 501)]).rows)
    round_trips: list[int] = []

    def counted(queries: Sequence[NewestMessagesQuery]) -> Query[list[ConversationView]]:
        round_trips.append(len(queries))
        return user_memory.load_newest_messages(queries)

    together = QueryBatcher(database, counted)
    asked = [NewestMessagesQuery("acme", f"u{number % 50}", None, 10) for number in range(10 * AT_ONCE)]
    views = await asyncio.gather(*map(together.load, asked))

    for wanted, view in zip(asked, views, strict=True):
        assert [row.content.split()[0] for row in view.messages] == [wanted.user] * 10
        assert [row.seq for row in view.messages] == sorted(row.seq for row in view.messages)
    assert round_trips == [AT_ONCE] * 10


async def test_cancelled_read_cancels_no_other(database: Database) -> None:
    await write_rows(database, plan_batch([said("anna", 1)]).rows)
    together = QueryBatcher(database, user_memory.load_newest_messages)
    asked = [
        asyncio.create_task(together.load(NewestMessagesQuery("acme", "anna", None, 5))) for _ in range(300)
    ]
    await asyncio.sleep(0)
    for task in asked[::2]:
        task.cancel()

    answered = await asyncio.gather(*asked, return_exceptions=True)

    assert all(isinstance(answer, asyncio.CancelledError) for answer in answered[::2])
    assert all(isinstance(answer, ConversationView) for answer in answered[1::2])


async def test_reads_fail_without_database_and_recover(database: Database) -> None:
    await write_rows(database, plan_batch([said("anna", 1)]).rows)
    gone = [True]

    def query(queries: Sequence[NewestMessagesQuery]) -> Query[list[ConversationView]]:
        if gone[0]:
            raise psycopg.OperationalError("gone")
        return user_memory.load_newest_messages(queries)

    together = QueryBatcher(database, query)
    question = NewestMessagesQuery("acme", "anna", None, 5)
    failed = await asyncio.gather(*(together.load(question) for _ in range(200)), return_exceptions=True)
    assert all(isinstance(each, psycopg.OperationalError | DatabaseUnavailable) for each in failed)

    gone[0] = False
    views = await asyncio.gather(*(together.load(question) for _ in range(ROUND_TRIPS + 1)))
    assert [len(view.messages) for view in views] == [1] * (ROUND_TRIPS + 1)


async def test_lookup_is_with_the_database_before_its_caller_computes(
    database: Database, database_url: str
) -> None:
    used: list[Connection] = []

    def wait_for_lock(keys: Sequence[str]) -> Query[list[str]]:
        async def look_up(connection: Connection) -> list[str]:
            used.append(connection)
            await connection.execute("SELECT pg_advisory_xact_lock_shared(7)")
            return list(keys)

        return look_up

    together = QueryBatcher(database, wait_for_lock)
    assert await together.load("boris") == "boris"  # the pool has an idle connection from now on
    used.clear()
    async with await psycopg.AsyncConnection.connect(database_url) as holder:
        await holder.execute("SELECT pg_advisory_xact_lock(7)")
        lookup = asyncio.create_task(together.load("anna"))
        await yield_to_lookups()
        assert [each.info.transaction_status for each in used] == [TransactionStatus.ACTIVE]
    assert await lookup == "anna"


async def test_lookup_after_simultaneous_round_trips_is_sent(database: Database) -> None:
    asked: list[str] = []
    may_end = asyncio.Event()

    def hold_keys(keys: Sequence[str]) -> Query[list[str]]:
        async def look_up(_: Connection) -> list[str]:
            asked.extend(keys)
            await may_end.wait()
            return list(keys)

        return look_up

    together = QueryBatcher(database, hold_keys)

    async def load_twice(key: str) -> list[str]:
        return [await together.load(key), await together.load(key)]

    first = asyncio.create_task(load_twice("anna"))
    others = []
    for number in range(1, ROUND_TRIPS + 1):
        while len(asked) < number:
            await asyncio.sleep(0)
        if number < ROUND_TRIPS:
            others.append(asyncio.create_task(together.load("boris")))
    may_end.set()
    assert await first == ["anna", "anna"]
    assert await asyncio.gather(*others) == ["boris"] * (ROUND_TRIPS - 1)
