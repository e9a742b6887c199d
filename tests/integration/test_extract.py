"""What users say becomes proposed facts: the real consumers, and a local server in place of a provider."""

import asyncio
import json
import logging
from collections.abc import Iterator

import pytest

from bench.provider_server.answers import Question
from bench.provider_server.server import ProviderServer
from infra.config import Deployment
from tests.integration.conftest import Stock
from tests.integration.extracting import KEY, MODEL, Extracting

DAY = 86_400.0


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


@pytest.fixture
async def extracting(stock: Stock, deployment: Deployment, server: ProviderServer) -> Extracting:
    extracting = Extracting.on(stock, deployment, server)
    await extracting.set(provider="openai", model=MODEL, mode="online", idle_seconds=1.0, pool_seconds=0)
    return extracting


@pytest.mark.parametrize("mode", ["online", "batch"])
async def test_a_conversation_that_rests_is_read(extracting: Extracting, mode: str) -> None:
    await extracting.set(mode=mode, time_stamps__zone="Europe/Moscow")
    async with extracting.running():
        first = await extracting.stock.say("hello, I like tea", "acme.u1.-", sent_at="2026-03-01T22:30:00Z")
        await extracting.stock.say("Я люблю чай", "acme.u2.talk")
        answers = await extracting.has(2, "window.answered")
        calls = await extracting.has(2, "model.called")

    assert sorted((each["owner"], each["outcome"], each["proposed"]) for each in answers) == [
        (("acme", "u1"), "proposed", 1),
        (("acme", "u2"), "proposed", 1),
    ]
    assert await extracting.texts(user="u2") == ["Пользователь любит чай"]
    (fact,) = await extracting.log_of("fact.proposed", user="u1")
    lineage = fact["lineage"]
    assert fact["text"] == "User likes tea"
    assert lineage["sources"] == [first]
    assert (lineage["extractor"], lineage["model"]) == ("extract", f"openai/{MODEL}")
    assert lineage["prompt_version"]
    assert set(extracting.server.state.asked.values()) == {1}
    assert any("2026-03-02 01:30 Monday" in text for text in extracting.server.state.asked)
    batches = {each["batch_id"] for each in await extracting.log_of("batch.intended")}
    assert {each.get("batch_id") for each in [*answers, *calls]} == (batches or {None})
    assert bool(batches) == (mode == "batch")


async def test_whoever_rests_not_yet_is_looked_at_again(extracting: Extracting) -> None:
    await extracting.set(idle_seconds=2.0)
    async with extracting.running():
        for number in range(6):
            last = await extracting.stock.say(f"I like thing {number}")
            await asyncio.sleep(0.6)
        (answer,) = await extracting.has(1, "window.answered")
    assert answer["to_seq"] == last
    assert len(await extracting.texts()) == 6


async def test_a_conversation_that_has_grown_long_is_read_before_it_rests(extracting: Extracting) -> None:
    await extracting.set(idle_seconds=DAY, after_messages=5, window_messages=5)
    async with extracting.running():
        seqs = [await extracting.stock.say(f"I like thing {number}") for number in range(5)]
        await extracting.has(1, "window.answered")
        # Nobody looks at a user more often than every few seconds.
        await asyncio.sleep(5)
        seqs += [await extracting.stock.say(f"I like thing {number}") for number in range(5, 12)]
        answers = await extracting.has(2, "window.answered")
    assert [(each["from_seq"], each["to_seq"]) for each in answers] == [
        (seqs[0], seqs[4]),
        (seqs[5], seqs[9]),
    ]


async def test_now_and_then_everybody_is_read_rested_or_not(extracting: Extracting) -> None:
    await extracting.set(idle_seconds=DAY, interval_hours=0.0005)
    async with extracting.running("persist"):
        for number in range(45):
            await extracting.stock.say(f"I like thing {number}", f"acme.u{number}.-")
        await extracting.stock.say("I like tea", "globex.u1.-")
        await extracting.is_projected()
    # Whoever would have heard of it was not there.
    await extracting.connection.jetstream().purge_stream("WORK", subject="work.extract.>")
    async with extracting.running():
        await extracting.has(46, "window.answered")
    assert sorted(await extracting.sql("SELECT tenant, reached FROM rounds")) == [
        ("acme", None),
        ("globex", None),
    ]


