"""Rows below an erasure are removed, for any number of erasures and any order of writes."""

import json
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest
from psycopg.sql import SQL, Identifier

from mnemon_consumers.persist.decide import plan_batch
from mnemon_contracts.subjects import build_chat_subject, build_memory_subject
from mnemon_infra.database.engine import Database
from mnemon_infra.database.erasure.users import PROJECTED_TABLES
from mnemon_infra.database.projections.writer import write_rows
from mnemon_infra.delivery import Delivery
from tests.support.log.projected_state import forget_all

SAID = {"role": "user", "content": "hi"}
FACT = {"fact_id": "f", "fact": {"text": "Likes tea"}, "decision": {"proposal_id": "p"}}
CALLED = {"provider": "openai", "model": "m", "purpose": "compact", "tokens": {"input": 1, "output": 1}}
TABLES = [
    pytest.param("messages", "message", SAID, id="messages"),
    pytest.param("memory_events", "fact.saved", FACT, id="memory events"),
    pytest.param("starts", "started", {}, id="starts"),
    pytest.param("clears", "cleared", {}, id="clears"),
    pytest.param("model_calls", "model.called", CALLED, id="calls of models"),
    pytest.param("profile_sets", "profile.set", {"fields": {"city": "Kazan"}}, id="profiles"),
]


def test_every_table_of_events_has_a_case() -> None:
    tested = {case.values[0] for case in TABLES}
    untested = {table.name for table in PROJECTED_TABLES} - tested - {"conversation_erasures"}
    assert not untested, "add an event of each of these tables to TABLES"


def event(
    seq: int,
    name: str,
    body: dict[str, Any],
    user: str = "u1",
    conversation: str | None = None,
    event_id: str | None = None,
) -> Delivery:
    subject = (
        build_memory_subject("acme", user, name)
        if "." in name
        else build_chat_subject("acme", user, conversation, name)
    )
    body = {**body, "conversation": conversation} if name.startswith("summary.") else body
    return Delivery(subject, json.dumps(body).encode(), event_id or f"e{seq}", "LOG", seq, 1, 1.8e9 + seq)


def erased(seq: int, below: int, user: str = "u1", **body: Any) -> Delivery:
    return event(seq, "user.erased", {"up_to_seq": below, **body}, user)


def summary(seq: int, conversation: str, from_seq: int, user: str = "u1") -> Delivery:
    body = {"summary_id": f"s{seq}", "text": "Tea.", "from_seq": from_seq, "to_seq": seq}
    return event(seq, "summary.written", body, user, conversation)


async def held(database: Database, table: str) -> set[tuple[str, int]]:
    """Return user and position of each row of a table."""
    async with database.transaction() as connection:
        statement = SQL("SELECT user_id, seq FROM {}").format(Identifier(table))
        return {(user, seq) for user, seq in await (await connection.execute(statement)).fetchall()}


async def hold_in_any_order(
    database: Database,
    table: str,
    erasures: Sequence[Delivery],
    events: Sequence[Delivery],
    expected: set[tuple[str, int]],
) -> None:
    """Write erasures first, last, one by one, and in one batch with the events; assert the rows each time."""
    orders: list[list[Sequence[Delivery]]] = [
        [erasures, events],
        [events, erasures],
        [*([each] for each in erasures), events],
        [[*events, *erasures]],
    ]
    for batches in orders:
        await forget_all(database)
        for batch in batches:
            await write_rows(database, plan_batch(batch).rows)
        assert await held(database, table) == expected


@pytest.mark.parametrize(("table", "name", "body"), TABLES)
async def test_erasure_removes_the_rows_of_its_user_below_it(
    database: Database, table: str, name: str, body: dict[str, Any]
) -> None:
    below = {"u1": 10, "u2": 20, "u3": 30}
    erasures = [erased(100 + number, seq, user) for number, (user, seq) in enumerate(below.items())]
    places = {(user, seq) for user in (*below, "u4") for seq in (5, 9, 10, 15, 20, 25, 30)}
    events = [event(seq, name, body, user) for user, seq in sorted(places)]
    expected = {(user, seq) for user, seq in places if seq >= below.get(user, 0)}
    await hold_in_any_order(database, table, erasures, events, expected)


