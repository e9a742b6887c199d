"""A log of mnemon 0.1.0, whose `dedupe` decided by cosine similarity alone, read by this version."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio

from mnemon.operations.rebuild.redecide import Redecision
from mnemon_consumers.app import run_consumers
from mnemon_contracts.decode import decode_event
from mnemon_contracts.events.memory import FactSavedV1, FactUpdatedV1
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import build_thing_filter, parse_subject
from mnemon_infra.broker.streams.applied_position import read_log_end
from mnemon_infra.broker.streams.log_reader import read_events
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.models.embedders.wordllama import load_wordllama
from mnemon_infra.rebuild.generations import open_exclusive_site
from tests.support.log.audited_log import AuditedLog
from tests.support.pipelines.rebuild import RebuildReport, verdict_on
from tests.support.servers.qdrant import locate_vectors
from tests.support.stock_client import Stock, indexed

OLD_LOG = Path(__file__).parents[3] / "support" / "log" / "log_of_0_1_0.jsonl"
EVENTS: list[dict[str, Any]] = [json.loads(line) for line in OLD_LOG.read_text().splitlines()]

ALLERGY, MOTHER = "Is allergic to penicillin", "The user's mother is allergic to penicillin"
MAMA, PAPA = "Мама живёт в Твери", "Папа живёт в Твери"
NAMES = "persist", "index", "dedupe", "retrieve"


@pytest_asyncio.fixture
async def end(stock: Stock, deployment: Deployment, tmp_path: Path) -> AsyncIterator[int]:
    """Last position of the log, whose events are all published before a consumer runs."""
    for event in EVENTS:
        headers = {"Nats_Msg_Id": event["id"]} if "id" in event else {}
        await stock.publish(event["subject"], event["body"], **headers)
    located = locate_vectors(deployment, tmp_path / "vectors")
    async with run_consumers(NAMES, located):
        yield await indexed(stock, len(EVENTS))


@pytest_asyncio.fixture
async def audited(stock: Stock, deployment: Deployment, end: int) -> AsyncIterator[AuditedLog]:
    async with Database(deployment) as database:
        yield AuditedLog(stock, deployment, database)


async def load_texts(stock: Stock, owner: str, min_seq: int) -> dict[str, str]:
    return {each["id"]: each["text"] for each in (await stock.ask("read", owner, min_seq=min_seq))["facts"]}


async def load_corrections(stock: Stock) -> list[tuple[str, tuple[int, ...]]]:
    """Return text and source positions of the facts that redecide has saved or updated."""
    log = read_events(stock.connection, build_thing_filter("acme", "u1", "fact"), len(EVENTS))
    return [
        (event.fact.text, event.lineage.sources)
        async for _, _, event in log
        if isinstance(event, FactSavedV1 | FactUpdatedV1)
    ]


async def assert_rows_follow_the_log(audited: AuditedLog) -> None:
    await audited.settled()
    assert await audited.faults() == []
    async with open_exclusive_site(audited.deployment) as place:
        verdict = await verdict_on(place, RebuildReport())
    assert (verdict.is_settled, verdict.differences, verdict.first) == (True, 0, [])


def test_old_events_are_encoded_as_they_were_read() -> None:
    for event in EVENTS:
        body = json.dumps(event["body"], ensure_ascii=False).encode()
        assert json.loads(decode_event(parse_subject(event["subject"]), body).encode_body()) == event["body"]


async def test_old_decisions_hold_and_their_rows_are_those_of_the_log(
    stock: Stock, end: int, audited: AuditedLog
) -> None:
    assert await load_texts(stock, "acme.u1", end) == {
        "pf_001": MOTHER,
        "pf_002": "Lives in Lisbon",
        "ar_001": "Keeps two goats behind the barn",
    }
    assert await load_texts(stock, "acme.u2", end) == {"pf_001": PAPA}
    await assert_rows_follow_the_log(audited)
    assert await read_log_end(stock.connection.jetstream()) == end == len(EVENTS)


async def test_redecide_separates_facts_that_overwrote_each_other(
    stock: Stock, end: int, audited: AuditedLog
) -> None:
    redeciding = Redecision(
        stock.connection, audited.database, load_wordllama(), edit=lambda document: document
    )
    shown = await redeciding.preview_corrections(lambda *_: None)
    assert [(*each.owner, each.change.kind, each.change.text) for each in shown.first] == [
        ("acme", "u1", "apart", MOTHER),
        ("acme", "u1", "rewritten", MOTHER),
        ("acme", "u2", "apart", PAPA),
        ("acme", "u2", "rewritten", PAPA),
    ]
    assert await read_log_end(stock.connection.jetstream()) == end

    assert await redeciding.make_corrections(lambda *_: None) == shown
    changed = await indexed(stock, await read_log_end(stock.connection.jetstream()))
    assert await load_texts(stock, "acme.u1", changed) == {
        "pf_001": ALLERGY,
        "pf_003": MOTHER,
        "pf_002": "Lives in Lisbon",
        "ar_001": "Keeps two goats behind the barn",
    }
    assert await load_texts(stock, "acme.u2", changed) == {"pf_001": MAMA, "pf_002": PAPA}
    assert await load_corrections(stock) == [(MOTHER, (2,)), (ALLERGY, (1,))]
    assert [each["text"] for each in (await stock.ask("get", id="pf_001"))["versions"]] == [MOTHER, ALLERGY]
    assert (await redeciding.make_corrections(lambda *_: None)).changed == 0
    await assert_rows_follow_the_log(audited)

    for seq, event in enumerate(EVENTS, start=1):
        stored = await stock.connection.jetstream().get_msg(LOG, seq=seq, direct=True)
        assert (stored.subject, json.loads(stored.data or b"")) == (event["subject"], event["body"])
