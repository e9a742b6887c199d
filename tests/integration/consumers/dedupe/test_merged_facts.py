"""Merged facts: export and import, the erasure of a conversation, expiry, and the admin page."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mnemon.operations.exports import markdown
from mnemon_consumers.app import run_consumers
from mnemon_consumers.persist.decide import plan_batch
from mnemon_contracts.events.fact_comparison import FactMergedV1
from mnemon_contracts.events.memory import Fact, FactSavedV1
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.projections.sweep_candidates import list_owners_of_expired_facts
from mnemon_infra.database.projections.writer import write_rows
from mnemon_infra.delivery import Delivery
from mnemon_infra.durables import CONSUMERS
from tests.integration.mnemon.operations.test_import_export import another, bring, exported
from tests.support.admin.http_browser import browsing, words
from tests.support.stock_client import Stock, indexed

COAST, SEA = "Grew up on the coast of Wales", "Spent her childhood by the Welsh sea"
NAMES = "persist", "index", "dedupe", "retrieve"


async def learn(stock: Stock, number: int, text: str, conversation: str, **fact: Any) -> int:
    """Publish a message and a fact derived from it; return the log position of the message."""
    said = await stock.say(text, f"acme.u1.{conversation}")
    saved = {"id": f"s{number}", "fact_id": f"ar_00{number}", "fact": {"text": text, **fact}}
    by = {"proposal_id": f"p{number}", "undecided": ["ar_001"] if number > 1 else []}
    lineage = {"sources": [said], "conversation": conversation, "extractor": "extract"}
    await stock.publish("memory.acme.u1.fact.saved.v1", {**saved, "decision": by, "lineage": lineage})
    return said


async def merge(stock: Stock, relation: str = "same") -> int:
    """Publish the comparison of the facts; wait until `dedupe` has merged them and `index` has the result."""
    ended = await stock.connection.subscribe("memory.acme.u1.fact.forgotten.v1")
    pair = {"fact_id": "ar_002", "version": "s2", "other_id": "ar_001", "other_version": "s1"}
    compared = {"id": "c1", **pair, "relation": relation, "lineage": {"model": "openai/m-1"}}
    await stock.publish("memory.acme.u1.fact.compared.v1", compared)
    await ended.next_msg(timeout=60)
    return await indexed(stock, (await stock.connection.jetstream().stream_info("LOG")).state.last_seq)


async def facts(stock: Stock) -> dict[str, str]:
    end = (await stock.connection.jetstream().stream_info("LOG")).state.last_seq
    return {each["id"]: each["text"] for each in (await stock.ask("read", min_seq=end))["facts"]}


@pytest.mark.long
async def test_merged_fact_keeps_former_versions_over_export_and_import(
    stock: Stock, vectors_deployment: Deployment, tmp_path: Path, database_url: str
) -> None:
    async with run_consumers(NAMES, vectors_deployment):
        await learn(stock, 1, COAST, "one")
        await learn(stock, 2, SEA, "two")
        await merge(stock)
        lines = await exported(stock.connection, vectors_deployment)
        written = await exported(stock.connection, vectors_deployment, markdown.generate_lines)
    assert [line for line in written if SEA in line]
    assert not [line for line in written if COAST in line]
    async with another(tmp_path / "there", database_url, NAMES) as (_, connection):
        there = Stock(connection)
        report = await bring(connection, lines)
        assert report.refused == 0
        await indexed(there, (await connection.jetstream().stream_info("LOG")).state.last_seq)
        assert await facts(there) == {"ar_001": SEA}
        shown = await there.ask("get", id="ar_001")
        assert [version["text"] for version in shown["versions"]] == [COAST]


async def test_a_fact_merged_from_two_conversations_outlives_one_of_them(
    stock: Stock, vectors_deployment: Deployment
) -> None:
    async with run_consumers(NAMES, vectors_deployment):
        await learn(stock, 1, COAST, "one")
        await learn(stock, 2, SEA, "two")
        await merge(stock)
        await stock.ask("erase", conversation="one")
        assert await facts(stock) == {"ar_001": SEA}


async def test_fact_merged_from_one_conversation_is_erased_with_it(
    stock: Stock, vectors_deployment: Deployment
) -> None:
    async with run_consumers(NAMES, vectors_deployment):
        await learn(stock, 1, COAST, "one")
        await learn(stock, 2, SEA, "one")
        await merge(stock)
        await stock.ask("erase", conversation="one")
        assert await facts(stock) == {}


async def test_fact_saved_by_a_tool_too_outlives_the_conversation(
    stock: Stock, vectors_deployment: Deployment
) -> None:
    async with run_consumers(NAMES, vectors_deployment):
        await learn(stock, 1, COAST, "one")
        by = {"proposal_id": "p2", "undecided": ["ar_001"]}
        saved = {"id": "s2", "fact_id": "ar_002", "fact": {"text": SEA}, "decision": by}
        lineage = {"extractor": "tool"}
        await stock.publish("memory.acme.u1.fact.saved.v1", {**saved, "lineage": lineage})
        await merge(stock)
        await stock.ask("erase", conversation="one")
        assert await facts(stock) == {"ar_001": SEA}


async def test_admin_page_shows_the_facts_of_a_merge(stock: Stock, vectors_deployment: Deployment) -> None:
    async with run_consumers(CONSUMERS, vectors_deployment), browsing(vectors_deployment) as browser:
        await learn(stock, 1, COAST, "one")
        await learn(stock, 2, SEA, "two")
        await merge(stock)
        seen = words(await browser.see("/user/fact", tenant="acme", user="u1", id="ar_001"))
    assert f"Merged “{SEA}” with openai/m-1 · merged ar_002, which says the same ·" in seen
    assert COAST in seen.partition("Former versions")[2]


async def test_expiry_of_former_version_does_not_expire_the_merged_fact(database: Database) -> None:
    over, later = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
    former, fact = Fact(text=COAST, expires_at=over), Fact(text=SEA, expires_at=later)
    saved = FactSavedV1.model_validate({"fact_id": "f", "fact": former, "decision": {"proposal_id": "p"}})
    merged = FactMergedV1(
        fact_id="f", merged_id="g", relation="same", fact=fact, former=former, compared_id="c"
    )
    for seq, (name, event) in enumerate((("saved", saved), ("merged", merged)), 1):
        delivery = Delivery(f"memory.acme.u1.fact.{name}.v1", event.encode_body(), name, "LOG", seq, 1, 1.8e9)
        await write_rows(database, plan_batch([delivery]).rows)
    now = datetime(2026, 6, 1, tzinfo=UTC)
    assert await database.run_query(list_owners_of_expired_facts(now)) == []
    assert await database.run_query(list_owners_of_expired_facts(later)) == [("acme", "u1")]