async def test_it_reads_on_where_it_was(extracting: Extracting) -> None:
    async with extracting.running():
        for number in range(3):
            await extracting.stock.say(f"I like thing {number}")
            await extracting.has(number + 1, "window.answered")
    assert await extracting.texts() == [f"User likes thing {number}" for number in range(3)]
    assert set(extracting.server.state.asked.values()) == {1}
    assert all(text.count("I like") == 1 for text in extracting.server.state.asked)


async def test_what_came_from_memory_is_not_read(extracting: Extracting) -> None:
    async with extracting.running():
        await extracting.stock.say("I like tea", metadata={"from_memory": True})
        await extracting.stock.say("[id:pf_001] I like coffee")
        (answer,) = await extracting.has(1, "window.answered")
    assert answer["outcome"] == "nothing"
    assert extracting.server.state.questions == []


async def test_what_is_cleared_while_a_model_thinks_teaches_nothing(extracting: Extracting) -> None:
    extracting.server.state.seconds = 2
    async with extracting.running():
        await extracting.stock.say("I like tea")
        async with asyncio.timeout(20):
            while not extracting.server.state.requests:
                await asyncio.sleep(0.02)
        await extracting.stock.publish("chat.acme.u1.-.cleared.v1")
        (answer,) = await extracting.has(1, "window.answered")
        await extracting.has(1, "model.called")  # it is paid for all the same
    assert answer["outcome"] == "gone"
    assert await extracting.texts() == []


async def test_what_was_cleared_before_is_not_asked(extracting: Extracting) -> None:
    await extracting.set(enabled=False)
    async with extracting.running("persist"):
        await extracting.stock.say("I like tea", "acme.u1.one")
        await extracting.is_projected()
    await extracting.sql(
        "INSERT INTO windows (tenant, user_id, conversation, from_seq, to_seq, cut_at, due_at, attempts,"
        " is_answered) VALUES ('acme', 'u1', 'one', 1, 1, now(), now(), 0, false)"
    )
    await extracting.stock.publish("chat.acme.u1.one.cleared.v1")
    await extracting.set(enabled=True)
    async with extracting.running():
        (answer,) = await extracting.has(1, "window.answered")
    assert answer["outcome"] == "gone"
    assert extracting.server.state.questions == []


async def test_known_facts_are_told_and_may_be_superseded(extracting: Extracting) -> None:
    def answer(question: Question) -> str:
        fact = {"memory_type": "user_fact", "importance": 7, "tier": "profile", "expires_at": None}
        facts = [
            {**fact, "text": "Lives in York", "supersedes": "pf_002", "sources": [1]},
            {**fact, "text": "Has a garden in York", "supersedes": "pf_999", "sources": [1, 7]},
        ]
        return json.dumps({"facts": facts})

    extracting.server.state.answering = answer
    await extracting.set(known_facts=2)
    for number, (text, importance) in enumerate(
        [("Likes tea", 3), ("Lives in Leeds", 9), ("Has a dog", 6)], 1
    ):
        fact = {"text": text, "tier": "profile", "importance": importance}
        saved = {"fact_id": f"pf_00{number}", "fact": fact, "decision": {"proposal_id": f"p{number}"}}
        await extracting.stock.publish("memory.acme.u1.fact.saved.v1", saved)
    async with extracting.running():
        said = await extracting.stock.say("we moved to York")
        await extracting.has(1, "window.answered")
    (asked,) = extracting.server.state.asked
    assert "[pf_002] Lives in Leeds\n[pf_003] Has a dog\n" in asked
    assert "Likes tea" not in asked
    proposed = await extracting.log_of("fact.proposed")
    assert [each.get("supersedes") for each in proposed] == ["pf_002", None]
    assert [each["lineage"]["sources"] for each in proposed] == [[said], [said]]


async def test_an_answer_that_cannot_be_read_is_asked_for_again_and_kept_in_the_end(
    extracting: Extracting,
) -> None:
    extracting.server.state.answering = lambda _: "Sorry, I would rather not."
    await extracting.set(attempts=3)
    waiting = "SELECT attempts, is_answered FROM windows"
    async with extracting.running():
        await extracting.stock.say("I like tea")
        await extracting.becomes(waiting, (1, False))
        assert await extracting.sql("SELECT due_at > now() + interval '20 seconds' FROM windows") == [(True,)]
        await extracting.time_passes()
        await extracting.becomes(waiting, (2, False))
        await extracting.time_passes()
        (answer,) = await extracting.has(1, "window.answered")
        await extracting.has(3, "model.called")
    assert answer["outcome"] == "dead"
    ((headers, letter),) = await extracting.letters()
    assert headers["Mnemon-Reason"] == "unreadable"
    assert headers["Mnemon-Subject"] == "memory.acme.u1.window.answered.v1"
    assert letter["answer"] == "Sorry, I would rather not."
    assert (letter["tenant"], letter["user"], letter["from_seq"]) == ("acme", "u1", answer["from_seq"])


