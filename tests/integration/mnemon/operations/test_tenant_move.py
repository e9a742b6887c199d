"""Move of a tenant between two deployments: the memory is equal afterwards, also after kills."""

import asyncio
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import pytest
import pytest_asyncio
from nats.aio.client import Client

from mnemon.operations.tenant_move import copy as copy_module
from mnemon.operations.tenant_move import deployment as deployment_module
from mnemon.operations.tenant_move import run as run_module
from mnemon.operations.tenant_move.abandonment import AbandonResult, abandon_move
from mnemon.operations.tenant_move.confirmation import confirm_move
from mnemon.operations.tenant_move.copy import TenantCopy
from mnemon.operations.tenant_move.deployment import (
    MoveDiffers,
    MoveRefused,
    TenantSite,
    hold_move_leases,
)
from mnemon.operations.tenant_move.late_events import count_late_events
from mnemon.operations.tenant_move.run import MoveResult, TenantMove
from mnemon_consumers.app import run_consumers
from mnemon_contracts.events.erasure import ALL_BEFORE
from mnemon_contracts.identity import derive_first_conversation, derive_started_conversation
from mnemon_contracts.streams import LOG
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.provisioning.raised_position import raise_last_position
from mnemon_infra.broker.provisioning.restoration import ExactMessage, store_batch
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.broker.streams.applied_position import read_log_end
from mnemon_infra.broker.streams.log_reader import read_event_pages
from mnemon_infra.broker.streams.restored_log import FILLER_SUBJECT
from mnemon_infra.broker.streams.stream_reader import find_moved_position
from mnemon_infra.config import Deployment
from mnemon_infra.database.audit.tenant_rows import COMPARED_TABLES, list_tenant_users, load_tenant_rows
from mnemon_infra.database.engine import Database
from mnemon_infra.embedded.nats_server import NatsServer
from mnemon_infra.settings.api_keys import IssuedKey, issue_key, open_api_keys
from mnemon_infra.settings.residence import Residence, ResidenceState, read_residence, write_residence
from mnemon_infra.settings.store import change_settings, read_documents
from tests.support.log.audited_log import wait_until_swept
from tests.support.processes.command_server import ForkedCommand
from tests.support.processes.stack import mnemon, start_mnemon
from tests.support.servers.schemas import create_schema
from tests.support.stock_client import Stock, handled

TENANT = "acme"
USERS = 1000
ROUNDS = int(os.environ.get("MOVE_ROUNDS", "4"))
"""Messages of each user before the move. With six derived events of each user, there are 10,000 events, or
100,000 with 94 rounds."""

ADDRESSES = "nats://old:4222", "nats://new:4222"
EVERYTHING = 2**62


@dataclass
class Pair:
    """Two deployments, and methods that move a tenant between them."""

    deployments: tuple[Deployment, Deployment]
    old: Client
    new: Client
    old_database: Database
    new_database: Database

    async def move(self, *, is_returning: bool = False) -> MoveResult:
        sites = [
            TenantSite(self.old, self.old_database, TENANT),
            TenantSite(self.new, self.new_database, TENANT),
        ]
        addresses = list(ADDRESSES)
        if is_returning:
            sites.reverse()
            addresses.reverse()
        return await TenantMove(
            sites[0], sites[1], (addresses[0], addresses[1]), lambda *_: None, is_returning=is_returning
        ).perform()

    async def abandon(self, address: str = ADDRESSES[1]) -> AbandonResult:
        return await abandon_move(
            TenantSite(self.old, self.old_database, TENANT),
            TenantSite(self.new, self.new_database, TENANT),
            address,
        )

    async def confirm(self) -> None:
        await confirm_move(
            TenantSite(self.old, self.old_database, TENANT), TenantSite(self.new, self.new_database, TENANT)
        )


@pytest_asyncio.fixture
async def pair(deployment: Deployment, connection: Client, tmp_path: Path) -> AsyncIterator[Pair]:
    """Two deployments with `persist` and `retrieve`; the second one has events of the tenant `globex`."""
    (tmp_path / "other").mkdir()
    server = NatsServer(tmp_path / "other", None)
    await server.start()
    async with AsyncExitStack() as ends:
        ends.push_async_callback(server.stop)
        other = Deployment(
            nats_url=server.url,
            database_dsn=deployment.database_dsn,
            database_schema=f"test_{uuid4().hex[:12]}",
        )
        create_schema(other.database_url, other.database_schema)
        new = await connect(server.url, name="test")
        ends.push_async_callback(new.close)
        await provision(new)
        for each in (deployment, other):
            await ends.enter_async_context(run_consumers(("persist", "retrieve"), each))
        old_database = await ends.enter_async_context(Database(deployment))
        new_database = await ends.enter_async_context(Database(other))
        for number in range(7):
            await Stock(new).say(f"native {number}", "globex.u1.-")
        yield Pair((deployment, other), connection, new, old_database, new_database)


