"""No effect depends on the order of delivery: whatever comes when, and how often, the state is the log's."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.sql import SQL, Identifier

from consumers.persist.decide import plan
from contracts.subjects import chat_subject, memory_subject
from infra.broker.delivery import Delivery
from infra.database import documents, facts, reading, summaries, tasks
from infra.database.engine import Database, Query, Value
from infra.database.projecting import suppose, write
from infra.database.reading import Newest
from infra.database.rows import Rows
from infra.database.sweeping import last_watermark, sweep
from tests.fold import TENANT, USER, EventKind, LoggedEvent, State, erased_up_to, fold

_CHAT: list[EventKind] = [*["message"] * 5, "started", "cleared", "profile.set"]  # type: ignore[list-item]
_MEMORY: list[EventKind] = [
    kind for kind in get_args(EventKind) if "." in kind and kind not in ("profile.set", "user.erased")
]
_CONVERSATIONS: st.SearchStrategy[EventKind] = st.sampled_from(_CHAT)
_MEMORIES: st.SearchStrategy[EventKind] = st.sampled_from(
    [*_MEMORY, "fact.saved", "fact.updated", "task.added", "document.added", "started", "cleared"]
)
_SUMMARY: list[EventKind] = ["message", "started", "cleared", "summary.written", "summary.merged"]
_SUMMARIES: st.SearchStrategy[EventKind] = st.sampled_from(_SUMMARY)
_ERASURES: st.SearchStrategy[EventKind] = st.sampled_from([*_CHAT, *_MEMORY, "user.erased", "user.erased"])
_PLACES = st.sampled_from([None, None, "c1", "c2"])
_ITEMS = st.sampled_from(["x", "y"])


@st.composite
def logs(draw: st.DrawFn, kinds: st.SearchStrategy[EventKind]) -> list[LoggedEvent]:
    """Logs of one user, some events published again later under the same id."""
    events: list[LoggedEvent] = []
    for seq in range(1, draw(st.integers(1, 24)) + 1):
        if events and draw(st.integers(0, 7)) == 0:
            first = draw(st.sampled_from(events))
            events.append(replace(first, seq=seq, discard=draw(st.booleans()), item=draw(_ITEMS)))
            continue
        kind = draw(kinds)
        place = draw(_PLACES)
        fields = draw(st.dictionaries(st.sampled_from("ab"), st.none() | st.integers(0, 3), min_size=1))
        events.append(
            LoggedEvent(
                seq,
                f"e{seq}",
                kind,
                place or "c1" if kind.startswith("summary.") else place,
                draw(st.booleans()),
                fields,
                draw(_ITEMS),
                draw(st.integers(1, seq)),
                tuple(each.id for each in events if each.kind.startswith("summary.")),
                draw(st.sampled_from([seq, seq - 1, 2**53 - 1])),
            )
        )
    return events


LOGS = logs(_CONVERSATIONS) | logs(_MEMORIES) | logs(_SUMMARIES)


def body_of(event: LoggedEvent) -> dict[str, object]:
    fact = {"text": event.id}
    match event.kind:
        case "message":
            return {"role": "user", "content": event.id}
        case "started":
            return {"discard_previous": event.discard}
        case "cleared":
            return {}
        case "profile.set":
            return {"fields": event.fields}
        case "user.erased":
            return {"up_to_seq": event.up_to}
        case "fact.saved" | "fact.confirmed":
            return {"fact_id": event.item, "fact": fact, "decision": {"proposal_id": f"of {event.id}"}}
        case "fact.updated":
            return {"fact_id": event.item, "fact": fact, "former": {"text": "whatever"}}
        case "summary.written" | "summary.merged":
            covered = {"from_seq": event.from_seq, "to_seq": event.seq, "merged": event.merged}
            return {
                "summary_id": event.id,
                "conversation": event.conversation,
                "text": event.id,
                **covered,
            }
    about = {
        f"{event.kind.partition('.')[0]}_id": event.item,
        "expires_at": "2020-01-01T00:00:00Z",
        "tier": "archive",
        "limit": 1,
    }
    return {**about, "text": event.id}


def delivery_of(event: LoggedEvent) -> Delivery:
    subject = (
        memory_subject(TENANT, USER, event.kind)
        if "." in event.kind
        else chat_subject(TENANT, USER, event.conversation, event.kind)
    )
    body = json.dumps(body_of(event)).encode()
    return Delivery(subject, body, event.id, "LOG", event.seq, 1, 1.8e9 + event.seq)


async def state_of(database: Database, places: Sequence[str], rows: Rows | None = None) -> State:
    async def read(query: Query[list[Value]]) -> Value:
        (value,) = await (suppose(database, rows, query) if rows else database.read(query))
        return value

    owner = TENANT, USER
    current = await read(reading.newest_messages([Newest(*owner, None, 100)]))
    state = State(current.conversation)
    for place in {*places, current.conversation, "c1", "c2"}:
        view = await read(reading.newest_messages([Newest(*owner, place, 100)]))
        if view.messages:
            state.messages[place] = [row.event_id for row in view.messages]
        written = await read(summaries.newest_summaries([Newest(*owner, place, 100)]))
        if written:
            state.summaries[place] = {summary.text for summary in written}
    counted = await read(reading.counts([owner]))
    assert counted.messages == sum(len(said) for said in state.messages.values())
    assert counted.conversations == len(state.messages)
    state.profile = await read(reading.profiles([owner]))
    for fact in await read(facts.live_facts([owner])):
        history = await read(facts.histories([(owner, fact.id)]))
        assert history is not None
        assert history.fact == fact
        state.facts[fact.id] = [fact.text, *(version.text for version in history.versions)]
    assert [fact.id for fact in await read(facts.facts_by_id([(owner, ["y", "z", "x"])]))] == [
        item for item in ("y", "x") if item in state.facts
    ]
    state.tasks = {task.id: (task.text, task.done) for task in await read(tasks.tasks([owner]))}
    entries = await read(documents.documents([owner]))
    texts = await read(documents.documents_by_id([(owner, ["x", "y"])]))
    assert [entry.id for entry in entries] == [document.id for document in texts]
    state.documents = {document.id: document.text for document in texts}
    state.texts = await texts_of(database) if rows is None else set()
    return state


async def texts_of(database: Database) -> set[str]:
    """What memory events say, wherever it is stored."""
    async with database.transaction() as connection:
        left = await connection.execute(
            "SELECT coalesce(body ->> 'text', body #>> '{fact,text}') FROM memory_events"
            " WHERE body IS NOT NULL AND event NOT LIKE '%.done' AND event NOT LIKE '%.removed'"
            " AND event NOT IN ('fact.confirmed', 'fact.forgotten', 'fact.expired', 'fact.evicted')"
        )
        return {text for (text,) in await left.fetchall()}


async def forget_all(database: Database) -> None:
    async with database.transaction() as connection:
        for table in ("messages", "starts", "clears", "profile_sets", "memory_events", "erasures"):
            await connection.execute(SQL("DELETE FROM {}").format(Identifier(table)))


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=LOGS | logs(_ERASURES), seed=st.integers(0, 2**32))
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
    erased = erased_up_to(log)
    if erased:  # as persist does, when it has purged the log: a copy may have been taken for what is gone
        await write(database, plan([delivery_of(event) for event in log if event.seq >= erased]).rows)
    state = await state_of(database, list(expected.messages))
    assert replace(state, texts=expected.texts) == expected
    await sweep(database, TENANT, USER, up_to=log[-1].seq)
    assert await state_of(database, list(expected.messages)) == expected, "sweeping shows no difference"
    async with database.transaction() as connection:
        left = await connection.execute("SELECT event_id FROM messages WHERE content IS NOT NULL")
        kept = {event for said in expected.messages.values() for event in said}
        assert {row[0] for row in await left.fetchall()} == kept


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=LOGS, seed=st.integers(0, 2**32))
async def test_a_part_of_it_only_supposed(database: Database, log: list[LoggedEvent], seed: int) -> None:
    await forget_all(database)
    cut = random.Random(seed).randint(0, len(log))
    await write(database, plan([delivery_of(event) for event in log[:cut]]).rows)
    before = fold(log[:cut])
    tail = plan([delivery_of(event) for event in log[cut:]]).rows
    expected = fold(log)
    state = await state_of(database, list(expected.messages), tail)
    assert replace(state, texts=expected.texts) == expected
    state = await state_of(database, list(before.messages))
    assert replace(state, texts=before.texts) == before, "nothing of it is written"


async def test_a_merged_summary_that_is_gone_stands_for_nothing(database: Database) -> None:
    log = [
        LoggedEvent(1, "first", "message", "c1"),
        LoggedEvent(2, "clear", "cleared", "c1"),
        LoggedEvent(3, "second", "message", "c1"),
        LoggedEvent(4, "of the second", "summary.written", "c1", from_seq=3),
        LoggedEvent(5, "of both", "summary.merged", "c1", from_seq=1, merged=("of the second",)),
    ]
    await write(database, plan([delivery_of(event) for event in log]).rows)
    for _ in range(2):
        state = await state_of(database, [])
        assert state.summaries == {"c1": {"of the second"}} == fold(log).summaries
        await sweep(database, TENANT, USER, up_to=5)
    assert await texts_of(database) == {"of the second"}


async def test_what_is_swept_once_may_come_again(database: Database) -> None:
    """Whatever the log takes after the end of a fact, its trigger sweeps; a task can be added anew."""
    early = [
        LoggedEvent(1, "saved", "fact.saved"),
        LoggedEvent(2, "forgotten", "fact.forgotten"),
        LoggedEvent(3, "added", "task.added"),
        LoggedEvent(4, "removed", "task.removed"),
    ]
    late = [LoggedEvent(5, "updated", "fact.updated"), LoggedEvent(6, "again", "task.added")]
    for part in early, late:
        rows = plan([delivery_of(event) for event in part]).rows
        await write(database, rows)
        assert rows.watermarked() == {(TENANT, USER)}
        await sweep(database, TENANT, USER, up_to=6)
    assert await state_of(database, []) == fold([*early, *late])
    assert await texts_of(database) == {"again"}
    assert await last_watermark(database, TENANT, USER) == 4


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
