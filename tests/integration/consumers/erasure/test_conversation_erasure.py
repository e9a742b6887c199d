"""Erasure of a conversation: removed from every store, in any order of delivery; the rest stays."""

import asyncio
import os
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nats.aio.client import Client
from nats.aio.msg import Msg

from mnemon.operations.audit.run import run_audit
from mnemon.operations.restore.later_erasures import LaterErasures
from mnemon_consumers.app import run_consumers
from mnemon_consumers.persist.decide import plan_batch
from mnemon_contracts.events.erasure import Span, UserErasedV1
from mnemon_contracts.identity import derive_first_conversation, derive_started_conversation
from mnemon_contracts.subjects import build_memory_subject, build_notice_subject
from mnemon_infra.broker.erasure.scope import ErasedConversation
from mnemon_infra.config import Deployment
from mnemon_infra.database.audit.events import UserSample
from mnemon_infra.database.engine import Database
from mnemon_infra.database.erasure.conversations import load_spans
from mnemon_infra.database.generations.comparison import compare_page
from mnemon_infra.database.generations.generation_repository import PROJECTIONS
from mnemon_infra.database.memory.user_memory import NewestMessagesQuery, load_newest_messages
from mnemon_infra.database.projections.sweep import sweep_owner
from mnemon_infra.database.projections.writer import write_rows
from mnemon_infra.delivery import Delivery
from mnemon_infra.rebuild.generations import open_exclusive_site, open_row_generation
from mnemon_infra.storage.erasure_register import RegisterEntry
from tests.integration.consumers.delivery.test_redelivery import swept
from tests.integration.consumers.erasure.test_user_erasure import positions
from tests.support.hypothesis_profiles import scale_examples
from tests.support.log.dead_letters import kept
from tests.support.log.projected_state import delivery_of, forget_all, shown, texts_of
from tests.support.log.reference_fold import TENANT, USER, EventKind, ReferenceEvent, ReferenceState, fold
from tests.support.pipelines.rebuild import RebuildReport, verdict_on
from tests.support.servers.qdrant import locate_vectors
from tests.support.stock_client import Stock, handled, indexed, persisted

Value = TypeVar("Value")
RUNS = int(os.environ.get("INTERLEAVINGS", scale_examples(25)))
"""Number of logs to try. For thousands, set INTERLEAVINGS=5000."""

OWNER = TENANT, USER
FIRST = derive_first_conversation(*OWNER)
KINDS: list[EventKind] = [
    "message", "message", "message", "message", "started", "cleared",
    "summary.written", "fact.saved", "fact.forgotten", "profile.set",
]  # fmt: skip
DRAFTS = st.tuples(
    st.sampled_from(KINDS), st.sampled_from([None, "c1", "c2"]), st.booleans(), st.sampled_from("xy")
)


def events_of(drafts: Sequence[tuple[EventKind, str | None, bool, str]], begin: int) -> list[ReferenceEvent]:
    return [
        ReferenceEvent(
            seq,
            f"e{seq}",
            kind,
            place or "c1" if kind.startswith("summary.") else place,
            discard,
            {"a": seq},
            item,
            from_seq=max(1, seq - 3),
        )
        for seq, (kind, place, discard, item) in enumerate(drafts, begin)
    ]


def without(
    state: ReferenceState, log: Sequence[ReferenceEvent], below: int, conversation: str
) -> ReferenceState:
    """Return the state without the conversation's messages and summaries from below a position."""
    old = {
        each.id
        for each in log
        if each.kind.startswith("summary.") and each.conversation == conversation and each.from_seq < below
    }
    early = {each.id for each in log if each.seq < below}
    said = {**state.messages}
    if left := [each for each in said.pop(conversation, []) if each not in early]:
        said[conversation] = left
    summaries = {place: found - old for place, found in state.summaries.items() if found - old}
    return replace(state, messages=said, summaries=summaries, texts=state.texts - old)


async def state_of(database: Database, log: Sequence[ReferenceEvent], last: int) -> ReferenceState:
    await sweep_owner(database, *OWNER, up_to=last)
    places = [derive_started_conversation(*OWNER, each.id) for each in log if each.kind == "started"]
    state = await database.run_query(shown([FIRST, *places]))
    return replace(state, texts=await texts_of(database))


async def schema_of(database: Database) -> str:
    async with database.transaction() as connection:
        ((schema,),) = await (await connection.execute("SELECT current_schema()")).fetchall()
    return str(schema)


