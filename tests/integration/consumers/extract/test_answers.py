"""Requests to a model, its answers, and the handling of missing answers, with the real consumers."""

import asyncio
import json
import logging
from typing import Any

import nats.errors
import pytest
from nats.aio.client import Client

from mnemon_bench.provider_server.answers import ReceivedRequest, write_answer
from mnemon_bench.provider_server.faults import HttpFault
from mnemon_consumers.app import run_consumers
from mnemon_consumers.extract import online_requests, projection_lag
from mnemon_consumers.extract.answer_parser import MOST_FACTS
from mnemon_consumers.extract.answers import answer_events, window_outcome
from mnemon_infra.broker import broker
from mnemon_infra.broker.streams.log_reader import read_last_position
from mnemon_infra.broker.streams.log_writer import LogEvent
from mnemon_infra.database.windows.window_repository import StoredWindow
from tests.support.pipelines.extraction import KEY, MODEL, WAITING, ExtractionHarness

DAY = 86_400.0


async def test_messages_cleared_during_the_call_give_no_fact(
    online_extraction: ExtractionHarness,
) -> None:
    released = online_extraction.server.state.hold_answers()
    async with online_extraction.running():
        await online_extraction.stock.say("I like tea")
        await online_extraction.is_asked()
        await online_extraction.stock.publish("chat.acme.u1.-.cleared.v1")
        await online_extraction.is_projected()
        released.set()
        (answer,) = await online_extraction.has(1, "window.answered")
        await online_extraction.has(1, "model.called")  # the call is still counted
    assert answer["outcome"] == "gone"
    assert await online_extraction.texts() == []


async def test_cleared_messages_are_not_sent(online_extraction: ExtractionHarness) -> None:
    await online_extraction.set(enabled=False)
    async with online_extraction.running("persist"):
        await online_extraction.stock.say("I like tea", "acme.u1.one")
        await online_extraction.is_projected()
    await online_extraction.sql(
        "INSERT INTO windows (tenant, user_id, conversation, from_seq, to_seq, cut_at, due_at, attempts,"
        " is_answered) VALUES ('acme', 'u1', 'one', 1, 1, now(), now(), 0, false)"
    )
    await online_extraction.stock.publish("chat.acme.u1.one.cleared.v1")
    await online_extraction.set(enabled=True)
    async with online_extraction.running():
        (answer,) = await online_extraction.has(1, "window.answered")
    assert answer["outcome"] == "gone"
    assert online_extraction.server.state.questions == []


async def test_known_facts_are_sent_and_superseded(online_extraction: ExtractionHarness) -> None:
    def answer(question: ReceivedRequest) -> str:
        fact = {"memory_type": "user_fact", "importance": 7, "tier": "profile", "expires_at": None}
        facts = [
            {**fact, "text": "Lives in York", "supersedes": "pf_002", "sources": [1]},
            {**fact, "text": "Has a garden in York", "supersedes": "pf_999", "sources": [1, 7]},
        ]
        return json.dumps({"facts": facts})

    online_extraction.server.state.answering = answer
    await online_extraction.set(known_facts=2)
    for number, (text, importance) in enumerate(
        [("Likes tea", 3), ("Lives in Leeds", 9), ("Has a dog", 6)], 1
    ):
        fact = {"text": text, "tier": "profile", "importance": importance}
        saved = {"fact_id": f"pf_00{number}", "fact": fact, "decision": {"proposal_id": f"p{number}"}}
        await online_extraction.stock.publish("memory.acme.u1.fact.saved.v1", saved)
    async with online_extraction.running():
        said = await online_extraction.stock.say("we moved to York")
        await online_extraction.has(1, "window.answered")
    (asked,) = online_extraction.server.state.asked
    assert "[pf_002] Lives in Leeds\n[pf_003] Has a dog\n" in asked
    assert "Likes tea" not in asked
    proposed = await online_extraction.log_of("fact.proposed")
    assert [each.get("supersedes") for each in proposed] == ["pf_002", None]
    assert [each["lineage"]["sources"] for each in proposed] == [[said], [said]]


