"""Alerts and dashboard use metrics that exist and are documented."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from mnemon_infra.telemetry import metrics
from mnemon_infra.telemetry.dashboard import FILE, build_dashboard, format_dashboard
from mnemon_infra.telemetry.panels import ROWS
from mnemon_infra.telemetry.tally import Counter, Histogram, Metric

ROOT = Path(__file__).parents[4]
MONITORING = ROOT / "infra" / "monitoring"


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def shown() -> Iterator[str]:
    """Yield the names of the series that Prometheus reads."""
    for metric in Metric.all:
        match metric:
            case Counter(name=name):
                yield f"{name}_total"
            case Histogram(name=name):
                yield from (f"{name}_{part}" for part in ("bucket", "count", "sum"))
            case _:
                yield metric.name


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_dashboard_file_matches_the_generator() -> None:
    assert FILE.read_text() == format_dashboard(), "write it anew: python -m mnemon_infra.telemetry.dashboard"


def test_dashboard_panels_do_not_overlap() -> None:
    places = [panel["gridPos"] for panel in build_dashboard()["panels"]]
    taken = {(x, y) for each in places for x in range(each["x"], each["x"] + each["w"]) for y in [each["y"]]}
    assert len(taken) == sum(each["w"] for each in places)
    assert all(each["x"] + each["w"] <= 24 for each in places)
    assert all(one["y"] <= other["y"] for one, other in pairwise(places))
    assert len({panel["id"] for panel in build_dashboard()["panels"]}) == len(places)


def test_dashboard_queries_existing_metrics() -> None:
    shown_queries = [query for _, panels in ROWS for panel in panels for query, _ in panel.queries]
    asked = {
        name
        for query in [*shown_queries, *(rule["expr"] for rule in rules())]
        for name in re.findall(r"mnemon_\w+", query)
    }
    assert len(asked) > 20
    assert asked - set(shown()) == set()


def test_every_metric_is_documented() -> None:
    page = (ROOT / "docs" / "observability.md").read_text()
    names = [f"{each.name}_total" if isinstance(each, Counter) else each.name for each in Metric.all]
    assert metrics.EVENTS.name in "".join(names)
    assert [name for name in names if f"`{name}`" not in page] == []


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_says_what_to_do(rule: dict[str, Any]) -> None:
    told = rule["annotations"]
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert told["summary"]
    assert told["description"].endswith(".")
    page, _, anchor = told["runbook_url"].partition("#")
    assert (ROOT / page).is_file()
    assert not anchor or anchor in anchors(ROOT / page), f"{page} has no {anchor}"
    assert f"`{rule['alert']}`" in (ROOT / "docs" / "observability.md").read_text()
