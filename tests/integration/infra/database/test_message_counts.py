"""Counts of visible messages between log positions equal the number of messages that a read returns."""

import json
from typing import Any

import pytest

from mnemon_consumers.persist.decide import plan_batch
from mnemon_contracts.subjects import build_chat_subject
from mnemon_infra.database.engine import Database
from mnemon_infra.database.memory.user_memory import NewestMessagesQuery, load_newest_messages
from mnemon_infra.database.messages.counts import CountedConversation, count_messages
from mnemon_infra.database.projections.writer import write_rows
from mnemon_infra.delivery import Delivery

END = 10**6


def event(seq: int, kind: str, conversation: str | None, **body: Any) -> Delivery:
    subject = build_chat_subject("acme", "anna", conversation, kind)
    return Delivery(subject, json.dumps(body).encode(), f"e{seq}", "LOG", seq, 1, 1.8e9 + seq)


def message(seq: int, conversation: str | None = None) -> Delivery:
    return event(seq, "message", conversation, role="user", content=f"words {seq}")


async def counts(
    database: Database, conversation: str, *edges: int, below: int = END
) -> list[tuple[int, int]]:
    wanted = CountedConversation("acme", "anna", conversation, edges, below)
    (found,) = await database.run_query(count_messages([wanted]))
    return [(seq, number) for seq, number in found]


async def test_counts_begin_at_each_edge(database: Database) -> None:
    await write_rows(database, plan_batch([message(seq, "a") for seq in range(1, 21)]).rows)
    assert await counts(database, "a") == [(0, 20)]
    assert await counts(database, "a", 3, 9, 15) == [(0, 2), (3, 6), (9, 6), (15, 6)]
    assert await counts(database, "a", 3, 9, 15, below=11) == [(0, 2), (3, 6), (9, 2)]
    assert await counts(database, "a", 30, 40) == [(0, 20)]
    assert await counts(database, "b", 3) == []


async def test_messages_without_a_conversation_count_in_the_current_one(database: Database) -> None:
    events = [event(1, "started", "a"), message(2), message(3), event(4, "started", "b"), message(5)]
    events += [event(6, "started", "a"), message(7), message(8, "b"), message(9)]
    await write_rows(database, plan_batch(events).rows)
    assert await counts(database, "a", 3, 7) == [(0, 1), (3, 1), (7, 2)]
    assert await counts(database, "b", 6) == [(0, 1), (6, 1)]


@pytest.mark.parametrize(
    "ending",
    [("cleared", "a", {}), ("cleared", None, {}), ("started", "c", {"discard_previous": True})],
)
async def test_removed_messages_do_not_count(database: Database, ending: tuple[str, str, Any]) -> None:
    kind, conversation, body = ending
    before = [event(1, "started", "a"), message(2), message(3, "a")]
    await write_rows(
        database, plan_batch([*before, event(4, kind, conversation, **body), message(5, "a")]).rows
    )
    assert await counts(database, "a", 3) == [(3, 1)]


async def test_counts_equal_the_number_of_messages_read(database: Database) -> None:
    events = [
        event(seq, "started", "ab"[seq // 7 % 2]) if seq % 7 == 0 else message(seq, (None, "a", "b")[seq % 3])
        for seq in range(1, 100)
    ]
    await write_rows(database, plan_batch([*events, event(100, "cleared", "b"), message(101, "b")]).rows)
    for conversation in "ab":
        (view,) = await database.run_query(
            load_newest_messages([NewestMessagesQuery("acme", "anna", conversation, 1000)])
        )
        assert sum(number for _, number in await counts(database, conversation, 20, 50)) == len(view.messages)
