"""Lookup of found messages: the visible ones, with their neighbours in the conversation."""

import json
from datetime import UTC, datetime
from typing import Any

from mnemon_consumers.persist.decide import plan_batch
from mnemon_contracts.subjects import build_chat_subject
from mnemon_infra.database.engine import Database
from mnemon_infra.database.messages.lookup import (
    MessageLookup,
    PeriodLookup,
    Surroundings,
    load_messages_of_periods,
    load_surroundings,
    load_visible_messages,
)
from mnemon_infra.database.projections.writer import write_rows
from mnemon_infra.delivery import Delivery


def event(seq: int, kind: str, conversation: str | None, user: str = "anna", **body: Any) -> Delivery:
    subject = build_chat_subject("acme", user, conversation, kind)
    return Delivery(subject, json.dumps(body).encode(), f"e{seq}", "LOG", seq, 1, 1.8e9 + seq)


def said(seq: int, conversation: str | None = None, user: str = "anna") -> Delivery:
    return event(seq, "message", conversation, user, role="user", content=f"words {seq}", name="Anna")


async def around(database: Database, *seqs: int) -> Surroundings:
    wanted = MessageLookup("acme", "anna", [f"e{seq}" for seq in seqs], len(seqs))
    (found,) = await database.run_query(load_surroundings([wanted]))
    return found


async def test_two_messages_to_each_side_in_the_same_conversation(database: Database) -> None:
    await write_rows(database, plan_batch([said(seq, "ab"[seq % 2]) for seq in range(1, 21)]).rows)

    found = await around(database, 10)

    assert sorted(found.messages) == [6, 8, 10, 12, 14]
    assert found.following == {6: 8, 8: 10, 10: 12, 12: 14}
    assert {message.conversation for message in found.messages.values()} == {"a"}


async def test_adjacent_surroundings_are_joined(database: Database) -> None:
    await write_rows(database, plan_batch([said(seq) for seq in range(1, 21)]).rows)

    found = await around(database, 4, 8, 16)

    assert sorted(found.messages) == [2, 3, 4, 5, 6, 7, 8, 9, 10, 14, 15, 16, 17, 18]
    assert found.following == {seq: seq + 1 for seq in (2, 3, 4, 5, 6, 7, 8, 9, 14, 15, 16, 17)}


async def test_only_the_first_hits_have_surroundings(database: Database) -> None:
    await write_rows(database, plan_batch([said(seq) for seq in range(1, 21)]).rows)
    wanted = MessageLookup("acme", "anna", ["e15", "e4", "e9"], 2)

    (found,) = await database.run_query(load_surroundings([wanted]))

    assert sorted(found.messages) == [2, 3, 4, 5, 6, 9, 13, 14, 15, 16, 17]
    assert found.following == {seq: seq + 1 for seq in (2, 3, 4, 5, 13, 14, 15, 16)}


async def read_period(database: Database, start: int, end: int, limit: int, user: str = "anna") -> list[int]:
    """Return the log positions of messages that were sent from the second `start` up to the second `end`."""
    sent_from, sent_before = (datetime.fromtimestamp(1.8e9 + each, UTC) for each in (start, end))
    wanted = PeriodLookup("acme", user, sent_from, sent_before, limit)
    (found,) = await database.run_query(load_messages_of_periods([wanted]))
    return [each.seq for each in found]


async def test_messages_of_a_period_are_spread_over_it(database: Database) -> None:
    events = [said(seq, "ab"[seq % 2]) for seq in range(1, 41)] + [said(41, user="boris")]
    await write_rows(database, plan_batch(events).rows)

    assert await read_period(database, 10, 15, 20) == [10, 11, 12, 13, 14]
    assert await read_period(database, 1, 41, 4) == [10, 20, 30, 40]
    assert await read_period(database, 50, 60, 4) == []


async def test_removed_messages_of_a_period_do_not_count(database: Database) -> None:
    events = [said(seq, "ab"[seq % 2]) for seq in range(1, 21)]
    await write_rows(database, plan_batch([*events, event(21, "cleared", "a")]).rows)

    assert await read_period(database, 1, 21, 5) == [3, 7, 11, 15, 19]


async def test_a_long_period_is_sampled_before_removed_messages_are_left_out(database: Database) -> None:
    events = [said(seq, "ab"[seq % 2]) for seq in range(1, 101)]
    await write_rows(database, plan_batch([*events, event(101, "cleared", "a")]).rows)

    assert await read_period(database, 1, 101, 4) == [13, 25, 63, 75]


async def test_messages_by_name_and_on_the_current_conversation_stand_together(
    database: Database,
) -> None:
    events = [
        said(1, "b"),
        event(2, "started", "a"),
        said(3),
        said(4, "a"),
        said(5, "b"),
        said(6),
        said(7, "a"),
    ]
    events += [event(8, "started", "b"), said(9), said(10, "a")]
    await write_rows(database, plan_batch(events).rows)

    assert (await around(database, 4)).following == {3: 4, 4: 6, 6: 7}
    assert (await around(database, 6)).following == {3: 4, 4: 6, 6: 7, 7: 10}
    assert (await around(database, 10)).following == {4: 7, 7: 10}, "beyond its own span only what names it"
    assert (await around(database, 9)).following == {1: 5, 5: 9}


async def test_removed_messages_are_neither_found_nor_neighbours(database: Database) -> None:
    events = [said(1), said(2), event(3, "cleared", None), said(4), said(5), said(6, user="boris")]
    await write_rows(database, plan_batch(events).rows)

    found = await around(database, 1, 2, 4, 6)

    assert sorted(found.messages) == [4, 5]
    assert found.following == {4: 5}
    await write_rows(database, plan_batch([event(7, "started", None, discard_previous=True), said(8)]).rows)
    assert sorted((await around(database, 4, 8)).messages) == [8]


async def test_many_users_are_looked_up_together(database: Database) -> None:
    await write_rows(database, plan_batch([said(seq, user=f"u{seq % 3}") for seq in range(1, 31)]).rows)
    wanted = [
        MessageLookup("acme", f"u{number}", [f"e{seq}" for seq in range(1, 31)], 30) for number in range(3)
    ]

    for number, messages in enumerate(await database.run_query(load_visible_messages(wanted))):
        assert [message.seq for message in messages] == [seq for seq in range(1, 31) if seq % 3 == number]
    for number, found in enumerate(await database.run_query(load_surroundings(wanted))):
        assert sorted(found.messages) == [seq for seq in range(1, 31) if seq % 3 == number]
        assert found.following == {seq: seq + 3 for seq in sorted(found.messages)[:-1]}
    assert await database.run_query(load_surroundings([])) == []