async def tell_story(stock: Stock) -> None:
    """Publish events of all kinds that name positions or events."""
    memory = f"memory.{TENANT}.u1"
    first = [await stock.say(f"first {number}", f"{TENANT}.u1.-") for number in range(4)]
    await stock.say("of another tenant", "globex.u9.-")
    await stock.publish(f"{memory}.batch.intended.v1", batch(first[0], first[-1]), Nats_Msg_Id="intended")
    await stock.publish(f"{memory}.batch.submitted.v1", {"batch_id": "b1", "provider_batch_id": "p1"})
    await stock.publish(f"{memory}.fact.proposed.v1", proposal(first[1]), Nats_Msg_Id="proposal")
    await stock.publish(f"{memory}.fact.saved.v1", saved("proposal", first[1]), Nats_Msg_Id="saved")
    window = {
        "conversation": derive_first_conversation(TENANT, "u1"),
        "from_seq": first[0],
        "to_seq": first[3],
    }
    await stock.publish(f"{memory}.window.answered.v1", {**window, "outcome": "proposed", "proposed": 1})
    await stock.publish(f"{memory}.batch.completed.v1", {"batch_id": "b1", "answered": 1})
    await stock.publish(f"{memory}.summary.written.v1", {**window, "summary_id": "s1", "text": "they said"})
    start = await stock.publish(f"chat.{TENANT}.u1.-.started.v1")
    await stock.say("of another tenant", "globex.u9.-")
    later = [await stock.say(f"later {number}", f"{TENANT}.u1.-", id=f"own {number}") for number in range(3)]
    window["conversation"] = derive_started_conversation(TENANT, "u1", f"{LOG}:{start}")
    window |= {"from_seq": later[0], "to_seq": later[1], "summary_id": "s2", "text": "and more"}
    await stock.publish(f"{memory}.summary.written.v1", window)
    await stock.publish(f"{memory}.profile.set.v1", {"fields": {"name": "Ann"}})
    await stock.publish(f"{memory}.model.called.v1", called(), Nats_Msg_Id="called")
    await stock.publish(f"chat.{TENANT}.u1.-.message.v1", b"no JSON")
    await stock.say("cleared soon", f"{TENANT}.u2.c1")
    await stock.publish(f"chat.{TENANT}.u2.c1.cleared.v1")
    source = await stock.say("soon without a fact", f"{TENANT}.u2.c2")
    await stock.publish(f"memory.{TENANT}.u2.fact.saved.v1", saved("forgotten soon", source))
    await stock.publish(f"memory.{TENANT}.u2.fact.forgotten.v1", {"fact_id": "ar_001"})
    for number in range(3):
        await stock.say(f"erased {number}", f"{TENANT}.u3.-")
    await stock.publish(f"memory.{TENANT}.u3.user.erased.v1", {"up_to_seq": ALL_BEFORE})
    await stock.say("after the erasure", f"{TENANT}.u3.-")
    kept = await stock.say("kept", f"{TENANT}.u4.kept")
    gone = await stock.say("gone", f"{TENANT}.u4.gone")
    erased = {
        "up_to_seq": gone + 1,
        "conversation": "gone",
        "spans": [{"from_seq": gone, "to_seq": gone + 1}],
    }
    await stock.publish(f"memory.{TENANT}.u4.user.erased.v1", {**erased, "derived": [gone]})
    await stock.publish(f"memory.{TENANT}.u4.fact.proposed.v1", proposal(kept, gone), Nats_Msg_Id="undecided")


def batch(first: int, last: int) -> dict[str, Any]:
    window = {"tenant": TENANT, "user": "u1", "conversation": "c", "from_seq": first, "to_seq": last}
    return {"batch_id": "b1", "provider": "p", "model": "m", "purpose": "extract", "windows": [window]}


def proposal(*sources: int) -> dict[str, Any]:
    return {"text": "Her sister is called Vera.", "lineage": {"sources": sources, "extractor": "test"}}


def saved(proposal_id: str, source: int) -> dict[str, Any]:
    return {
        "fact_id": "ar_001",
        "fact": {"text": "Her sister is called Vera."},
        "decision": {"proposal_id": proposal_id},
        "lineage": {"sources": [source]},
    }


def called() -> dict[str, Any]:
    return {"provider": "p", "model": "m", "purpose": "extract", "tokens": {"input": 7}}


async def read_memory(connection: Client, database: Database) -> dict[str, list[Any]]:
    """Return all rows of the tenant, with positions replaced by the content of the message at each."""
    await settled(connection)
    users = await database.run_query(list_tenant_users(TENANT))
    rows = {
        table: await database.run_query(load_tenant_rows(TENANT, users, table, EVERYTHING))
        for table in COMPARED_TABLES
    }
    said = {row["seq"]: row["content"] or row["event_id"] for row in rows["messages"]}
    places: dict[str, list[int]] = {}
    for row in sorted(rows["messages"], key=lambda row: row["seq"]):
        places.setdefault(row["user_id"], []).append(row["seq"])

    def within(user: str, body: dict[str, Any]) -> list[str]:
        begin, end = body.pop("from_seq"), body.pop("to_seq")
        return [said[seq] for seq in places.get(user, ()) if begin <= seq <= end]

    shown: dict[str, list[Any]] = {}
    for table, found in rows.items():
        shown[table] = []
        for row in sorted(found, key=lambda row: row["seq"]):
            body = row.get("body") or {}
            if table == "starts" and row["event_id"].count(":") == 2:  # the last part is a position
                row["event_id"] = row["event_id"].rpartition(":")[0]
            if sources := body.get("lineage", {}).get("sources"):
                body["lineage"]["sources"] = [said.get(seq) for seq in sources if seq in said]
            if "from_seq" in body:
                body["covers"] = within(row["user_id"], body)
            for window in body.get("windows", ()):
                window["covers"] = within(row["user_id"], window)
            for name in ("seq", "up_to", "spans", "discarded", "derived", "is_settled"):
                row.pop(name, None)
            shown[table].append(row)
    return shown


async def settled(connection: Client) -> None:
    """Wait until all rows are written, and all sweeps are done."""
    await handled(connection, "persist", timeout=300)
    await wait_until_swept(connection)


async def test_memory_is_the_same_after_a_move(pair: Pair) -> None:
    stock = Stock(pair.old)
    await tell_story(stock)
    await change_settings(pair.old, lambda _: {"recent_messages": 3}, TENANT)
    before = await read_memory(pair.old, pair.old_database)
    result = await pair.move()
    after = await read_memory(pair.new, pair.new_database)
    assert after == before
    assert before["memory_events"]
    assert result.proposals == 1  # `dedupe` does not run
    assert result.rows >= sum(map(len, before.values()))
    assert 0 < result.pause_seconds < result.seconds
    _, own = await read_documents(pair.new, TENANT)
    assert own == {"recent_messages": 3}
    reply = await stock.ask("history", f"{TENANT}.u1")
    assert (reply["error"]["code"], reply["error"]["moved_to"]) == ("moved", ADDRESSES[1])
    assert (await Stock(pair.new).contents(f"{TENANT}.u3")) == ["after the erasure"]
    assert (await Stock(pair.new).contents("globex.u1"))[-1] == "native 6"
    info = await pair.new.jetstream().stream_info(LOG)
    assert FILLER_SUBJECT not in (info.config.subjects or ())
    assert info.state.last_seq >= await read_log_end(pair.old.jetstream())


