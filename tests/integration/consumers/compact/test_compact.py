"""Conversations become summaries: as the numbers say, once, in order, by whatever model is set."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from mnemon_bench.provider_server.server import ProviderServer
from mnemon_contracts.subjects import memory_subject
from mnemon_infra.config import Deployment
from tests.integration.conftest import Stock
from tests.support.pipelines.compaction import Compacting, covers_once, live

LONG_ONE = (
    "Number {number}: the user told at some length how the boat trip to the islands went, what the weather "
    "was like, whom they met at the harbour, and that they want to go there again when the season begins; "
    "the assistant promised to look up the ferries, the tickets and a place to sleep near the old lighthouse"
)


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


@pytest_asyncio.fixture
async def compacting(
    stock: Stock, deployment: Deployment, server: ProviderServer
) -> AsyncIterator[Compacting]:
    yield await Compacting.on(stock, deployment, server)


async def key_facts(stock: Stock) -> None:
    for number in range(8):
        fact = {"text": f"The user keeps the promise number {number} to their sister", "tier": "profile"}
        body = {"fact_id": f"pf_{number:03}", "fact": fact, "decision": {"proposal_id": f"p{number}"}}
        await stock.publish(memory_subject("acme", "u1", "fact.saved"), body)


async def test_a_conversation_of_500_messages(compacting: Compacting) -> None:
    server, seen = compacting.server, []
    await key_facts(compacting.stock)
    async with compacting.running("persist", "compact", "retrieve"):
        for messages in range(20, 501, 20):
            await compacting.talk(20, text=LONG_ONE, first=messages)
            # Others talk in between, and so does the user elsewhere.
            await compacting.talk(1, ("u1", "u2"), conversation="elsewhere")
            await compacting.settled()
            summaries = live(await compacting.summaries())
            context = await compacting.stock.ask("context", format="xml", conversation="talk")
            seen.append((messages, len(summaries), context["sections"]["summaries"]["shown"]))
            if messages > 20:
                assert 700 <= context["tokens"] <= 1300, seen

    summaries, said = await compacting.summaries(), await compacting.said()
    assert len(said) == 500
    left = covers_once(summaries, said, 6)
    assert 10 < len(left) <= 16
    for place in range(len(summaries)):
        so_far = live(summaries[: place + 1])
        assert len(so_far) <= 6
        # In any moment they cover the conversation from its beginning, each where another ends.
        ends = [said.index(each["to_seq"]) for each in so_far]
        assert [said.index(each["from_seq"]) for each in so_far] == [0, *(end + 1 for end in ends[:-1])]
    for merged in (each for each in summaries if each["name"] == "summary.merged"):
        assert len(merged["merged"]) == 6
    assert [shown for _, _, shown in seen][1:] == [min(3, stored) for _, stored, _ in seen][1:]
    assert max(stored for _, stored, _ in seen) == 6
    paid = [times for text, times in server.state.asked.items() if "user: Number" in text]
    assert paid == [1] * ((500 - len(left)) // 6), "each stretch was paid for once"
    all_of_them = await compacting.log_of("summary.*")
    assert len(await compacting.log_of("model.called")) == len(all_of_them) == len(server.state.questions)


async def test_two_workers_at_once_write_each_once(compacting: Compacting) -> None:
    users = [f"u{number}" for number in range(12)]
    compacting.server.state.seconds = 0.02
    async with compacting.running(), compacting.running("compact"):
        for _ in range(3):
            await compacting.talk(17, users)
        await compacting.settled()

    for user in users:
        left = covers_once(await compacting.summaries(user), await compacting.said(user), 6)
        assert 10 < len(left) <= 16
    assert set(compacting.server.state.asked.values()) == {1}, "nothing was paid for twice"
    called = await compacting.log_of("model.called")
    assert len(called) == len(compacting.server.state.questions)
    assert {(each["provider"], each["model"], each["purpose"]) for each in called} == {
        ("openai", "a-model-of-our-own", "compact")
    }
    assert all(each["tokens"]["input"] and each["tokens"]["output"] for each in called)


async def test_in_the_language_that_is_spoken(compacting: Compacting) -> None:
    async with compacting.running():
        await compacting.talk(17, ["анна"], text="мы говорили о поездке на море, номер {number}")
        await compacting.talk(17, ["ben"], text="we spoke of the trip to the sea, number {number}")
        await compacting.settled()

    (russian,), (english,) = await compacting.summaries("анна"), await compacting.summaries("ben")
    assert russian["text"].startswith("Говорили о том, что есть: ")
    assert english["text"].startswith("They spoke of what there is: ")
    questions = {question.text.count("поездке") for question in compacting.server.state.questions}
    assert questions == {0, 6}


async def test_without_a_model_the_sentences_that_tell_most_are_kept(compacting: Compacting) -> None:
    await compacting.set(provider="offline", model=None, merge_above=2)
    async with compacting.running():
        await compacting.talk(35, ["анна"], text="В день {number} я купила билет в Рим за {number} евро.")
        await compacting.talk(35, ["ben"], text="On day {number} I bought a ticket to Rome for {number} €.")
        await compacting.settled()

    assert not compacting.server.state.questions
    for user, said in (("анна", "купила билет в Рим"), ("ben", "bought a ticket to Rome")):
        summaries = await compacting.summaries(user)
        covers_once(summaries, await compacting.said(user), 6)
        assert all(said in each["text"] for each in summaries)
        assert {each["lineage"]["model"] for each in summaries} == {"offline/rules"}
        assert len(live(summaries)) == 2


async def test_the_numbers_are_settings(compacting: Compacting) -> None:
    await compacting.set(after_messages=4, messages=2, merge_above=2, instructions="Mention boats.")
    async with compacting.running():
        await compacting.talk(10)
        await compacting.settled()

    summaries = await compacting.summaries()
    assert len(covers_once(summaries, await compacting.said(), 2)) == 4
    assert [each["name"].split(".")[1] for each in summaries] == ["written", "written", "merged", "written"]
    assert len(live(summaries)) == 2
    assert all("Mention boats." in each.instructions for each in compacting.server.state.questions)


async def test_fewer_summaries_than_before_cover_all_that_there_were(compacting: Compacting) -> None:
    await compacting.set(after_messages=2, messages=2, merge_above=30)
    async with compacting.running():
        await compacting.talk(62)
        await compacting.settled()
        assert len(live(await compacting.summaries())) == 30
        await compacting.set(merge_above=3)
        await compacting.talk(2, first=62)
        await compacting.settled()

    summaries, said = await compacting.summaries(), await compacting.said()
    left = sorted((said.index(each["from_seq"]), said.index(each["to_seq"])) for each in live(summaries))
    assert left == [(0, 59), (60, 61)]
    assert len(covers_once(summaries, said, 2)) == 2


async def test_each_conversation_by_itself(compacting: Compacting, stock: Stock) -> None:
    async with compacting.running():
        for name in "abab":
            await stock.publish(f"chat.acme.u1.{name}.started.v1")
            await compacting.talk(9, conversation=None)
        await compacting.talk(16, conversation="c")
        await compacting.settled()

    summaries = await compacting.log_of("summary.*")
    assert sorted(each["conversation"] for each in summaries) == ["a", "b"]
    assert all(len(each["lineage"]["sources"]) == 6 for each in summaries)


async def test_switched_off_nothing_is_done_and_switched_on_it_goes_on(compacting: Compacting) -> None:
    await compacting.set(enabled=False)
    async with compacting.running():
        await compacting.talk(20)
        await compacting.settled()
        assert not compacting.server.state.questions
        await compacting.set("acme", enabled=True)
        await compacting.talk(1)
        await compacting.has(1, "summary.written")
    assert len(compacting.server.state.questions) == 1


async def test_another_model_is_asked_as_soon_as_it_is_set(compacting: Compacting) -> None:
    async with compacting.running():
        await compacting.talk(17)
        await compacting.has(1, "summary.written")
        await compacting.set(provider="anthropic", model="another")
        await compacting.talk(6)
        await compacting.has(2, "summary.written")
        await compacting.set(provider="openai", model="a-third")
        await compacting.talk(6)
        written = await compacting.has(3, "summary.written")
    models = ["openai/a-model-of-our-own", "anthropic/another", "openai/a-third"]
    assert [each["lineage"]["model"] for each in written] == models
    assert [each["provider"] for each in await compacting.log_of("model.called")] == [
        "openai",
        "anthropic",
        "openai",
    ]


async def test_triggers_that_say_nothing_stop_nobody(compacting: Compacting, stock: Stock) -> None:
    stream_context = stock.connection.jetstream()
    for body in (b"", b'{"users":[["acme"]]}', json.dumps({"users": [["acme", "\0"]]}).encode()):
        await stream_context.publish(f"work.compact.{len(body)}", body, stream="WORK")
    await stream_context.publish("work.compact.acme.u%zz.talk", b"", stream="WORK")
    async with compacting.running():
        await compacting.talk(17)
        await compacting.settled()
    assert len(await compacting.summaries()) == 1
    async with asyncio.timeout(10):
        while len(letters := await compacting.letters()) < 4:
            await asyncio.sleep(0.05)
    assert sum("users: expected" in each for each in letters) == 3
