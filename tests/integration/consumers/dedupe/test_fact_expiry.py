"""Facts that expire at the time that their text names, from the proposal to the context."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mnemon_consumers.app import run_consumers
from mnemon_infra.config import Deployment
from tests.support.servers.qdrant import locate_vectors
from tests.support.stock_client import Stock


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "lasting"),
    [
        ("Is in Lisbon until tomorrow", "Is working on a thesis"),
        ("В Лиссабоне до завтра", "Работает над дипломом"),
    ],
)
async def test_a_working_fact_expires_when_its_words_say_so_and_only_then(
    stock: Stock, deployment: Deployment, tmp_path: Path, text: str, lasting: str
) -> None:
    located = locate_vectors(deployment, tmp_path / "vectors")
    async with run_consumers(("persist", "dedupe", "retrieve"), located):
        before = datetime.now(UTC).date()
        named, unnamed = [await stock.ask("save", text=each) for each in (text, lasting)]
        after = datetime.now(UTC).date()
        reply = await stock.ask("read", min_seq=unnamed["seen_seq"])
        shown = (await stock.ask("context", format="blocks", min_seq=unnamed["seen_seq"]))["text"]

    facts = {each["id"]: each for each in reply["facts"]}
    assert [facts[each["id"]]["tier"] for each in (named, unnamed)] == ["working", "working"]
    expires_on = datetime.fromisoformat(facts[named["id"]]["expires_at"]).date()
    assert before + timedelta(days=2) <= expires_on <= after + timedelta(days=2)
    assert "expires_at" not in facts[unnamed["id"]]
    until = "до" if "до завтра" in text else "until"
    assert f"- [user_fact] {text} ({until} {expires_on})\n" in f"{shown}\n"
    assert f"- [user_fact] {lasting}\n" in f"{shown}\n"
