"""A conversation becomes current at each `started` event, or at the first message that names it."""

import json
from itertools import permutations

from mnemon_consumers.persist.decide import plan_batch
from mnemon_contracts.identity import derive_first_conversation
from mnemon_contracts.subjects import build_chat_subject
from mnemon_infra.database.engine import Database
from mnemon_infra.database.memory.user_memory import NewestMessagesQuery, load_newest_messages
from mnemon_infra.database.projections.writer import write_rows
from mnemon_infra.delivery import Delivery
from tests.support.log.projected_state import forget_all

FIRST = derive_first_conversation("acme", "u1")


def event(seq: int, name: str, conversation: str | None, **body: object) -> Delivery:
    subject = build_chat_subject("acme", "u1", conversation, name)
    return Delivery(subject, json.dumps(body).encode(), f"e{seq}", "LOG", seq, 1, 1.8e9 + seq)


def said(seq: int, conversation: str | None = None) -> Delivery:
    return event(seq, "message", conversation, role="user", content=str(seq))


def started(seq: int, conversation: str, *, discard: bool = False) -> Delivery:
    return event(seq, "started", conversation, discard_previous=discard)


async def shown(database: Database) -> tuple[str, dict[str, list[int]]]:
    """Return the current conversation, and the positions of the visible messages by conversation."""
    places = [None, FIRST, "a", "b"]
    views = await database.run_query(
        load_newest_messages([NewestMessagesQuery("acme", "u1", place, 100) for place in places])
    )
    held = {
        place: [row.seq for row in view.messages]
        for place, view in zip(places, views, strict=True)
        if place and view.messages
    }
    return str(views[0].conversation), held


async def hold(
    database: Database, events: list[Delivery], current: str, expected: dict[str, list[int]]
) -> None:
    """Write the events in one batch, and one by one in reverse order; assert the same result for both."""
    for batches in ([events], [[each] for each in reversed(events)]):
        await forget_all(database)
        for batch in batches:
            await write_rows(database, plan_batch(batch).rows)
        assert await shown(database) == (current, expected)


async def test_first_message_of_a_conversation_begins_it_before_a_later_start(database: Database) -> None:
    events = [said(1), said(2, "a"), said(3), said(4, "b"), said(5), started(6, "a"), said(7)]
    await hold(database, events, "a", {FIRST: [1], "a": [2, 3, 7], "b": [4, 5]})


async def test_message_of_a_started_conversation_does_not_begin_it_again(database: Database) -> None:
    events = [started(1, "a"), said(2), started(3, "b"), said(4), said(5, "a"), said(6)]
    await hold(database, events, "b", {"a": [2, 5], "b": [4, 6]})


async def test_only_the_first_message_of_a_conversation_begins_it(database: Database) -> None:
    events = [said(1, "a"), said(2, "b"), said(3), said(4, "a"), said(5)]
    await hold(database, events, "b", {"a": [1, 4], "b": [2, 3, 5]})


async def test_each_start_begins_a_conversation_again(database: Database) -> None:
    events = [
        started(1, "a"),
        said(2),
        started(3, "b"),
        said(4),
        started(5, "a"),
        said(6),
        said(7, "b"),
        said(8),
    ]
    await hold(database, events, "a", {"a": [2, 6, 8], "b": [4, 7]})


async def test_starts_and_messages_of_another_user_do_not_count(database: Database) -> None:
    others = [
        Delivery(
            build_chat_subject("acme", "u2", conversation, name), body, f"o{seq}", "LOG", seq, 1, 1.8e9 + seq
        )
        for seq, name, conversation, body in (
            (1, "started", "a", b"{}"),
            (3, "message", "b", b'{"role":"user","content":"x"}'),
            (9, "started", "b", b'{"discard_previous":true}'),
            (10, "cleared", "a", b"{}"),
        )
    ]
    events = [said(2), said(4, "a"), said(5), said(6, "b"), said(7)]
    await hold(database, [*others, *events], "b", {FIRST: [2], "a": [4, 5], "b": [6, 7]})


async def test_last_clear_or_discard_counts(database: Database) -> None:
    """The last one of each conversation counts, in whatever order they are written."""
    told = [said(seq, place) for seq, place in ((1, "a"), (2, "b"), (4, "a"), (5, "b"), (8, "a"), (9, "b"))]
    for clears in permutations(
        [event(3, "cleared", "a"), event(6, "cleared", "a"), event(3 + 4, "cleared", "b")]
    ):
        await hold(database, [*told, *clears], "b", {"a": [8], "b": [9]})
    discards = [started(3, "a", discard=True), started(6, "b", discard=True), started(7, "a")]
    await hold(database, [*told, *discards], "a", {"a": [8], "b": [9]})


async def test_a_clear_removes_the_messages_below_it_in_its_conversation_only(database: Database) -> None:
    events = [said(1, "a"), said(2, "b"), event(3, "cleared", "a"), said(4, "a"), said(5)]
    await hold(database, events, "b", {"a": [4], "b": [2, 5]})
    # A clear with `-` in its subject applies to the conversation that is current at its position.
    events = [said(1, "a"), said(2), event(3, "cleared", None), said(4, "b"), said(5), said(6, "a")]
    await hold(database, events, "b", {"a": [6], "b": [4, 5]})
