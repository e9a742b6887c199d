"""The Helm chart: its files, and its objects as `helm` renders them."""

import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

ROOT: Final = Path(__file__).parents[3]
CHART: Final = ROOT / "infra" / "helm" / "mnemon"
VALUE_FILES: Final = {file.stem: file for file in sorted((ROOT / "infra" / "helm" / "values").glob("*.yaml"))}
NAMESPACE: Final = "memory"

Manifest = dict[str, Any]
"""A Kubernetes object, as the parsed YAML of its manifest."""


def require_helm() -> str:
    """Return the path of helm; skip the test if helm is not installed."""
    program = shutil.which("helm")
    if program is None:
        pytest.skip("helm is not installed")
    return program


def run_helm(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """Run helm for Kubernetes 1.31."""
    return subprocess.run(
        [require_helm(), *map(str, arguments), "--kube-version", "1.31"],
        capture_output=True,
        text=True,
        check=False,
    )


@cache
def render_chart(*arguments: str) -> tuple[Manifest, ...]:
    """Return the objects that `helm template` renders; an argument may be the name of a file of values."""
    values = [part for each in arguments if each in VALUE_FILES for part in ("--values", VALUE_FILES[each])]
    others = [each for each in arguments if each not in VALUE_FILES]
    rendered = run_helm("template", "bots", CHART, "--namespace", NAMESPACE, *values, *others)
    assert rendered.returncode == 0, rendered.stderr
    return tuple(each for each in yaml.safe_load_all(rendered.stdout) if each)


def list_kind(kind: str, manifests: tuple[Manifest, ...]) -> list[Manifest]:
    """Return the objects of a kind, such as `Deployment`."""
    return [each for each in manifests if each["kind"] == kind]


def find_pod_templates(manifests: tuple[Manifest, ...]) -> Iterator[tuple[str, Manifest]]:
    """Yield name and pod template of every object that makes pods."""
    for each in manifests:
        spec = each["spec"]
        template = spec.get("template") or spec.get("jobTemplate", {}).get("spec", {}).get("template")
        if template:
            yield each["metadata"]["name"], template


def list_containers(template: Manifest) -> list[Manifest]:
    """Return all containers of a pod template, in the order in which they start."""
    return [*template["spec"].get("initContainers", ()), *template["spec"]["containers"]]
