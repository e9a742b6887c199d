"""What a model is told, what it answers, and what is done where it does not: by the real consumers."""

import asyncio
import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest

from mnemon_bench.provider_server.answers import ReceivedRequest, answer
from mnemon_bench.provider_server.faults import HttpFault
from mnemon_bench.provider_server.server import ProviderServer
from mnemon_consumers.extract import decide
from mnemon_consumers.extract.answers import window_outcome
from mnemon_consumers.extract.answers.parser import MOST_FACTS
from mnemon_contracts.events.memory import Window
from mnemon_infra.broker import broker
from mnemon_infra.broker.streams.log_writer import LogEvent
from mnemon_infra.config import Deployment
from tests.integration.conftest import Stock
from tests.support.pipelines.extraction import KEY, MODEL, WAITING, Extracting

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
    def answer(question: ReceivedRequest) -> str:
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


async def test_a_window_that_was_given_up_is_read_when_its_letter_is_redriven(extracting: Extracting) -> None:
    extracting.server.state.answering = lambda _: "Sorry, I would rather not."
    await extracting.set(attempts=1)
    async with extracting.running():
        await extracting.stock.say("I like tea")
        await extracting.has(1, "window.answered")
        await extracting.redrive_all()
        dead = await extracting.has(2, "window.answered")
        extracting.server.state.answering = answer
        await extracting.redrive_all()
        answers = await extracting.has(3, "window.answered")
        await extracting.is_projected()
        await extracting.has(3, "model.called")
    assert [each["outcome"] for each in answers] == ["dead", "dead", "proposed"]
    given_up = [(each["reason"], each["model"], each["attempts"]) for each in dead]
    assert given_up == [("unreadable", f"openai/{MODEL}", 0), ("unreadable", f"openai/{MODEL}", 1)]
    assert await extracting.texts() == ["User likes tea"]
    assert await extracting.letters() == []
    assert await extracting.sql("SELECT count(*) FROM memory_events WHERE event = 'window.answered'") == [
        (3,)
    ]


async def test_facts_beyond_the_limit_are_said_and_kept(extracting: Extracting) -> None:
    texts = [f"Has been to town number {number}" for number in range(MOST_FACTS + 2)]
    extracting.server.state.answering = lambda _: json.dumps({"facts": texts})
    async with extracting.running():
        await extracting.stock.say("I like tea")
        (answer,) = await extracting.has(1, "window.answered")
    assert (answer["outcome"], answer["proposed"], answer["beyond_limit"]) == ("proposed", MOST_FACTS, 2)
    ((headers, letter),) = await extracting.letters()
    assert headers["Mnemon-Reason"] == "too_many_facts"
    assert headers["Mnemon-Subject"] == "memory.acme.u1.window.answered.v1"
    assert letter["answer"] == "\n".join(texts[MOST_FACTS:])


async def test_a_model_that_is_away_is_waited_for_and_no_attempt_is_counted(extracting: Extracting) -> None:
    await extracting.set(attempts=1)
    extracting.server.state.faults.requests.extend([HttpFault(503)] * 3)  # the SDK tries three times
    async with extracting.running():
        await extracting.stock.say("I like tea")
        await extracting.becomes("SELECT attempts, due_at > cut_at FROM windows", (0, True))
        assert await extracting.log_of("window.answered") == []
        await extracting.time_passes()
        await extracting.has(1, "window.answered")
    assert await extracting.texts() == ["User likes tea"]
    assert await extracting.letters() == []


async def test_who_found_no_time_where_others_did_waits_and_no_attempt_is_counted(
    extracting: Extracting,
) -> None:
    await extracting.set(mode="batch", pool_seconds=3600, attempts=1)
    # Each is tried three times: whichever comes last is the only one that is answered.
    extracting.server.state.faults.requests.extend([HttpFault(429, retry_after=0.1)] * 5)
    async with extracting.running():
        await extracting.stock.say("I like tea", "acme.u1.one")
        await extracting.stock.say("I like tea", "acme.u1.two")
        await extracting.becomes(WAITING, (2,))
        await extracting.set(mode="online")
        await extracting.becomes(
            "SELECT attempts, due_at > cut_at FROM windows WHERE is_answered", (0, False)
        )
        await extracting.becomes(
            "SELECT attempts, due_at > cut_at FROM windows WHERE NOT is_answered", (0, True)
        )
        await extracting.time_passes()
        answers = await extracting.has(2, "window.answered")
    assert [each["outcome"] for each in answers] == ["proposed", "proposed"]


async def test_a_key_that_is_mended_is_used(extracting: Extracting) -> None:
    extracting.server.state.key = "another"
    async with extracting.running():
        await extracting.stock.say("I like tea")
        await extracting.becomes("SELECT attempts, due_at > cut_at FROM windows", (0, True))
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


async def test_what_cannot_be_used_harms_nobody_else(
    extracting: Extracting, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As a fault of our own would be: whoever it concerns is given up, and nothing of it is logged."""

    def proposals(window: Window, *others: Any) -> list[LogEvent]:
        if window.user == "u1":
            raise KeyError("I like tea")
        return decide.proposals(window, *others)

    monkeypatch.setattr(window_outcome, "proposals", proposals)
    await extracting.set(attempts=1)
    async with extracting.running():
        await extracting.stock.say("I like tea", "acme.u1.-")
        await extracting.stock.say("I like tea", "acme.u2.-")
        answers = await extracting.has(2, "window.answered")
    assert {each["owner"][1]: each["outcome"] for each in answers} == {"u1": "dead", "u2": "proposed"}
    assert "I like tea" not in caplog.text


async def test_an_end_is_not_held_up_by_a_model_that_thinks(
    extracting: Extracting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker, "GRACEFUL_TIMEOUT", 3.0)
    extracting.server.state.seconds = 60
    async with extracting.running():
        await extracting.stock.say("I like tea")
        async with asyncio.timeout(20):
            while not extracting.server.state.requests:
                await asyncio.sleep(0.02)
        begun = time.monotonic()
    assert time.monotonic() - begun < 3 + 15
    extracting.server.state.seconds = 0
    async with extracting.running():
        await extracting.has(1, "window.answered")
