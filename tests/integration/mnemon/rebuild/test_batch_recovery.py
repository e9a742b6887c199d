"""Recovery of batches from the log into a rebuilt database."""

import json
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from mnemon_consumers.persist.decide import plan_batch
from mnemon_contracts.subjects import build_chat_subject, build_memory_subject
from mnemon_infra.database.engine import Connection, Database
from mnemon_infra.database.messages.uncovered_messages import UncoveredQuery, load_uncovered_messages
from mnemon_infra.database.migration import migrate_schema
from mnemon_infra.database.projections.batch_recovery import recover_batches
from mnemon_infra.database.projections.writer import write_rows
from mnemon_infra.database.windows.batches import StoredBatch, list_open_batches, load_batch
from mnemon_infra.database.windows.window_repository import load_batch_windows
from mnemon_infra.delivery import Delivery
from tests.support.pipelines.extraction import ExtractionHarness

END = 2**62


def delivered(seq: int, subject: str, body: Any) -> Delivery:
    return Delivery(subject, json.dumps(body).encode(), f"e{seq}", "LOG", seq, 1, 1.8e9 + seq)


def said(seq: int, user: str = "u1") -> Delivery:
    body = {"role": "user", "content": f"I like thing {seq}"}
    return Delivery(
        build_chat_subject("acme", user, "talk", "message"),
        json.dumps(body).encode(),
        None,
        "LOG",
        seq,
        1,
        1.8e9,
    )


def event(seq: int, name: str, user: str = "u1", **body: Any) -> Delivery:
    return Delivery(
        build_memory_subject("acme", user, name),
        json.dumps(body).encode(),
        f"e{seq}",
        "LOG",
        seq,
        1,
        1.8e9 + seq,
    )


def intended(seq: int, batch_id: str, *windows: tuple[int, int, int], user: str = "u1") -> Delivery:
    """Return `batch.intended` of windows, each given as first position, last position and line."""
    named = [
        {
            "tenant": "acme",
            "user": user,
            "conversation": "talk",
            "from_seq": first,
            "to_seq": last,
            "line": line,
        }
        for first, last, line in windows
    ]
    asked = {"batch_id": batch_id, "provider": "openai", "model": "m", "purpose": "extract"}
    return event(seq, "batch.intended", user, windows=named, **asked)


def answered(seq: int, first: int, last: int, **fields: Any) -> Delivery:
    body = {"conversation": "talk", "from_seq": first, "to_seq": last, "outcome": "nothing", **fields}
    return event(seq, "window.answered", **body)


async def adopted(database: Database, *events: Delivery) -> int:
    await write_rows(database, plan_batch(events).rows)
    return await recover_batches(database, lambda _: timedelta(hours=20))


async def held(database: Database) -> list[tuple[Any, ...]]:
    """Return first position, batch, line and the mark `is_answered` of each window."""
    query = "SELECT from_seq, batch_id, line, is_answered FROM windows ORDER BY from_seq"

    async def windows(connection: Connection) -> list[tuple[Any, ...]]:
        return await (await connection.execute(query)).fetchall()

    return await database.run_query(windows)


async def batch(database: Database, batch_id: str) -> StoredBatch:
    found = await database.run_query(load_batch(batch_id))
    assert found is not None
    return found


async def test_recovered_batches_are_polled_or_searched(database: Database) -> None:
    events = [
        intended(100, "b1", (1, 5, 0), (6, 9, 1)),
        intended(101, "b1", (3, 4, 7), user="u2"),
        event(102, "batch.submitted", batch_id="b1", provider_batch_id="theirs"),
        intended(103, "b2", (10, 12, 0)),
    ]
    assert await adopted(database, *events) == 2
    assert await recover_batches(database, lambda _: timedelta(hours=20)) == 0
    assert await database.run_query(list_open_batches()) == ["b1", "b2"]
    first, second = await batch(database, "b1"), await batch(database, "b2")
    assert (first.state, first.provider_batch_id, first.lines) == ("submitted", "theirs", 8)
    assert (second.state, second.provider_batch_id, second.lines) == ("intended", None, 1)
    assert first.deadline_at - first.created_at == timedelta(hours=20)
    lines = {
        (each.user, each.from_seq): each.line for each in await database.run_query(load_batch_windows("b1"))
    }
    assert lines == {("u1", 1): 0, ("u1", 6): 1, ("u2", 3): 7}


