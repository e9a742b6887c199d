"""Undecided pairs: a model is asked about them beside a window, and `dedupe` applies its answers."""

from typing import Any

import pytest

from mnemon_bench.provider_server.answers import ShownPair, find_pairs
from mnemon_bench.provider_server.faults import HttpFault
from mnemon_consumers.extract.batch import lifecycle
from mnemon_contracts.fact_pairs import FactPair
from mnemon_infra.database.engine import Database
from mnemon_infra.rebuild.generations import open_exclusive_site
from tests.support.facts.undecided_facts import (
    answering,
    facts,
    read_window,
    relating,
    remembering,
    save,
    settled,
)
from tests.support.log.audited_log import AuditedLog
from tests.support.pipelines.extraction import MODEL, ExtractionHarness
from tests.support.pipelines.rebuild import RebuildReport, verdict_on

COAST, SEA = "Grew up on the coast of Wales", "Spent her childhood by the Welsh sea"


@pytest.mark.parametrize("mode", ["online", pytest.param("batch", marks=pytest.mark.long)])
async def test_pair_called_same_is_merged_without_another_call(
    vector_extraction: ExtractionHarness, mode: str
) -> None:
    await vector_extraction.set(mode=mode)
    vector_extraction.server.state.answering = relating("same")
    async with remembering(vector_extraction):
        await save(vector_extraction, 1, COAST, importance=4)
        await save(vector_extraction, 2, SEA, 1, importance=7)
        await vector_extraction.is_projected()
        await read_window(vector_extraction, 1)
        (merged,) = await vector_extraction.has(1, "fact.merged")
        (compared,) = await vector_extraction.has(1, "fact.compared")
        (ended,) = await vector_extraction.has(1, "fact.forgotten")
        await settled(vector_extraction)
        assert len(vector_extraction.server.state.questions) == 1
        assert await facts(vector_extraction) == {"ar_001": SEA}
        shown = await vector_extraction.stock.ask("get", id="ar_001")
        assert [version["text"] for version in shown["versions"]] == [COAST]
        assert shown["fact"]["importance"] == 7
        hits = (await vector_extraction.stock.ask("search", query=SEA, scope=["memories"]))["hits"]
        assert [hit["id"] for hit in hits] == ["ar_001"]
        await read_window(vector_extraction, 2)
        assert not find_pairs(vector_extraction.server.state.questions[-1].text)
        async with Database(vector_extraction.deployment) as database:
            audited = AuditedLog(vector_extraction.stock, vector_extraction.deployment, database)
            await audited.settled()
            assert await audited.faults() == []
        await settled(vector_extraction)
        async with open_exclusive_site(vector_extraction.deployment) as place:
            verdict = await verdict_on(place, RebuildReport())
        assert (verdict.differences, verdict.is_settled) == (0, True)
    (pair,) = find_pairs(vector_extraction.server.state.questions[0].text)
    assert pair == ShownPair("ar_002", "ar_001", SEA, COAST)
    assert FactPair.model_validate(compared) == FactPair(
        fact_id="ar_002", version="s2", other_id="ar_001", other_version="s1"
    )
    assert (merged["merged_id"], merged["former"]["text"], ended["fact_id"]) == ("ar_002", COAST, "ar_002")
    assert merged["lineage"]["model"] == f"openai/{MODEL}"
    assert (merged["lineage"].get("batch_id") is not None) == (mode == "batch")


@pytest.mark.long
@pytest.mark.parametrize("mode", ["online", "batch"])
async def test_different_facts_are_kept_and_not_asked_about_again(
    vector_extraction: ExtractionHarness, mode: str
) -> None:
    await vector_extraction.set(mode=mode)
    vector_extraction.server.state.answering = relating("different")
    async with remembering(vector_extraction):
        await save(vector_extraction, 1, COAST)
        await save(vector_extraction, 2, SEA, 1)
        await vector_extraction.is_projected()
        for number in (1, 2):
            await read_window(vector_extraction, number)
            await vector_extraction.is_projected()
        await settled(vector_extraction)
        assert await facts(vector_extraction) == {"ar_001": COAST, "ar_002": SEA}
    (compared,) = await vector_extraction.log_of("fact.compared")
    assert compared["relation"] == "different"
    assert [len(find_pairs(each.text)) for each in vector_extraction.server.state.questions] == [1, 0]


