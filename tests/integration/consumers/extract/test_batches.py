"""Batches of extraction: the windows that share one, the outcome of each line, and batches that fail."""

import asyncio
from collections import Counter
from collections.abc import Mapping

import pytest
from structlog.testing import capture_logs

from mnemon_bench.provider_server.answers import write_answer
from mnemon_bench.provider_server.faults import Damage, HttpFault
from mnemon_consumers.extract.batch import lifecycle
from tests.support.pipelines.extraction import WAITING, ExtractionHarness


@pytest.mark.long
async def test_shared_batch_separates_users_and_tenants(
    batch_extraction: ExtractionHarness,
) -> None:
    await batch_extraction.set(pool_seconds=3600)
    await batch_extraction.set("other", instructions="In other words.")
    async with batch_extraction.running():
        for place in ("acme.u1.-", "acme.u1.talk", "acme.u2.-", "globex.u1.-", "other.u1.-"):
            await batch_extraction.stock.say("I like tea", place)
        await batch_extraction.becomes(WAITING, (5,))
        await batch_extraction.set(pool_seconds=0)
        await batch_extraction.has(5, "window.answered")
        await batch_extraction.has(4, "batch.completed")

    intended = await batch_extraction.log_of("batch.intended")
    batches = {each["owner"]: each["batch_id"] for each in intended}
    assert batches["acme", "u1"] == batches["acme", "u2"] == batches["globex", "u1"] != batches["other", "u1"]
    for each in intended:
        assert {(window["tenant"], window["user"]) for window in each["windows"]} == {each["owner"]}
    lines = [window["line"] for each in intended for window in each["windows"] if each["owner"][0] != "other"]
    assert sorted(lines) == [0, 1, 2, 3]
    submitted = {
        each["owner"]: each["provider_batch_id"] for each in await batch_extraction.log_of("batch.submitted")
    }
    assert submitted.keys() == batches.keys()
    assert len(set(submitted.values())) == 2
    completed = {
        each["owner"]: (each["answered"], each["failed"])
        for each in await batch_extraction.log_of("batch.completed")
    }
    assert completed == {
        ("acme", "u1"): (2, 0), ("acme", "u2"): (1, 0), ("globex", "u1"): (1, 0), ("other", "u1"): (1, 0)
    }  # fmt: skip
    assert len(batch_extraction.server.state.list_batches("openai")) == 2
    # Batches whose submission is confirmed are not searched in the provider's list.
    requests = batch_extraction.server.state.requests
    assert not [each for each in requests if each.startswith("GET ") and each.endswith("/batches")]


@pytest.mark.long
async def test_young_windows_are_not_submitted(batch_extraction: ExtractionHarness) -> None:
    await batch_extraction.set(pool_seconds=3600)
    async with batch_extraction.running():
        for user in ("u1", "u2", "u3"):
            await batch_extraction.stock.say("I like tea", f"acme.{user}.-")
        await batch_extraction.becomes(WAITING, (3,))
        for _ in range(3):
            await batch_extraction.tick()
            await asyncio.sleep(0.3)
        assert batch_extraction.server.state.requests == []
        await batch_extraction.set(pool_seconds=0)
        await batch_extraction.has(3, "window.answered")


@pytest.mark.long
async def test_windows_beyond_the_budget_are_in_no_batch(batch_extraction: ExtractionHarness) -> None:
    await batch_extraction.set(pool_seconds=3600)
    await batch_extraction.set("acme", spending__usd_per_day=0.0)
    async with batch_extraction.running():
        await batch_extraction.stock.say("I like tea", "acme.u1.-")
        await batch_extraction.stock.say("I like tea", "globex.u1.-")
        await batch_extraction.becomes(WAITING, (2,))
        await batch_extraction.set(pool_seconds=0)
        await batch_extraction.has(1, "window.answered", tenant="globex")
        await batch_extraction.becomes(WAITING, (1,))
        await batch_extraction.set("acme", spending__usd_per_day=None)
        await batch_extraction.has(1, "window.answered", tenant="acme")
    batches = batch_extraction.server.state.list_batches("openai")
    assert [len(batch.lines) for batch in batches] == [1, 1]


BROKEN: Mapping[str, Damage] = {
    "thing 7\n": "nameless",
    "thing 99\n": "hollow",
    "thing 123\n": "failed",
    "thing 500\n": "left out",
}


