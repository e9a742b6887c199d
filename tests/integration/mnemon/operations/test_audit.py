"""The audit accounts for every event of the log, and names faults that the tests make in rows and letters."""

from collections.abc import AsyncIterator
from typing import LiteralString

import pytest
import pytest_asyncio

from mnemon.operations.audit.run import NotProvisioned
from mnemon_bench.workloads.messages import fill_log
from mnemon_consumers.app import run_consumers
from mnemon_contracts.streams import DEAD, LOG
from mnemon_infra.broker.streams.applied_position import read_applied_position, read_log_end
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from tests.support.log.audited_log import AuditedLog, every_kind, pass_over
from tests.support.stock_client import Stock


@pytest_asyncio.fixture
async def audited(stock: Stock, deployment: Deployment) -> AsyncIterator[AuditedLog]:
    database = Database(deployment)
    await database.open()
    yield AuditedLog(stock, deployment, database)
    await database.close()


@pytest_asyncio.fixture
async def where(audited: AuditedLog) -> dict[str, int]:
    """Persist events of every kind, end `persist` so that it repairs no fault, and return their positions."""
    async with run_consumers(("persist",), audited.deployment):
        found = await every_kind(audited)
    await pass_over(audited.stock)
    return found


async def test_all_kinds_of_events_are_accounted_for(audited: AuditedLog, where: dict[str, int]) -> None:
    found = await audited.found()
    assert found.faults.named == []
    persist = found.persist
    assert found.up_to == persist.events == await read_log_end(audited.stock.connection.jetstream())
    assert found.beyond == 0
    assert persist.dead == {"invalid_body": 2, "unknown_event": 1, "refused_by_database": 1}
    assert persist.ignored == {
        "fact.proposed: no projection reads the event yet": 2,
        "the event is a copy of an earlier event": 1,
    }
    assert persist.applied == persist.events - 7
    assert persist.removed == 9, "two cleared, one discarded, a summary, three versions, a task, a document"
    assert persist.waiting == 0
    assert found.dedupe.proposals == 2
    assert found.dedupe.position > where["proposed"]
    assert found.dedupe.outcomes == {"fact.saved": 2, "fact.rejected": 1}
    assert (found.extract.intended, found.extract.open) == (3, 1)
    assert found.extract.oldest is not None
    assert found.extract.ended == {"batch.completed": 1, "batch.failed": 1}
    assert found.extract.answered == {"nothing": 1}
    assert found.letters == {("persist", reason): number for reason, number in persist.dead.items()}
    (durable,) = [each for each in found.durables if each.name == "index"]
    assert durable.pending == persist.events


async def test_a_batch_with_many_windows_of_a_user_counts_once(audited: AuditedLog) -> None:
    batch = {"batch_id": "b1", "provider": "openai", "model": "m", "purpose": "extract"}
    async with run_consumers(("persist",), audited.deployment):
        for window in range(2):
            read = {"conversation": "talk", "from_seq": 2 * window + 1, "to_seq": 2 * window + 2}
            await audited.decide(
                "batch.intended", **batch, windows=[{**read, "tenant": "acme", "user": "u1"}]
            )
        await audited.settled()
        found = await audited.found()
        assert (found.extract.intended, found.extract.open) == (1, 1)
        await audited.decide("batch.failed", batch_id="b1", error="no")
        await audited.settled()
        found = await audited.found()
    assert (found.extract.intended, found.extract.open, found.extract.oldest) == (1, 0, None)
    assert found.extract.ended == {"batch.failed": 1}


@pytest.mark.parametrize(
    ("table", "event"),
    [
        ("messages", "said"),
        ("messages", "copied"),
        ("profile_sets", "profile"),
        ("memory_events", "kept fact"),
    ],
)
async def test_a_missing_row_is_named(
    audited: AuditedLog, where: dict[str, int], table: str, event: str
) -> None:
    rows = {
        "messages": "DELETE FROM messages WHERE seq = %s",
        "profile_sets": "DELETE FROM profile_sets WHERE seq = %s",
        "memory_events": "DELETE FROM memory_events WHERE seq = %s",
    }
    await audited.change(rows[table], where[event])
    found = await audited.found()
    faults = [(each.kind, each.seq, each.where) for each in found.faults.named]
    copies = [("absent", where["copy"], "messages")] if event == "copied" else []
    assert faults == [("absent", where[event], table), *copies]
    assert found.faults.list_sequences() == [where[event], *(seq for _, seq, _ in copies)]


