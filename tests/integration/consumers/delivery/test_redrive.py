"""A redriven dead letter is handled once, as the original event would be, also after an interruption."""

import json
from collections.abc import AsyncIterator
from functools import partial

import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.js.errors import NotFoundError
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from mnemon_consumers.app import run_consumers
from mnemon_contracts.identity import scope_event_id
from mnemon_contracts.streams import DEAD, LOG, WORK
from mnemon_infra.broker.dead_letters.listing import Letter, LetterFilter, read_letter, read_letters
from mnemon_infra.broker.dead_letters.redrive import (
    AppliedLetter,
    IsApplied,
    KeptLetter,
    RedrivenLetter,
    drop_letter,
    find_original,
    redrive_letter,
)
from mnemon_infra.broker.dead_letters.writer import store_letter
from mnemon_infra.broker.outcomes import Dead
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.broker.streams.log_reader import parse_delivery
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.projections import row_positions
from mnemon_infra.delivery import Delivery
from tests.support.log.dead_letters import bury_next, bury_said, bury_trigger, kept
from tests.support.stock_client import Stock, persisted


@pytest_asyncio.fixture
async def is_applied(deployment: Deployment) -> AsyncIterator[IsApplied]:
    database = Database(deployment)
    await database.open()
    yield partial(row_positions.is_applied, database)
    await database.close()


async def given_back(connection: Client, dead: Letter, is_applied: IsApplied) -> int:
    """Redrive a dead letter, and return the new log position of its event."""
    done = await redrive_letter(connection, dead, is_applied)
    assert isinstance(done, RedrivenLetter), done
    return done.sequence


def rows(deployment: Deployment) -> list[tuple[int, str, str]]:
    """Return position, event id and content of every message, in log order."""
    assert deployment.database_url is not None
    engine = create_engine(deployment.database_url, poolclass=NullPool)
    with engine.connect() as connection:
        found = connection.exec_driver_sql(
            f"SELECT seq, event_id, content FROM {deployment.database_schema}.messages ORDER BY seq"
        )
        return [tuple(row) for row in found]


async def test_redriven_message_keeps_its_id(
    connection: Client, stock: Stock, deployment: Deployment, is_applied: IsApplied
) -> None:
    nameless = await bury_said(stock, "nameless")
    named = await bury_said(stock, "named", id="m2")
    good = await stock.say("good")
    async with run_consumers(("persist",), deployment):
        await persisted(connection, good)
        assert [row[2] for row in rows(deployment)] == ["good"]
        ends = [await given_back(connection, each, is_applied) for each in (nameless, named)]
        await persisted(connection, ends[-1])

    assert rows(deployment) == [(3, "LOG:3", "good"), (4, "LOG:1", "nameless"), (5, "m2", "named")]
    assert await kept(connection) == []


async def test_replay_finds_the_redriven_event_at_its_new_position(
    connection: Client, stock: Stock, deployment: Deployment, is_applied: IsApplied
) -> None:
    dead = await bury_said(stock, "nameless")
    await stock.say("good")
    end = await given_back(connection, dead, is_applied)
    jetstream = connection.jetstream()
    with pytest.raises(NotFoundError):
        await jetstream.get_msg(LOG, dead.sequence)
    await jetstream.delete_consumer(LOG, "persist")
    async with run_consumers(("persist",), deployment):
        await persisted(connection, end)
    assert rows(deployment) == [(2, "LOG:2", "good"), (3, "LOG:1", "nameless")]


@pytest.mark.parametrize("removed", ["nothing", "the original"])
async def test_redrive_killed_midway_is_repeated(
    connection: Client, stock: Stock, deployment: Deployment, removed: str, is_applied: IsApplied
) -> None:
    dead = await bury_said(stock, "nameless")
    jetstream = connection.jetstream()
    first = await jetstream.publish(dead.subject, dead.body, headers={"Nats-Msg-Id": "LOG:1"})
    if removed == "the original":
        await jetstream.delete_msg(LOG, dead.sequence)

    done = await redrive_letter(connection, dead, is_applied)
    if removed == "nothing":
        assert done == RedrivenLetter(first.seq)
        assert await kept(connection) == []
    else:
        assert isinstance(done, KeptLetter)
        assert "redriven before" in done.why
    async with run_consumers(("persist",), deployment):
        await persisted(connection, first.seq)
    assert rows(deployment) == [(2, "LOG:1", "nameless")]


async def test_event_redriven_twice_is_stored_once(
    connection: Client, stock: Stock, deployment: Deployment, is_applied: IsApplied
) -> None:
    """The server does not recognise the copy as a duplicate, because the id is only in the body."""
    dead = await bury_said(stock, "named", id="m1")
    await connection.jetstream().publish(dead.subject, dead.body)
    end = await given_back(connection, dead, is_applied)
    async with run_consumers(("persist",), deployment):
        await persisted(connection, end)
    assert rows(deployment) == [(2, "m1", "named")]


