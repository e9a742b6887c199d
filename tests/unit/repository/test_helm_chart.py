"""The Helm chart, as far as it can be checked without helm."""

import json
import re
import tomllib
from typing import Any

import jsonschema
import pytest
import yaml

from mnemon_contracts import login
from mnemon_infra.config import Deployment
from mnemon_infra.durables import CONSUMERS, DURABLES, GRACEFUL_TIMEOUT
from tests.support.repository.helm_chart import CHART, ROOT, VALUE_FILES

METADATA: dict[str, Any] = yaml.safe_load((CHART / "Chart.yaml").read_text())
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
VARIABLES = {
    str(alias)
    for name, field in Deployment.model_fields.items()
    for alias in getattr(field.validation_alias, "choices", None) or [f"MNEMON_{name.upper()}"]
} | {login.CREDENTIALS, login.NKEY_SEED, login.AUTHORITY, login.CERTIFICATE, login.CERTIFICATE_KEY}


def merge(values: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return the values with other values merged over them, by the rules of helm."""
    groups = [name for name in values.keys() & other.keys() if isinstance(values[name], dict)]
    return values | other | {name: merge(values[name], other[name]) for name in groups}


def test_version_is_that_of_the_project() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert METADATA["version"] == METADATA["appVersion"] == version


def test_every_consumer_has_a_deployment() -> None:
    assert tuple(VALUES["consumers"]) == CONSUMERS, "list the consumers in values.yaml in the same order"
    assert all(each["enabled"] for each in VALUES["consumers"].values())


def test_every_consumer_with_a_lag_scales_by_it() -> None:
    scaling = {name: each.get("autoscaling", {}) for name, each in VALUES["consumers"].items()}
    by_lag = {name for name, each in scaling.items() if "pendingPerReplica" in each}
    parallel = {name for name, durable in DURABLES.items() if durable.max_ack_pending != 1}
    assert by_lag == parallel & set(CONSUMERS), "give each a pendingPerReplica in values.yaml"


def test_templates_set_only_known_variables() -> None:
    files = [*sorted(CHART.rglob("*.yaml")), *sorted(CHART.rglob("*.tpl")), *VALUE_FILES.values()]
    named = {
        name for file in files for name in re.findall(r"\b(?:MNEMON|PG|DATABASE)_[A-Z_]+\b", file.read_text())
    }
    assert {"MNEMON_NATS_URL", "PG_HOST", "DATABASE_URL"} <= named
    assert named <= VARIABLES


def test_schema_is_valid_and_knows_every_value() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    jsonschema.Draft7Validator(SCHEMA).validate(VALUES)
    assert SCHEMA["properties"].keys() - VALUES.keys() == {"global"}


def test_there_are_values_for_three_installations() -> None:
    assert VALUE_FILES.keys() == {"small", "ha", "external"}
    assert [file for file in VALUE_FILES.values() if file.is_relative_to(CHART)] == []


@pytest.mark.parametrize("name", sorted(VALUE_FILES))
def test_values_of_each_installation_fit_the_schema(name: str) -> None:
    given = yaml.safe_load(VALUE_FILES[name].read_text())
    jsonschema.Draft7Validator(SCHEMA).validate(merge(VALUES, given))


@pytest.mark.parametrize(
    "given",
    [
        {"consumers": {"perist": {}}},
        {"consumers": {"persist": {"autoscaling": {"min": 0}}}},
        {"consumers": {"maintain": {"autoscaling": {"enabled": True}}}},
        {"nats": {"replicas": 2}},
        {"nats": {"url": "nats://user:password@nats:4222"}},
        {"qdrant": {"url": ""}},
        {"setup": {"provision": "nack"}},
    ],
    ids=str,
)
def test_schema_refuses_wrong_values(given: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(SCHEMA).validate(merge(VALUES, given))


def test_pods_have_time_to_finish_a_batch() -> None:
    assert VALUES["terminationGracePeriodSeconds"] > GRACEFUL_TIMEOUT
    assert SCHEMA["properties"]["terminationGracePeriodSeconds"]["minimum"] > GRACEFUL_TIMEOUT


def test_alerts_are_those_of_the_project() -> None:
    assert (CHART / "files" / "alerts.yml").samefile(ROOT / "infra" / "monitoring" / "alerts.yml")