async def test_unreadable_answer_is_retried_then_kept_as_letter(
    online_extraction: ExtractionHarness,
) -> None:
    online_extraction.server.state.answering = lambda _: "Sorry, I would rather not."
    await online_extraction.set(attempts=3)
    waiting = "SELECT attempts, is_answered FROM windows"
    async with online_extraction.running():
        await online_extraction.stock.say("I like tea")
        await online_extraction.becomes(waiting, (1, False))
        assert await online_extraction.sql("SELECT due_at > now() + interval '20 seconds' FROM windows") == [
            (True,)
        ]
        await online_extraction.time_passes()
        await online_extraction.becomes(waiting, (2, False))
        await online_extraction.time_passes()
        (answer,) = await online_extraction.has(1, "window.answered")
        await online_extraction.has(3, "model.called")
    assert answer["outcome"] == "dead"
    ((headers, letter),) = await online_extraction.letters()
    assert headers["Mnemon-Reason"] == "unreadable"
    assert headers["Mnemon-Subject"] == "memory.acme.u1.window.answered.v1"
    assert letter["answer"] == "Sorry, I would rather not."
    assert (letter["tenant"], letter["user"], letter["from_seq"]) == ("acme", "u1", answer["from_seq"])


async def test_a_window_that_was_given_up_is_read_when_its_letter_is_redriven(
    online_extraction: ExtractionHarness,
) -> None:
    online_extraction.server.state.answering = lambda _: "Sorry, I would rather not."
    await online_extraction.set(attempts=1)
    async with online_extraction.running():
        await online_extraction.stock.say("I like tea")
        await online_extraction.has(1, "window.answered")
        await online_extraction.redrive_all()
        dead = await online_extraction.has(2, "window.answered")
        online_extraction.server.state.answering = write_answer
        await online_extraction.redrive_all()
        answers = await online_extraction.has(3, "window.answered")
        await online_extraction.is_projected()
        await online_extraction.has(3, "model.called")
    assert [each["outcome"] for each in answers] == ["dead", "dead", "proposed"]
    given_up = [(each["reason"], each["model"], each["attempts"]) for each in dead]
    assert given_up == [("unreadable", f"openai/{MODEL}", 0), ("unreadable", f"openai/{MODEL}", 1)]
    assert await online_extraction.texts() == ["User likes tea"]
    assert await online_extraction.letters() == []
    assert await online_extraction.sql(
        "SELECT count(*) FROM memory_events WHERE event = 'window.answered'"
    ) == [(3,)]


