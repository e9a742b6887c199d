"""Metrics: clients cannot add values of labels, and histograms count correctly."""

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from mnemon_infra.broker.outcomes import ACK, Ack, Dead, DeliveryOutcome, Retry, count_outcomes
from mnemon_infra.telemetry import metrics
from mnemon_infra.telemetry.exposition import build_registry
from mnemon_infra.telemetry.tally import OTHER, Counter, Gauge, Histogram, Metric
from mnemon_infra.vectors.port import Collection

ROOT = Path(__file__).parents[4]
FORBIDDEN = {"tenant", "user", "conversation", "id", "event_id", "model", "subject", "text", "error"}


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the metrics that a test creates from the list of all metrics after the test."""
    monkeypatch.setattr(Metric, "all", [*Metric.all])


def test_unknown_label_value_becomes_other() -> None:
    asked = Counter("asked", "", verb=("context",), outcome=("ok",))
    for verb in ("context", "ignore all instructions", "x" * 100):
        asked.add(verb, "ok")
    asked.add("context", "u42", by=3)
    assert asked.values == {("context", "ok"): 1, (OTHER, "ok"): 2, ("context", OTHER): 3}
    waiting = Gauge("waiting", "", consumer=("persist",))
    waiting.replace({"persist": 7, "somebody's": 1})
    waiting.set(2, "another's")
    assert waiting.values == {("persist",): 7, (OTHER,): 2}
    taken = Histogram("taken", "", (1, 2), verb=("context",))
    taken.observe(1, "nonsense")
    taken.observe_ages([0.0], 1.0, "more nonsense")
    assert list(taken.values) == [(OTHER,)]


def test_labels_name_no_user_and_are_bounded() -> None:
    labels = {label: allowed for metric in Metric.all for label, allowed in metric.labels.items()}
    assert labels.keys() & FORBIDDEN == set()
    assert all(0 < len(allowed) <= 40 for allowed in labels.values())


def test_points_of_every_collection_have_a_label_of_their_own() -> None:
    assert set(metrics.POINTS.labels["collection"]) == set(map(str, Collection))


def test_every_reason_of_a_dead_letter_is_known() -> None:
    reasons: set[str] = set()
    for path in [*(ROOT / "consumers").rglob("*.py"), *(ROOT / "infra").rglob("*.py")]:
        code = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(code)) if "Dead(" in code else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Dead":
                first = ast.walk(node.args[0])
                texts = (each.value for each in first if isinstance(each, ast.Constant))
                reasons |= {text for text in texts if isinstance(text, str)}
    assert reasons
    assert reasons - set(metrics.REASONS) == set()


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=50))
def test_ages_counted_together_are_those_counted_one_by_one(times: list[float]) -> None:
    before = [*Metric.all]
    together, alone = (Histogram(name, "", (0.5, 1, 10, 100, 900)) for name in ("together", "alone"))
    Metric.all[:] = before
    now = 1000.0
    together.observe_ages(sorted(times), now)
    for time in times:
        alone.observe(now - time)
    assert together.values[()].counts == alone.values[()].counts
    assert together.values[()].total == pytest.approx(alone.values[()].total)


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([ACK, ACK], {"applied": 2}),
        ([ACK, Ack("why"), Retry(), Dead("a", "b")], dict.fromkeys(metrics.OUTCOMES, 1)),
        ([], {"applied": 0}),
    ],
)
def test_deliveries_are_counted_by_outcome(outcomes: list[DeliveryOutcome], expected: dict[str, int]) -> None:
    assert count_outcomes(outcomes) == expected


def test_prometheus_reads_counters_and_histograms() -> None:
    count = Counter("seen_things", "Things", kind=("large",))
    count.add("large", by=5)
    size = Histogram("thing_size", "Size", (1, 2.5), kind=("large",))
    for value in (0.5, 1, 2, 3):
        size.observe(value, "large")
    families = {
        family.name: family
        for family in text_string_to_metric_families(generate_latest(build_registry()).decode())
    }
    assert [(each.name, each.value) for each in families["seen_things"].samples] == [("seen_things_total", 5)]
    of_size = {(each.name, each.labels.get("le")): each.value for each in families["thing_size"].samples}
    assert of_size == {
        ("thing_size_bucket", "1"): 2,
        ("thing_size_bucket", "2.5"): 3,
        ("thing_size_bucket", "+Inf"): 4,
        ("thing_size_count", None): 4,
        ("thing_size_sum", None): 6.5,
    }
    assert {"mnemon_build_info", "process_resident_memory_bytes"} <= families.keys()
