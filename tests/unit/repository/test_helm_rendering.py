"""The objects that helm renders: valid for Kubernetes, and consistent with mnemon and with each other."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from mnemon_infra.durables import CONSUMERS, DURABLES
from mnemon_infra.telemetry import endpoint, metrics
from tests.support.repository.command_lines import parse
from tests.support.repository.helm_chart import (
    CHART,
    NAMESPACE,
    VALUE_FILES,
    Manifest,
    find_pod_templates,
    list_containers,
    list_kind,
    render_chart,
    require_helm,
    run_helm,
)

KUBERNETES = "1.27", kubernetes_validate.latest_version()
"""The oldest version that the chart supports, and the newest version of which the validator has schemas."""

CUSTOM_KINDS = {
    "ScaledObject": "keda.sh/v1alpha1",
    "ServiceMonitor": "monitoring.coreos.com/v1",
    "PrometheusRule": "monitoring.coreos.com/v1",
}
"""Kinds that other projects add to Kubernetes, with their API versions; separate tests check their fields."""

INSTALLATIONS = pytest.mark.parametrize("installation", ["default", *VALUE_FILES])


@pytest.fixture(autouse=True)
def _helm() -> None:
    require_helm()


def objects(installation: str) -> tuple[Manifest, ...]:
    return render_chart(*(() if installation == "default" else (installation,)))


def selects(selector: dict[str, str], labels: dict[str, str]) -> bool:
    return selector.items() <= labels.items()


@pytest.mark.parametrize("name", sorted(VALUE_FILES))
def test_lint_finds_nothing(name: str) -> None:
    linted = run_helm("lint", "--strict", CHART, "--values", VALUE_FILES[name])
    assert linted.returncode == 0, linted.stdout
    assert not re.search(r"\[(WARNING|ERROR)\]", linted.stdout), linted.stdout


@INSTALLATIONS
@pytest.mark.parametrize("version", KUBERNETES)
def test_objects_are_valid(installation: str, version: str) -> None:
    for each in objects(installation):
        if CUSTOM_KINDS.get(each["kind"]) != each["apiVersion"]:
            kubernetes_validate.validate(each, version, strict=True)


@INSTALLATIONS
def test_names_are_unique_and_in_the_namespace(installation: str) -> None:
    found = [(each["kind"], each["metadata"]["name"]) for each in objects(installation)]
    assert len(set(found)) == len(found)
    assert {each["metadata"]["namespace"] for each in objects(installation)} == {NAMESPACE}


@INSTALLATIONS
def test_each_consumer_is_a_deployment(installation: str) -> None:
    commands = {
        template["metadata"]["labels"]["app.kubernetes.io/component"]: list_containers(template)[0]["args"]
        for _, template in find_pod_templates(objects(installation))
        if template["metadata"]["labels"].get("mnemon/role") == "consumer"
    }
    assert commands == {name: ["run", name] for name in CONSUMERS}


@INSTALLATIONS
def test_each_command_is_one_of_mnemon(installation: str) -> None:
    for _, template in find_pod_templates(objects(installation)):
        for container in list_containers(template):
            assert "command" not in container
            parse(list(container["args"]))


@INSTALLATIONS
def test_pods_run_without_privileges(installation: str) -> None:
    for name, template in find_pod_templates(objects(installation)):
        spec = template["spec"]
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["enableServiceLinks"] is False, name
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["runAsUser"] == 10001, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        for container in list_containers(template):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, name
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}, name
            assert "memory" in container["resources"]["limits"], name


@INSTALLATIONS
def test_mounts_have_volumes_and_variables_have_one_value(installation: str) -> None:
    for name, template in find_pod_templates(objects(installation)):
        volumes = [volume["name"] for volume in template["spec"]["volumes"]]
        assert len(set(volumes)) == len(volumes), name
        for container in list_containers(template):
            mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
            assert mounted.keys() <= set(volumes), name
            variables = {each["name"]: each.get("value", "") for each in container["env"]}
            assert len(variables) == len(container["env"]), name
            files = [value for value in variables.values() if value.startswith("/etc/mnemon/")]
            assert [file for file in files if str(Path(file).parent) not in mounted.values()] == [], name


@INSTALLATIONS
def test_selectors_select_the_pods_that_they_are_for(installation: str) -> None:
    manifests = objects(installation)
    pods = {name: template["metadata"]["labels"] for name, template in find_pod_templates(manifests)}
    for each in list_kind("Deployment", manifests) + list_kind("PodDisruptionBudget", manifests):
        selector = each["spec"]["selector"]["matchLabels"]
        name = each["metadata"]["name"]
        assert [pod for pod, labels in pods.items() if selects(selector, labels)] == [name]
    reached = {
        service["metadata"]["name"]: {
            pod for pod, labels in pods.items() if selects(service["spec"]["selector"], labels)
        }
        for service in list_kind("Service", manifests)
    }
    assert reached == {
        "bots-mnemon-metrics": {f"bots-mnemon-{name}" for name in CONSUMERS},
        "bots-mnemon-admin": {"bots-mnemon-admin"},
        "bots-mnemon-gateway": {"bots-mnemon-gateway"},
    }


@INSTALLATIONS
def test_probes_ask_paths_that_exist_and_wait_for_the_answer(installation: str) -> None:
    source = Path(endpoint.__file__).read_text()
    for _, template in find_pod_templates(objects(installation)):
        for container in list_containers(template):
            ports = {port["name"] for port in container.get("ports", ())}
            probes = {name: container[name] for name in container if name.endswith("Probe")}
            assert bool(probes) == bool(ports)
            for probe in probes.values():
                assert probe["httpGet"]["port"] in ports
            if "metrics" in ports:
                asked = {name: probe["httpGet"]["path"] for name, probe in probes.items()}
                assert asked["livenessProbe"] == asked["startupProbe"] != asked["readinessProbe"]
                assert [path for path in asked.values() if f'case "{path}"' not in source] == []
                waits = [probe["timeoutSeconds"] for probe in probes.values()]
                assert min(waits) > endpoint.PROBE_TIMEOUT


@INSTALLATIONS
def test_setup_needs_no_other_object_of_the_chart(installation: str) -> None:
    manifests = objects(installation)
    (job,) = list_kind("Job", manifests)
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert "serviceAccountName" not in job["spec"]["template"]["spec"]
    assert not [each for each in manifests if each["kind"] in ("Secret", "ConfigMap", "ServiceAccount")]


@pytest.mark.parametrize(
    ("mode", "migrate", "commands"),
    [
        ("apply", "true", [["migrate"], ["provision"]]),
        ("check", "true", [["migrate"], ["provision", "--check"]]),
        ("check", "false", [["provision", "--check"]]),
        ("skip", "true", [["migrate"]]),
        ("skip", "false", []),
    ],
)
def test_setup_provisions_or_compares(mode: str, migrate: str, commands: list[list[str]]) -> None:
    jobs = list_kind("Job", render_chart(f"--set=setup.provision={mode},setup.migrate={migrate}"))
    found = [list_containers(each["spec"]["template"]) for each in jobs]
    assert [container["args"] for containers in found for container in containers] == commands


@pytest.mark.parametrize("installation", ["ha", "external"])
def test_only_setup_and_admin_page_log_in_as_operator(installation: str) -> None:
    logins = {
        f"{name} {container['name']}": find_login(container, template["spec"]["volumes"])
        for name, template in find_pod_templates(objects(installation))
        for container in list_containers(template)
    }
    operators = {name for name, key in logins.items() if key.startswith("operator")}
    assert operators == {"bots-mnemon-setup provision", "bots-mnemon-admin admin"}
    others = {name: key for name, key in logins.items() if name not in operators}
    assert others.pop("bots-mnemon-gateway gateway").startswith("gateway")
    assert set(others.values()) <= {"worker", "worker.nk"}


def find_login(container: Manifest, volumes: list[Manifest]) -> str:
    """Return the key of the Secret with a container's login at NATS: its address, or a mounted file."""
    variables = {each["name"]: each for each in container["env"]}
    if reference := variables["MNEMON_NATS_URL"].get("valueFrom"):
        return str(reference["secretKeyRef"]["key"])
    (mount,) = [each for each in container["volumeMounts"] if each["mountPath"] == "/etc/mnemon/login"]
    (volume,) = [each for each in volumes if each["name"] == mount["name"]]
    (item,) = volume["secret"]["items"]
    assert variables["MNEMON_NATS_NKEY_SEED"]["value"] == f"/etc/mnemon/login/{item['path']}"
    return str(item["key"])