async def test_conversation_erasure_equals_the_log_without_it_in_any_order(
    database: Database,
    other_database: Database,
) -> None:
    loop = asyncio.get_running_loop()
    schemas = await schema_of(database), await schema_of(other_database)

    def run(work: Coroutine[Any, Any, Value]) -> Value:
        return asyncio.run_coroutine_threadsafe(work, loop).result(60)

    async def erased(before: Sequence[ReferenceEvent], conversation: str, item: str) -> Delivery:
        """Return the erasure as the verb builds it, from a database with all events before it."""
        await forget_all(other_database)
        await write_rows(other_database, plan_batch([delivery_of(each) for each in before]).rows)
        below = len(before) + 1
        spans, discarded = await other_database.run_query(load_spans(OWNER, conversation, below))
        event = UserErasedV1(
            up_to_seq=below,
            conversation=conversation,
            spans=tuple(Span(from_seq=begin, to_seq=end) for begin, end in spans),
            discarded_seq=discarded,
            derived=tuple(each.seq for each in before if each.kind[:4] == "fact" and each.item == item),
        )
        return Delivery(
            build_memory_subject(*OWNER, "user.erased"), event.encode_body(), "gone", "LOG", below, 1, 1.8e9
        )

    async def hold(log: list[ReferenceEvent], tombstone: Delivery, batches: list[list[int]]) -> None:
        event = UserErasedV1.model_validate_json(tombstone.body)
        at = datetime.fromtimestamp(tombstone.stored_at, UTC)
        taking = ErasedConversation.from_event(OWNER, event, "gone", tombstone.sequence, at)
        deliveries = {each.seq: delivery_of(each) for each in log} | {tombstone.sequence: tombstone}
        last = max(deliveries)
        await forget_all(database)
        for batch in [*batches, list(deliveries)]:
            chosen = [deliveries[1 + each % last] for each in batch]
            await write_rows(database, plan_batch(chosen).rows)
        left = [each for each in log if each.seq not in taking.derived]
        expected = without(fold(left), left, tombstone.sequence, str(event.conversation))
        assert await state_of(database, log, last) == expected
        await forget_all(other_database)
        kept = [each for each in deliveries.values() if not taking.removes(each)]
        await write_rows(other_database, plan_batch(kept).rows)
        assert await state_of(other_database, log, last) == expected
        for table in PROJECTIONS:
            page = await database.run_query(compare_page(table, *schemas, None, last))
            assert page.differences == []

    @settings(max_examples=RUNS, suppress_health_check=[*HealthCheck])
    @given(
        st.lists(DRAFTS, min_size=1, max_size=10),
        st.lists(DRAFTS, max_size=5),
        st.sampled_from(["c1", "c2", FIRST]),
        st.sampled_from("xz"),
        st.lists(st.lists(st.integers(0, 15), min_size=1, max_size=5), max_size=5),
    )
    def holds(
        early: list[tuple[EventKind, str | None, bool, str]],
        late: list[tuple[EventKind, str | None, bool, str]],
        conversation: str,
        item: str,
        batches: list[list[int]],
    ) -> None:
        before = events_of(early, 1)
        tombstone = run(erased(before, conversation, item))
        run(hold([*before, *events_of(late, tombstone.sequence + 1)], tombstone, batches))

    await asyncio.to_thread(holds)


async def decided(connection: Client) -> None:
    """Wait until every proposal is decided, and the decisions are stored."""
    await handled(connection, "dedupe")
    await handled(connection, "persist")


