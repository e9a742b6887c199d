"""Hostile memory events harm only their own user, and an erasure removes all of them."""

from pathlib import Path
from typing import Any, Final

import pytest
from nats.aio.client import Client

from mnemon_consumers.app import run_consumers
from mnemon_infra.broker.streams.applied_position import read_log_end
from mnemon_infra.config import Deployment
from tests.integration.consumers.delivery.test_hostile_input import NOTHING, UNSTORABLE, audit, memory_of
from tests.support.log.dead_letters import kept
from tests.support.servers.qdrant import locate_vectors
from tests.support.stock_client import Stock, indexed

MOST: Final = 2**63 - 1
BEYOND: Final = 10**30
COSTS: Final = {"provider": "openai", "model": "m", "purpose": "extract", "usd": 1e308}
DRAWN: Final = {"conversation": "c", "text": "otter"}
READ: Final = {"conversation": "c", "outcome": "dead"}

EVENTS: Final[tuple[tuple[str, Any, str], ...]] = (
    ("fact.saved", {"fact_id": "x" * 255, "fact": {"text": "otter"}, "decision": {"proposal_id": "p1"}}, ""),
    (
        "fact.saved",
        {"fact_id": "ar_\u00b2", "fact": {"text": "otter"}, "decision": {"proposal_id": "p2"}},
        "",
    ),
    (
        "fact.saved",
        {"fact_id": f"ar_{BEYOND}", "fact": {"text": "otter"}, "decision": {"proposal_id": "p3"}},
        "",
    ),
    (
        "fact.saved",
        {"fact_id": "", "fact": {"text": "otter"}, "decision": {"proposal_id": "p4"}},
        "invalid_body",
    ),
    ("fact.updated", {"fact_id": "never", "fact": {"text": "otter"}, "former": {"text": "x"}}, ""),
    ("fact.evicted", {"fact_id": "never", "tier": "archive", "limit": BEYOND}, ""),
    ("fact.proposed", {"text": "otter", "lineage": {"sources": [MOST, 0]}}, ""),
    ("fact.proposed", {"text": "otter " * 100_000}, ""),
    ("summary.written", {"summary_id": "s1", "from_seq": MOST, "to_seq": 0, **DRAWN}, ""),
    ("summary.written", {"summary_id": "s2", "from_seq": 0, "to_seq": BEYOND, **DRAWN}, "invalid_body"),
    ("summary.merged", {"summary_id": "s3", "merged": ["s3"], "from_seq": 5, "to_seq": 2, **DRAWN}, ""),
    ("window.answered", {"from_seq": MOST, "to_seq": 0, "attempts": BEYOND, **READ}, ""),
    ("model.called", {"tokens": {"input": MOST, "output": MOST}, **COSTS}, ""),
    ("model.called", {"tokens": {"input": MOST, "output": MOST}, **COSTS}, ""),
    ("model.called", {"tokens": {"input": BEYOND}, **COSTS}, UNSTORABLE),
    ("batch.submitted", {"batch_id": "b", "provider_batch_id": "z" * 100_000}, ""),
    ("batch.completed", {"batch_id": "b", "answered": BEYOND}, ""),
    ("profile.set", {"fields": {"k" * 100_000: "otter", "": None}}, ""),
    ("profile.set", b'{"fields":{"otter":%b}}' % (b"9" * 5000), "invalid_body"),
    ("profile.set", b'{"fields":{"otter":%b1%b}}' % (b"[" * 5000, b"]" * 5000), "invalid_body"),
    ("document.added", b'{"document_id":"d","text":"otter","metadata":{"n":1e300000}}', "invalid_body"),
    ("document.added", {"document_id": "e", "text": "otter", "title": "t" * 300_000}, ""),
    ("document.added", {"document_id": "f", "text": "\n" * 500_000}, ""),
    ("task.added", {"task_id": "t", "text": "otter", "due_at": "9999-12-31T23:59:59Z"}, "invalid_body"),
    ("user.erased", {"up_to_seq": BEYOND}, "invalid_body"),
)


@pytest.mark.long
async def test_hostile_memory_events_harm_only_their_user(
    stock: Stock, connection: Client, deployment: Deployment, tmp_path: Path
) -> None:
    with_vectors = locate_vectors(deployment, tmp_path / "vectors")
    async with run_consumers(("persist", "index", "dedupe", "retrieve"), with_vectors):
        await stock.say("Eva likes the sea", "globex.eva.-")
        await stock.ask("save", "globex.eva", text="Likes herring")
        await indexed(stock, await read_log_end(connection.jetstream()))
        before = await memory_of(stock, "globex.eva")

        expected = {}
        for name, body, reason in EVENTS:
            expected[await stock.publish(f"memory.acme.ana.{name}.v1", body)] = reason
        await indexed(stock, await stock.say("the otter dives", "acme.ana.-"))

        letters = {each.sequence: each.reason for each in await kept(connection)}
        assert {seq: letters.get(seq, "") for seq in expected} == expected
        for verb in ("context", "read", "profile", "tasks", "document", "history", "status"):
            assert "error" not in await stock.ask(verb, "acme.ana"), verb
        assert (await stock.ask("save", "acme.ana", text="Owns a kayak and a tent"))["decision"] == "saved"
        assert (await audit(with_vectors)).faults.named == []

        receipt = await stock.ask("erase", "acme.ana")
        assert receipt["pending"] == []
        verified = await stock.ask("erase", "acme.ana", verify=True, text="otter")
        assert (verified["left"], set(verified["found"].values())) == (NOTHING, {0})
        assert await memory_of(stock, "globex.eva") == before