def test_erasures_are_registered_by_every_process() -> None:
    for name, template in find_pod_templates(objects("ha")):
        for container in list_containers(template):
            variables = {each["name"]: each.get("value") for each in container["env"]}
            assert variables["MNEMON_ERASURE_REGISTER"] == "s3://register/mnemon", name


def test_scaled_objects_follow_the_lag() -> None:
    manifests = objects("ha")
    deployments = {each["metadata"]["name"]: each["spec"] for each in list_kind("Deployment", manifests)}
    scaled = {each["spec"]["scaleTargetRef"]["name"]: each for each in list_kind("ScaledObject", manifests)}
    assert scaled.keys() == {f"bots-mnemon-{name}" for name in CONSUMERS} - {"bots-mnemon-maintain"}
    # With `replicas` in the manifest, an upgrade would reset the number that KEDA has set.
    assert {name for name, spec in deployments.items() if "replicas" not in spec} == scaled.keys()
    for each in scaled.values():
        spec = each["spec"]
        assert each["apiVersion"] == CUSTOM_KINDS["ScaledObject"]
        assert 1 <= spec["minReplicaCount"] <= spec["maxReplicaCount"]
        assert spec["fallback"]["behavior"] == "currentReplicas"
        (trigger,) = spec["triggers"]
        assert (trigger["type"], trigger["metricType"]) == ("prometheus", "AverageValue")
        assert all(isinstance(value, str) for value in trigger["metadata"].values()), "KEDA takes texts only"
        assert trigger["metadata"]["ignoreNullValues"] == "false"
        assert float(trigger["metadata"]["threshold"]) > 0