async def test_event_as_large_as_the_target_accepts_is_copied_without_a_batch(
    connection: Client, tmp_path: Path
) -> None:
    """With the headers of a batch, the event, or a placeholder with its body, would be too large."""
    (tmp_path / "other").mkdir()
    server = NatsServer(tmp_path / "other", None, max_payload=2**20)
    await server.start()
    async with AsyncExitStack() as ends:
        ends.push_async_callback(server.stop)
        target = await connect(server.url, name="test")
        ends.push_async_callback(target.close)
        await provision(target)
        stock, subject = Stock(connection), f"chat.{TENANT}.u1.-.message.v1"
        copy = TenantCopy(connection, target, TENANT, "m1", is_returning=False)
        first = await stock.publish(subject, b"{}", Nats_Msg_Id="first")
        await copy.copy_events(first, lambda *_: None)
        (headers,) = [each.headers or {} async for each, _ in copy.read_copies(0)]
        room = target.max_payload - len(ExactMessage("", headers, b"").encode_headers())
        said = [
            first,
            await stock.publish(subject, b"{}"),
            await stock.publish(subject, b"x" * room, Nats_Msg_Id="large"),
        ]
        gap = await stock.say("of another tenant", "globex.u9.-")
        erased = {"up_to_seq": gap + 1, "conversation": "c", "spans": [{"from_seq": gap, "to_seq": gap + 1}]}
        end = await stock.publish(f"memory.{TENANT}.u1.user.erased.v1", erased)
        await copy.copy_events(end, lambda *_: None)
        assert [copy.positions.find(each) for each in (*said, gap, end)] == [1, 2, 3, 4, 5]


@pytest.mark.long
async def test_events_keep_ids_and_times(pair: Pair) -> None:
    await tell_story(Stock(pair.old))
    await settled(pair.old)
    await pair.move()
    old, new = [
        [each async for page in read_event_pages(each, f"*.{TENANT}.>", 0) for each in page]
        for each in (pair.old, pair.new)
    ]
    copied = [each for each in new if each.is_moved]
    assert [(each.subject, each.stored_at) for each in copied] == [
        (each.subject, each.stored_at) for each in old
    ]
    assert copied[0].message_id == f"{LOG}:{old[0].sequence}"
    assert [each.message_id for each in copied if each.message_id == "saved"]
    assert copied[0].sequence != old[0].sequence


@pytest.mark.long
async def test_position_as_of_a_time_counts_original_times(pair: Pair) -> None:
    stock = Stock(pair.old)
    first = await stock.say("one", f"{TENANT}.u1.-")
    await asyncio.sleep(0.05)  # between the times of two events
    moment = datetime.now(UTC)
    await asyncio.sleep(0.05)
    await stock.say("two", f"{TENANT}.u1.-")
    await pair.move()
    site = TenantSite(pair.new, pair.new_database, TENANT)
    residence = await site.load_residence()
    assert residence is not None
    wanted = pair.new, TENANT

    async def position(at: datetime) -> int:
        return await find_moved_position(*wanted, at, 7, residence.first, residence.last)

    assert await position(moment) == residence.first
    assert await position(moment + timedelta(days=1)) == residence.last
    assert await position(moment - timedelta(days=1)) < residence.first
    assert first


@pytest.mark.long
async def test_late_events_are_forwarded_until_the_move_is_confirmed(pair: Pair) -> None:
    stock = Stock(pair.old)
    await stock.say("before", f"{TENANT}.u1.-")
    await pair.move()
    site = TenantSite(pair.old, pair.old_database, TENANT)
    await stock.say("late", f"{TENANT}.u1.-")
    assert await count_late_events(pair.old, TENANT, await site.load_residence()) == 1
    again = await pair.move()
    assert (again.is_repeated, again.is_confirmed, again.forwarded) == (True, False, 1)
    assert await count_late_events(pair.old, TENANT, await site.load_residence()) == 0
    await settled(pair.new)
    assert await Stock(pair.new).contents(f"{TENANT}.u1") == ["before", "late"]
    await pair.confirm()
    assert (await pair.move()).is_confirmed
    with pytest.raises(MoveRefused, match="is confirmed and cannot be reverted"):
        await pair.move(is_returning=True)


