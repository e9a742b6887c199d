"""Benches that need servers, run at a small size; each returns its declared measurements."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from mnemon_bench import cost
from mnemon_bench.latency import context, fairness, foreground, gateway, retrieve, search
from mnemon_bench.quality import recall
from mnemon_bench.soak import run as soak
from mnemon_bench.throughput import compact, dedupe, extract, ingest, publish, rebuild, scale, searchable
from mnemon_bench.workloads import scale_models
from mnemon_infra.config import Deployment
from tests.support.servers.qdrant import locate_vectors

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]

FACTS = 2
"""Number of new facts of each user; an equal number of proposals repeats them."""

SEARCHED = ((search.MemorySize(1, 400), search.MemorySize(1, 10_000)), (search.MemorySize(2, 10),))

CONSTANTS = (
    (retrieve, "MESSAGES", 200),
    (retrieve, "USERS", 20),
    (scale_models, "WARM_UP_CONVERSATIONS", 2),
)
"""Sizes that are not parameters of a bench, and their small values."""

Run = Callable[[Deployment], Awaitable[dict[str, Any]]]

SMALL: dict[str, Run] = {
    "compact": lambda stack: compact.run(stack, messages=60, step=10),
    "context": lambda stack: context.run(stack, rounds=1, requests=10),
    "cost": lambda stack: cost.run(stack, users=2),
    "extract": lambda stack: extract.run(stack, users=2, rounds=1),
    "fairness": lambda stack: fairness.run(stack, messages=100, proposals=20, requests=12),
    "front": lambda stack: foreground.run(stack, users=60, rounds=1, requests=5),
    "gateway": lambda stack: gateway.run(stack, rounds=1, requests=32, chats=3),
    "ingest": lambda stack: ingest.run(stack, messages=500, rounds=1, large=1_000),
    "rebuild": lambda stack: rebuild.run(stack, events=400, rounds=1),
    "retrieve": lambda stack: retrieve.run(stack, rounds=1, requests=20, report=lambda line: None),
    "scale": lambda stack: scale.run(stack, messages=200, conversations=2, rounds=1),
    "search": lambda stack: search.run(stack, stages=SEARCHED, rounds=1, requests=5),
    "searchable": lambda stack: searchable.run(stack, messages=100, rounds=1),
}


@pytest.mark.parametrize("name", SMALL)
async def test_a_bench_measures_its_ratios(
    name: str, deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, constant, value in CONSTANTS:
        monkeypatch.setattr(module, constant, value)

    measured = await SMALL[name](locate_vectors(deployment, tmp_path / "vectors"))

    assert measured["ratios"]
    assert all(ratio > 0 for ratio in measured["ratios"].values())
    aimed_at = {figure for bounds in measured["targets"].values() for figure in bounds}
    assert aimed_at <= measured["ratios"].keys() | measured.keys()


async def test_soak_samples_the_stack_and_finds_a_trend_of_each_series(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soak, "SAMPLES", 24)
    samples = tmp_path / "soak.jsonl"
    stack = deployment.model_copy(update={"vectors_folder": tmp_path / "vectors"})

    measured = await soak.run(stack, tmp_path, hours=0.003, samples=samples, rate=20)

    series = measured["trends"]
    assert {"memory_mb.background", "rows.windows", "messages.WORK", "disk_mb.vectors"} <= series.keys()
    assert series["memory_mb.foreground"]["level"] > 1
    assert series["messages.LOG"]["level"] > 0
    assert measured["operations"]["exchange"] > 0
    assert len(soak.read_samples(samples)) > 2


async def test_publishing_is_measured(nats_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish, "BATCHED", 200)
    monkeypatch.setattr(publish, "SINGLE", 20)

    ratios = (await publish.run(nats_url))["ratios"]
    assert ratios
    assert all(ratio > 0 for ratio in ratios.values())


async def test_four_workers_decide_as_one_does(deployment: Deployment) -> None:
    measured = await dedupe.run(deployment, rounds=1, number=2 * FACTS * dedupe.USERS)

    assert set(measured["decisions_per_second"]) == {"bare", "one", "four"}
    assert all(rate > 0 for rate in measured["decisions_per_second"].values())
    outcome = measured["outcome"]
    assert outcome["fact.proposed"] == 2 * FACTS * dedupe.USERS
    assert outcome["fact.saved"] >= FACTS * dedupe.USERS
    assert sum(outcome.values()) == 2 * outcome["fact.proposed"]


def conversation_with_questions() -> bytes:
    """Return a LoCoMo file with one conversation and two questions that share words with their evidence."""
    said = (
        ("Ann", "We adopted a tortoise called Speedy"),
        ("Bob", "Nice, we only have goldfish"),
        ("Ann", "On Sunday I ran a marathon in Lisbon"),
    )
    turns = [
        {"speaker": name, "dia_id": f"D1:{place}", "text": text} for place, (name, text) in enumerate(said, 1)
    ]
    conversation = {
        "speaker_a": "Ann",
        "speaker_b": "Bob",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": turns,
    }
    questions = [
        {"question": "What is the tortoise called?", "evidence": ["D1:1"], "category": 4},
        {"question": "Where was the marathon?", "evidence": ["D1:3"], "category": 4},
    ]
    return json.dumps({"sample_id": "ours", "conversation": conversation, "qa": questions}).encode()


async def test_recall_finds_the_evidence_of_a_small_conversation(
    deployment: Deployment, tmp_path: Path
) -> None:
    file = tmp_path / "conversation.json"
    file.write_bytes(conversation_with_questions())
    stack = locate_vectors(deployment, tmp_path / "vectors")

    measured = await recall.run(stack, recall.load_conversations(file))

    assert measured["turns"] == 3
    assert measured["recall@5"] == measured["methods"]["full"]["recall@10"] == 1.0
    assert measured["methods"]["full"]["questions"] == 2
    assert measured["methods"].keys() == {"full", "threshold_0", "bm25", "dense", "fused"}