async def test_conversation_erasure_clears_all_stores_and_the_rest_rebuilds(
    stock: Stock, connection: Client, database: Database, deployment: Deployment, tmp_path: Path
) -> None:
    deployment = locate_vectors(deployment, tmp_path / "vectors")
    async with run_consumers(("persist", "index", "dedupe", "retrieve"), deployment):
        home = await stock.say("I live in Riga", "acme.u1.home")
        trip = await stock.say("I like zanzibar", "acme.u1.trip")
        on_trip = await stock.say("zanzibar is warm")
        bad = await stock.publish("chat.acme.u1.trip.message.v1", b"zanzibar {")
        learned = {"sources": [trip, on_trip], "conversation": "trip"}
        for text, lineage in (
            ("Likes zanzibar", learned),
            ("Lives in Riga", {"sources": [home], "conversation": "home"}),
            ("Plays the piano", {"sources": [trip], "conversation": "trip"}),
        ):
            await stock.publish("memory.acme.u1.fact.proposed.v1", {"text": text, "lineage": lineage})
        again = {"sources": [home], "conversation": "home"}
        await stock.publish("memory.acme.u1.fact.proposed.v1", {"text": "Plays the piano", "lineage": again})
        summary = {"conversation": "trip", "from_seq": trip, "to_seq": on_trip, "text": "zanzibar"}
        await stock.publish("memory.acme.u1.summary.written.v1", {"summary_id": "s", **summary})
        back = await stock.say("I am back", "acme.u1.home")
        await decided(connection)
        await indexed(stock, await stock.say("zanzibar", "acme.u2.trip"))
        async with (
            open_exclusive_site(deployment) as place,
            open_row_generation(place, "as of", RebuildReport(), bad) as replay,
        ):
            await replay.replay_until(bad)
        there = (await stock.ask("erase", verify=True, conversation="trip"))["left"]
        assert there["generations"] == 2
        assert (there["log"], there["dead_letters"], there["database"], there["vectors"]) == (7, 1, 4, 4)

        receipt = await stock.ask("erase", conversation="trip")

        assert (receipt["removed"], receipt["pending"]) == (there, [])
        assert receipt["generations"] == [replay.schema]
        async with Database(deployment.model_copy(update={"database_schema": replay.schema})) as former:
            (home_view,) = await former.run_query(
                load_newest_messages([NewestMessagesQuery(TENANT, USER, "home", 9)])
            )
            assert [each.content for each in home_view.messages] == ["I live in Riga"]
        left = await stock.ask("erase", verify=True, conversation="trip", text="zanzibar")
        assert set(left["left"].values()) == set(left["found"].values()) == {0}
        assert await stock.contents(conversation="trip") == []
        assert await stock.contents(conversation="home") == ["I live in Riga", "I am back"]
        facts = (await stock.ask("read"))["facts"]
        assert [each["text"] for each in facts] == ["Lives in Riga", "Plays the piano"]
        assert await stock.contents("acme.u2", conversation="trip") == ["zanzibar"]

        # Results of model calls from before the erasure are dropped; a message after it is stored.
        await stock.publish("memory.acme.u1.fact.proposed.v1", {"text": "Likes beaches", "lineage": learned})
        await stock.publish("memory.acme.u1.summary.written.v1", {"summary_id": "late", **summary})
        await indexed(stock, await stock.say("off again", "acme.u1.trip"))
        await decided(connection)
        assert await stock.contents(conversation="trip") == ["off again"]
        assert await stock.contents() == ["off again"], "it is the current one still"
        assert len((await stock.ask("read"))["facts"]) == 2
        left = await stock.ask("erase", verify=True, conversation="trip", text="zanzibar")
        assert (left["left"]["log"], left["found"]["log"]) == (0, 0)

        # A later fact of another conversation stays, even if its message was sent while "trip" was current.
        of_home = {"sources": [back], "conversation": "home"}
        await stock.publish(
            "memory.acme.u1.fact.proposed.v1", {"text": "Came home by train", "lineage": of_home}
        )
        await decided(connection)
        assert "Came home by train" in [each["text"] for each in (await stock.ask("read"))["facts"]]

        # Further erasures keep the events of earlier ones, and the conversation stays the current one.
        assert (await stock.ask("erase", conversation="trip"))["pending"] == []
        assert (await stock.ask("erase", conversation="trip"))["pending"] == []
        assert await stock.contents() == []
        assert len((await stock.ask("read"))["facts"]) == 3
        left = await stock.ask("erase", verify=True, conversation="trip")
        assert set(left["left"].values()) == {0}

        async with open_exclusive_site(deployment) as place:
            verdict = await verdict_on(place, RebuildReport())
            assert (verdict.is_settled, verdict.first) == (True, [])
            audit = await run_audit(connection, place.database, UserSample(), lambda *_: None)
            assert audit.faults.named == []
    assert bad not in [each.sequence for each in await kept(connection)]


