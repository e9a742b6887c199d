"""A repeated `context` sends no query to PostgreSQL, and still shows every change."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from mnemon_consumers.index.handler import IndexConsumer
from mnemon_consumers.persist.handler import PersistConsumer
from mnemon_consumers.retrieve.handler import RetrieveConsumer
from mnemon_consumers.retrieve.memory.hit_rows import MOST_MESSAGE_BYTES, ROW_BYTES
from mnemon_consumers.retrieve.search import statistics
from mnemon_consumers.retrieve.search.statistics import StatisticsCache
from mnemon_contracts.settings.groups import Embedding
from mnemon_infra.broker.streams.applied_position import read_applied_position
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.rebuild.generations import open_exclusive_site, swap_row_generations
from mnemon_infra.settings.store import change_settings
from mnemon_infra.vectors.vector_index import VectorIndex, open_index
from tests.support.pipelines.rebuild import RebuildReport, rebuilt
from tests.support.servers.qdrant import locate_vectors
from tests.support.settings_edit import setting
from tests.support.stock_client import Stock, indexed

ASKING = "test-quiet-retrieve"
"""The name of retrieve's connections to PostgreSQL."""

TRAIN = "The train to Perm leaves at 9:40"
QUESTION = "When does the train to Perm leave?"
SPACE = "memory.acme.u1"


REQUESTS: list[dict[str, Any]] = [
    {},
    {"format": "xml"},
    {"budget": 300},
    {"task_id": "t1"},
    {"conversation": "long"},
    {"query": TRAIN},
]


@dataclass(frozen=True)
class Quiet:
    """A `retrieve` consumer whose connections to PostgreSQL have a name of their own."""

    deployment: Deployment
    stock: Stock
    database: Database
    vector_index: VectorIndex

    async def statements(self) -> set[tuple[Any, ...]]:
        """Return process id, start time and text of the last statement on each connection of `retrieve`."""
        async with self.database.transaction() as connection:
            cursor = await connection.execute(
                "SELECT pid, query_start, left(query, 200) FROM pg_stat_activity WHERE application_name = %s",
                (ASKING,),
            )
            return set(await cursor.fetchall())

    async def settle(self, owner: str = "acme.u1", **request: Any) -> dict[str, Any]:
        """Request the context until a request sends no query to PostgreSQL; return the last reply."""
        await self.stock.ask("context", owner, **request)
        async with asyncio.timeout(60):
            # The first search starts a count of the tenant's words, after which the hits may differ.
            await asyncio.gather(*(each for each in asyncio.all_tasks() if _counts_words(each)))
            while True:
                before = await self.statements()
                reply = await self.stock.ask("context", owner, **request)
                if await self.statements() == before:
                    return reply

    @asynccontextmanager
    async def persisting(self) -> AsyncIterator[None]:
        async with PersistConsumer(self.database, self.deployment).run():
            yield

    @asynccontextmanager
    async def indexing(self) -> AsyncIterator[None]:
        async with IndexConsumer(self.database, self.vector_index, self.deployment).run():
            yield


def _counts_words(task: asyncio.Task[Any]) -> bool:
    return getattr(task.get_coro(), "__qualname__", "") == StatisticsCache.count_words.__qualname__


@pytest_asyncio.fixture
async def reading(deployment: Deployment, stock: Stock, tmp_path: Path) -> AsyncIterator[Quiet]:
    """Run `retrieve` alone, without consumers that write."""
    with_vectors = locate_vectors(deployment, tmp_path / "vectors")
    async with (
        open_index(with_vectors, Embedding()) as vector_index,
        Database(with_vectors) as database,
        Database(with_vectors, name=ASKING) as asking,
        RetrieveConsumer(asking, vector_index, with_vectors).run(),
    ):
        yield Quiet(with_vectors, stock, database, vector_index)


@pytest_asyncio.fixture
async def quiet(reading: Quiet) -> AsyncIterator[Quiet]:
    async with reading.persisting(), reading.indexing():
        yield reading


async def saved(stock: Stock, fact_id: str, text: str, **fact: Any) -> int:
    body = {"fact_id": fact_id, "fact": {"text": text, **fact}, "decision": {"proposal_id": f"p-{fact_id}"}}
    return await stock.publish(f"{SPACE}.fact.saved.v1", body)


async def lived(stock: Stock) -> int:
    """Publish a trip in one conversation and a question about it in another; return the last log position."""
    await stock.say("I have to be in Perm on Monday", "acme.u1.trip")
    await stock.say(TRAIN, "acme.u1.trip", id="train")
    await stock.say("And the hotel is near the station", "acme.u1.trip", id="hotel")
    await saved(stock, "ar_001", "Anna takes the train to Perm")
    await stock.publish(
        f"{SPACE}.document.added.v1", {"document_id": "d1", "text": "The train to Perm has a dining car."}
    )
    await stock.publish("chat.acme.u1.talk.started.v1")
    return await indexed(stock, await stock.say(QUESTION, "acme.u1.talk"))