async def test_answer_survives_an_outage_of_the_log(
    online_extraction: ExtractionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[str] = []

    async def read(connection: Client, *patterns: str) -> int:
        if online_extraction.server.state.questions and not failed:
            failed.extend(patterns)
            raise nats.errors.TimeoutError
        return await read_last_position(connection, *patterns)

    monkeypatch.setattr(projection_lag, "read_last_position", read)
    monkeypatch.setattr(online_requests, "APPEND_PAUSE", 0.05)
    async with online_extraction.running():
        await online_extraction.stock.say("I like tea")
        await online_extraction.has(1, "window.answered")
        await online_extraction.has(1, "model.called")
    assert failed
    assert len(online_extraction.server.state.questions) == 1


async def test_facts_beyond_the_limit_are_reported_in_a_letter(online_extraction: ExtractionHarness) -> None:
    texts = [f"Has been to town number {number}" for number in range(MOST_FACTS + 2)]
    online_extraction.server.state.answering = lambda _: json.dumps({"facts": texts})
    async with online_extraction.running():
        await online_extraction.stock.say("I like tea")
        (answer,) = await online_extraction.has(1, "window.answered")
    assert (answer["outcome"], answer["proposed"], answer["beyond_limit"]) == ("proposed", MOST_FACTS, 2)
    ((headers, letter),) = await online_extraction.letters()
    assert headers["Mnemon-Reason"] == "too_many_facts"
    assert headers["Mnemon-Subject"] == "memory.acme.u1.window.answered.v1"
    assert letter["answer"] == "\n".join(texts[MOST_FACTS:])


@pytest.mark.long
async def test_model_outage_counts_no_attempt(
    online_extraction: ExtractionHarness,
) -> None:
    await online_extraction.set(attempts=1)
    # the SDK makes three attempts
    online_extraction.server.state.faults.requests.extend([HttpFault(503)] * 3)
    async with online_extraction.running():
        await online_extraction.stock.say("I like tea")
        await online_extraction.becomes("SELECT attempts, due_at > cut_at FROM windows", (0, True))
        assert await online_extraction.log_of("window.answered") == []
        await online_extraction.time_passes()
        await online_extraction.has(1, "window.answered")
    assert await online_extraction.texts() == ["User likes tea"]
    assert await online_extraction.letters() == []


@pytest.mark.long
async def test_rate_limited_call_counts_no_attempt(
    online_extraction: ExtractionHarness,
) -> None:
    await online_extraction.set(mode="batch", pool_seconds=3600, attempts=1)
    # Each call makes three attempts, so five faults leave an answer for only one of the two.
    online_extraction.server.state.faults.requests.extend([HttpFault(429, retry_after=0.1)] * 5)
    async with online_extraction.running():
        await online_extraction.stock.say("I like tea", "acme.u1.one")
        await online_extraction.stock.say("I like tea", "acme.u1.two")
        await online_extraction.becomes(WAITING, (2,))
        await online_extraction.set(mode="online")
        await online_extraction.becomes(
            "SELECT attempts, due_at > cut_at FROM windows WHERE is_answered", (0, False)
        )
        await online_extraction.becomes(
            "SELECT attempts, due_at > cut_at FROM windows WHERE NOT is_answered", (0, True)
        )
        await online_extraction.time_passes()
        answers = await online_extraction.has(2, "window.answered")
    assert [each["outcome"] for each in answers] == ["proposed", "proposed"]


@pytest.mark.long
async def test_replaced_key_is_used(online_extraction: ExtractionHarness) -> None:
    online_extraction.server.state.key = "another"
    async with online_extraction.running():
        await online_extraction.stock.say("I like tea")
        await online_extraction.becomes("SELECT attempts, due_at > cut_at FROM windows", (0, True))
    online_extraction.server.state.key = KEY
    async with online_extraction.running():
        await online_extraction.time_passes()
        await online_extraction.has(1, "window.answered")
    assert await online_extraction.texts() == ["User likes tea"]


@pytest.mark.long
async def test_refused_key_is_logged_once_a_minute_without_its_value(
    online_extraction: ExtractionHarness, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO)
    online_extraction.server.state.key = "another"
    async with online_extraction.running():
        for number in range(20):
            await online_extraction.stock.say("I like tea", f"acme.u{number}.-")
        await online_extraction.becomes("SELECT count(*) FROM windows WHERE NOT is_answered", (20,))
        for _ in range(3):
            await online_extraction.time_passes()
            await asyncio.sleep(0.5)
    said = capsys.readouterr()
    told = caplog.text + said.out + said.err
    assert told.count("refuses the key") == 1
    assert KEY not in told
    assert "I like tea" not in told


async def test_unusable_answer_harms_no_other_user(
    online_extraction: ExtractionHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An unexpected error gives up the window that it concerns, and no log message repeats its text."""

    def proposals(window: StoredWindow, *others: Any) -> list[LogEvent]:
        if window.user == "u1":
            raise KeyError("I like tea")
        return answer_events.build_proposals(window, *others)

    monkeypatch.setattr(window_outcome, "build_proposals", proposals)
    await online_extraction.set(attempts=1)
    async with online_extraction.running():
        await online_extraction.stock.say("I like tea", "acme.u1.-")
        await online_extraction.stock.say("I like tea", "acme.u2.-")
        answers = await online_extraction.has(2, "window.answered")
    assert {each["owner"][1]: each["outcome"] for each in answers} == {"u1": "dead", "u2": "proposed"}
    assert "I like tea" not in caplog.text


@pytest.mark.long
async def test_shutdown_does_not_wait_for_a_slow_model(
    online_extraction: ExtractionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker, "GRACEFUL_TIMEOUT", 3.0)
    released = online_extraction.server.state.hold_answers()
    patient = online_extraction.deployment.model_copy(update={"model_timeout": 600.0})
    async with run_consumers(("persist", "extract"), patient):
        await online_extraction.stock.say("I like tea")
        await online_extraction.is_asked()
    assert not online_extraction.server.state.questions
    released.set()
    async with online_extraction.running():
        await online_extraction.has(1, "window.answered")