@pytest.mark.parametrize(
    ("sql", "event", "column"),
    [
        ("UPDATE messages SET content = 'Hello' WHERE seq = %s", "said", "content"),
        ("UPDATE messages SET metadata = '{}' WHERE seq = %s", "said", "metadata"),
        ("UPDATE messages SET conversation = 'x' WHERE seq = %s", "said", "conversation"),
        pytest.param(
            "UPDATE messages SET sent_at = sent_at + interval '1 microsecond' WHERE seq = %s",
            "said",
            "sent_at",
            marks=pytest.mark.long,
        ),
        ("UPDATE messages SET content = 'left' WHERE seq = %s", "cleared", "content"),
        ("UPDATE memory_events SET body = body || '{\"a\": 1}' WHERE seq = %s", "kept fact", "body"),
        ("UPDATE memory_events SET item = 'ar_9' WHERE seq = %s", "kept fact", "item"),
        ('UPDATE profile_sets SET fields = \'{"zone": "UTC"}\' WHERE seq = %s', "profile", "fields"),
        ("UPDATE model_calls SET usd = 0.3 WHERE seq = %s", "called", "usd"),
    ],
)
async def test_a_row_that_differs_from_its_event_is_named(
    audited: AuditedLog, where: dict[str, int], sql: LiteralString, event: str, column: str
) -> None:
    await audited.change(sql, where[event])
    found = await audited.found()
    assert [(each.kind, each.seq, each.detail) for each in found.faults.named] == [
        ("differs", where[event], column)
    ]


async def test_content_contrary_to_the_log_is_named(audited: AuditedLog, where: dict[str, int]) -> None:
    await audited.change(
        "UPDATE messages SET role = NULL, content = NULL, name = NULL WHERE seq = %s", where["said"]
    )
    await audited.change("UPDATE memory_events SET body = NULL WHERE seq = %s", where["kept fact"])
    await audited.change(
        "UPDATE messages SET role = 'user', content = 'to be discarded' WHERE seq = %s", where["discarded"]
    )
    assert sorted(await audited.faults()) == sorted(
        [("emptied", where["said"]), ("emptied", where["kept fact"]), ("kept", where["discarded"])]
    )
    await audited.stock.publish("work.persist.acme.u3", b"")
    found = await audited.found()
    assert found.persist.waiting == 1
    assert {each.seq for each in found.faults.named} == {where["said"], where["kept fact"]}


async def test_a_summary_whose_watermark_is_missing_is_named(
    audited: AuditedLog, where: dict[str, int]
) -> None:
    await audited.change("DELETE FROM clears WHERE tenant = %s", "acme")
    kinds = await audited.faults()
    assert ("emptied", where["gone summary"]) in kinds
    assert ("emptied", where["cleared"]) in kinds


async def test_event_without_row_or_letter_is_named(audited: AuditedLog, where: dict[str, int]) -> None:
    jetstream = audited.stock.connection.jetstream()
    letter = await jetstream.get_last_msg(DEAD, "dead.persist.chat.acme.u1.-.message.v1")
    assert letter.seq is not None
    assert await jetstream.delete_msg(DEAD, letter.seq)
    assert await audited.faults() == [("no_letter", where["poison"])]
    await jetstream.purge_stream(DEAD)
    assert sorted(await audited.faults()) == [
        ("absent", where["refused"]),
        ("no_letter", where["poison"]),
        ("no_letter", where["unknown"]),
        ("no_letter", where["no id"]),
    ]


async def test_a_row_without_an_event_is_named(audited: AuditedLog, where: dict[str, int]) -> None:
    await audited.change(
        "INSERT INTO messages (tenant, user_id, event_id, seq, sent_at) VALUES ('a', 'b', 'c', %s, now())",
        where["poison"],
    )
    jetstream = audited.stock.connection.jetstream()
    assert await jetstream.delete_msg(LOG, where["profile"])
    assert sorted(await audited.faults()) == [
        ("emptied", where["poison"]),
        ("stray", where["poison"]),
        ("stray", where["profile"]),
    ]


