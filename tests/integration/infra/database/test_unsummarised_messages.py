"""Uncovered messages: the oldest of each conversation are found, at a limited cost."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from psycopg import AsyncRawCursor

from mnemon_consumers.persist.decide import plan_batch
from mnemon_contracts.subjects import build_chat_subject, build_memory_subject
from mnemon_infra.database.engine import Connection, Database, Lookup
from mnemon_infra.database.messages import uncovered_messages as module
from mnemon_infra.database.messages.uncovered_messages import (
    BEGINNING,
    CoveredBy,
    MessageOutline,
    UncoveredQuery,
    list_long_conversations,
    load_uncovered_messages,
)
from mnemon_infra.database.projections.rows import MemoryRow, Rows
from mnemon_infra.database.projections.writer import write_rows
from mnemon_infra.delivery import Delivery

END = 2**62


def event(seq: int, kind: str, conversation: str | None, user: str = "anna", **body: Any) -> Delivery:
    subject = build_chat_subject("acme", user, conversation, kind)
    return Delivery(subject, json.dumps(body).encode(), f"e{seq}", "LOG", seq, 1, 1.8e9 + seq)


def said(seq: int, conversation: str | None = None, user: str = "anna", **fields: Any) -> Delivery:
    return event(seq, "message", conversation, user, role="user", content=f"words {seq}", **fields)


def summary(seq: int, conversation: str, from_seq: int, to_seq: int, *merged: str) -> Delivery:
    body: dict[str, Any] = {"summary_id": f"s{seq}", "conversation": conversation, "text": "They talked."}
    body |= {"from_seq": from_seq, "to_seq": to_seq} | ({"merged": merged} if merged else {})
    subject = build_memory_subject("acme", "anna", "summary.merged" if merged else "summary.written")
    return Delivery(subject, json.dumps(body).encode(), f"e{seq}", "LOG", seq, 1, 1.8e9 + seq)


async def stretches(
    database: Database,
    covered_by: CoveredBy,
    *,
    at_most: int = 100,
    up_to: int = END,
    conversation: str | None = None,
) -> dict[str, list[int]]:
    wanted = UncoveredQuery("acme", "anna", at_most, up_to, conversation)
    (found,) = await database.run_query(load_uncovered_messages([wanted], covered_by))
    return {each.conversation: [message.seq for message in each.messages] for each in found}


async def noted(database: Database, seq: int, name: str, conversation: str | None, body: Any) -> None:
    """Write a row of `memory_events`, such as of `window.answered` or `batch.intended`."""
    values = {"tenant": "acme", "user_id": "anna", "event_id": f"e{seq}", "seq": seq, "at": 1.8e9}
    values |= {"event": name, "item": "i", "conversation": conversation, "body": body}
    row = MemoryRow(("acme", "anna", f"e{seq}"), seq, name, json.dumps(values).encode())
    await write_rows(database, Rows(memories={row.key: row}))


async def cut(database: Database, conversation: str, *ranges: tuple[int, int]) -> None:
    async with database.transaction() as connection, connection.cursor() as cursor:
        await cursor.executemany(
            "INSERT INTO windows (tenant, user_id, conversation, from_seq, to_seq, cut_at, due_at, attempts,"
            " is_answered) VALUES ('acme', 'anna', %s, %s, %s, now(), now(), 0, false)",
            [(conversation, *each) for each in ranges],
        )


async def test_oldest_unsummarised_messages_are_read_per_conversation(database: Database) -> None:
    call = {"id": "c", "name": "look", "arguments": {"at": "it"}}
    events = [
        event(1, "started", "a"),
        said(
            2, name="Anna", task_id="t", metadata={"from_memory": True}, sent_at="2026-03-01T10:00:00+03:00"
        ),
        said(3, "b"),
        said(4),
        said(5, "a", tool_calls=[call]),
        said(6, user="boris"),
    ]
    await write_rows(database, plan_batch(events).rows)

    assert await stretches(database, "summaries") == {"a": [2, 5], "b": [3, 4]}
    assert await stretches(database, "windows") == {"a": [2, 5], "b": [3, 4]}
    assert await stretches(database, "summaries", conversation="b") == {"b": [3, 4]}
    assert await stretches(database, "summaries", conversation="c") == {}
    assert await stretches(database, "summaries", at_most=1) == {"a": [2], "b": [3]}
    assert await stretches(database, "summaries", up_to=4) == {"a": [2], "b": [3, 4]}

    ((a, _),) = await database.run_query(
        load_uncovered_messages([UncoveredQuery("acme", "anna", 10, END)], "windows")
    )
    first, second = a.messages
    at = datetime(2026, 3, 1, 7, tzinfo=UTC)
    assert first == MessageOutline(2, "user", "words 2", True, "Anna", True, at)
    assert (second.seq, second.is_from_memory) == (5, False)


async def test_long_messages_are_read_as_far_as_their_beginning(database: Database) -> None:
    texts = {1: "ж" * BEGINNING, 2: "ж" * BEGINNING + "!", 3: ""}
    marks = {1: True, 2: "true", 3: None}
    events = [
        event(seq, "message", "a", role="user", content=text, metadata={"from_memory": marks[seq]})
        for seq, text in texts.items()
    ]
    await write_rows(database, plan_batch(events).rows)

    ((found,),) = await database.run_query(
        load_uncovered_messages([UncoveredQuery("acme", "anna", 10, END)], "windows")
    )

    assert [(each.beginning, each.is_whole, each.is_from_memory) for each in found.messages] == [
        ("ж" * BEGINNING, True, True),
        ("ж" * BEGINNING, False, False),
        ("", True, False),
    ]


async def test_messages_on_the_current_conversation_go_by_its_spans(database: Database) -> None:
    events = [event(1, "started", "a"), said(2), event(3, "started", "b"), said(4), event(5, "started", "a")]
    events += [said(6), event(7, "started", "b"), said(8), said(9, "a")]
    await write_rows(database, plan_batch([*events, summary(10, "a", 2, 2)]).rows)

    assert await stretches(database, "summaries") == {"a": [6, 9], "b": [4, 8]}
    assert await stretches(database, "summaries", at_most=1) == {"a": [6], "b": [4]}


async def test_summaries_cover_up_to_the_last_position_of_those_left(database: Database) -> None:
    await write_rows(database, plan_batch([said(seq, "ab"[seq % 2]) for seq in range(1, 21)]).rows)
    await write_rows(database, plan_batch([summary(21, "a", 2, 6), summary(22, "a", 8, 12)]).rows)
    assert (await stretches(database, "summaries"))["a"] == [14, 16, 18, 20]

    await write_rows(database, plan_batch([summary(23, "a", 2, 12, "s21", "s22")]).rows)
    assert (await stretches(database, "summaries"))["a"] == [14, 16, 18, 20]
    assert len((await stretches(database, "summaries"))["b"]) == 10
    assert len((await stretches(database, "windows"))["a"]) == 10

    # A summary of a cleared message covers nothing: it may have been written concurrently with the clear.
    await write_rows(
        database, plan_batch([event(24, "cleared", "a"), summary(27, "a", 20, 26), said(25, "a")]).rows
    )
    await write_rows(database, plan_batch([said(26, "a"), said(28, "a")]).rows)
    assert (await stretches(database, "summaries"))["a"] == [25, 26, 28]


async def test_rows_and_events_of_windows_cover_messages(database: Database) -> None:
    await write_rows(database, plan_batch([said(seq, "ab"[seq % 2]) for seq in range(1, 21)]).rows)
    await noted(database, 21, "window.answered", "a", {"conversation": "a", "from_seq": 2, "to_seq": 8})
    await noted(database, 22, "window.answered", "a", {"conversation": "a", "from_seq": 2, "to_seq": 4})
    assert (await stretches(database, "windows"))["a"] == [10, 12, 14, 16, 18, 20]

    windows = [{"conversation": "b", "from_seq": 1, "to_seq": 5}]
    windows += [{"conversation": "a", "from_seq": 10, "to_seq": 12}]
    await noted(database, 23, "batch.intended", None, {"batch_id": "i", "windows": windows})
    found = await stretches(database, "windows")
    assert found == {"a": [14, 16, 18, 20], "b": [7, 9, 11, 13, 15, 17, 19]}
    assert len((await stretches(database, "summaries"))["a"]) == 10

    await cut(database, "a", (14, 16), (2, 12))
    assert await stretches(database, "windows") == found | {"a": [18, 20]}


async def test_removed_messages_are_not_unsummarised(database: Database) -> None:
    events = [said(1, "a"), said(2, "a"), said(3, "b"), event(4, "cleared", "a"), said(5, "a")]
    await write_rows(database, plan_batch(events).rows)
    assert await stretches(database, "windows") == {"a": [5], "b": [3]}

    await write_rows(
        database, plan_batch([event(6, "started", "c", discard_previous=True), said(7, "a")]).rows
    )
    assert await stretches(database, "summaries") == {"a": [7]}


async def test_many_users_are_read_in_one_query(database: Database) -> None:
    await write_rows(
        database, plan_batch([said(seq, "ab"[seq % 4 // 2], f"u{seq % 2}") for seq in range(100)]).rows
    )
    await write_rows(database, plan_batch([summary(200, "a", 0, 90)]).rows)
    wanted = [UncoveredQuery("acme", f"u{number}", 5, END) for number in (0, 1, 2)]

    found = await database.run_query(load_uncovered_messages(wanted, "summaries"))

    assert [[each.conversation for each in of] for of in found] == [["a", "b"], ["a", "b"], []]
    assert [message.seq for message in found[1][1].messages] == [3, 7, 11, 15, 19]
    assert await database.run_query(load_uncovered_messages([], "summaries")) == []


async def test_long_conversations_are_read_in_part(database: Database) -> None:
    events = [said(seq, "a") for seq in range(1, 18)] + [said(seq, "b") for seq in range(18, 34)]
    events += [event(40, "started", "c"), *(said(seq) for seq in range(41, 50))]
    events += [said(seq, "c") for seq in range(50, 58)]
    await write_rows(database, plan_batch(events).rows)
    wanted = [UncoveredQuery("acme", "anna", number, END) for number in (16, 17, 18)]

    assert await database.run_query(list_long_conversations(wanted)) == [["a", "b", "c"], ["a", "c"], []]
    assert await database.run_query(list_long_conversations([UncoveredQuery("acme", "anna", 16, 56)])) == [
        ["a", "b", "c"]
    ]
    assert await database.run_query(list_long_conversations([UncoveredQuery("acme", "anna", 17, 56)])) == [
        ["a"]
    ]
    await write_rows(database, plan_batch([summary(60, "c", 41, 41)]).rows)
    assert await database.run_query(list_long_conversations(wanted)) == [["a", "b", "c"], ["a"], []]


def touched(node: dict[str, Any]) -> float:
    """Return the number of rows that the scans of a plan read, with those that a filter dropped."""
    own = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    below = sum(touched(part) for part in node.get("Plans", ()))
    return float(below + (own if "Relation Name" in node else 0))


def scans(node: dict[str, Any]) -> set[str]:
    """Return the types of the executed scans of `messages`, `memory_events` and `windows`."""
    is_long = node.get("Relation Name") in {"messages", "memory_events", "windows"} and node["Actual Loops"]
    own = {node["Node Type"]} if is_long else set()
    return own.union(*(scans(part) for part in node.get("Plans", ())))


async def explained(connection: Connection, lookup: Lookup, parameters: dict[str, Any]) -> dict[str, Any]:
    statement = "EXPLAIN (ANALYZE, FORMAT JSON) " + lookup.compiled
    wanted = [json.dumps([{"place": 0, **parameters}])]
    ((found,),) = await (await AsyncRawCursor(connection).execute(statement, wanted)).fetchall()
    plan: dict[str, Any] = found[0]["Plan"]
    return plan


@pytest.mark.parametrize("analysed", [False, True])
@pytest.mark.parametrize("covered_by", ["summaries", "windows"])
@pytest.mark.parametrize("conversation", [pytest.param(None, marks=pytest.mark.long), "talk"])
async def test_only_unsummarised_rows_are_read(
    database: Database, conversation: str | None, covered_by: CoveredBy, analysed: bool
) -> None:
    events = [event(1, "started", "talk"), *(said(seq, conversation) for seq in range(2, 3_002))]
    await write_rows(database, plan_batch(events).rows)
    covering = [(seq, seq + 5) for seq in range(2, 2_882, 6)]
    await write_rows(
        database, plan_batch([summary(20_000 + each[0], "talk", *each) for each in covering]).rows
    )
    await cut(database, "talk", *covering)
    bounds = {"of_tenant": "acme", "of_user": "anna", "first": "f", "at_most": 21, "high": 3_002}
    async with database.transaction() as connection:
        if analysed:
            await connection.execute("ANALYZE")
        begun = await explained(
            connection, module._UNCOVERED_SPANS[covered_by], bounds | {"conversation": None}
        )
        place = {"conversation": conversation, "low": 2_881}
        between = await explained(connection, module._BETWEEN, bounds | place)

    assert touched(begun) <= 10
    assert touched(between) == 21
    assert scans(begun) | scans(between) <= {"Index Scan", "Index Only Scan"}
    assert (await stretches(database, covered_by, at_most=5))["talk"] == list(range(2_882, 2_887))