def shown(reply: dict[str, Any]) -> str:
    assert not reply.get("error"), reply
    assert not reply["degraded"], reply["degraded"]
    return "\n".join(message["content"] for message in reply["messages"])


async def reached(stock: Stock, is_reached: Callable[[str], bool], **request: Any) -> None:
    """Request the context until a complete reply satisfies the condition: parts may be late under load."""
    async with asyncio.timeout(60):
        while True:
            reply = await stock.ask("context", **request)
            if not reply["degraded"] and is_reached(shown(reply)):
                return
            await asyncio.sleep(0.02)


async def test_repeated_context_queries_no_postgresql(quiet: Quiet, stock: Stock) -> None:
    await change_settings(stock.connection, setting(context__sections__documents=200))
    for number in range(150):
        await stock.say(f"Let us speak of the weather in Perm, day {number}", "acme.u1.long")
    await stock.say(QUESTION, "acme.u1.long")
    await stock.publish(
        "chat.acme.u1.trip.message.v1", {"role": "tool", "content": "a train was booked", "task_id": "t1"}
    )
    seq = await lived(stock)
    for request_fields in REQUESTS:
        reply = await quiet.settle(**request_fields, min_seq=seq)
        assert TRAIN in shown(reply), f"it is looked up: {request_fields}"
        assert "dining car" in shown(reply), request_fields

        before = await quiet.statements()
        for _ in range(5):
            assert await stock.ask("context", **request_fields, min_seq=seq) == reply, request_fields
        assert await quiet.statements() == before, request_fields


async def test_second_context_queries_no_postgresql(quiet: Quiet, stock: Stock) -> None:
    await lived(stock)
    # The first search for a tenant starts counts in the background.
    await quiet.settle(owner="acme.u2", query="train")
    first = await stock.ask("context")
    before = await quiet.statements()
    assert await stock.ask("context") == first
    assert await quiet.statements() == before


Act = Callable[[Stock], Awaitable[int]]
"""A function that causes a change and returns its log position."""


async def ask_for(stock: Stock, verb: str, **request: Any) -> int:
    reply = await stock.ask(verb, **request)
    assert not reply.get("error"), reply
    return int(reply["seen_seq"])


def publishing(subject: str, **body: Any) -> Act:
    return lambda stock: stock.publish(subject, body)


def asking(verb: str, **request: Any) -> Act:
    return lambda stock: ask_for(stock, verb, **request)


@pytest.mark.parametrize(
    ("act", "gone", "new"),
    [
        pytest.param(
            lambda stock: stock.say("Is the hotel near the station?", "acme.u1.talk"),
            "",
            "Is the hotel near",
            id="another question",
        ),
        pytest.param(
            publishing("chat.acme.u1.trip.message.v1", role="assistant", content="The train to Perm is late"),
            "",
            "is late",
            id="a message elsewhere that answers the same question",
        ),
        pytest.param(publishing("chat.acme.u1.trip.cleared.v1"), TRAIN, QUESTION, id="cleared"),
        pytest.param(
            publishing("chat.acme.u1.talk.started.v1", discard_previous=True), TRAIN, "", id="discarded"
        ),
        pytest.param(asking("erase", conversation="trip"), TRAIN, QUESTION, id="a conversation erased"),
        pytest.param(asking("erase"), TRAIN, "", id="erased"),
        pytest.param(
            lambda stock: saved(stock, "pf_1", "Anna hates trains", tier="profile"), "", "hates", id="a fact"
        ),
        pytest.param(asking("forget", id="ar_001"), "Anna takes the train", QUESTION, id="forgotten"),
        pytest.param(
            asking("update", id="ar_001", text="Anna takes the train to Perm and back"),
            "",
            "and back",
            id="rewritten",
        ),
        pytest.param(
            publishing(f"{SPACE}.document.added.v1", document_id="d1", text="The train to Perm has no car."),
            "dining car",
            "has no car",
            id="a document rewritten",
        ),
        pytest.param(
            publishing(f"{SPACE}.document.removed.v1", document_id="d1"), "dining car", TRAIN, id="removed"
        ),
    ],
)
async def test_change_is_in_the_next_context(
    quiet: Quiet, stock: Stock, act: Act, gone: str, new: str
) -> None:
    await change_settings(stock.connection, setting(context__sections__documents=200))
    await lived(stock)
    await reached(stock, lambda text: "dining car" in text)  # as soon as the setting has arrived
    assert gone in shown(await quiet.settle())

    seq = await indexed(stock, await act(stock))

    # The first request has no `min_seq`: `retrieve` learns of the change by the notice only.
    for reply in (await stock.ask("context"), await stock.ask("context", min_seq=seq)):
        assert new in shown(reply)
        assert not gone or gone not in shown(reply)


async def test_changed_setting_is_in_the_next_context(quiet: Quiet, stock: Stock) -> None:
    await lived(stock)
    assert TRAIN in shown(await quiet.settle())
    await change_settings(stock.connection, setting(context__conversation_hits=0))
    await reached(stock, lambda text: TRAIN not in text)