async def test_a_proposal_without_a_decision_is_named(audited: AuditedLog) -> None:
    async with run_consumers(("persist",), audited.deployment):
        forgotten = await audited.decide("fact.proposed", text="User likes tea")
        later = await audited.decide("fact.proposed", text="User likes cake")
        decided = await audited.decide("fact.proposed", id="p", text="User likes tea")
        await audited.settled()
        await pass_over(audited.stock)
        assert await audited.faults() == [
            ("undecided", forgotten),
            ("undecided", later),
            ("undecided", decided),
        ]
    # The proposal is decided, and the decision has no row yet.
    by = {"proposal_id": "p"}
    await audited.decide("fact.confirmed", id="dedupe:p", fact_id="ar_001", decision=by)
    found = await audited.found()
    assert found.beyond == 1
    assert found.faults.list_sequences() == [forgotten, later]
    async with run_consumers(("persist",), audited.deployment):
        again = await audited.decide("fact.confirmed", id="another", fact_id="ar_001", decision=by)
        await audited.settled()
    assert ("decided_twice", again) in await audited.faults()
    # Proposals below an erasure need no decision.
    await audited.change(
        "INSERT INTO erasures (tenant, user_id, seq, at) VALUES ('acme', 'u1', %s, now())", later
    )
    kinds = await audited.faults()
    assert ("undecided", forgotten) not in kinds
    assert ("undecided", later) in kinds


async def test_erased_events_are_not_missing(audited: AuditedLog) -> None:
    async with run_consumers(("persist",), audited.deployment):
        said = await audited.stock.say("hello")
        await audited.decide("user.erased", conversation="x", up_to_seq=1)
        last = await audited.decide("user.erased", up_to_seq=2**40)
        await audited.decide("user.erased", up_to_seq=1)
        late = await audited.stock.say("hello again")
        await audited.settled()
    found = await audited.found()
    assert found.faults.named == []
    assert found.persist.applied == 3
    assert found.persist.events - found.persist.applied == sum(found.persist.ignored.values())
    async with audited.database.transaction() as connection:
        await connection.execute("UPDATE erasures SET seq = %s", [late + 1])
    assert ("kept", late) in await audited.faults()
    async with audited.database.transaction() as connection:
        await connection.execute("DELETE FROM erasures")
    names = await audited.faults()
    assert ("absent", last) in names
    assert said < last


async def test_summary_that_begins_below_an_erasure_is_named_as_left(audited: AuditedLog) -> None:
    async with run_consumers(("persist",), audited.deployment):
        said = await audited.stock.say("hello")
        summary = await audited.decide(
            "summary.written",
            conversation="c",
            summary_id="sm1",
            text="They greeted.",
            from_seq=said,
            to_seq=said,
        )
        await audited.settled()
    await audited.change("DELETE FROM messages WHERE seq = %s", said)
    await audited.change(
        "INSERT INTO erasures (tenant, user_id, seq, at) VALUES ('acme', 'u1', %s, now())", summary
    )
    assert ("kept", summary) in await audited.faults()


async def test_audit_without_persist_is_not_clean(audited: AuditedLog) -> None:
    await audited.stock.say("hello")
    await audited.stock.connection.jetstream().delete_consumer(LOG, "persist")
    with pytest.raises(NotProvisioned):
        await audited.found()


async def test_a_sample_looks_for_all_rows_and_at_the_content_of_some(audited: AuditedLog) -> None:
    async with run_consumers(("persist",), audited.deployment):
        seqs = [await audited.stock.say("hello", f"acme.user-{number}.-") for number in range(30)]
        await audited.settled()
    async with audited.database.transaction() as connection:
        await connection.execute("UPDATE messages SET content = 'changed'")
        await connection.execute("DELETE FROM messages WHERE seq = %s", [seqs[7]])
    found = await audited.found(every=3)
    assert found.faults.counts["absent"] == 1
    assert 0 < found.faults.counts["differs"] < 29
    assert (await audited.found()).faults.counts["differs"] == 29


async def test_audit_reads_every_page_of_the_log(audited: AuditedLog) -> None:
    await fill_log(audited.stock.connection, 2500)
    async with run_consumers(("persist",), audited.deployment):
        await audited.settled()
    assert await read_applied_position(audited.stock.connection.jetstream()) == 2500
    assert (await audited.found()).persist.applied == 2500
