"""Facts that dedupe left undecided: a model is asked in other requests, and its answers are applied."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from mnemon_bench.provider_server.answers import ShownPair, shown_pairs
from mnemon_bench.provider_server.faults import HttpFault
from mnemon_bench.provider_server.server import ProviderServer
from mnemon_consumers.extract.batch import lifecycle
from mnemon_contracts.fact_pairs import FactPair
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.rebuild.generations import site_alone
from tests.integration.conftest import Stock
from tests.support.facts.undecided_facts import (
    answering,
    facts,
    read_window,
    relating,
    remembering,
    save,
    settled,
)
from tests.support.log.audited_log import Audited
from tests.support.pipelines.extraction import MODEL, Extracting
from tests.support.pipelines.rebuild import Told, verdict_on

COAST, SEA = "Grew up on the coast of Wales", "Spent her childhood by the Welsh sea"
MODES = ["online", "batch"]


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


@pytest_asyncio.fixture
async def extracting(
    stock: Stock, deployment: Deployment, server: ProviderServer, tmp_path: Path
) -> AsyncIterator[Extracting]:
    located = deployment.model_copy(update={"vectors_folder": tmp_path / "vectors"})
    extracting = Extracting.on(stock, located, server)
    await extracting.set(provider="openai", model=MODEL, mode="online", idle_seconds=1.0, pool_seconds=0)
    yield extracting


@pytest.mark.parametrize("mode", MODES)
async def test_two_facts_that_say_the_same_become_one_at_no_further_call(
    extracting: Extracting, mode: str
) -> None:
    await extracting.set(mode=mode)
    extracting.server.state.answering = relating("same")
    async with remembering(extracting):
        await save(extracting, 1, COAST, importance=4)
        await save(extracting, 2, SEA, 1, importance=7)
        await extracting.is_projected()
        await read_window(extracting, 1)
        (merged,) = await extracting.has(1, "fact.merged")
        (compared,) = await extracting.has(1, "fact.compared")
        (ended,) = await extracting.has(1, "fact.forgotten")
        await settled(extracting)
        assert len(extracting.server.state.questions) == 1
        assert await facts(extracting) == {"ar_001": SEA}
        shown = await extracting.stock.ask("get", id="ar_001")
        assert [version["text"] for version in shown["versions"]] == [COAST]
        assert shown["fact"]["importance"] == 7
        hits = (await extracting.stock.ask("search", query=SEA, scope=["memories"]))["hits"]
        assert [hit["id"] for hit in hits] == ["ar_001"]
        await read_window(extracting, 2)
        assert not shown_pairs(extracting.server.state.questions[-1].text)
        async with Database(extracting.deployment) as database:
            audited = Audited(extracting.stock, extracting.deployment, database)
            await audited.settled()
            assert await audited.faults() == []
        await settled(extracting)
        async with site_alone(extracting.deployment) as place:
            verdict = await verdict_on(place, Told())
        assert (verdict.differences, verdict.is_settled) == (0, True)
    (pair,) = shown_pairs(extracting.server.state.questions[0].text)
    assert pair == ShownPair("ar_002", "ar_001", SEA, COAST)
    assert FactPair.model_validate(compared) == FactPair(
        fact_id="ar_002", version="s2", other_id="ar_001", other_version="s1"
    )
    assert (merged["merged_id"], merged["former"]["text"], ended["fact_id"]) == ("ar_002", COAST, "ar_002")
    assert merged["lineage"]["model"] == f"openai/{MODEL}"
    assert (merged["lineage"].get("batch_id") is not None) == (mode == "batch")


@pytest.mark.parametrize("mode", MODES)
async def test_different_facts_are_kept_and_not_asked_about_again(extracting: Extracting, mode: str) -> None:
    await extracting.set(mode=mode)
    extracting.server.state.answering = relating("different")
    async with remembering(extracting):
        await save(extracting, 1, COAST)
        await save(extracting, 2, SEA, 1)
        await extracting.is_projected()
        for number in (1, 2):
            await read_window(extracting, number)
            await extracting.is_projected()
        await settled(extracting)
        assert await facts(extracting) == {"ar_001": COAST, "ar_002": SEA}
    (compared,) = await extracting.log_of("fact.compared")
    assert compared["relation"] == "different"
    assert [len(shown_pairs(each.text)) for each in extracting.server.state.questions] == [1, 0]


async def test_an_update_keeps_the_older_id_and_a_former_version(extracting: Extracting) -> None:
    extracting.server.state.answering = relating("update")
    async with remembering(extracting):
        await save(extracting, 1, "Работает в пекарне", importance=8)
        await save(extracting, 2, "Открыла свою пиццерию", 1)
        await extracting.is_projected()
        await read_window(extracting, 1)
        await extracting.has(1, "fact.merged")
        await settled(extracting)
        assert await facts(extracting) == {"ar_001": "Открыла свою пиццерию"}
        shown = await extracting.stock.ask("get", id="ar_001")
        assert [version["text"] for version in shown["versions"]] == ["Работает в пекарне"]


async def test_a_fact_that_changed_while_the_model_thought_is_not_merged(extracting: Extracting) -> None:
    extracting.server.state.answering = relating("same")
    extracting.server.state.seconds = 3
    async with remembering(extracting):
        await save(extracting, 1, COAST)
        await save(extracting, 2, SEA, 1)
        await extracting.is_projected()
        await extracting.stock.say("hello")
        async with asyncio.timeout(20):
            while not extracting.server.state.requests:
                await asyncio.sleep(0.02)
        changed = await extracting.stock.ask("update", id="ar_001", text="Grew up in the hills of Wales")
        assert "error" not in changed
        await extracting.has(1, "fact.compared")
        await settled(extracting)
        assert await facts(extracting) == {"ar_001": "Grew up in the hills of Wales", "ar_002": SEA}
    assert await extracting.log_of("fact.merged") == []


@pytest.mark.parametrize(
    "pairs",
    [
        None,
        [],
        [{"newer": "ar_001", "older": "ar_099", "relation": "same"}],
        [{"newer": "ar_002", "older": "ar_001", "relation": "perhaps"}],
        [{"newer": "ar_002", "older": "ar_001", "relation": each} for each in ("same", "different")],
        [{"number": 1, "relation": "same"}],
    ],
)
async def test_a_pair_without_a_usable_answer_is_asked_about_three_times(
    extracting: Extracting, pairs: Any
) -> None:
    extracting.server.state.answering = answering(pairs)
    async with remembering(extracting):
        await save(extracting, 1, COAST)
        await save(extracting, 2, SEA, 1)
        await extracting.is_projected()
        for number in range(1, 5):
            await read_window(extracting, number)
            await extracting.is_projected()
        await settled(extracting)
        assert await facts(extracting) == {"ar_001": COAST, "ar_002": SEA}
    compared = await extracting.log_of("fact.compared")
    assert [each.get("relation") for each in compared] == [None, None, None]
    asked = [len(shown_pairs(each.text)) for each in extracting.server.state.questions]
    assert asked == [1, 1, 1, 0]


async def test_an_answer_that_cannot_be_read_is_asked_for_again_without_pairs(extracting: Extracting) -> None:
    extracting.server.state.answering = lambda question: (
        "I would rather not." if shown_pairs(question.text) else '{"facts": [], "pairs": []}'
    )
    async with remembering(extracting):
        await save(extracting, 1, COAST)
        await save(extracting, 2, SEA, 1)
        await extracting.is_projected()
        await extracting.stock.say("hello")
        await extracting.becomes("SELECT attempts, is_answered FROM windows", (1, False))
        (compared,) = await extracting.has(1, "fact.compared")
        await extracting.time_passes()
        await extracting.has(1, "window.answered")
    assert "relation" not in compared
    assert [len(shown_pairs(each.text)) for each in extracting.server.state.questions] == [1, 0]


async def test_an_answer_that_comes_again_or_after_a_kill_is_one_answer(extracting: Extracting) -> None:
    extracting.server.state.answering = relating("same")
    async with remembering(extracting, "persist", "extract"):
        await save(extracting, 1, COAST)
        await save(extracting, 2, SEA, 1)
        await extracting.is_projected()
        await read_window(extracting, 1)
        (compared,) = await extracting.has(1, "fact.compared")
    async with remembering(extracting, "persist", "index", "dedupe", "retrieve"):
        await extracting.has(1, "fact.merged")
        await settled(extracting)
    # As after a kill between the publishing of what was decided and the acknowledgement.
    again = {name: value for name, value in compared.items() if name != "owner"}
    body_id = (await extracting.sql("SELECT event_id FROM memory_events WHERE event = 'fact.compared'"))[0][0]
    for relation in ("same", "different", "update"):
        copy = {**again, "id": body_id, "relation": relation}
        await extracting.stock.publish("memory.acme.u1.fact.compared.v1", copy)
    async with remembering(extracting, "persist", "index", "dedupe", "retrieve"):
        await settled(extracting)
        assert await facts(extracting) == {"ar_001": SEA}
        assert len(await extracting.log_of("fact.merged")) == 1
        assert len(await extracting.log_of("fact.forgotten")) == 1


async def test_a_batch_that_has_not_ended_keeps_its_pairs_from_others(extracting: Extracting) -> None:
    await extracting.set(mode="batch")
    extracting.server.state.polls = 1000
    extracting.server.state.answering = relating("same")
    async with remembering(extracting):
        await save(extracting, 1, COAST)
        await save(extracting, 2, SEA, 1)
        await extracting.is_projected()
        await extracting.stock.say("hello")
        (intended,) = await extracting.has(1, "batch.intended")
        await extracting.has(1, "batch.submitted")
        await extracting.is_projected()
        await extracting.set(mode="online")
        await extracting.stock.say("hello in another place", "acme.u1.talk")
        await extracting.has(1, "window.answered")
    assert [len(window["pairs"]) for window in intended["windows"]] == [1]
    (online,) = extracting.server.state.questions
    assert shown_pairs(online.text) == []


async def test_a_request_asks_about_so_many_pairs_and_rules_about_none(extracting: Extracting) -> None:
    await extracting.set(provider="offline", model=None)
    async with remembering(extracting):
        for number in range(1, 6):
            await save(extracting, number, f"Fact number {number}", *range(1, number))
        await extracting.is_projected()
        await read_window(extracting, 1)
        assert await extracting.log_of("fact.compared") == []
        await extracting.set(provider="openai", model=MODEL, pairs=4)
        for number in (2, 3, 4):
            await read_window(extracting, number)
            await extracting.is_projected()
    asked = [shown_pairs(each.text) for each in extracting.server.state.questions]
    assert [len(each) for each in asked] == [4, 4, 2]
    assert (asked[0][0].newer, asked[0][0].older) == ("ar_002", "ar_001")
    assert len({pair for each in asked for pair in each}) == 10


async def test_a_batch_that_is_handed_over_again_asks_about_its_pairs_again(
    extracting: Extracting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "SELDOM", 1.0)
    await extracting.set(mode="batch")
    extracting.server.state.answering = relating("same")
    # Whether the provider has it is not known: it is looked for, and not found.
    extracting.server.state.faults.requests.append(HttpFault(503, path="POST /v1/batches"))
    async with remembering(extracting):
        await save(extracting, 1, COAST)
        await save(extracting, 2, SEA, 1)
        await extracting.is_projected()
        await extracting.stock.say("hello")
        await extracting.has(1, "batch.intended")
        await extracting.has(1, "fact.merged")
        await settled(extracting)
        assert await facts(extracting) == {"ar_001": SEA}
    assert not extracting.server.state.faults.requests
    assert len(await extracting.log_of("fact.compared")) == 1
