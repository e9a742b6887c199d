"""Summaries in `search`, and the scopes `short`, `medium` and `long` for levels of memory."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from nats.aio.client import Client
from structlog.testing import capture_logs

from mnemon.operations.audit.ledger import Audit
from mnemon.operations.audit.run import run_audit
from mnemon.operations.rebuild.live_vectors import open_live_pages
from mnemon_consumers.app import run_consumers
from mnemon_contracts.streams import LOG
from mnemon_contracts.verbs.tools import SearchReplyV1
from mnemon_infra.broker.provisioning.topology import reset_durable
from mnemon_infra.broker.streams.applied_position import read_applied_position, read_log_end
from mnemon_infra.config import Deployment
from mnemon_infra.database.audit.events import UserSample
from mnemon_infra.database.engine import Database
from mnemon_infra.rebuild.generations import open_site
from mnemon_infra.settings.store import change_settings
from mnemon_infra.vectors.port import Collection
from mnemon_producers.client import MemoryClient
from tests.support.log.audited_log import wait_until_swept
from tests.support.servers.qdrant import count_live_points, lose_collection
from tests.support.stock_client import Stock, indexed

SPACE = "memory.acme.u1"
CONSUMERS = "persist", "index", "dedupe", "retrieve"


@pytest_asyncio.fixture
async def mnemon_with_short_window(
    vectors_deployment: Deployment, connection: Client
) -> AsyncIterator[Deployment]:
    """Run all consumers with vectors, and a level `short` of two messages."""
    await change_settings(connection, lambda document: {**document, "recent_messages": 2})
    async with run_consumers(CONSUMERS, vectors_deployment):
        yield vectors_deployment


async def summarised(
    stock: Stock, summary_id: str, text: str, from_seq: int = 1, *, owner: str = "acme.u1", **body: Any
) -> int:
    """Publish a summary; one with `merged` replaces the named ones."""
    name = "merged" if "merged" in body else "written"
    end = await read_log_end(stock.connection.jetstream())
    about = {"summary_id": summary_id, "conversation": "c", "from_seq": from_seq, "to_seq": end, "text": text}
    return await stock.publish(f"memory.{owner}.summary.{name}.v1", about | body)


async def saved(stock: Stock, fact_id: str, tier: str, text: str) -> int:
    fact = {"text": text, "tier": tier}
    body = {"fact_id": fact_id, "fact": fact, "decision": {"proposal_id": f"p-{fact_id}"}}
    return await stock.publish(f"{SPACE}.fact.saved.v1", body)


async def ask(
    stock: Stock, verb: str, version: int, owner: str = "acme.u1", **request: Any
) -> dict[str, Any]:
    body = json.dumps(request).encode()
    reply: dict[str, Any] = json.loads(
        (await stock.connection.request(f"ask.{owner}.{verb}.v{version}", body, timeout=60)).data
    )
    return reply


async def found(stock: Stock, query: str, *scope: str, **request: Any) -> list[str]:
    """Return the ids of the hits of version 2 of `search`, best first."""
    reply = await ask(stock, "search", 2, query=query, scope=scope, limit=100, **request)
    assert not reply.get("error"), reply
    assert not reply["degraded"], reply
    return [hit["id"] for hit in reply["hits"]]


async def summary_points(stock: Stock, deployment: Deployment) -> int:
    return (await count_live_points(stock.connection, deployment))["summaries"]


async def audited(connection: Client, deployment: Deployment) -> Audit:
    async with open_site(deployment) as place, open_live_pages(place) as pages:
        return await run_audit(connection, place.database, UserSample(), lambda *_: None, pages)


async def test_summary_is_found_until_it_is_merged_or_cleared(
    stock: Stock, mnemon_with_short_window: Deployment, connection: Client
) -> None:
    await stock.say("Let us fly to Lisbon in May", "acme.u1.c")
    await summarised(stock, "s1", "Marina plans a trip to Lisbon in May.")
    await indexed(stock, await summarised(stock, "s2", "Marina booked a dinner at Birch."))
    assert await found(stock, "trip to Lisbon", "summaries") == ["s1"]
    assert await found(stock, "Where is the dinner?", "summaries") == ["s2"]
    assert await summary_points(stock, mnemon_with_short_window) == 2

    merged = await summarised(stock, "s3", "A trip to Lisbon and a dinner at Birch.", merged=["s1", "s2"])
    await indexed(stock, merged)
    assert await found(stock, "trip to Lisbon", "summaries") == ["s3"]
    assert await summary_points(stock, mnemon_with_short_window) == 1
    await wait_until_swept(connection)
    assert (await audited(connection, mnemon_with_short_window)).faults.named == []

    await indexed(stock, await stock.publish("chat.acme.u1.c.cleared.v1"))
    assert await found(stock, "trip to Lisbon", "summaries") == []
    # Published after the clear, but of messages from before it.
    await indexed(stock, await summarised(stock, "s4", "Lisbon again."))
    assert await found(stock, "Lisbon", "summaries") == []
    assert await summary_points(stock, mnemon_with_short_window) == 0
    await wait_until_swept(connection)
    assert (await audited(connection, mnemon_with_short_window)).faults.named == []


async def test_hit_is_read_whole_by_its_id(
    stock: Stock, mnemon_with_short_window: Deployment, memory_client: MemoryClient
) -> None:
    said = await stock.say("Let us fly to Lisbon in May", "acme.u1.c")
    seq = await indexed(stock, await summarised(stock, "s1", "Marina plans a trip to Lisbon in May.", said))

    (hit,) = (await memory_client.search("u1", "Lisbon", scope=["summaries"], min_seq=seq)).hits
    whole = (await memory_client.get("u1", hit.id, scope=hit.scope)).summary

    assert whole is not None
    assert (whole.id, whole.text, whole.conversation) == ("s1", hit.text, "c")
    assert (whole.from_seq, whole.to_seq, whole.at) == (said, said, hit.at)
    assert (await memory_client.get("u1", "s1")).summary == whole
    absent = await ask(stock, "get", 2, id="s2", scope="summaries")
    assert absent["error"]["message"] == "there is no summary 's2'; find the summary with `search`"
    refused = await ask(stock, "get", 1, id="s1", scope="summaries")
    assert refused["error"]["code"] == "bad_request"


async def test_search_version_1_is_unchanged(stock: Stock, mnemon_with_short_window: Deployment) -> None:
    await stock.say("The walrus sings in Lisbon", "acme.u1.-", id="m1")
    await saved(stock, "ar_001", "archive", "Anna saw a walrus in Lisbon")
    await indexed(stock, await summarised(stock, "s1", "A walrus sang in Lisbon.", conversation="d"))
    everywhere = ["memories", "messages", "documents"]

    for request in ({}, {"scope": everywhere}, {"scope": ["messages"], "explain": True}):
        old = await ask(stock, "search", 1, query="walrus", **request)
        new = await ask(stock, "search", 2, query="walrus", **request)
        assert old == new
        assert SearchReplyV1.parse(json.dumps(old).encode()).hits
        assert "s1" not in [hit["id"] for hit in old["hits"]]
    for level in ("summaries", "short", "medium", "long"):
        refused = await ask(stock, "search", 1, query="walrus", scope=[level])
        assert refused["error"]["code"] == "bad_request"
        assert refused["error"]["message"].startswith("scope: ")
    warned = await ask(stock, "search", 1, query="walrus", conversation="c")
    assert "no field 'conversation'" in warned["warnings"][0]


@pytest.mark.parametrize(
    ("old", "new", "gist", "facts", "query"),
    [
        pytest.param(
            "We painted the boat green",
            "The boat leaks again",
            "They talked about a boat and its colour.",
            ("Owns a boat", "Repairs the boat until Friday", "Once sailed a boat to Riga"),
            "What about the boat?",
            id="English",
        ),
        pytest.param(
            "Мы покрасили лодку в зелёный цвет",
            "Лодка опять течёт",
            "Говорили о лодке и её цвете.",
            ("Владеет лодкой", "До пятницы чинит лодку", "Однажды ходил на лодке в Ригу"),
            "Что с лодкой?",
            id="Russian",
        ),
    ],
)
async def test_scopes_select_levels_of_memory(
    stock: Stock,
    mnemon_with_short_window: Deployment,
    old: str,
    new: str,
    gist: str,
    facts: tuple[str, str, str],
    query: str,
) -> None:
    first = await stock.say(old, "acme.u1.c", id="old")
    await stock.say(f"{old}, 2 times", "acme.u1.d", id="elsewhere")
    await stock.say(new, "acme.u1.c", id="new")
    await stock.say("ok", "acme.u1.c", id="ok")
    for (fact_id, tier), text in zip(
        (("pf_001", "profile"), ("wk_001", "working"), ("ar_001", "archive")), facts, strict=True
    ):
        await saved(stock, fact_id, tier, text)
    await stock.ask("document", action="add", document_id="doc", text=f"{old}. {new}.")
    seq = await indexed(stock, await summarised(stock, "s1", gist, first))

    async def at(*scope: str, **request: Any) -> set[str]:
        return {*await found(stock, query, *scope, min_seq=seq, **request)} - {"ok"}

    assert await at("short", conversation="c") == {"new"}
    assert await at("medium") == {"s1", "wk_001"}
    assert await at("long", conversation="c") == {"old", "elsewhere", "pf_001", "ar_001", "doc"}
    assert await at("short") == {"elsewhere"}, "d is the current conversation"
    assert await at("long") == {"old", "new", "pf_001", "ar_001", "doc"}
    everything = await at("memories", "messages", "documents", "summaries")
    assert await at("short", "medium", "long") == everything
    assert everything == {"old", "elsewhere", "new", "s1", "pf_001", "wk_001", "ar_001", "doc"}
    assert await at("short", "memories", conversation="c") == {"new", "pf_001", "wk_001", "ar_001"}
    assert await at("short", conversation="nowhere") == set()
    assert await at("long", conversation="nowhere") == everything - {"s1", "wk_001"}


@pytest.mark.parametrize("query", ["What happened yesterday?", "Что случилось вчера?"])
async def test_a_level_without_messages_of_the_period_is_searched_by_words(
    stock: Stock, mnemon_with_short_window: Deployment, query: str
) -> None:
    yesterday = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    await stock.say("The boiler broke down / Сломался котёл", "acme.u1.c", id="boiler", sent_at=yesterday)
    text = "An accident happened at the bridge / Случилась авария на мосту"
    await stock.say(text, "acme.u1.c", id="bridge", sent_at="2019-05-04T10:00:00Z")
    await indexed(stock, await stock.say("ok", "acme.u1.c", id="ok"))

    assert "bridge" in await found(stock, query, "short", conversation="c")
    assert await found(stock, query, "long", conversation="c") == ["boiler"]


@pytest.mark.long
async def test_the_summaries_of_an_erased_user_have_no_points(
    stock: Stock, mnemon_with_short_window: Deployment, connection: Client
) -> None:
    for owner in ("acme.u1", "acme.u2"):
        said = await stock.say("Let us fly to Lisbon", f"{owner}.c")
        await indexed(stock, await summarised(stock, "s1", "A trip to Lisbon.", said, owner=owner))
    receipt = await stock.ask("erase", conversation="c")
    assert receipt["removed"]["vectors"] == 2, "a message and its summary"
    assert await summary_points(stock, mnemon_with_short_window) == 1
    await stock.ask("erase", "acme.u2")
    assert await summary_points(stock, mnemon_with_short_window) == 0
    assert (await stock.ask("erase", "acme.u2", verify=True))["left"]["vectors"] == 0


@pytest.mark.long
async def test_a_folder_of_a_former_version_is_filled_without_reading_the_log_again(
    stock: Stock, vectors_deployment: Deployment, connection: Client
) -> None:
    async with run_consumers(CONSUMERS, vectors_deployment):
        for owner in ("acme.u1", "globex.u2"):
            said = await stock.say("Let us fly to Lisbon", f"{owner}.c")
            await summarised(stock, "s1", "A trip to Oslo.", said, owner=owner)
            merged = await summarised(stock, "s2", "A trip to Lisbon.", said, owner=owner, merged=["s1"])
            await indexed(stock, merged)
    await lose_collection(vectors_deployment, Collection.SUMMARIES)
    read = await read_applied_position(connection.jetstream(), "index")

    with capture_logs() as lines:
        async with run_consumers(CONSUMERS, vectors_deployment):
            assert await read_applied_position(connection.jetstream(), "index") == read
            await indexed(stock, read)
            assert await found(stock, "Lisbon", "summaries") == ["s2"]
            assert await summary_points(stock, vectors_deployment) == 2
            assert (await audited(connection, vectors_deployment)).faults.named == []
    (filled,) = [line for line in lines if line["event"].startswith("empty collections ")]
    assert filled["event"] == "empty collections found, indexing from the rows"
    assert (filled["collections"], filled["users"]) == (["summaries"], 2)


async def test_log_without_content_to_index_is_not_read_again(
    stock: Stock, vectors_deployment: Deployment
) -> None:
    async with run_consumers(CONSUMERS, vectors_deployment):
        await stock.say("Let us fly to Lisbon", "acme.u1.c")
        await stock.ask("erase", "acme.u1")
        await indexed(stock, await stock.publish("chat.acme.u1.d.started.v1", {}))

    with capture_logs() as lines:
        async with run_consumers(CONSUMERS, vectors_deployment):
            pass
    assert not [line for line in lines if line["event"].startswith("empty collections ")]


async def test_lost_folder_is_filled_again_although_rows_are_behind(
    stock: Stock, vectors_deployment: Deployment, connection: Client
) -> None:
    async with run_consumers(CONSUMERS, vectors_deployment):
        seq = await indexed(stock, await stock.say("Let us fly to Lisbon", "acme.u1.c", id="ok"))
    await lose_collection(vectors_deployment, Collection.MESSAGES)
    async with Database(vectors_deployment) as database, database.transaction() as held:
        await held.execute("DELETE FROM messages")
    await reset_durable(connection, LOG, "persist")

    with capture_logs() as lines:
        async with run_consumers(CONSUMERS, vectors_deployment):
            await indexed(stock, seq)
            assert await found(stock, "Lisbon", "messages") == ["ok"]
    (refill,) = [line for line in lines if line["event"].startswith("empty collections ")]
    assert refill["event"] == "empty collections found, indexing the log from its start"


async def test_an_audit_names_a_summary_that_cannot_be_found(
    stock: Stock, vectors_deployment: Deployment, connection: Client
) -> None:
    async with run_consumers(CONSUMERS, vectors_deployment):
        said = await stock.say("Let us fly to Lisbon", "acme.u1.c")
        seq = await indexed(stock, await summarised(stock, "s1", "A trip to Lisbon.", said))
    await lose_collection(vectors_deployment, Collection.SUMMARIES)

    (fault,) = (await audited(connection, vectors_deployment)).faults.named

    assert (fault.kind, fault.seq, fault.where, fault.detail) == (
        "no_point",
        seq,
        "vectors of summaries",
        "s1",
    )