async def test_point_indexed_later_is_found_without_row_change(reading: Quiet, stock: Stock) -> None:
    async with reading.persisting():
        await change_settings(stock.connection, setting(context__sections__documents=200))
        for place in ("trip", "trip", "other"):
            await stock.say(f"{TRAIN}, they said on the {place}", f"acme.u1.{place}")
        await saved(stock, "ar_001", "Anna takes the train to Perm")
        await stock.publish(
            f"{SPACE}.document.added.v1", {"document_id": "d1", "text": "The train to Perm has a dining car."}
        )
        seq = await stock.say(QUESTION, "acme.u1.talk")
        stream_context = stock.connection.jetstream()
        async with asyncio.timeout(60):
            while await read_applied_position(stream_context) < seq:
                await asyncio.sleep(0.02)
        assert TRAIN not in shown(await reading.settle(min_seq=seq))
        async with reading.indexing():
            await indexed(stock, seq)
            reply = shown(await stock.ask("context", min_seq=seq))
            assert "they said on the trip" in reply
            assert "they said on the other" in reply
            assert "Anna takes the train" in reply
            assert "dining car" in reply
            assert shown(await reading.settle(min_seq=seq)) == reply


@pytest.mark.parametrize(
    ("act", "gone"),
    [
        pytest.param(publishing("chat.acme.u1.trip.cleared.v1"), TRAIN, id="cleared"),
        pytest.param(
            publishing("chat.acme.u1.talk.started.v1", discard_previous=True), TRAIN, id="discarded"
        ),
        pytest.param(
            publishing(f"{SPACE}.document.removed.v1", document_id="d1"), "dining car", id="removed"
        ),
    ],
)
async def test_removed_row_is_hidden_despite_its_vector(
    reading: Quiet, stock: Stock, act: Act, gone: str
) -> None:
    await change_settings(stock.connection, setting(context__sections__documents=200))
    async with reading.persisting():
        async with reading.indexing():
            await lived(stock)
        assert gone in shown(await reading.settle(query=QUESTION))
        seq = await act(stock)
        stream_context = stock.connection.jetstream()
        async with asyncio.timeout(60):
            while await read_applied_position(stream_context) < seq:
                await asyncio.sleep(0.02)
        assert gone not in shown(await stock.ask("context", query=QUESTION))


async def test_point_indexed_early_is_shown_once_its_row_exists(reading: Quiet, stock: Stock) -> None:
    async with reading.indexing():
        async with reading.persisting():
            await indexed(stock, await stock.say(QUESTION, "acme.u1.talk"))
        seq = await stock.say(TRAIN, "acme.u1.trip")
        stream_context = stock.connection.jetstream()
        async with asyncio.timeout(60):
            while await read_applied_position(stream_context, "index") < seq:
                await asyncio.sleep(0.02)
        assert TRAIN not in shown(await reading.settle(conversation="talk")), "found, and without a row"
        async with reading.persisting():
            await indexed(stock, seq)
            assert TRAIN in shown(await stock.ask("context", conversation="talk"))


async def test_switched_generation_is_in_the_next_context(quiet: Quiet, stock: Stock) -> None:
    await lived(stock)
    async with quiet.database.transaction() as connection:
        await connection.execute("UPDATE messages SET content = 'no train' WHERE event_id = 'train'")
    assert "no train" in shown(await quiet.settle())
    told = RebuildReport()
    async with open_exclusive_site(quiet.deployment) as place, rebuilt(place, told) as replay:
        await swap_row_generations(place, replay, told)
    await reached(stock, lambda text: "no train" not in text and TRAIN in text)


async def test_words_are_counted_again_only_after_a_change(
    quiet: Quiet, stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics, "RECOUNT_SECONDS", 0.0)
    await lived(stock)
    await quiet.settle()
    before = await quiet.statements()
    for _ in range(5):  # a query that one request starts in the background shows after a later one
        await stock.ask("context")
    assert await quiet.statements() == before
    await indexed(stock, await stock.say("Is it late?", "acme.u2.-"))
    await stock.ask("context")
    async with asyncio.timeout(60):
        while not any("sample" in sql for _, _, sql in await quiet.statements() - before):
            await asyncio.sleep(0.02)


@pytest.mark.long
async def test_context_stays_correct_beyond_the_cache_size(quiet: Quiet, stock: Stock) -> None:
    words = [f"word{number}" for number in range(MOST_MESSAGE_BYTES // (6 * 2 * ROW_BYTES))]
    for word in words:
        for number in range(8):
            seq = await stock.say(f"{word} was said, {number}", f"acme.u1.{word}")
    await indexed(stock, seq)
    for word in (*words, *words[:3]):
        found = await stock.ask("search", query=word, limit=8, scope=["messages"])
        assert {hit["text"] for hit in found["hits"]} == {f"{word} was said, {number}" for number in range(8)}