@pytest.mark.long
async def test_move_ends_while_a_bot_keeps_writing_to_the_former_deployment(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bot publishes a message during each pass that forwards late events."""
    stock = Stock(pair.old)
    await stock.say("before", f"{TENANT}.u1.-")
    await pair.move()
    copy_events = TenantCopy.copy_events

    async def copy_while_bot_writes(self: TenantCopy, *pass_: Any) -> int:
        await stock.say("meanwhile", f"{TENANT}.u1.-")
        return await copy_events(self, *pass_)

    monkeypatch.setattr(TenantCopy, "copy_events", copy_while_bot_writes)
    monkeypatch.setattr(run_module, "FORWARD_SECONDS", 0.2)
    await stock.say("late", f"{TENANT}.u1.-")
    async with asyncio.timeout(60):
        again = await pair.move()
    assert again.forwarded >= 1
    residence = await TenantSite(pair.old, pair.old_database, TENANT).load_residence()
    assert await count_late_events(pair.old, TENANT, residence) == 1


@pytest.mark.long
async def test_late_removal_leaves_newer_messages(pair: Pair) -> None:
    old, new = Stock(pair.old), Stock(pair.new)
    await old.say("before", f"{TENANT}.u1.-")
    await old.say("before", f"{TENANT}.u2.-")
    await pair.move()
    await new.say("since", f"{TENANT}.u1.-")
    late = await old.publish(f"chat.{TENANT}.u1.-.cleared.v1")
    discarded = await old.publish(f"chat.{TENANT}.u1.-.started.v1", {"discard_previous": True})
    await old.publish(f"chat.{TENANT}.u2.-.cleared.v1")
    for _ in range(2):
        result = await pair.move()
        assert result.withheld == (
            f"chat.{TENANT}.u1.-.cleared.v1 at position {late}",
            f"chat.{TENANT}.u1.-.started.v1 at position {discarded}",
        )
        site = TenantSite(pair.old, pair.old_database, TENANT)
        assert await count_late_events(pair.old, TENANT, await site.load_residence()) == 2
    await settled(pair.new)
    assert await new.contents(f"{TENANT}.u1") == ["before", "since"]
    assert await new.contents(f"{TENANT}.u2") == []
    await pair.confirm()
    assert await count_late_events(pair.old, TENANT, await site.load_residence()) == 0


@pytest.mark.long
async def test_erasure_of_the_copy_leaves_the_memory(pair: Pair) -> None:
    old, new = Stock(pair.old), Stock(pair.new)
    await old.say("before", f"{TENANT}.u1.-")
    await pair.move()
    refused = await old.ask("erase", f"{TENANT}.u1")
    assert (
        refused["error"]["code"] == "moved"
    )  # a later run would forward the erasure, and a revert would use the copy
    await pair.confirm()
    async with asyncio.timeout(60):
        while "error" in (erased := await old.ask("erase", f"{TENANT}.u1")):
            await asyncio.sleep(0.05)
    assert ADDRESSES[1] in erased["warnings"][0]
    await settled(pair.old)
    left = await old.ask("erase", f"{TENANT}.u1", verify=True)
    assert (left["left"]["log"], left["left"]["database"]) == (0, 0)
    site = TenantSite(pair.old, pair.old_database, TENANT)
    assert await count_late_events(pair.old, TENANT, await site.load_residence()) == 0
    result = await pair.move()
    assert (result.forwarded, result.withheld) == (0, ())
    assert await new.contents(f"{TENANT}.u1") == ["before"]


@pytest.mark.long
async def test_abandoned_copy_can_be_erased(pair: Pair) -> None:
    new = Stock(pair.new)
    await new.say("copied", f"{TENANT}.u1.-")
    await write_residence(pair.new, TENANT, Residence("arriving", "m1", ADDRESSES[0]), 0)
    async with asyncio.timeout(60):
        while "error" not in await new.ask("history", f"{TENANT}.u1"):
            await asyncio.sleep(0.05)
    assert "error" not in await new.ask("erase", f"{TENANT}.u1")
    await settled(pair.new)
    left = await new.ask("erase", f"{TENANT}.u1", verify=True)
    assert (left["left"]["log"], left["left"]["database"]) == (0, 0)


@pytest.mark.long
async def test_revert_brings_back_the_messages_since_the_move(pair: Pair) -> None:
    await tell_story(Stock(pair.old))
    before = await read_memory(pair.old, pair.old_database)
    await pair.move()
    new = Stock(pair.new)
    said = [await new.say(f"since {number}", f"{TENANT}.u5.-") for number in range(3)]
    place = {"conversation": derive_first_conversation(TENANT, "u5"), "from_seq": said[0], "to_seq": said[2]}
    await new.publish(
        f"memory.{TENANT}.u5.summary.written.v1", {**place, "summary_id": "s3", "text": "since"}
    )
    await settled(pair.new)
    await pair.move(is_returning=True)
    after = await read_memory(pair.old, pair.old_database)
    back = {table: [row for row in rows if row["user_id"] != "u5"] for table, rows in after.items()}
    assert back == before
    assert await Stock(pair.old).contents(f"{TENANT}.u5") == ["since 0", "since 1", "since 2"]
    (summary,) = [row for row in after["memory_events"] if row["item"] == "s3"]
    assert summary["body"]["covers"] == ["since 0", "since 1", "since 2"]
    reply = await new.ask("history", f"{TENANT}.u1")
    assert (reply["error"]["code"], reply["error"]["moved_to"]) == ("moved", ADDRESSES[0])
    with pytest.raises(MoveRefused, match="has left the deployment at --to"):
        await pair.move()

    assert (await new.ask("erase", f"{TENANT}.u5"))["error"]["code"] == "moved"
    await confirm_move(
        TenantSite(pair.new, pair.new_database, TENANT), TenantSite(pair.old, pair.old_database, TENANT)
    )
    assert "error" not in await new.ask("erase", f"{TENANT}.u5")
    assert await Stock(pair.old).contents(f"{TENANT}.u5") == ["since 0", "since 1", "since 2"]


@pytest.mark.parametrize("is_returning", [False, True], ids=["moved on", "reverted"])
async def test_move_to_a_deployment_that_the_tenant_has_left_is_refused(
    pair: Pair, is_returning: bool
) -> None:
    await Stock(pair.old).say("here", f"{TENANT}.u1.-")
    lives = Residence("here", "m2", ADDRESSES[1], is_confirmed=not is_returning, is_returning=is_returning)
    await write_residence(pair.old, TENANT, lives, 0)
    await write_residence(
        pair.new, TENANT, Residence("moved", "m1", ADDRESSES[0], is_returning=is_returning), 0
    )
    with pytest.raises(MoveRefused, match="has left the deployment at --to"):
        await pair.move()
    assert (await read_residence(pair.old, TENANT)).residence == lives


async def test_unconfirmed_move_back_names_the_revert(pair: Pair) -> None:
    await Stock(pair.old).say("here", f"{TENANT}.u1.-")
    await write_residence(pair.old, TENANT, Residence("here", "m1", ADDRESSES[1]), 0)
    with pytest.raises(
        MoveRefused, match="is not confirmed: to move it back there, run `mnemon tenant revert`"
    ):
        await pair.move()


async def test_move_into_another_memory_is_refused(pair: Pair) -> None:
    said = await Stock(pair.old).say("here", f"{TENANT}.u1.-")
    await Stock(pair.new).say("there", f"{TENANT}.u1.-")
    with pytest.raises(MoveRefused, match="two memories cannot be merged"):
        await pair.move()
    assert await Stock(pair.old).contents(f"{TENANT}.u1", min_seq=said) == ["here"]


@pytest.mark.parametrize(
    ("source", "target", "problem"),
    [
        ("moved", Residence("arriving", "m1", ADDRESSES[0]), "has moved to nats://third:4222"),
        ("copying", None, "is being moved to nats://third:4222"),
        *(
            pytest.param(*each, marks=pytest.mark.long)
            for each in (
                ("moved", None, "has moved to nats://third:4222"),
                ("moved", Residence("leaving", "m1", ADDRESSES[0], is_returning=True), "is being reverted"),
                ("leaving", None, "is being moved to nats://third:4222"),
                ("arriving", None, "is moving here from nats://third:4222"),
            )
        ),
    ],
)
async def test_move_that_names_another_deployment_is_refused(
    pair: Pair, source: ResidenceState, target: Residence | None, problem: str
) -> None:
    await Stock(pair.old).say("here", f"{TENANT}.u1.-")
    begun = Residence(source, "m1", "nats://third:4222")
    await write_residence(pair.old, TENANT, begun, 0)
    if target is not None:
        await write_residence(pair.new, TENANT, target, 0)
    with pytest.raises(MoveRefused, match=problem):
        await pair.move()
    assert (await read_residence(pair.old, TENANT)).residence == begun
    assert (await read_residence(pair.new, TENANT)).residence == target


async def test_copy_of_an_abandoned_move_is_not_moved(pair: Pair) -> None:
    await Stock(pair.old).say("copied", f"{TENANT}.u1.-")
    copy = Residence("arriving", "m1", "nats://third:4222", is_abandoned=True)
    await write_residence(pair.old, TENANT, copy, 0)
    problem = "has only the copy of an abandoned move: the tenant acme is at nats://third:4222"
    with pytest.raises(MoveRefused, match=problem):
        await pair.move()
    with pytest.raises(MoveRefused, match=problem):
        await pair.abandon()


async def test_deployment_without_consumers_is_refused(
    deployment: Deployment, connection: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mnemon.operations.tenant_move import run

    monkeypatch.setattr(run, "READER_SECONDS", 0.1)
    async with Database(deployment) as database:
        pair = Pair((deployment, deployment), connection, connection, database, database)
        with pytest.raises(MoveRefused, match="no process runs persist at nats://old:4222"):
            await pair.move()


@pytest.mark.long
async def test_settings_that_do_not_fit_the_target_refuse_the_move_until_they_are_changed(
    pair: Pair,
) -> None:
    old = Stock(pair.old)
    await old.say("before", f"{TENANT}.u1.-")
    await change_settings(pair.old, lambda _: {"policy": {"max_length": 100}}, TENANT)
    await change_settings(pair.new, lambda _: {"policy": {"min_length": 150}})
    with pytest.raises(MoveRefused, match=r"policy\.max_length: .*mnemon settings set --tenant acme"):
        await pair.move()
    await answers_again(old)
    await change_settings(pair.old, lambda _: {"policy": {"max_length": 200}}, TENANT)
    await pair.move()
    assert (await read_documents(pair.new, TENANT))[1] == {"policy": {"max_length": 200}}


async def test_unknown_tenant_is_refused(pair: Pair) -> None:
    with pytest.raises(MoveRefused, match=f"has no events at {ADDRESSES[0]}"):
        await pair.move()


async def test_different_rows_keep_the_tenant_where_it_is(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mnemon.operations.tenant_move import run

    monkeypatch.setattr(run, "ROWS_SECONDS", 0.1)
    await Stock(pair.old).say("original", f"{TENANT}.u1.-")
    await settled(pair.old)
    async with pair.old_database.transaction() as transaction:
        await transaction.execute("UPDATE messages SET content = 'changed'")
    with pytest.raises(MoveDiffers, match=r"messages: the rows of event \S+ of user u1 differ in content"):
        await pair.move()
    assert await Stock(pair.old).contents(f"{TENANT}.u1") == ["changed"]
    reply = await Stock(pair.new).ask("history", f"{TENANT}.u1")
    assert reply["error"]["code"] == "unavailable"


async def issue_test_key(connection: Client, name: str) -> IssuedKey:
    """Create an API key of the tenant in a deployment."""
    issued = issue_key(TENANT, name=name)
    await (await open_api_keys(connection)).add(issued.stored)
    return issued


async def accepts_key(connection: Client, issued: IssuedKey) -> bool:
    found = await (await open_api_keys(connection)).find(issued.text)
    return found == issued.stored


async def revoke_test_key(connection: Client, issued: IssuedKey) -> None:
    assert await (await open_api_keys(connection)).revoke(issued.stored.id)


@pytest.mark.long
async def test_api_keys_move_and_return_and_revoked_ones_stay_revoked(pair: Pair) -> None:
    await Stock(pair.old).say("before", f"{TENANT}.u1.-")
    kept, revoked_before = (
        await issue_test_key(pair.old, "kept"),
        await issue_test_key(pair.old, "revoked before"),
    )
    revoked_there, revoked_here = (
        await issue_test_key(pair.old, "there"),
        await issue_test_key(pair.old, "here"),
    )
    native = await issue_test_key(pair.new, "native")
    other = issue_key("globex")
    await (await open_api_keys(pair.old)).add(other.stored)
    await revoke_test_key(pair.old, revoked_before)
    await pair.move()
    moved = [kept, revoked_there, revoked_here, native]
    assert [await accepts_key(pair.new, each) for each in moved] == [True] * 4
    assert not await accepts_key(pair.new, revoked_before)
    assert not await accepts_key(pair.new, other)
    await revoke_test_key(pair.new, revoked_there)
    await revoke_test_key(pair.old, revoked_here)
    await pair.move()  # forwards late events, and copies no revoked key back
    assert not await accepts_key(pair.new, revoked_there)
    since = await issue_test_key(pair.new, "since")
    await pair.move(is_returning=True)
    here = [kept, since, native, revoked_there, revoked_here, revoked_before]
    assert [await accepts_key(pair.old, each) for each in here] == [True] * 3 + [False] * 3


@pytest.mark.long
async def test_key_id_of_another_tenant_refuses_the_move_and_its_key_stays(pair: Pair) -> None:
    await Stock(pair.old).say("before", f"{TENANT}.u1.-")
    moving = await issue_test_key(pair.old, "moves")
    key_id = moving.stored.id
    taken = issue_key("globex").stored.model_copy(update={"id": key_id})
    keys = await open_api_keys(pair.new)
    await keys.add(taken)
    with pytest.raises(MoveRefused, match=f"has another API key with the id {key_id}: revoke it there"):
        await pair.move()
    await answers_again(Stock(pair.old))
    assert (await pair.abandon()).keys == 0
    assert await keys.list_keys() == [taken]
    await keys.revoke(key_id)
    await pair.move()
    assert await accepts_key(pair.new, moving)


class StepReached(Exception):
    """Ends a run at a chosen step with an error, which the run can handle, unlike a kill."""


async def stop_at(pair: Pair, monkeypatch: pytest.MonkeyPatch, state: ResidenceState) -> None:
    """Run a move, and kill it when it has written `state` to the old deployment."""

    async def die_after(connection: Client, tenant: str, residence: Residence, last: int) -> int:
        written = await write_residence(connection, tenant, residence, last)
        if connection is pair.old and residence.state == state:
            monkeypatch.setattr(deployment_module, "write_residence", refuse_all)
            raise Killed
        return written

    async def refuse_all(*_: Any) -> int:
        raise Killed

    monkeypatch.setattr(deployment_module, "write_residence", die_after)
    with pytest.raises(Killed):
        await pair.move()
    monkeypatch.setattr(deployment_module, "write_residence", write_residence)


async def stop_before(pair: Pair, monkeypatch: pytest.MonkeyPatch, state: ResidenceState) -> None:
    """Run a move, and kill it before it writes `state` to either deployment."""

    async def die_before(connection: Client, tenant: str, residence: Residence, last: int) -> int:
        if residence.state == state:
            raise Killed
        return await write_residence(connection, tenant, residence, last)

    monkeypatch.setattr(deployment_module, "write_residence", die_before)
    with pytest.raises(Killed):
        await pair.move()
    monkeypatch.setattr(deployment_module, "write_residence", write_residence)


async def read_state(connection: Client) -> ResidenceState:
    """Return the state of the tenant in a deployment where it has a residence."""
    residence = (await read_residence(connection, TENANT)).residence
    assert residence is not None
    return residence.state


@pytest.mark.parametrize(
    "state", ["draining", *(pytest.param(each, marks=pytest.mark.long) for each in ("copying", "leaving"))]
)
async def test_abandoned_move_leaves_the_tenant_as_it_was(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, state: ResidenceState
) -> None:
    old, new = Stock(pair.old), Stock(pair.new)
    await tell_story(old)
    before = await read_memory(pair.old, pair.old_database)
    await stop_at(pair, monkeypatch, state)
    assert await read_state(pair.old) == state
    result = await pair.abandon()
    assert not result.is_revert
    assert (await read_residence(pair.old, TENANT)).residence is None
    await answers_again(old)
    assert await read_memory(pair.old, pair.old_database) == before
    there = (await read_residence(pair.new, TENANT)).residence
    assert there is None or (there.state, there.is_abandoned) == ("arriving", True)
    if there is not None:
        refused = await new.ask("history", f"{TENANT}.u1")
        assert (refused["error"]["code"], refused["error"]["moved_to"]) == ("moved", ADDRESSES[0])
        assert await pair.abandon() == replace(result, keys=0)  # a repetition changes nothing


async def answers_again(stock: Stock) -> None:
    async with asyncio.timeout(60):
        while "error" in await stock.ask("history", f"{TENANT}.u1"):
            await asyncio.sleep(0.02)


@pytest.mark.long
async def test_abandoned_move_revokes_copied_keys_and_can_be_begun_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mnemon.operations.tenant_move import run

    old = Stock(pair.old)
    await tell_story(old)
    await old.publish(f"memory.{TENANT}.u1.model.called.v1", called(), Nats_Msg_Id="removed")
    key, native = await issue_test_key(pair.old, "moves"), await issue_test_key(pair.new, "native")

    async def stop_in_pause(*arguments: Any) -> int:
        if await read_state(pair.old) == "leaving":
            raise StepReached
        return await raise_last_position(*arguments)

    monkeypatch.setattr(run, "raise_last_position", stop_in_pause)
    with pytest.raises(StepReached):
        await pair.move()
    monkeypatch.setattr(run, "raise_last_position", raise_last_position)
    assert await accepts_key(pair.new, key)
    result = await pair.abandon()
    assert (result.keys, result.has_copy) == (1, True)
    assert [await accepts_key(pair.new, each) for each in (key, native)] == [False, True]
    assert await accepts_key(pair.old, key)

    await answers_again(old)
    await old.say("since", f"{TENANT}.u5.-")
    await remove_call(pair, "removed")  # as retention does
    before = await read_memory(pair.old, pair.old_database)
    moved = await pair.move()
    assert moved.events >= await count_events(pair.old), "all are copied again, but those erased meanwhile"
    assert await read_memory(pair.new, pair.new_database) == before
    assert await accepts_key(pair.new, key)


@pytest.mark.long
async def test_event_that_is_erased_when_its_copy_begins_keeps_its_position(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def was_present(*_: Any) -> bool:
        return True

    await tell_story(Stock(pair.old))
    before = await read_memory(pair.old, pair.old_database)
    monkeypatch.setattr(TenantCopy, "_has_event", was_present)
    await pair.move()
    assert await read_memory(pair.new, pair.new_database) == before


async def remove_call(pair: Pair, event_id: str) -> None:
    await settled(pair.old)
    async with pair.old_database.transaction() as transaction:
        cursor = await transaction.execute(
            "DELETE FROM model_calls WHERE event_id = %s RETURNING seq", (event_id,)
        )
        ((position,),) = await cursor.fetchall()
    assert await pair.old.jetstream().delete_msg(LOG, position)


async def count_events(connection: Client) -> int:
    return sum([len(page) async for page in read_event_pages(connection, f"*.{TENANT}.>", 0)])


@pytest.mark.long
async def test_move_killed_in_the_middle_of_the_switch_is_abandoned(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = Stock(pair.old), Stock(pair.new)
    await old.say("before", f"{TENANT}.u1.-")
    await stop_between_writes_of_switch(pair, monkeypatch)
    assert await read_state(pair.new) == "here"
    await pair.abandon()
    await answers_again(old)
    assert await old.contents(f"{TENANT}.u1") == ["before"]
    assert (await new.ask("history", f"{TENANT}.u1"))["error"]["code"] == "moved"
    await pair.move()
    assert await new.contents(f"{TENANT}.u1") == ["before"]


@pytest.mark.long
async def test_switched_move_with_new_events_is_not_abandoned(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = Stock(pair.old), Stock(pair.new)
    await old.say("before", f"{TENANT}.u1.-")
    await stop_between_writes_of_switch(pair, monkeypatch)
    await new.say("since", f"{TENANT}.u1.-")
    with pytest.raises(MoveRefused, match="Complete the move: run the same `mnemon tenant move` again"):
        await pair.abandon()
    await pair.move()
    with pytest.raises(MoveRefused, match="`mnemon tenant revert` moves the tenant back"):
        await pair.abandon()
    await pair.move(is_returning=True)
    assert await old.contents(f"{TENANT}.u1") == ["before", "since"]
    with pytest.raises(MoveRefused, match="no move of the tenant acme has begun in the deployment of --data"):
        await pair.abandon()


@pytest.mark.long
async def test_lost_target_that_is_back_with_new_events_gets_a_next_step_that_keeps_them(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old, new = Stock(pair.old), Stock(pair.new)
    await old.say("before", f"{TENANT}.u1.-")
    await stop_between_writes_of_switch(pair, monkeypatch)
    await new.say("there", f"{TENANT}.u1.-")
    await abandon_move(TenantSite(pair.old, pair.old_database, TENANT), None)
    await answers_again(old)
    await old.say("here", f"{TENANT}.u1.-")
    with pytest.raises(MoveRefused, match="took part in another move"):
        await pair.move()
    steps = "Run `mnemon export jsonl --tenant acme -o FILE` there, and `mnemon import jsonl FILE"
    with pytest.raises(MoveRefused, match=steps):
        await pair.abandon()
    await settled(pair.new)
    here, there = (list_variables(each) for each in pair.deployments)
    file = tmp_path / "acme.jsonl"
    exported = await mnemon("export", "jsonl", "--tenant", TENANT, "-o", file, **there)
    assert exported.code == 0, exported.err
    imported = await mnemon("import", "jsonl", file, **here)
    assert imported.code == 0, imported.err
    await settled(pair.old)
    assert sorted(await old.contents(f"{TENANT}.u1")) == ["before", "here", "there"]


def list_variables(deployment: Deployment) -> dict[str, str]:
    """Return the variables that let a command use a deployment."""
    return {
        "MNEMON_NATS_URL": str(deployment.nats_url),
        "DATABASE_URL": str(deployment.database_dsn),
        "MNEMON_DATABASE_SCHEMA": deployment.database_schema,
    }


async def stop_between_writes_of_switch(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    await stop_before(pair, monkeypatch, "moved")


@pytest.mark.long
async def test_begun_revert_is_abandoned_and_leaves_no_late_events(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mnemon.operations.tenant_move import run

    monkeypatch.setattr(run, "ROWS_SECONDS", 0.1)
    old, new = Stock(pair.old), Stock(pair.new)
    await old.say("before", f"{TENANT}.u1.-")
    await pair.move()
    await new.say("since", f"{TENANT}.u1.-")
    await settled(pair.old)
    async with pair.old_database.transaction() as transaction:
        await transaction.execute("UPDATE messages SET content = 'changed' WHERE content = 'before'")
    with pytest.raises(MoveDiffers):
        await pair.move(is_returning=True)
    with pytest.raises(MoveRefused, match="is being reverted"):
        await pair.move()
    assert (await pair.abandon()).is_revert
    assert await new.contents(f"{TENANT}.u1") == ["before", "since"]
    site = TenantSite(pair.old, pair.old_database, TENANT)
    assert await count_late_events(pair.old, TENANT, await site.load_residence()) == 0
    await old.say("late", f"{TENANT}.u1.-")
    assert (await pair.move()).forwarded == 1
    await settled(pair.new)
    assert await new.contents(f"{TENANT}.u1") == ["before", "since", "late"]
    async with pair.old_database.transaction() as transaction:
        await transaction.execute("UPDATE messages SET content = 'before' WHERE content = 'changed'")
    await pair.move(is_returning=True)
    assert sorted(await old.contents(f"{TENANT}.u1")) == ["before", "late", "since"]


async def test_move_is_abandoned_without_the_other_deployment(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = Stock(pair.old)
    await old.say("before", f"{TENANT}.u1.-")
    await stop_at(pair, monkeypatch, "leaving")
    await abandon_move(TenantSite(pair.old, pair.old_database, TENANT), None)
    await answers_again(old)
    assert (await pair.abandon()).has_copy  # the other deployment is back
    there = (await read_residence(pair.new, TENANT)).residence
    assert there
    assert there.is_abandoned
    with pytest.raises(MoveRefused, match="no move of the tenant acme has begun in the deployment of --data"):
        await abandon_move(TenantSite(pair.old, pair.old_database, TENANT), None)


async def test_move_is_abandoned_only_with_the_deployment_to_which_it_leads(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = Stock(pair.old)
    await old.say("before", f"{TENANT}.u1.-")
    await stop_before(pair, monkeypatch, "arriving")
    with pytest.raises(MoveRefused, match=f"is being moved to {ADDRESSES[1]}: name that deployment as --to"):
        await pair.abandon("nats://elsewhere")
    assert not (await pair.abandon()).has_copy
    await answers_again(old)


@pytest.mark.long
async def test_second_command_is_refused_with_the_process_that_moves_the_tenant(pair: Pair) -> None:
    await Stock(pair.old).say("before", f"{TENANT}.u1.-")
    holder = TenantSite(pair.new, pair.new_database, TENANT)
    async with hold_move_leases(holder):
        for call in (pair.move, pair.abandon):
            with pytest.raises(
                MoveRefused, match=rf"another command moves .* \(process {os.getpid()} on .* since 2"
            ):
                await call()
    assert (await read_residence(pair.old, TENANT)).residence is None
    await pair.move()


class Killed(BaseException):
    """Raised in place of a kill of the process."""


class Mortal:
    """Raises `Killed` after the n-th write of a run, and before each later write."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = 0
        self.writes = 0
        for module, name in ((deployment_module, "write_residence"), (copy_module, "store_batch")):
            monkeypatch.setattr(module, name, self._wrap(getattr(module, name)))

    def _wrap(self, write: Callable[..., Awaitable[int]]) -> Callable[..., Awaitable[int]]:
        async def die_at_last(*arguments: Any) -> int:
            self.writes += 1
            self.left -= 1
            if self.left < 0:
                raise Killed
            written = await write(*arguments)
            if not self.left:
                raise Killed
            return written

        return die_at_last

    @asynccontextmanager
    async def dying_after(self, writes: int) -> AsyncIterator[None]:
        self.left = writes
        try:
            yield
        except Killed:
            pass
        finally:
            self.left = EVERYTHING


@pytest.mark.long
async def test_killed_move_is_continued(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kill each run one write later than the run before, until a run ends without a kill."""
    monkeypatch.setattr(copy_module, "BATCH", 5)
    mortal = Mortal(monkeypatch)
    stock = Stock(pair.old)
    await tell_story(stock)
    expected = await read_memory(pair.old, pair.old_database)
    for writes in range(1, 40):
        async with mortal.dying_after(writes):
            result = await pair.move()
            break
    else:
        pytest.fail("no run has ended")
    assert writes >= 5, "some runs were killed"
    assert result.events
    assert await read_memory(pair.new, pair.new_database) == expected
    for writes in range(1, 40):
        async with mortal.dying_after(writes):
            await pair.move(is_returning=True)
            break
    else:
        pytest.fail("no run has ended")
    assert await read_memory(pair.old, pair.old_database) == expected


async def fill_log(connection: Client) -> int:
    """Publish messages of all users, and events that name them; return the number of events."""
    users = [f"u{number}" for number in range(USERS)]
    first: dict[str, int] = {}
    for number in range(ROUNDS):
        for start in range(0, USERS, 1000):
            some = users[start : start + 1000]
            body = json.dumps({"role": "user", "content": f"message {number}", "id": str(number)}).encode()
            last = await store_batch(
                connection, [ExactMessage(f"chat.{TENANT}.{user}.-.message.v1", {}, body) for user in some]
            )
            for place, user in enumerate(some, last - len(some) + 1):
                first.setdefault(user, place)
    count = USERS * ROUNDS
    for start in range(0, USERS, 100):
        batch: list[ExactMessage] = []
        for user in users[start : start + 100]:
            batch += derive_events(user, first[user])
        await store_batch(connection, batch)
        count += len(batch)
    return count


def derive_events(user: str, seq: int) -> list[ExactMessage]:
    memory = f"memory.{TENANT}.{user}"
    window = {
        "conversation": derive_first_conversation(TENANT, user),
        "from_seq": seq,
        "to_seq": seq + 3 * USERS,
    }
    events = {
        "fact.proposed": proposal(seq),
        "fact.saved": saved(f"{user} fact.proposed", seq),
        "window.answered": {**window, "outcome": "proposed"},
        "summary.written": {**window, "summary_id": f"{user} s1", "text": "they said"},
        "profile.set": {"fields": {"name": user}},
        "model.called": called(),
    }
    return [
        ExactMessage(f"{memory}.{name}.v1", {"Nats-Msg-Id": f"{user} {name}"}, json.dumps(body).encode())
        for name, body in events.items()
    ]


class Refusals:
    """Sends requests to the old deployment until it answers `moved`, and times the refusals before that."""

    def __init__(self) -> None:
        self.begun = self.ended = 0.0

    async def watch(self, stock: Stock) -> None:
        while True:
            reply = await stock.ask("history", f"{TENANT}.u1", limit=1)
            code = (reply.get("error") or {}).get("code")
            if code == "unavailable" and not self.begun:
                self.begun = time.monotonic()
            if code == "moved":
                self.ended = time.monotonic()
                return
            if code is None:
                self.begun = 0.0  # the pause of a killed run has ended
            await asyncio.sleep(0.02)  # requests of a bot have pauses


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_large_tenant_moves_under_load_with_two_kills(pair: Pair) -> None:
    old, new = Stock(pair.old), Stock(pair.new)
    events = await fill_log(pair.old)
    assert events == USERS * (ROUNDS + 6)
    await settled(pair.old)
    said: list[str] = []

    async def talk() -> None:
        while True:
            text = f"said {len(said)}"
            await old.say(text, f"{TENANT}.u{len(said) % 50}.-", id=text)
            said.append(text)
            await asyncio.sleep(0.01)  # at most a hundred messages a second

    begun = time.monotonic()
    talking, refusals = asyncio.create_task(talk()), Refusals()
    asking = asyncio.create_task(refusals.watch(old))
    site = TenantSite(pair.old, pair.old_database, TENANT)

    async def has_copied() -> bool:
        return await read_log_end(pair.new.jetstream()) > events // 3

    async def drains() -> bool:
        residence = await site.load_residence()
        return residence is not None and residence.state == "draining"

    await run_move(pair, kill_when=has_copied)
    await run_move(pair, kill_when=drains)
    first = await run_move(pair)
    assert first is not None
    seconds = time.monotonic() - begun
    talking.cancel()
    await asking
    again = await run_move(pair)
    assert again is not None
    assert again["events"] - events - len(said) in (0, 1)  # one may be stored and not acknowledged
    before = await read_memory(pair.old, pair.old_database)
    after = await read_memory(pair.new, pair.new_database)
    for table, rows in before.items():
        assert {(row["user_id"], row["event_id"]): row for row in rows} == {
            (row["user_id"], row["event_id"]): row for row in after[table]
        }, table
    assert (await new.ask("history", f"{TENANT}.u{USERS - 1}", limit=1))["messages"]
    refused = refusals.ended - refusals.begun
    print(f"{events} events moved in {seconds:.1f} s, pause {first['pause_seconds']} s, seen {refused:.2f} s")
    assert first["pause_seconds"] < 30


async def run_move(
    pair: Pair, kill_when: Callable[[], Awaitable[bool]] | None = None
) -> dict[str, Any] | None:
    """Run `mnemon tenant move` in a process; kill it when a condition holds. Return what it printed."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = await start_command(pair, "move", out, errors, "--json")
        if kill_when is not None:
            while not await kill_when():
                assert process.returncode is None, "it ended before it was killed"
                await asyncio.sleep(0.01)
            process.kill()
            await process.wait()
            return None
        code = await process.wait()
        out.seek(0)
        errors.seek(0)
        assert code == 0, errors.read().decode()
        result: dict[str, Any] = json.loads(out.read())
        return result


async def start_command(
    pair: Pair, command: str, out: IO[bytes], errors: IO[bytes], *options: str
) -> asyncio.subprocess.Process | ForkedCommand:
    source, target = pair.deployments
    place = "--to-database", str(target.database_dsn), "--to-schema", target.database_schema
    return await start_mnemon(
        *("tenant", command, TENANT, "--to", str(target.nats_url), *place, *options),
        environment=list_variables(source),
        output=out,
        errors=errors,
    )


@pytest.mark.long
async def test_move_that_was_killed_is_abandoned_by_command(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    await Stock(pair.old).say("before", f"{TENANT}.u1.-")
    await stop_at(pair, monkeypatch, "leaving")
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        assert await (await start_command(pair, "abandon", out, errors)).wait() == 0
        out.seek(0)
        said = out.read().decode()
    assert "The move of acme is abandoned: the tenant stays where it is." in said
    assert "run there: mnemon erase acme USER\n" in said
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        assert await (await start_command(pair, "abandon", out, errors, "--json")).wait() == 0
        out.seek(0)
        assert json.loads(out.read()) == {"abandoned": "move", "revoked_keys": 0, "has_copy": True}
    await answers_again(Stock(pair.old))
