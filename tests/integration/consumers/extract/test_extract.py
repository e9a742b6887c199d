"""Messages become proposed facts, with the real consumers and a local server in place of a provider."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

import pytest

from mnemon_consumers.extract import decide, handler, projection_lag, windowing
from mnemon_contracts.settings.language_models import Extraction
from mnemon_contracts.streams import LOG, WORK
from mnemon_infra.database.messages.uncovered_messages import MessageOutline
from tests.support.pipelines.extraction import MODEL, ExtractionHarness

DAY = 86_400.0


@pytest.mark.parametrize("mode", ["online", pytest.param("batch", marks=pytest.mark.long)])
async def test_resting_conversation_is_read(online_extraction: ExtractionHarness, mode: str) -> None:
    await online_extraction.set(mode=mode, time_stamps__zone="Europe/Moscow")
    async with online_extraction.running():
        first = await online_extraction.stock.say(
            "hello, I like tea", "acme.u1.-", sent_at="2026-03-01T22:30:00Z"
        )
        await online_extraction.stock.say("Я люблю чай", "acme.u2.talk")
        answers = await online_extraction.has(2, "window.answered")
        calls = await online_extraction.has(2, "model.called")

    assert sorted((each["owner"], each["outcome"], each["proposed"]) for each in answers) == [
        (("acme", "u1"), "proposed", 1),
        (("acme", "u2"), "proposed", 1),
    ]
    assert await online_extraction.texts(user="u2") == ["Пользователь любит чай"]
    (fact,) = await online_extraction.log_of("fact.proposed", user="u1")
    lineage = fact["lineage"]
    assert fact["text"] == "User likes tea"
    assert lineage["sources"] == [first]
    assert (lineage["extractor"], lineage["model"]) == ("extract", f"openai/{MODEL}")
    assert lineage["prompt_version"]
    assert set(online_extraction.server.state.asked.values()) == {1}
    assert any("2026-03-02 01:30 Monday" in text for text in online_extraction.server.state.asked)
    batches = {each["batch_id"] for each in await online_extraction.log_of("batch.intended")}
    assert {each.get("batch_id") for each in [*answers, *calls]} == (batches or {None})
    assert bool(batches) == (mode == "batch")


@pytest.mark.long
async def test_active_conversation_is_checked_again_later(
    online_extraction: ExtractionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks: list[datetime] = []

    def cut_windows(
        messages: Sequence[MessageOutline], now: datetime, settings: Extraction, *, all_due: bool = False
    ) -> decide.WindowCut:
        if messages:
            checks.append(now)
        # The first two checks see a conversation whose last message has just been sent.
        moment = messages[-1].sent_at if messages and len(checks) < 3 else now
        return decide.cut_windows(messages, moment, settings, all_due=all_due)

    monkeypatch.setattr(windowing, "cut_windows", cut_windows)
    for number in range(6):
        last = await online_extraction.stock.say(f"I like thing {number}")
    async with online_extraction.running():
        (answer,) = await online_extraction.has(1, "window.answered")
    assert len(checks) == 3
    assert answer["to_seq"] == last
    assert len(await online_extraction.texts()) == 6


@pytest.mark.long
async def test_a_conversation_that_has_grown_long_is_read_before_it_rests(
    online_extraction: ExtractionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (handler, windowing):
        monkeypatch.setattr(module, "CHECK_PAUSE", 1.0)
    await online_extraction.set(idle_seconds=DAY, after_messages=5, window_messages=5)
    async with online_extraction.running():
        seqs = [await online_extraction.stock.say(f"I like thing {number}") for number in range(5)]
        await online_extraction.has(1, "window.answered")
        await asyncio.sleep(windowing.CHECK_PAUSE)
        seqs += [await online_extraction.stock.say(f"I like thing {number}") for number in range(5, 12)]
        answers = await online_extraction.has(2, "window.answered")
    assert [(each["from_seq"], each["to_seq"]) for each in answers] == [
        (seqs[0], seqs[4]),
        (seqs[5], seqs[9]),
    ]


@pytest.mark.long
async def test_interval_reads_active_conversations_too(online_extraction: ExtractionHarness) -> None:
    await online_extraction.set(idle_seconds=DAY, interval_hours=0.0005)
    async with online_extraction.running("persist"):
        for number in range(45):
            await online_extraction.stock.say(f"I like thing {number}", f"acme.u{number}.-")
        await online_extraction.stock.say("I like tea", "globex.u1.-")
        await online_extraction.is_projected()
    # No process receives the triggers of these messages.
    await online_extraction.connection.jetstream().purge_stream("WORK", subject="work.extract.>")
    async with online_extraction.running():
        await online_extraction.has(46, "window.answered")
    assert sorted(await online_extraction.sql("SELECT tenant, reached FROM rounds")) == [
        ("acme", None),
        ("globex", None),
    ]


@pytest.mark.long
async def test_extraction_continues_after_the_last_window(online_extraction: ExtractionHarness) -> None:
    async with online_extraction.running():
        for number in range(3):
            await online_extraction.stock.say(f"I like thing {number}")
            await online_extraction.has(number + 1, "window.answered")
    assert await online_extraction.texts() == [f"User likes thing {number}" for number in range(3)]
    assert set(online_extraction.server.state.asked.values()) == {1}
    assert all(text.count("I like") == 1 for text in online_extraction.server.state.asked)


async def test_text_from_memory_is_not_read(online_extraction: ExtractionHarness) -> None:
    async with online_extraction.running():
        await online_extraction.stock.say("I like tea", metadata={"from_memory": True})
        await online_extraction.stock.say("[id:pf_001] I like coffee")
        (answer,) = await online_extraction.has(1, "window.answered")
    assert answer["outcome"] == "nothing"
    assert online_extraction.server.state.questions == []


@pytest.mark.long
async def test_a_tenant_without_budget_waits_and_others_go_on(online_extraction: ExtractionHarness) -> None:
    price = [{"model": MODEL, "input": 1000.0, "output": 1000.0}]
    await online_extraction.set(spending__prices=price)
    await online_extraction.set("acme", spending__usd_per_day=0.0)
    async with online_extraction.running():
        await online_extraction.stock.say("I like tea", "acme.u1.-")
        await online_extraction.stock.say("I like tea", "globex.u1.-")
        await online_extraction.has(1, "window.answered", tenant="globex")
        await online_extraction.becomes(
            "SELECT tenant, attempts FROM windows WHERE NOT is_answered", ("acme", 0)
        )
        await online_extraction.set("acme", spending__usd_per_day=None)
        await online_extraction.has(1, "window.answered", tenant="acme")
    called = await online_extraction.log_of("model.called")
    assert called
    assert all(each["usd"] > 0 for each in called)


@pytest.mark.long
async def test_extraction_is_disabled_and_enabled_per_tenant(online_extraction: ExtractionHarness) -> None:
    await online_extraction.set("acme", enabled=False)
    async with online_extraction.running():
        await online_extraction.stock.say("I like tea", "acme.u1.-")
        await online_extraction.stock.say("I like tea", "globex.u1.-")
        await online_extraction.has(1, "window.answered")
        await online_extraction.set("acme", enabled=True)
        await online_extraction.stock.say("I like coffee", "acme.u1.-")
        await online_extraction.has(2, "window.answered")
    assert sorted(await online_extraction.texts(tenant="acme")) == ["User likes coffee", "User likes tea"]


@pytest.mark.long
async def test_changed_model_and_instructions_apply_at_once(online_extraction: ExtractionHarness) -> None:
    async with online_extraction.running():
        await online_extraction.stock.say("I like tea")
        await online_extraction.has(1, "window.answered")
        await online_extraction.set(model="another-model", instructions="Write down what they eat.")
        await online_extraction.stock.say("I like cake")
        await online_extraction.has(2, "window.answered")
        await online_extraction.set(mode="batch")
        await online_extraction.stock.say("I like bread")
        await online_extraction.has(3, "window.answered")
    first, second, third = online_extraction.server.state.questions
    assert [each.model for each in (first, second, third)] == [MODEL, "another-model", "another-model"]
    assert "what they eat" in second.instructions
    assert "what they eat" not in first.instructions
    assert len(await online_extraction.log_of("batch.intended")) == 1


@pytest.mark.long
async def test_two_processes_read_each_window_once(online_extraction: ExtractionHarness) -> None:
    online_extraction.server.state.seconds = 0.2
    async with online_extraction.running(), online_extraction.running("extract"):
        for number in range(40):
            await online_extraction.stock.say(f"I like thing {number}", f"acme.u{number}.-")
        await online_extraction.has(40, "window.answered")
    assert set(online_extraction.server.state.asked.values()) == {1}
    assert len(await online_extraction.texts()) == 40


@pytest.mark.long
async def test_conversation_resting_before_settlement_is_read_afterwards(
    online_extraction: ExtractionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projection_lag, "WAIT_SECONDS", 1.0)
    stream_context = online_extraction.connection.jetstream()
    async with online_extraction.running("extract"):
        async with online_extraction.running("persist"):
            await online_extraction.stock.say("I like bread", "acme.u1.-")
            await online_extraction.has(1, "window.answered")
            await online_extraction.is_projected()
        await online_extraction.stock.say("I like coffee", "acme.u2.-")
        # Another worker holds the event, and does not acknowledge it.
        held = await stream_context.pull_subscribe_bind("persist", LOG)
        (earlier,) = await held.fetch(1, 60)
        triggered = (await stream_context.consumer_info(WORK, "extract")).delivered
        async with online_extraction.running("persist"):
            await online_extraction.stock.say("I like tea", "acme.u3.-")
            async with asyncio.timeout(60):
                while (await stream_context.consumer_info(WORK, "extract")).delivered == triggered:
                    await asyncio.sleep(0.05)
            await asyncio.sleep(1)
            assert await online_extraction.texts() == ["User likes bread"]
            await earlier.nak()
            await online_extraction.has(3, "window.answered")
