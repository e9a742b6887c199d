"""Summaries of conversations: their number follows the settings; they cover each message once, in order."""

import asyncio
import json

import pytest

from mnemon_contracts.subjects import build_memory_subject
from tests.support.pipelines.compaction import CompactionHarness, covers_once, live
from tests.support.stock_client import Stock

LONG_ONE = (
    "Number {number}: the user told at some length how the boat trip to the islands went, what the weather "
    "was like, whom they met at the harbour, and that they want to go there again when the season begins; "
    "the assistant promised to look up the ferries, the tickets and a place to sleep near the old lighthouse"
)


async def key_facts(stock: Stock) -> None:
    for number in range(8):
        fact = {"text": f"The user keeps the promise number {number} to their sister", "tier": "profile"}
        body = {"fact_id": f"pf_{number:03}", "fact": fact, "decision": {"proposal_id": f"p{number}"}}
        await stock.publish(build_memory_subject("acme", "u1", "fact.saved"), body)


@pytest.mark.long
async def test_conversation_of_500_messages_is_summarised_completely(compaction: CompactionHarness) -> None:
    server, seen = compaction.server, []
    await key_facts(compaction.stock)
    async with compaction.running("persist", "compact", "retrieve"):
        for messages in range(20, 501, 20):
            await compaction.talk(20, text=LONG_ONE, first=messages)
            # Another user, and another conversation of the same user, get messages in between.
            await compaction.talk(1, ("u1", "u2"), conversation="elsewhere")
            await compaction.settled()
            summaries = live(await compaction.summaries())
            context = await compaction.stock.ask("context", format="xml", conversation="talk")
            seen.append((messages, len(summaries), context["sections"]["summaries"]["shown"]))
            if messages > 20:
                assert 700 <= context["tokens"] <= 1300, seen

    summaries, said = await compaction.summaries(), await compaction.said()
    assert len(said) == 500
    left = covers_once(summaries, said, 6)
    assert 10 < len(left) <= 16
    for place in range(len(summaries)):
        so_far = live(summaries[: place + 1])
        assert len(so_far) <= 6
        # After each event, the live summaries cover the conversation without a gap from its first message on.
        ends = [said.index(each["to_seq"]) for each in so_far]
        assert [said.index(each["from_seq"]) for each in so_far] == [0, *(end + 1 for end in ends[:-1])]
    for merged in (each for each in summaries if each["name"] == "summary.merged"):
        assert len(merged["merged"]) == 6
    assert [shown for _, _, shown in seen][1:] == [min(3, stored) for _, stored, _ in seen][1:]
    assert max(stored for _, stored, _ in seen) == 6
    paid = [times for text, times in server.state.asked.items() if "user: Number" in text]
    assert paid == [1] * ((500 - len(left)) // 6), "each stretch was paid for once"
    all_of_them = await compaction.log_of("summary.*")
    assert len(await compaction.log_of("model.called")) == len(all_of_them) == len(server.state.questions)


@pytest.mark.long
async def test_two_workers_write_each_summary_once(compaction: CompactionHarness) -> None:
    users = [f"u{number}" for number in range(12)]
    compaction.server.state.seconds = 0.02
    async with compaction.running(), compaction.running("compact"):
        for _ in range(3):
            await compaction.talk(17, users)
        await compaction.settled()

    for user in users:
        left = covers_once(await compaction.summaries(user), await compaction.said(user), 6)
        assert 10 < len(left) <= 16
    assert set(compaction.server.state.asked.values()) == {1}, "nothing was paid for twice"
    called = await compaction.log_of("model.called")
    assert len(called) == len(compaction.server.state.questions)
    assert {(each["provider"], each["model"], each["purpose"]) for each in called} == {
        ("openai", "a-model-of-our-own", "compact")
    }
    assert called
    assert all(each["tokens"]["input"] and each["tokens"]["output"] for each in called)


async def test_summary_uses_the_language_of_the_conversation(compaction: CompactionHarness) -> None:
    async with compaction.running():
        await compaction.talk(17, ["анна"], text="мы говорили о поездке на море, номер {number}")
        await compaction.talk(17, ["ben"], text="we spoke of the trip to the sea, number {number}")
        await compaction.settled()

    (russian,), (english,) = await compaction.summaries("анна"), await compaction.summaries("ben")
    assert russian["text"].startswith("Говорили о том, что есть: ")
    assert english["text"].startswith("They spoke of what there is: ")
    questions = {question.text.count("поездке") for question in compaction.server.state.questions}
    assert questions == {0, 6}


async def test_without_a_model_the_sentences_that_tell_most_are_kept(compaction: CompactionHarness) -> None:
    await compaction.set(provider="offline", model=None, merge_above=2)
    async with compaction.running():
        await compaction.talk(35, ["анна"], text="В день {number} я купила билет в Рим за {number} евро.")
        await compaction.talk(35, ["ben"], text="On day {number} I bought a ticket to Rome for {number} €.")
        await compaction.settled()

    assert not compaction.server.state.questions
    for user, said in (("анна", "купила билет в Рим"), ("ben", "bought a ticket to Rome")):
        summaries = await compaction.summaries(user)
        covers_once(summaries, await compaction.said(user), 6)
        assert all(said in each["text"] for each in summaries)
        assert {each["lineage"]["model"] for each in summaries} == {"offline/rules"}
        assert len(live(summaries)) == 2


async def test_settings_control_the_number_of_messages_and_summaries(compaction: CompactionHarness) -> None:
    await compaction.set(after_messages=4, messages=2, merge_above=2, instructions="Mention boats.")
    async with compaction.running():
        await compaction.talk(10)
        await compaction.settled()

    summaries = await compaction.summaries()
    assert len(covers_once(summaries, await compaction.said(), 2)) == 4
    assert [each["name"].split(".")[1] for each in summaries] == ["written", "written", "merged", "written"]
    assert len(live(summaries)) == 2
    assert compaction.server.state.questions
    assert all("Mention boats." in each.instructions for each in compaction.server.state.questions)


@pytest.mark.long
async def test_lower_summary_limit_merges_existing_summaries(compaction: CompactionHarness) -> None:
    await compaction.set(after_messages=2, messages=2, merge_above=30)
    async with compaction.running():
        await compaction.talk(62)
        await compaction.settled()
        assert len(live(await compaction.summaries())) == 30
        await compaction.set(merge_above=3)
        await compaction.talk(2, first=62)
        await compaction.settled()

    summaries, said = await compaction.summaries(), await compaction.said()
    left = sorted((said.index(each["from_seq"]), said.index(each["to_seq"])) for each in live(summaries))
    assert left == [(0, 59), (60, 61)]
    assert len(covers_once(summaries, said, 2)) == 2


async def test_each_conversation_is_summarised_separately(
    compaction: CompactionHarness, stock: Stock
) -> None:
    async with compaction.running():
        for name in "abab":
            await stock.publish(f"chat.acme.u1.{name}.started.v1")
            await compaction.talk(9, conversation=None)
        await compaction.talk(16, conversation="c")
        await compaction.settled()

    summaries = await compaction.log_of("summary.*")
    assert sorted(each["conversation"] for each in summaries) == ["a", "b"]
    assert all(len(each["lineage"]["sources"]) == 6 for each in summaries)


async def test_compaction_stops_when_disabled_and_resumes_when_enabled(compaction: CompactionHarness) -> None:
    await compaction.set(enabled=False)
    async with compaction.running():
        await compaction.talk(20)
        await compaction.settled()
        assert not compaction.server.state.questions
        await compaction.set("acme", enabled=True)
        await compaction.talk(1)
        await compaction.has(1, "summary.written")
    assert len(compaction.server.state.questions) == 1


@pytest.mark.long
async def test_changed_model_setting_applies_to_the_next_call(compaction: CompactionHarness) -> None:
    async with compaction.running():
        await compaction.talk(17)
        await compaction.has(1, "summary.written")
        await compaction.set(provider="anthropic", model="another")
        await compaction.talk(6)
        await compaction.has(2, "summary.written")
        await compaction.set(provider="openai", model="a-third")
        await compaction.talk(6)
        written = await compaction.has(3, "summary.written")
    models = ["openai/a-model-of-our-own", "anthropic/another", "openai/a-third"]
    assert [each["lineage"]["model"] for each in written] == models
    assert [each["provider"] for each in await compaction.log_of("model.called")] == [
        "openai",
        "anthropic",
        "openai",
    ]


async def test_empty_triggers_stop_no_compaction(compaction: CompactionHarness, stock: Stock) -> None:
    stream_context = stock.connection.jetstream()
    for body in (b"", b'{"users":[["acme"]]}', json.dumps({"users": [["acme", "\0"]]}).encode()):
        await stream_context.publish(f"work.compact.{len(body)}", body, stream="WORK")
    await stream_context.publish("work.compact.acme.u%zz.talk", b"", stream="WORK")
    async with compaction.running():
        await compaction.talk(17)
        await compaction.settled()
    assert len(await compaction.summaries()) == 1
    async with asyncio.timeout(60):
        while len(letters := await compaction.letters()) < 4:
            await asyncio.sleep(0.05)
    assert sum("users: must be" in each for each in letters) == 3