async def test_an_update_keeps_the_older_id_and_a_former_version(
    vector_extraction: ExtractionHarness,
) -> None:
    vector_extraction.server.state.answering = relating("update")
    async with remembering(vector_extraction):
        await save(vector_extraction, 1, "Работает в пекарне", importance=8)
        await save(vector_extraction, 2, "Открыла свою пиццерию", 1)
        await vector_extraction.is_projected()
        await read_window(vector_extraction, 1)
        await vector_extraction.has(1, "fact.merged")
        await settled(vector_extraction)
        assert await facts(vector_extraction) == {"ar_001": "Открыла свою пиццерию"}
        shown = await vector_extraction.stock.ask("get", id="ar_001")
        assert [version["text"] for version in shown["versions"]] == ["Работает в пекарне"]


@pytest.mark.long
async def test_fact_changed_during_the_call_is_not_merged(
    vector_extraction: ExtractionHarness,
) -> None:
    vector_extraction.server.state.answering = relating("same")
    released = vector_extraction.server.state.hold_answers()
    async with remembering(vector_extraction):
        await save(vector_extraction, 1, COAST)
        await save(vector_extraction, 2, SEA, 1)
        await vector_extraction.is_projected()
        await vector_extraction.stock.say("hello")
        await vector_extraction.is_asked()
        changed = await vector_extraction.stock.ask(
            "update", id="ar_001", text="Grew up in the hills of Wales"
        )
        assert "error" not in changed
        released.set()
        await vector_extraction.has(1, "fact.compared")
        await settled(vector_extraction)
        assert await facts(vector_extraction) == {"ar_001": "Grew up in the hills of Wales", "ar_002": SEA}
    assert await vector_extraction.log_of("fact.merged") == []


@pytest.mark.long
@pytest.mark.parametrize(
    "pairs",
    [
        [],
        *(
            pytest.param(pairs, marks=pytest.mark.long)
            for pairs in (
                None,
                [{"newer": "ar_001", "older": "ar_099", "relation": "same"}],
                [{"newer": "ar_002", "older": "ar_001", "relation": "perhaps"}],
                [{"newer": "ar_002", "older": "ar_001", "relation": each} for each in ("same", "different")],
                [{"number": 1, "relation": "same"}],
            )
        ),
    ],
)
async def test_a_pair_without_a_usable_answer_is_asked_about_three_times(
    vector_extraction: ExtractionHarness, pairs: Any
) -> None:
    vector_extraction.server.state.answering = answering(pairs)
    async with remembering(vector_extraction):
        await save(vector_extraction, 1, COAST)
        await save(vector_extraction, 2, SEA, 1)
        await vector_extraction.is_projected()
        for number in range(1, 5):
            await read_window(vector_extraction, number)
            await vector_extraction.is_projected()
        await settled(vector_extraction)
        assert await facts(vector_extraction) == {"ar_001": COAST, "ar_002": SEA}
    compared = await vector_extraction.log_of("fact.compared")
    assert [each.get("relation") for each in compared] == [None, None, None]
    asked = [len(find_pairs(each.text)) for each in vector_extraction.server.state.questions]
    assert asked == [1, 1, 1, 0]


@pytest.mark.long
async def test_unreadable_answer_is_requested_again_without_pairs(
    vector_extraction: ExtractionHarness,
) -> None:
    vector_extraction.server.state.answering = lambda question: (
        "I would rather not." if find_pairs(question.text) else '{"facts": [], "pairs": []}'
    )
    async with remembering(vector_extraction):
        await save(vector_extraction, 1, COAST)
        await save(vector_extraction, 2, SEA, 1)
        await vector_extraction.is_projected()
        await vector_extraction.stock.say("hello")
        await vector_extraction.becomes("SELECT attempts, is_answered FROM windows", (1, False))
        (compared,) = await vector_extraction.has(1, "fact.compared")
        await vector_extraction.time_passes()
        await vector_extraction.has(1, "window.answered")
    assert "relation" not in compared
    assert [len(find_pairs(each.text)) for each in vector_extraction.server.state.questions] == [1, 0]