async def test_a_model_that_is_away_is_waited_for_however_often(extracting: Extracting) -> None:
    await extracting.set(attempts=1)
    extracting.server.state.key = "another"
    async with extracting.running():
        await extracting.stock.say("I like tea")
        await extracting.becomes("SELECT attempts, due_at > cut_at FROM windows", (0, True))
    assert await extracting.log_of("window.answered") == []
    extracting.server.state.key = KEY
    async with extracting.running():
        await extracting.time_passes()
        await extracting.has(1, "window.answered")
    assert await extracting.texts() == ["User likes tea"]


async def test_a_key_that_is_refused_is_said_once_a_minute_and_never_shown(
    extracting: Extracting, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO)
    extracting.server.state.key = "another"
    async with extracting.running():
        for number in range(20):
            await extracting.stock.say("I like tea", f"acme.u{number}.-")
        await extracting.becomes("SELECT count(*) FROM windows WHERE NOT is_answered", (20,))
        for _ in range(3):
            await extracting.time_passes()
            await asyncio.sleep(0.5)
    said = capsys.readouterr()
    told = caplog.text + said.out + said.err
    assert told.count("refuses the key") == 1
    assert KEY not in told
    assert "I like tea" not in told


async def test_a_tenant_without_budget_waits_and_others_go_on(extracting: Extracting) -> None:
    price = [{"model": MODEL, "input": 1000.0, "output": 1000.0}]
    await extracting.set(spending__prices=price)
    await extracting.set("acme", spending__usd_per_day=0.0)
    async with extracting.running():
        await extracting.stock.say("I like tea", "acme.u1.-")
        await extracting.stock.say("I like tea", "globex.u1.-")
        await extracting.has(1, "window.answered", tenant="globex")
        await extracting.becomes("SELECT tenant, attempts FROM windows WHERE NOT is_answered", ("acme", 0))
        await extracting.set("acme", spending__usd_per_day=None)
        await extracting.has(1, "window.answered", tenant="acme")
    assert all(each["usd"] > 0 for each in await extracting.log_of("model.called"))


async def test_it_can_be_switched_off_and_on_for_a_tenant(extracting: Extracting) -> None:
    await extracting.set("acme", enabled=False)
    async with extracting.running():
        await extracting.stock.say("I like tea", "acme.u1.-")
        await extracting.stock.say("I like tea", "globex.u1.-")
        await extracting.has(1, "window.answered")
        await extracting.set("acme", enabled=True)
        await extracting.stock.say("I like coffee", "acme.u1.-")
        await extracting.has(2, "window.answered")
    assert sorted(await extracting.texts(tenant="acme")) == ["User likes coffee", "User likes tea"]


async def test_other_models_and_words_are_taken_up_at_once(extracting: Extracting) -> None:
    async with extracting.running():
        await extracting.stock.say("I like tea")
        await extracting.has(1, "window.answered")
        await extracting.set(model="another-model", instructions="Write down what they eat.")
        await extracting.stock.say("I like cake")
        await extracting.has(2, "window.answered")
        await extracting.set(mode="batch")
        await extracting.stock.say("I like bread")
        await extracting.has(3, "window.answered")
    first, second, third = extracting.server.state.questions
    assert [each.model for each in (first, second, third)] == [MODEL, "another-model", "another-model"]
    assert "what they eat" in second.instructions
    assert "what they eat" not in first.instructions
    assert len(await extracting.log_of("batch.intended")) == 1


async def test_two_processes_read_everything_once(extracting: Extracting) -> None:
    extracting.server.state.seconds = 0.2
    async with extracting.running(), extracting.running("extract"):
        for number in range(40):
            await extracting.stock.say(f"I like thing {number}", f"acme.u{number}.-")
        await extracting.has(40, "window.answered")
    assert set(extracting.server.state.asked.values()) == {1}
    assert len(await extracting.texts()) == 40
