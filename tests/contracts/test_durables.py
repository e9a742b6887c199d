"""Consumers, the server's configuration and the docs have exactly the durables that `DURABLES` declares."""

import re
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from mnemon_consumers.app import build_consumer
from mnemon_infra.broker.provisioning.topology import STREAMS, build_consumer_config
from mnemon_infra.config import Deployment
from mnemon_infra.durables import (
    ACK_WAIT,
    CONSUMERS,
    DURABLES,
    GRACEFUL_TIMEOUT,
    STATEMENT_TIMEOUT,
    DurableConsumer,
)

ROOT = Path(__file__).parents[2]
NAMING_EVERY_CONSUMER = (
    *("compose.yaml", "infra/monitoring/prometheus.compose.yml"),
    *("infra/helm/mnemon/values.yaml", "infra/helm/mnemon/values.schema.json"),
    *("mnemon/admin/charts/event_flow.py", "mnemon/cli/app.py", "mnemon/cli/stack/run.py"),
    *("mnemon/cli/stack/up.py", "tests/e2e/stack/test_rolling_upgrade.py"),
    *("docs/architecture.md", "docs/code-map.md", "docs/glossary.md", "docs/kubernetes.md"),
    *("docs/operating.md", "docs/scaling.md"),
)
"""Files that name all consumers, by hand."""

DEPLOYMENT = Deployment(nats_url="nats://127.0.0.1:1", pg_host="127.0.0.1")


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_a_consumer_handles_the_durables_that_are_declared_for_it(consumer: str) -> None:
    parts: Any = MagicMock()
    broker = build_consumer(consumer, parts, parts, parts, DEPLOYMENT).broker
    assert broker.durables == [each for each in DURABLES.values() if each.consumer == consumer]


def test_every_durable_belongs_to_a_consumer() -> None:
    consumers = {each.consumer for each in DURABLES.values()}
    assert consumers == set(CONSUMERS) - {"retrieve"}, "change CONSUMERS or the durables in durables.py"


@pytest.mark.parametrize("path", NAMING_EVERY_CONSUMER)
def test_file_names_every_consumer(path: str) -> None:
    words = set(re.findall(r"[a-z]+", (ROOT / path).read_text(encoding="utf-8")))
    absent = [name for name in CONSUMERS if name not in words]
    assert not absent, f"add {', '.join(absent)} to {path}, beside the other consumers"


@pytest.mark.parametrize("durable", DURABLES.values(), ids=DURABLES)
def test_configuration_for_the_server_has_the_declared_values(durable: DurableConsumer) -> None:
    config = build_consumer_config(durable)
    assert (config.durable_name, config.description) == (durable.name, durable.description)
    assert (config.ack_wait, config.max_ack_pending) == (durable.ack_wait, durable.max_ack_pending)
    filters = config.filter_subjects or [each for each in [config.filter_subject] if each]
    assert tuple(filters) == durable.filters
    assert durable.stream in [stream.name for stream in STREAMS]


@pytest.mark.parametrize("durable", DURABLES.values(), ids=DURABLES)
def test_a_batch_ends_before_the_server_delivers_it_again(durable: DurableConsumer) -> None:
    policy = durable.get_batch_policy(DEPLOYMENT)
    assert min(policy) > 0
    assert STATEMENT_TIMEOUT < GRACEFUL_TIMEOUT < ACK_WAIT == durable.ack_wait <= durable.handling_seconds


def test_the_docs_list_every_durable() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("## Durables")[2].partition("\n## ")[0]
    assert [line for line in table.splitlines() if line.startswith("| `")] == [
        f"| `{name}` | `{each.stream}` | {', '.join(f'`{subject}`' for subject in each.filters) or 'all'} | "
        f"{each.description} |"
        for name, each in DURABLES.items()
    ], "list the durables in the order of DURABLES"