@pytest.mark.long
async def test_repeated_answer_counts_once(
    vector_extraction: ExtractionHarness,
) -> None:
    vector_extraction.server.state.answering = relating("same")
    async with remembering(vector_extraction, "persist", "extract"):
        await save(vector_extraction, 1, COAST)
        await save(vector_extraction, 2, SEA, 1)
        await vector_extraction.is_projected()
        await read_window(vector_extraction, 1)
        (compared,) = await vector_extraction.has(1, "fact.compared")
        await vector_extraction.is_projected()
    async with remembering(vector_extraction, "persist", "index", "dedupe", "retrieve"):
        await vector_extraction.has(1, "fact.merged")
        await settled(vector_extraction)
    # Publish the comparison again, as after a kill before its acknowledgement, also with other relations.
    again = {name: value for name, value in compared.items() if name != "owner"}
    body_id = (
        await vector_extraction.sql("SELECT event_id FROM memory_events WHERE event = 'fact.compared'")
    )[0][0]
    for relation in ("same", "different", "update"):
        copy = {**again, "id": body_id, "relation": relation}
        await vector_extraction.stock.publish("memory.acme.u1.fact.compared.v1", copy)
    async with remembering(vector_extraction, "persist", "index", "dedupe", "retrieve"):
        await settled(vector_extraction)
        assert await facts(vector_extraction) == {"ar_001": SEA}
        assert len(await vector_extraction.log_of("fact.merged")) == 1
        assert len(await vector_extraction.log_of("fact.forgotten")) == 1


@pytest.mark.long
async def test_a_batch_that_has_not_ended_keeps_its_pairs_from_others(
    vector_extraction: ExtractionHarness,
) -> None:
    await vector_extraction.set(mode="batch")
    vector_extraction.server.state.polls = 1000
    vector_extraction.server.state.answering = relating("same")
    async with remembering(vector_extraction):
        await save(vector_extraction, 1, COAST)
        await save(vector_extraction, 2, SEA, 1)
        await vector_extraction.is_projected()
        await vector_extraction.stock.say("hello")
        (intended,) = await vector_extraction.has(1, "batch.intended")
        await vector_extraction.has(1, "batch.submitted")
        await vector_extraction.is_projected()
        await vector_extraction.set(mode="online")
        await vector_extraction.stock.say("hello in another place", "acme.u1.talk")
        await vector_extraction.has(1, "window.answered")
    assert [len(window["pairs"]) for window in intended["windows"]] == [1]
    (online,) = vector_extraction.server.state.questions
    assert find_pairs(online.text) == []


@pytest.mark.long
async def test_request_limits_pairs_and_rules_ask_none(
    vector_extraction: ExtractionHarness,
) -> None:
    await vector_extraction.set(provider="offline", model=None)
    async with remembering(vector_extraction):
        for number in range(1, 6):
            await save(vector_extraction, number, f"Fact number {number}", *range(1, number))
        await vector_extraction.is_projected()
        await read_window(vector_extraction, 1)
        assert await vector_extraction.log_of("fact.compared") == []
        await vector_extraction.set(provider="openai", model=MODEL, pairs=4)
        for number in (2, 3, 4):
            await read_window(vector_extraction, number)
            await vector_extraction.is_projected()
    asked = [find_pairs(each.text) for each in vector_extraction.server.state.questions]
    assert [len(each) for each in asked] == [4, 4, 2]
    assert (asked[0][0].newer, asked[0][0].older) == ("ar_002", "ar_001")
    assert len({pair for each in asked for pair in each}) == 10


@pytest.mark.long
async def test_a_batch_that_is_handed_over_again_asks_about_its_pairs_again(
    vector_extraction: ExtractionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "LONGEST_PAUSE", 1.0)
    await vector_extraction.set(mode="batch")
    vector_extraction.server.state.answering = relating("same")
    # The submission fails: `extract` looks for the batch, does not find it, and submits it again.
    vector_extraction.server.state.faults.requests.append(HttpFault(503, path="POST /v1/batches"))
    async with remembering(vector_extraction):
        await save(vector_extraction, 1, COAST)
        await save(vector_extraction, 2, SEA, 1)
        await vector_extraction.is_projected()
        await vector_extraction.stock.say("hello")
        await vector_extraction.has(1, "batch.intended")
        await vector_extraction.has(1, "fact.merged")
        await settled(vector_extraction)
        assert await facts(vector_extraction) == {"ar_001": SEA}
    assert not vector_extraction.server.state.faults.requests
    assert len(await vector_extraction.log_of("fact.compared")) == 1