@pytest.mark.timeout(400)
@pytest.mark.long
async def test_batch_of_a_thousand_lines_retries_five_broken_ones(
    batch_extraction: ExtractionHarness,
) -> None:
    def damage(text: str) -> Damage | None:
        return next((kind for mark, kind in BROKEN.items() if mark in text), None)

    batch_extraction.server.state.faults.damage = damage
    batch_extraction.server.state.answering = lambda question: (
        "What they like is" if "thing 999\n" in question.text else write_answer(question)
    )
    await batch_extraction.set(attempts=2)
    async with batch_extraction.running():
        await batch_extraction.cut_of(1000)
        await batch_extraction.has(995, "window.answered")
        await batch_extraction.becomes(WAITING, (5,))
        assert await batch_extraction.sql(
            'SELECT user_id, attempts FROM windows WHERE NOT is_answered ORDER BY user_id COLLATE "C"'
        ) == [(user, 1) for user in ("u123", "u500", "u7", "u99", "u999")]
        await batch_extraction.becomes("SELECT state, lines FROM batches", ("completed", 1000))
        await batch_extraction.time_passes()
        answers = await batch_extraction.has(1000, "window.answered")

    assert Counter(each["outcome"] for each in answers) == {"proposed": 995, "dead": 5}
    dead = sorted(each["owner"][1] for each in answers if each["outcome"] == "dead")
    assert dead == ["u123", "u500", "u7", "u99", "u999"]
    assert sorted(await batch_extraction.texts()) == sorted(
        f"User likes thing {number}" for number in range(1000) if f"u{number}" not in dead
    )
    letters = {
        letter["user"]: (headers["Mnemon-Reason"], letter["answer"])
        for headers, letter in await batch_extraction.letters()
    }
    assert letters.pop("u999") == ("unreadable", "What they like is")
    assert letters == dict.fromkeys(("u123", "u500", "u7", "u99"), ("no_answer", None))
    asked = Counter(batch_extraction.server.state.asked.values())
    assert asked == {1: 995, 2: 5}


@pytest.mark.long
async def test_truncated_results_are_read_again_without_new_calls(
    batch_extraction: ExtractionHarness,
) -> None:
    batch_extraction.server.state.faults.results = "half"
    async with batch_extraction.running():
        await batch_extraction.cut_of(60)
        async with asyncio.timeout(60):
            while not 20 < len(await batch_extraction.log_of("window.answered")) < 60:
                await asyncio.sleep(0.05)
        batch_extraction.server.state.faults.results = "whole"
        await batch_extraction.has(60, "window.answered")
    assert set(batch_extraction.server.state.asked.values()) == {1}
    assert len(await batch_extraction.log_of("model.called")) == 60


@pytest.mark.long
async def test_results_are_matched_in_any_order(batch_extraction: ExtractionHarness) -> None:
    batch_extraction.server.state.faults.order = "shuffled"
    async with batch_extraction.running():
        await batch_extraction.cut_of(60)
        await batch_extraction.has(60, "window.answered")
    for fact in await batch_extraction.log_of("fact.proposed"):
        assert fact["text"] == f"User likes thing {fact['owner'][1][1:]}"


@pytest.mark.long
async def test_unanswered_lines_of_expired_batch_are_requested_online(
    batch_extraction: ExtractionHarness,
) -> None:
    batch_extraction.server.state.faults.ending = "expired"
    async with batch_extraction.running():
        await batch_extraction.cut_of(10)
        answers = await batch_extraction.has(10, "window.answered")
    assert Counter("batch_id" in each for each in answers) == {True: 5, False: 5}
    assert set(batch_extraction.server.state.asked.values()) == {1}
    assert len(batch_extraction.server.state.list_batches("openai")) == 1
    assert await batch_extraction.sql("SELECT DISTINCT attempts FROM windows") == [(0,)]


@pytest.mark.long
async def test_overdue_batch_is_cancelled_and_its_open_lines_are_requested_online(
    batch_extraction: ExtractionHarness,
) -> None:
    batch_extraction.server.state.polls = 1_000_000
    async with batch_extraction.running():
        await batch_extraction.cut_of(10)
        await batch_extraction.becomes("SELECT state FROM batches", ("submitted",))
        # The batch is at its deadline. Its results are awaited for as long again after the cancellation.
        await batch_extraction.sql(
            "UPDATE batches SET created_at = now() - interval '1 day', deadline_at = now()"
        )
        await batch_extraction.tick()
        answers = await batch_extraction.has(10, "window.answered")
    assert Counter("batch_id" in each for each in answers) == {True: 5, False: 5}
    assert [batch.state for batch in batch_extraction.server.state.list_batches("openai")] == ["cancelled"]
    assert set(batch_extraction.server.state.asked.values()) == {1}