def test_monitoring_objects_name_what_the_service_has() -> None:
    manifests = objects("ha")
    (monitor,), (rule,) = list_kind("ServiceMonitor", manifests), list_kind("PrometheusRule", manifests)
    assert monitor["apiVersion"] == rule["apiVersion"] == CUSTOM_KINDS["ServiceMonitor"]
    (service,) = [
        each
        for each in list_kind("Service", manifests)
        if selects(monitor["spec"]["selector"]["matchLabels"], each["metadata"]["labels"])
    ]
    ports = {each["name"] for each in service["spec"]["ports"]}
    assert {each["port"] for each in monitor["spec"]["endpoints"]} <= ports
    assert service["metadata"]["labels"][monitor["spec"]["jobLabel"]] == "mnemon", (
        "the alerts expect this job"
    )
    assert service["spec"]["publishNotReadyAddresses"] is True
    alerts = yaml.safe_load((CHART / "files" / "alerts.yml").read_text())
    assert rule["spec"] == alerts


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--set=autoscaling.enabled=true"], "autoscaling.prometheus.address"),
        (["--set=backup.enabled=true"], "backup.destination"),
        (["--set=consumers.persist.replica=2"], "replica"),
    ],
)
def test_missing_and_unknown_values_are_named(arguments: list[str], named: str) -> None:
    rendered = run_helm("template", "bots", CHART, *arguments)
    assert rendered.returncode != 0
    assert named in rendered.stderr


@pytest.mark.parametrize("name", [name for name in CONSUMERS if name != "maintain"])
def test_lag_is_counted_once_and_a_missing_consumer_has_none(name: str, tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    (scaled,) = [
        each
        for each in list_kind("ScaledObject", objects("ha"))
        if each["spec"]["scaleTargetRef"]["name"] == f"bots-mnemon-{name}"
    ]
    query = scaled["spec"]["triggers"][0]["metadata"]["query"]
    here = f'namespace="{NAMESPACE}",service="bots-mnemon-metrics"'
    if name == "retrieve":
        assert metrics.REQUESTS.name in query
        own = [f'mnemon_requests_total{{{here},pod="{pod}",verb="context"}}' for pod in "ab"]
        series, value = [(each, "0+60x10") for each in own], 2.0
        foreign = 'mnemon_requests_total{namespace="other",service="bots-mnemon-metrics"}', "0+600x10"
    else:
        assert metrics.PENDING.name in query
        assert name in DURABLES
        own = [f'mnemon_consumer_pending{{{here},pod="{pod}",consumer="{name}"}}' for pod in "abc"]
        series, value = [(each, "500x10") for each in own], 500.0
        foreign = 'mnemon_consumer_pending{namespace="other",consumer="' + name + '"}', "90000x10"
    tests = [
        case(query, [*series, foreign], [{"labels": "{}", "value": value}]),
        case(query, [foreign], []),
    ]
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"evaluation_interval": "1m", "tests": tests}))
    tested = subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, check=False)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def case(query: str, series: list[tuple[str, str]], samples: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a test case of promtool: the samples that a query must find in the series after five minutes."""
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series],
        "promql_expr_test": [{"expr": query, "eval_time": "5m", "exp_samples": samples}],
    }
