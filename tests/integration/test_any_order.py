"""No effect depends on the order of delivery: whatever comes when, and how often, the state is the log's."""

import json
import random
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.sql import SQL, Identifier

from consumers.persist.decide import plan
from contracts.subjects import chat_subject, memory_subject
from infra.broker.delivery import Delivery
from infra.database import reading
from infra.database.engine import Database, Query, Value
from infra.database.projecting import suppose, write
from infra.database.reading import Newest
from infra.database.rows import Rows
from infra.database.sweeping import sweep
from tests.fold import TENANT, USER, EventKind, LoggedEvent, State, fold

_MOSTLY_MESSAGES: list[EventKind] = [
    "message",
    "message",
    "message",
    "message",
    "message",
    "started",
    "cleared",
    "profile",
]
_KINDS: st.SearchStrategy[EventKind] = st.sampled_from(_MOSTLY_MESSAGES)
_PLACES = st.sampled_from([None, None, "c1", "c2"])


@st.composite
def logs(draw: st.DrawFn) -> list[LoggedEvent]:
    """Logs of one user, some events published again later under the same id."""
    events: list[LoggedEvent] = []
    for seq in range(1, draw(st.integers(1, 24)) + 1):
        if events and draw(st.integers(0, 7)) == 0:
            first = draw(st.sampled_from(events))
            events.append(
                LoggedEvent(seq, first.id, first.kind, draw(_PLACES), draw(st.booleans()), first.fields)
            )
            continue
        kind = draw(_KINDS)
        fields = draw(st.dictionaries(st.sampled_from("ab"), st.none() | st.integers(0, 3), min_size=1))
        events.append(LoggedEvent(seq, f"e{seq}", kind, draw(_PLACES), draw(st.booleans()), fields))
    return events


def delivery_of(event: LoggedEvent) -> Delivery:
    body: dict[str, object] = {}
    match event.kind:
        case "message":
            body = {"role": "user", "content": event.id}
        case "started":
            body = {"discard_previous": event.discard}
        case "profile":
            body = {"fields": event.fields}
    subject = (
        memory_subject(TENANT, USER, "profile.set")
        if event.kind == "profile"
        else chat_subject(TENANT, USER, event.conversation, event.kind)
    )
    return Delivery(subject, json.dumps(body).encode(), event.id, "LOG", event.seq, 1, 1.8e9 + event.seq)


async def state_of(database: Database, places: Sequence[str], rows: Rows | None = None) -> State:
    async def read(query: Query[Value]) -> Value:
        return await (suppose(database, rows, query) if rows else database.read(query))

    (current,) = await read(reading.newest_messages([Newest(TENANT, USER, None, 100)]))
    messages = {}
    for place in {*places, current.conversation}:
        (view,) = await read(reading.newest_messages([Newest(TENANT, USER, place, 100)]))
        if view.messages:
            messages[place] = [row.event_id for row in view.messages]
    (counted,) = await read(reading.counts([(TENANT, USER)]))
    assert counted.messages == sum(len(said) for said in messages.values())
    assert counted.conversations == len(messages)
    (profile,) = await read(reading.profiles([(TENANT, USER)]))
    return State(current.conversation, messages, profile)


async def forget_all(database: Database) -> None:
    async with database.transaction() as connection:
        for table in ("messages", "starts", "clears", "profile_sets"):
            await connection.execute(SQL("DELETE FROM {}").format(Identifier(table)))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=logs(), seed=st.integers(0, 2**32))
async def test_any_order_any_batches_any_copies(
    database: Database, log: list[LoggedEvent], seed: int
) -> None:
    await forget_all(database)
    chance = random.Random(seed)
    copies = [event for event in log for _ in range(chance.choice([1, 1, 1, 2]))]
    chance.shuffle(copies)
    expected = fold(log)
    while copies:
        size = chance.randint(1, 6)
        await write(database, plan([delivery_of(event) for event in copies[:size]]).rows)
        copies = copies[size:]
    assert await state_of(database, list(expected.messages)) == expected
    await sweep(database, TENANT, USER, up_to=log[-1].seq)
    assert await state_of(database, list(expected.messages)) == expected, "sweeping shows no difference"
    async with database.transaction() as connection:
        left = await connection.execute("SELECT event_id FROM messages WHERE content IS NOT NULL")
        kept = {event for said in expected.messages.values() for event in said}
        assert {row[0] for row in await left.fetchall()} == kept


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=logs(), seed=st.integers(0, 2**32))
async def test_a_part_of_it_only_supposed(database: Database, log: list[LoggedEvent], seed: int) -> None:
    await forget_all(database)
    cut = random.Random(seed).randint(0, len(log))
    await write(database, plan([delivery_of(event) for event in log[:cut]]).rows)
    before = fold(log[:cut])
    tail = plan([delivery_of(event) for event in log[cut:]]).rows
    expected = fold(log)
    assert await state_of(database, list(expected.messages), tail) == expected
    assert await state_of(database, list(before.messages)) == before, "nothing of it is written"


async def test_a_clear_waits_for_what_comes_before_it(database: Database) -> None:
    """The start of c2 is late: the content of what was said in it must not be swept with c1's."""
    log = [
        LoggedEvent(1, "in c1", "message", "c1"),
        LoggedEvent(2, "c2", "started", "c2"),
        LoggedEvent(3, "in c2", "message"),
        LoggedEvent(4, "back", "started", "c1"),
        LoggedEvent(5, "clear", "cleared"),
    ]
    early = [event for event in log if event.id not in ("c2", "back")]
    await write(database, plan([delivery_of(event) for event in early]).rows)
    assert await sweep(database, TENANT, USER, up_to=1) == 0
    await write(database, plan([delivery_of(event) for event in log]).rows)
    await sweep(database, TENANT, USER, up_to=5)
    assert await state_of(database, ["c2"]) == fold(log)
    assert fold(log).messages == {"c2": ["in c2"]}


@pytest.mark.parametrize("copies", [1, 3])
async def test_one_event_twice_in_a_batch(database: Database, copies: int) -> None:
    events = [LoggedEvent(seq, "same", "message", "c1") for seq in range(1, copies + 1)]
    await write(database, plan([delivery_of(event) for event in reversed(events)]).rows)
    (view,) = await database.read(reading.newest_messages([Newest(TENANT, USER, "c1", 10)]))
    assert [(row.seq, row.event_id) for row in view.messages] == [(1, "same")]