@pytest.mark.long
async def test_failed_batch_is_submitted_again_and_then_requested_online(
    batch_extraction: ExtractionHarness,
) -> None:
    batch_extraction.server.state.faults.ending = "failed"
    await batch_extraction.set(attempts=2)
    async with batch_extraction.running():
        await batch_extraction.cut_of(3)
        await batch_extraction.becomes("SELECT state, error FROM batches", ("failed", "token_limit_exceeded"))
        assert await batch_extraction.sql("SELECT DISTINCT attempts, batch_id FROM windows") == [(1, None)]
        await batch_extraction.time_passes()
        await batch_extraction.becomes("SELECT DISTINCT attempts, is_online FROM windows", (1, True))
        await batch_extraction.time_passes()
        answers = await batch_extraction.has(3, "window.answered")
    assert {each["outcome"] for each in answers} == {"proposed"}
    assert len(await batch_extraction.log_of("batch.failed")) == 6
    assert await batch_extraction.letters() == []


@pytest.mark.long
async def test_windows_of_batch_unknown_to_the_provider_are_requested_online(
    batch_extraction: ExtractionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "LONGEST_PAUSE", 0.1)
    monkeypatch.setattr(lifecycle, "MOST_CHECKS_OF_UNKNOWN_BATCH", 3)
    batch_extraction.server.state.polls = 1_000_000
    async with batch_extraction.running():
        await batch_extraction.cut_of(3)
        await batch_extraction.becomes("SELECT state FROM batches", ("submitted",))
        with capture_logs() as logs:
            batch_extraction.server.state.delete_batches()
            await batch_extraction.has(3, "batch.failed")
        answers = await batch_extraction.has(3, "window.answered")
    assert {(each["outcome"], "batch_id" in each) for each in answers} == {("proposed", False)}
    warnings = [each for each in logs if each["event"] == "batch not found at provider, checking again later"]
    assert len(warnings) == 2


@pytest.mark.long
async def test_messages_cleared_during_the_batch_give_no_fact(
    batch_extraction: ExtractionHarness,
) -> None:
    batch_extraction.server.state.polls = 4
    async with batch_extraction.running():
        await batch_extraction.stock.say("I like tea", "acme.u1.-")
        await batch_extraction.stock.say("I like coffee", "acme.u2.-")
        await batch_extraction.has(2, "batch.submitted")
        await batch_extraction.stock.publish("chat.acme.u1.-.cleared.v1")
        answers = await batch_extraction.has(2, "window.answered")
    assert {each["owner"][1]: each["outcome"] for each in answers} == {"u1": "gone", "u2": "proposed"}
    assert await batch_extraction.texts() == ["User likes coffee"]


@pytest.mark.long
async def test_provider_without_batches_gets_online_requests(batch_extraction: ExtractionHarness) -> None:
    batch_extraction.server.state.has_batches = False
    async with batch_extraction.running():
        await batch_extraction.cut_of(5)
        await batch_extraction.has(5, "window.answered")
        await batch_extraction.stock.say("I like tea")
        answers = await batch_extraction.has(6, "window.answered")
    assert all("batch_id" not in each for each in answers)
    assert set(batch_extraction.server.state.asked.values()) == {1}
    # The failure of one batch with five windows showed that the provider has no batches.
    assert len(await batch_extraction.log_of("batch.failed")) == 5


@pytest.mark.long
async def test_batch_with_a_lost_confirmation_is_found_and_not_submitted_again(
    batch_extraction: ExtractionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "LONGEST_PAUSE", 4.0)
    batch_extraction.server.state.faults.requests.append(HttpFault(is_half=True, path="POST /v1/batches"))
    async with batch_extraction.running():
        await batch_extraction.cut_of(5)
        await batch_extraction.has(5, "window.answered")
    assert len(batch_extraction.server.state.list_batches("openai")) == 1
    assert set(batch_extraction.server.state.asked.values()) == {1}


@pytest.mark.long
async def test_batch_waits_for_a_valid_key_or_another_model(
    batch_extraction: ExtractionHarness,
) -> None:
    batch_extraction.server.state.key = "another"
    async with batch_extraction.running():
        await batch_extraction.cut_of(5)
        await batch_extraction.becomes("SELECT state, error IS NULL FROM batches", ("intended", False))
        await batch_extraction.set(mode="online")
        await batch_extraction.becomes(WAITING, (5,))
        assert len(await batch_extraction.log_of("batch.failed")) == 5
        batch_extraction.server.state.key = None
        await batch_extraction.set(model="another-model")
        await batch_extraction.has(5, "window.answered")
    assert len(await batch_extraction.log_of("batch.intended")) == 5
    assert set(batch_extraction.server.state.asked.values()) == {1}