async def test_redrive_keeps_headers_of_the_bot(
    connection: Client, stock: Stock, is_applied: IsApplied
) -> None:
    body = {"role": "user", "content": "x", "id": "m1"}
    await stock.publish("chat.acme.u1.-.message.v1", body, X_Bot="Lena")
    await given_back(connection, await bury_next(connection), is_applied)
    stored = await connection.jetstream().get_msg(LOG, 2)
    sent = {name: value for name, value in (stored.headers or {}).items() if not name.startswith("Nats-Exp")}
    assert sent == {"X-Bot": "Lena"}


async def test_redriven_broken_event_becomes_one_letter(
    connection: Client, stock: Stock, deployment: Deployment, is_applied: IsApplied
) -> None:
    broken = await stock.publish("chat.acme.u1.-.message.v9", {"role": "user", "content": "x"})
    async with run_consumers(("persist",), deployment):
        await persisted(connection, broken)
        [dead] = await kept(connection)
        end = await given_back(connection, dead, is_applied)
        await persisted(connection, end)
        [again] = await kept(connection)
        assert (again.reason, again.sequence) == ("unknown_event", end)
        assert again.headers["Nats-Msg-Id"] == "LOG:1"
        # Within the duplicate window the server would drop a second redrive, so the letter stays.
        assert isinstance(await redrive_letter(connection, again, is_applied), KeptLetter)
    assert await kept(connection) == [again]
    assert (await connection.jetstream().stream_info(LOG)).state.messages == 1


async def test_event_in_the_duplicate_window_stays_a_letter(
    connection: Client, stock: Stock, is_applied: IsApplied
) -> None:
    body = {"role": "user", "content": "x", "id": "m1"}
    await stock.publish("chat.acme.u1.-.message.v1", body, Nats_Msg_Id=scope_event_id("acme", "u1", "m1"))
    dead = await bury_next(connection)
    done = await redrive_letter(connection, dead, is_applied)
    assert isinstance(done, KeptLetter)
    assert "two minutes" in done.why
    assert await read_letter(connection, dead.id) == dead
    assert (await connection.jetstream().stream_info(LOG)).state.messages == 1


async def test_redrive_restores_no_erased_event(
    connection: Client, stock: Stock, is_applied: IsApplied
) -> None:
    dead = await bury_said(stock, "a secret")
    await connection.jetstream().purge_stream(LOG, subject="chat.acme.u1.>")
    assert isinstance(await redrive_letter(connection, dead, is_applied), KeptLetter)
    assert (await connection.jetstream().stream_info(LOG)).state.messages == 0


async def test_redrive_of_the_largest_event_keeps_the_letter(
    connection: Client, stock: Stock, is_applied: IsApplied
) -> None:
    await stock.publish("chat.acme.u1.-.message.v1", b"x" * connection.max_payload)
    dead = await bury_next(connection)
    assert dead.left_out == "headers and body"
    done = await redrive_letter(connection, dead, is_applied)
    assert isinstance(done, KeptLetter)
    assert "maximum size" in done.why
    assert connection.is_connected


async def test_trigger_is_redriven(connection: Client, is_applied: IsApplied) -> None:
    dead = await bury_trigger(connection, "work.index.acme.u1", b"7", "index-sweep")
    assert (await connection.jetstream().stream_info(WORK)).state.messages == 0
    await given_back(connection, dead, is_applied)
    waiting = await connection.jetstream().get_last_msg(WORK, "work.index.acme.u1")
    assert waiting.data == b"7"
    assert await kept(connection) == []


async def test_redriven_letter_of_a_given_up_window_becomes_a_trigger(
    connection: Client, is_applied: IsApplied
) -> None:
    subject = "memory.acme.u1.window.answered.v1"
    window = {"conversation": "a talk", "from_seq": 3, "to_seq": 9, "attempts": 2, "answer": "Да?"}
    await store_letter(connection, "extract", subject, Dead("unreadable", "no JSON"), window, "w1")
    [dead] = await kept(connection)
    assert isinstance(await redrive_letter(connection, dead, is_applied), RedrivenLetter)
    [trigger] = (await connection.jetstream().stream_info(WORK, subjects_filter=">")).state.subjects or {}
    assert trigger.startswith("work.batches.acme.u1.")
    waiting = await connection.jetstream().get_last_msg(WORK, trigger)
    assert json.loads(waiting.data or b"") == {
        "conversation": "a talk", "from_seq": 3, "to_seq": 9, "attempts": 2
    }  # fmt: skip
    assert await kept(connection) == []


async def test_letter_of_facts_beyond_the_limit_cannot_be_redriven(
    connection: Client, is_applied: IsApplied
) -> None:
    subject = "memory.acme.u1.window.answered.v1"
    window = {"conversation": "talk", "from_seq": 3, "to_seq": 9, "answer": "Likes tea"}
    await store_letter(connection, "extract", subject, Dead("too_many_facts", "60 facts"), window, "w1")
    [dead] = await kept(connection)
    assert isinstance(await redrive_letter(connection, dead, is_applied), KeptLetter)
    assert await kept(connection) == [dead]


