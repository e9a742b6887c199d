"""The installed wheel, beside a project whose packages have the names of mnemon's folders."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = "contracts", "infra", "consumers", "producers", "bench", "migrations", "tests"

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("uv") is None, reason="uv builds the wheel; pip install uv"),
]


def run(*command: str | Path, folder: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run("uv", "build", "--wheel", "--python", sys.executable, "--out-dir", folder, ROOT, folder=folder)
    return next(folder.glob("*.whl"))


@pytest.fixture
def project() -> Iterator[Path]:
    """Yield a project whose packages have the names of mnemon's folders; its path is short for a socket."""
    with TemporaryDirectory() as name:
        for package in FOLDERS:
            (Path(name) / package).mkdir()
            (Path(name) / package / "__init__.py").write_text('OWNER = "the project"\n')
        yield Path(name)


def install(wheel: Path, extras: str, project: Path) -> Path:
    run("uv", "venv", "--python", sys.executable, ".venv", folder=project)
    python = project / ".venv" / "bin" / "python"
    run("uv", "pip", "install", "--python", python, f"{wheel}{extras}", folder=project)
    return python


def test_wheel_adds_only_names_that_begin_with_mnemon(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name.split("/")[0] for name in archive.namelist()}
    assert {name for name in names if not name.startswith("mnemon")} == set()


def test_wheel_contains_the_data_of_benches(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    conversations = ("friends", "relatives", "assistant")
    data = (
        *(f"russian_conversations/{name}.json" for name in conversations),
        "fact_questions.json",
        "pairs.jsonl",
        "secrets.jsonl",
    )
    assert {f"mnemon_bench/quality/datasets/{name}" for name in data} <= names
    assert len(names) > 1


def test_bot_imports_the_client_beside_packages_of_the_same_names(wheel: Path, project: Path) -> None:
    python = install(wheel, "", project)
    script = "\n".join(
        (
            *(f"import {name}; assert {name}.OWNER == 'the project'" for name in FOLDERS),
            "from mnemon import MemoryClient, MessageV1",
            "print(MemoryClient.__name__, MessageV1(role='user', content='Hello').content)",
        )
    )
    assert run(python, "-c", script, folder=project) == "MemoryClient Hello\n"


def test_demo_runs_beside_packages_of_the_same_names(wheel: Path, project: Path) -> None:
    python = install(wheel, "[all]", project)
    assert '"facts"' in run(python, "-m", "mnemon", "demo", "--json", folder=project)