@pytest.mark.parametrize(("table", "name", "body"), TABLES)
async def test_furthest_erasure_of_a_user_counts(
    database: Database, table: str, name: str, body: dict[str, Any]
) -> None:
    for first, second, third in permutations((8, 14, 11)):
        erasures = [erased(100, first), erased(101, second), erased(102, third)]
        events = [event(seq, name, body) for seq in (7, 8, 11, 13, 14, 15)]
        await hold_in_any_order(database, table, erasures, events, {("u1", 14), ("u1", 15)})


async def test_a_summary_is_removed_with_the_first_message_that_it_covers(database: Database) -> None:
    erasures = [erased(100, 10), erased(101, 20, "u2")]
    events = [
        summary(30 + from_seq, "c", from_seq, user) for user in ("u1", "u2") for from_seq in (9, 10, 19, 20)
    ]
    expected = {("u1", 40), ("u1", 49), ("u1", 50), ("u2", 50)}
    await hold_in_any_order(database, "memory_events", erasures, events, expected)


@pytest.mark.parametrize("together", [True, False])
async def test_each_copy_of_an_erasure_removes_the_rows_below_it(database: Database, together: bool) -> None:
    body = {"up_to_seq": 2**53 - 1}
    copies = [event(seq, "user.erased", body, event_id="gone") for seq in (5, 9)]
    events = [event(seq, "message", SAID) for seq in (7, 10)]
    for order in permutations([*copies, *events]):
        await forget_all(database)
        for batch in [order] if together else [[each] for each in order]:
            await write_rows(database, plan_batch(batch).rows)
        assert await held(database, "messages") == {("u1", 10)}


async def test_erasure_of_a_conversation_removes_its_rows_below_the_erasure(database: Database) -> None:
    erasures = [
        erased(100, 10, conversation="a"),
        erased(101, 20, conversation="b"),
        erased(102, 30, "u2", conversation="a"),
    ]
    positions = (9, 10, 19, 20, 29, 30)
    places = [
        ("u1", "a", 10),
        ("u1", "b", 20),
        ("u1", "c", 0),
        ("u2", "a", 30),
        ("u2", "b", 0),
        ("u3", "a", 0),
    ]
    for number, (user, conversation, below) in enumerate(places):
        events = [event(seq, "message", SAID, user, conversation) for seq in positions]
        expected = {(user, seq) for seq in positions if seq >= below}
        await hold_in_any_order(database, "messages", erasures, events, expected)
        summaries = [summary(200 + 10 * number + seq, conversation, seq, user) for seq in positions]
        left = {(user, 200 + 10 * number + seq) for seq in positions if seq >= below}
        await hold_in_any_order(database, "memory_events", erasures, summaries, left)


async def test_erasure_of_a_conversation_removes_messages_within_its_spans(
    database: Database,
) -> None:
    spans = [{"from_seq": 3, "to_seq": 5}, {"from_seq": 8, "to_seq": 10}]
    erasures = [
        erased(100, 12, conversation="a", spans=spans),
        erased(101, 40, "u2", conversation="a", spans=[{"from_seq": 30, "to_seq": 35}]),
    ]
    events = [event(seq, "message", SAID) for seq in range(1, 14)]
    expected = {("u1", seq) for seq in (1, 2, 5, 6, 7, 10, 11, 12, 13)}
    await hold_in_any_order(database, "messages", erasures, events, expected)


async def test_each_erasure_of_a_conversation_removes_the_facts_derived_from_it(
    database: Database,
) -> None:
    erasures = [
        erased(100, 12, conversation="a", derived=[3, 5]),
        erased(101, 14, conversation="b", derived=[6]),
        erased(102, 40, "u2", conversation="a", derived=[4]),
    ]
    events = [event(seq, "fact.saved", FACT, user) for user in ("u1", "u2") for seq in range(3, 8)]
    expected = {("u1", 4), ("u1", 7)} | {("u2", seq) for seq in (3, 5, 6, 7)}
    await hold_in_any_order(database, "memory_events", erasures, events, expected)


@pytest.mark.parametrize(("table", "name", "body"), TABLES)
async def test_row_of_copies_in_several_batches_has_the_first_position(
    database: Database, table: str, name: str, body: dict[str, Any]
) -> None:
    for order in permutations((4, 5, 6)):
        await forget_all(database)
        for seq in order:
            await write_rows(database, plan_batch([event(seq, name, body, event_id="same")]).rows)
        assert await held(database, table) == {("u1", 4)}