async def test_fact_proposed_between_the_plan_and_the_event_of_an_erasure_is_removed(
    stock: Stock, connection: Client, deployment: Deployment, tmp_path: Path
) -> None:
    trip = await stock.say("I like zanzibar", "acme.u1.trip")
    home = await stock.say("I live in Riga", "acme.u1.home")
    below = home + 1
    for text, said, conversation in (("Likes zanzibar", trip, "trip"), ("Lives in Riga", home, "home")):
        lineage = {"sources": [said], "conversation": conversation}
        kept = await stock.publish("memory.acme.u1.fact.proposed.v1", {"text": text, "lineage": lineage})
    erased = await stock.publish(
        "memory.acme.u1.user.erased.v1", {"up_to_seq": below, "conversation": "trip"}
    )
    deployment = locate_vectors(deployment, tmp_path / "vectors")
    async with run_consumers(("persist", "dedupe", "retrieve"), deployment):
        await decided(connection)
        await swept(connection)
        assert [each["text"] for each in (await stock.ask("read"))["facts"]] == ["Lives in Riga"]
        left = await stock.ask("erase", verify=True, conversation="trip", text="zanzibar")
        assert (left["found"]["log"], left["found"]["database"]) == (0, 0)
    assert (await positions(connection, "u1"))[:3] == [home, kept, erased]


async def test_an_erasure_that_a_restore_applies_again_leaves_the_current_conversation(
    database: Database,
) -> None:
    """A conversation that began after the backup does not begin in the restored log."""
    spans = (Span(from_seq=30, to_seq=40),)
    event = UserErasedV1(up_to_seq=40, conversation="trip", spans=spans)
    entry = RegisterEntry(tenant=TENANT, user=USER, event_id="gone", position=40, at=1, event=event)
    (message,) = LaterErasures([entry]).build_messages(10)
    said = [delivery_of(ReferenceEvent(seq, f"e{seq}", "message", None)) for seq in (10, 12, 35)]
    erasure = Delivery(message.subject, message.body, "gone", "LOG", 11, 1, 1.8e9)
    await write_rows(database, plan_batch([*said, erasure]).rows)
    (view,) = await database.run_query(load_newest_messages([NewestMessagesQuery(*OWNER, None, 10)]))
    assert (view.conversation, [each.event_id for each in view.messages]) == (FIRST, ["e10", "e12", "e35"])


async def test_erased_conversation_leaves_nothing_below_an_earlier_erasure_of_the_user(
    stock: Stock, connection: Client, deployment: Deployment, tmp_path: Path
) -> None:
    deployment = locate_vectors(deployment, tmp_path / "vectors")
    async with run_consumers(("persist", "index", "retrieve"), deployment):
        await stock.say("I like zanzibar")
        erased = (await stock.ask("erase"))["seen_seq"]
        await stock.say("I live in Riga")
        await stock.ask("erase", conversation=derive_first_conversation("acme", "u1"))
        await swept(connection)
        left = await stock.ask("erase", verify=True)
        assert (left["seen_seq"], left["left"]["database"]) == (erased, 0)
        async with open_exclusive_site(deployment) as place:
            audit = await run_audit(connection, place.database, UserSample(), lambda *_: None)
            assert audit.faults.named == []


async def test_copy_of_an_erased_message_in_another_conversation_is_shown(
    stock: Stock, connection: Client, deployment: Deployment
) -> None:
    """`retrieve` reads the other conversation before `persist` has projected the copy."""
    asked: list[asyncio.Task[list[str]]] = []

    async def read_home(_: Msg) -> None:
        asked.append(asyncio.create_task(stock.contents(conversation="home")))

    async with run_consumers(("persist", "retrieve"), deployment):
        await stock.say("the same", "acme.u1.trip", id="m")
        copy = await stock.say("the same", "acme.u1.home", id="m")
        await persisted(connection, copy)
        assert await stock.contents(conversation="home") == []
        await connection.subscribe(build_notice_subject("acme", "u1"), cb=read_home)
        await stock.publish("memory.acme.u1.user.erased.v1", {"up_to_seq": copy + 1, "conversation": "trip"})
        await handled(connection, "persist")
        await swept(connection)
        await asyncio.gather(*asked)
        assert await stock.contents(conversation="home") == ["the same"]


async def test_erasure_passes_over_an_event_that_the_database_refuses(
    stock: Stock, connection: Client, deployment: Deployment, tmp_path: Path
) -> None:
    deployment = locate_vectors(deployment, tmp_path / "vectors")
    refused = b'{"role":"user","content":"x","later":1e300000}'
    async with run_consumers(("persist", "index", "retrieve"), deployment):
        await stock.say("zanzibar is warm", "acme.u1.trip")
        await stock.publish("chat.acme.u1.home.message.v1", refused)
        await handled(connection, "persist")
        assert [each.reason for each in await kept(connection)] == ["refused_by_database"]
        receipt = await stock.ask("erase", conversation="trip")
        assert receipt["pending"] == []
