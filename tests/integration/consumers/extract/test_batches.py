"""Batches of extraction: what is pooled, what comes of each line, and of batches that come to nothing."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping

import pytest

from mnemon_bench.provider_server.answers import answer
from mnemon_bench.provider_server.faults import Damage, HttpFault
from mnemon_bench.provider_server.server import ProviderServer
from mnemon_infra.config import Deployment
from tests.integration.conftest import Stock
from tests.support.pipelines.extraction import MODEL, WAITING, Extracting


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


@pytest.fixture
async def extracting(stock: Stock, deployment: Deployment, server: ProviderServer) -> Extracting:
    extracting = Extracting.on(stock, deployment, server)
    await extracting.set(provider="openai", model=MODEL, idle_seconds=1.0, pool_seconds=0)
    return extracting


async def test_users_and_tenants_share_a_batch_and_learn_nothing_of_each_other(
    extracting: Extracting,
) -> None:
    await extracting.set(pool_seconds=3600)
    await extracting.set("other", instructions="In other words.")
    async with extracting.running():
        for place in ("acme.u1.-", "acme.u1.talk", "acme.u2.-", "globex.u1.-", "other.u1.-"):
            await extracting.stock.say("I like tea", place)
        await extracting.becomes(WAITING, (5,))
        await extracting.set(pool_seconds=0)
        await extracting.has(5, "window.answered")
        await extracting.has(4, "batch.completed")

    intended = await extracting.log_of("batch.intended")
    batches = {each["owner"]: each["batch_id"] for each in intended}
    assert batches["acme", "u1"] == batches["acme", "u2"] == batches["globex", "u1"] != batches["other", "u1"]
    for each in intended:
        assert {(window["tenant"], window["user"]) for window in each["windows"]} == {each["owner"]}
    lines = [window["line"] for each in intended for window in each["windows"] if each["owner"][0] != "other"]
    assert sorted(lines) == [0, 1, 2, 3]
    submitted = {
        each["owner"]: each["provider_batch_id"] for each in await extracting.log_of("batch.submitted")
    }
    assert submitted.keys() == batches.keys()
    assert len(set(submitted.values())) == 2
    completed = {
        each["owner"]: (each["answered"], each["failed"])
        for each in await extracting.log_of("batch.completed")
    }
    assert completed == {
        ("acme", "u1"): (2, 0), ("acme", "u2"): (1, 0), ("globex", "u1"): (1, 0), ("other", "u1"): (1, 0)
    }  # fmt: skip
    assert len(extracting.server.state.batches("openai")) == 2
    # Whatever was submitted is known: it is not looked for.
    requests = extracting.server.state.requests
    assert not [each for each in requests if each.startswith("GET ") and each.endswith("/batches")]


async def test_what_has_not_waited_long_enough_is_not_submitted(extracting: Extracting) -> None:
    async with extracting.running():
        await extracting.cut_of(3)
        await extracting.set(pool_seconds=3600)
        for _ in range(3):
            await extracting.tick()
            await asyncio.sleep(0.3)
        assert extracting.server.state.requests == []
        await extracting.set(pool_seconds=0)
        await extracting.has(3, "window.answered")


async def test_what_a_tenant_cannot_pay_for_is_in_no_batch(extracting: Extracting) -> None:
    await extracting.set(pool_seconds=3600)
    await extracting.set("acme", spending__usd_per_day=0.0)
    async with extracting.running():
        await extracting.stock.say("I like tea", "acme.u1.-")
        await extracting.stock.say("I like tea", "globex.u1.-")
        await extracting.becomes(WAITING, (2,))
        await extracting.set(pool_seconds=0)
        await extracting.has(1, "window.answered", tenant="globex")
        await extracting.becomes(WAITING, (1,))
        await extracting.set("acme", spending__usd_per_day=None)
        await extracting.has(1, "window.answered", tenant="acme")
    batches = extracting.server.state.batches("openai")
    assert [len(batch.lines) for batch in batches] == [1, 1]


BROKEN: Mapping[str, Damage] = {
    "thing 7\n": "nameless",
    "thing 99\n": "hollow",
    "thing 123\n": "failed",
    "thing 500\n": "left out",
}


@pytest.mark.timeout(400)
async def test_of_a_thousand_lines_five_are_broken(extracting: Extracting) -> None:
    def damage(text: str) -> Damage | None:
        return next((kind for mark, kind in BROKEN.items() if mark in text), None)

    extracting.server.state.faults.damage = damage
    extracting.server.state.answering = lambda question: (
        "What they like is" if "thing 999\n" in question.text else answer(question)
    )
    await extracting.set(attempts=2)
    async with extracting.running():
        await extracting.cut_of(1000)
        await extracting.has(995, "window.answered")
        await extracting.becomes(WAITING, (5,))
        assert await extracting.sql(
            'SELECT user_id, attempts FROM windows WHERE NOT is_answered ORDER BY user_id COLLATE "C"'
        ) == [(user, 1) for user in ("u123", "u500", "u7", "u99", "u999")]
        await extracting.becomes("SELECT state, lines FROM batches", ("completed", 1000))
        await extracting.time_passes()
        answers = await extracting.has(1000, "window.answered")

    assert Counter(each["outcome"] for each in answers) == {"proposed": 995, "dead": 5}
    dead = sorted(each["owner"][1] for each in answers if each["outcome"] == "dead")
    assert dead == ["u123", "u500", "u7", "u99", "u999"]
    assert sorted(await extracting.texts()) == sorted(
        f"User likes thing {number}" for number in range(1000) if f"u{number}" not in dead
    )
    letters = {
        letter["user"]: (headers["Mnemon-Reason"], letter["answer"])
        for headers, letter in await extracting.letters()
    }
    assert letters.pop("u999") == ("unreadable", "What they like is")
    assert letters == dict.fromkeys(("u123", "u500", "u7", "u99"), ("no_answer", None))
    asked = Counter(extracting.server.state.asked.values())
    assert asked == {1: 995, 2: 5}


async def test_half_a_file_of_results_is_read_again_and_nothing_asked_again(extracting: Extracting) -> None:
    extracting.server.state.faults.results = "half"
    async with extracting.running():
        await extracting.cut_of(60)
        async with asyncio.timeout(30):
            while not 20 < len(await extracting.log_of("window.answered")) < 60:
                await asyncio.sleep(0.05)
        extracting.server.state.faults.results = "whole"
        await extracting.has(60, "window.answered")
    assert set(extracting.server.state.asked.values()) == {1}
    assert len(await extracting.log_of("model.called")) == 60


async def test_results_come_in_any_order(extracting: Extracting) -> None:
    extracting.server.state.faults.order = "shuffled"
    async with extracting.running():
        await extracting.cut_of(60)
        await extracting.has(60, "window.answered")
    for fact in await extracting.log_of("fact.proposed"):
        assert fact["text"] == f"User likes thing {fact['owner'][1][1:]}"


async def test_what_an_expired_batch_has_not_come_to_is_asked_at_once(extracting: Extracting) -> None:
    extracting.server.state.faults.ending = "expired"
    async with extracting.running():
        await extracting.cut_of(10)
        answers = await extracting.has(10, "window.answered")
    assert Counter("batch_id" in each for each in answers) == {True: 5, False: 5}
    assert set(extracting.server.state.asked.values()) == {1}
    assert len(extracting.server.state.batches("openai")) == 1
    assert await extracting.sql("SELECT DISTINCT attempts FROM windows") == [(0,)]


async def test_a_batch_that_takes_too_long_is_cancelled_and_the_rest_asked_at_once(
    extracting: Extracting,
) -> None:
    extracting.server.state.polls = 1_000_000
    # Cancelled, it is read within as long again, or given up.
    await extracting.set(deadline_hours=6 / 3600)
    async with extracting.running():
        await extracting.cut_of(10)
        answers = await extracting.has(10, "window.answered")
    assert Counter("batch_id" in each for each in answers) == {True: 5, False: 5}
    assert [batch.state for batch in extracting.server.state.batches("openai")] == ["cancelled"]
    assert set(extracting.server.state.asked.values()) == {1}


async def test_a_batch_that_failed_is_asked_for_again_and_in_the_end_line_by_line(
    extracting: Extracting,
) -> None:
    extracting.server.state.faults.ending = "failed"
    await extracting.set(attempts=2)
    async with extracting.running():
        await extracting.cut_of(3)
        await extracting.becomes("SELECT state, error FROM batches", ("failed", "token_limit_exceeded"))
        assert await extracting.sql("SELECT DISTINCT attempts, batch_id FROM windows") == [(1, None)]
        await extracting.time_passes()
        await extracting.becomes("SELECT DISTINCT attempts, is_online FROM windows", (1, True))
        await extracting.time_passes()
        answers = await extracting.has(3, "window.answered")
    assert {each["outcome"] for each in answers} == {"proposed"}
    assert len(await extracting.log_of("batch.failed")) == 6
    assert await extracting.letters() == []


async def test_what_is_cleared_while_its_batch_runs_teaches_nothing(extracting: Extracting) -> None:
    extracting.server.state.polls = 4
    async with extracting.running():
        await extracting.stock.say("I like tea", "acme.u1.-")
        await extracting.stock.say("I like coffee", "acme.u2.-")
        await extracting.has(2, "batch.submitted")
        await extracting.stock.publish("chat.acme.u1.-.cleared.v1")
        answers = await extracting.has(2, "window.answered")
    assert {each["owner"][1]: each["outcome"] for each in answers} == {"u1": "gone", "u2": "proposed"}
    assert await extracting.texts() == ["User likes coffee"]


async def test_a_provider_without_batches_is_asked_one_by_one(extracting: Extracting) -> None:
    extracting.server.state.has_batches = False
    async with extracting.running():
        await extracting.cut_of(5)
        await extracting.has(5, "window.answered")
        await extracting.stock.say("I like tea")
        answers = await extracting.has(6, "window.answered")
    assert all("batch_id" not in each for each in answers)
    assert set(extracting.server.state.asked.values()) == {1}
    # It was found out by one batch, which came to nothing.
    assert len(await extracting.log_of("batch.failed")) == 5


async def test_a_batch_whose_answer_is_lost_is_found_and_not_paid_for_twice(extracting: Extracting) -> None:
    extracting.server.state.faults.requests.append(HttpFault(is_half=True, path="POST /v1/batches"))
    async with extracting.running():
        await extracting.cut_of(5)
        await extracting.has(5, "window.answered")
    assert len(extracting.server.state.batches("openai")) == 1
    assert set(extracting.server.state.asked.values()) == {1}


async def test_a_key_that_is_refused_holds_a_batch_back_until_it_is_mended_or_another_is_asked(
    extracting: Extracting,
) -> None:
    extracting.server.state.key = "another"
    async with extracting.running():
        await extracting.cut_of(5)
        await extracting.becomes("SELECT state, error IS NULL FROM batches", ("intended", False))
        await extracting.set(mode="online")
        await extracting.becomes(WAITING, (5,))
        assert len(await extracting.log_of("batch.failed")) == 5
        extracting.server.state.key = None
        await extracting.set(model="another-model")
        await extracting.has(5, "window.answered")
    assert len(await extracting.log_of("batch.intended")) == 5
    assert set(extracting.server.state.asked.values()) == {1}