async def test_letter_without_a_window_cannot_be_redriven(connection: Client, is_applied: IsApplied) -> None:
    subject = "memory.acme.u1.window.answered.v1"
    unreadable = Dead("unreadable", "no JSON")
    await store_letter(connection, "extract", subject, unreadable, {"answer": "Да?"}, "w1")
    [dead] = await kept(connection)
    assert (dead.kind, dead.owner) == ("answer", ("acme", "u1"))
    assert json.loads(dead.body) == {"answer": "Да?"}
    done = await redrive_letter(connection, dead, is_applied)
    assert isinstance(done, KeptLetter)
    assert await kept(connection) == [dead]


async def written_anew(connection: Client, deployment: Deployment, end: int) -> None:
    """Replay the log into the tables from its beginning."""
    await connection.jetstream().delete_consumer(LOG, "persist")
    await provision(connection)
    async with run_consumers(("persist",), deployment):
        await persisted(connection, end)


async def test_event_applied_meanwhile_is_not_redriven(
    connection: Client, stock: Stock, deployment: Deployment, is_applied: IsApplied
) -> None:
    """A newer version, which can read the event, has replayed the log."""
    said = await bury_said(stock, "x", id="m1")
    await stock.publish("memory.acme.u1.profile.set.v1", {"fields": {"city": "Riga"}})
    profile = await bury_next(connection)
    await stock.publish("memory.acme.u1.task.added.v1", {"task_id": "t1", "text": "x"}, Nats_Msg_Id="e3")
    task = await bury_next(connection)
    assert [await is_applied(await delivery(connection, each)) for each in (said, profile, task)] == [
        False
    ] * 3
    await written_anew(connection, deployment, 3)
    assert len(rows(deployment)) == 1
    for dead in (said, profile):
        assert await redrive_letter(connection, dead, is_applied) == AppliedLetter()
    await drop_letter(connection, task, is_applied)
    assert await kept(connection) == []
    assert (await connection.jetstream().stream_info(LOG)).state.messages == 3


async def test_erasure_of_a_user_is_redriven_unless_it_is_applied(
    connection: Client, stock: Stock, deployment: Deployment, is_applied: IsApplied
) -> None:
    await stock.publish("memory.acme.u1.user.erased.v1", {"up_to_seq": 1})
    first = await bury_next(connection)
    end = await given_back(connection, first, is_applied)
    second = await bury_next(connection)
    assert second.sequence == end
    await written_anew(connection, deployment, end)
    assert await redrive_letter(connection, second, is_applied) == AppliedLetter()
    assert await kept(connection) == []


@pytest.mark.parametrize("applied", [False, True])
async def test_dropped_erasure_of_a_user_stays_in_the_log_only_if_it_is_applied(
    connection: Client, stock: Stock, deployment: Deployment, is_applied: IsApplied, applied: bool
) -> None:
    await stock.publish("memory.acme.u1.user.erased.v1", {"up_to_seq": 1})
    dead = await bury_next(connection)
    if applied:
        await written_anew(connection, deployment, dead.sequence)
    await drop_letter(connection, dead, is_applied)
    assert await kept(connection) == []
    assert (await connection.jetstream().stream_info(LOG)).state.messages == int(applied)


async def delivery(connection: Client, dead: Letter) -> Delivery:
    original = await find_original(connection, dead)
    assert original is not None
    return parse_delivery(original)


@pytest.mark.parametrize("headers", [{}, {"Nats_Msg_Id": "a\0b"}], ids=["unreadable", "no id for PostgreSQL"])
async def test_dropped_letter_does_not_return(
    connection: Client, stock: Stock, deployment: Deployment, is_applied: IsApplied, headers: dict[str, str]
) -> None:
    body = {"role": "user", "content": "x"} if headers else b"x"
    await stock.publish("chat.acme.u1.-.message.v1", body, **headers)
    dead = await bury_next(connection)
    end = await stock.say("good")
    await drop_letter(connection, dead, is_applied)
    await written_anew(connection, deployment, end)
    assert await kept(connection) == []
    assert [row[2] for row in rows(deployment)] == ["good"]


async def test_letter_filter_selects_letters(connection: Client, stock: Stock) -> None:
    first = await bury_said(stock, "x")
    other = await bury_said(stock, "x", "acme.u%2E2.-")
    tenant = await bury_said(stock, "x", "globex.u1.-")
    trigger = await bury_trigger(connection, "work.compact.acme.u1.c1", b"", "compact")
    for wanted, expected in (
        (LetterFilter(), [first, other, tenant, trigger]),
        (LetterFilter(consumer="persist"), [first, other, tenant]),
        (LetterFilter(tenant="acme"), [first, other, trigger]),
        (LetterFilter(user="u1"), [first, tenant, trigger]),
        (LetterFilter(tenant="acme", user="u.2"), [other]),
        (LetterFilter(reason="no_summary"), []),
        (LetterFilter(since=tenant.at), [tenant, trigger]),
    ):
        assert [each async for each in read_letters(connection, wanted)] == expected, wanted
    # A message that another program has put into the stream is listed, too.
    await connection.jetstream().publish("dead.mine.of.old", b"?", stream=DEAD)
    strange = (await kept(connection))[-1]
    assert (strange.consumer, strange.subject, strange.kind) == ("mine", "of.old", "answer")