async def test_unanswered_windows_wait_or_join_a_later_batch(database: Database) -> None:
    events = [
        intended(100, "b1", (1, 5, 0), (6, 9, 1), (10, 12, 2)),
        answered(101, 1, 5, batch_id="b1"),
        event(102, "batch.completed", batch_id="b1", answered=1, failed=2),
        intended(103, "b2", (6, 9, 0)),
    ]
    await adopted(database, *events)
    assert await held(database) == [(1, None, None, True), (6, "b2", 0, False), (10, None, None, False)]
    assert (await batch(database, "b1")).state == "completed"


async def test_only_unanswered_windows_are_read_again(database: Database) -> None:
    """A window of a failed batch waits; later windows are answered, one online and one in a batch."""
    events = [
        *(said(seq) for seq in range(1, 21)),
        intended(100, "b1", (1, 5, 0)),
        event(101, "batch.failed", batch_id="b1", error="e"),
        answered(102, 6, 10),
        answered(103, 11, 15, batch_id="b3"),
    ]
    await adopted(database, *events)
    (stretches,) = await database.run_query(
        load_uncovered_messages([UncoveredQuery("acme", "u1", 100, END)], "windows")
    )
    assert [message.seq for stretch in stretches for message in stretch.messages] == [16, 17, 18, 19, 20]
    assert [(first, is_answered) for first, _, _, is_answered in await held(database)] == [
        (1, False), (6, True), (11, True)
    ]  # fmt: skip


async def test_an_event_holds_windows_of_its_own_user_only(database: Database) -> None:
    place = {"conversation": "talk", "from_seq": 0, "to_seq": END, "line": 0}
    others = {"tenant": "globex", "user": "eva", **place}
    asked = {"batch_id": "b1", "provider": "openai", "model": "m", "purpose": "extract"}
    assert await adopted(database, event(100, "batch.intended", windows=[others], **asked)) == 1
    assert await held(database) == []


@pytest.mark.parametrize("line", [10**30, 2**31, 1_000_000])
async def test_line_without_batch_blocks_no_recovery(database: Database, line: int) -> None:
    assert await adopted(database, intended(100, "b1", (1, 5, line)), intended(101, "b2", (6, 9, 0))) == 2
    assert await held(database) == [(1, None, None, False), (6, "b2", 0, False)]
    assert (await batch(database, "b1")).lines == 1


@pytest.mark.long
@pytest.mark.parametrize("polls", [1_000_000, 2])
async def test_rebuilt_database_continues_batches_without_paying_twice(
    batch_extraction: ExtractionHarness, polls: int
) -> None:
    """With a million polls the batch is still with the provider; with two, all windows are answered."""
    batch_extraction.server.state.polls = polls
    async with batch_extraction.running():
        await batch_extraction.cut_of(10)
        if polls > 2:
            await batch_extraction.has(10, "batch.submitted")
        else:
            await batch_extraction.has(10, "batch.completed")
    (batch,) = batch_extraction.server.state.list_batches("openai")
    batch.polls = batch_extraction.server.state.polls = 0
    schema = f"test_{uuid4().hex[:12]}"
    rebuilt = ExtractionHarness(
        batch_extraction.stock,
        batch_extraction.deployment.model_copy(update={"database_schema": schema}),
        batch_extraction.server,
    )
    assert rebuilt.deployment.database_url is not None
    migrate_schema(rebuilt.deployment.database_url, schema)
    jetstream = rebuilt.connection.jetstream()
    await jetstream.delete_consumer("LOG", "persist")
    async with rebuilt.running():
        await rebuilt.has(10, "window.answered")
        await rebuilt.becomes("SELECT state FROM batches", ("completed",))
        await rebuilt.becomes("SELECT count(*) FROM windows WHERE is_answered", (10,))
        await rebuilt.stock.say("I like tea", "acme.u0.-")
        await rebuilt.has(11, "window.answered")
    assert set(rebuilt.server.state.asked.values()) == {1}
    assert len(await rebuilt.texts()) == 11
