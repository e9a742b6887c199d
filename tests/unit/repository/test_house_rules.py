"""The rules of the repository, as tests."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from typer.main import get_command

from mnemon.cli.app import app
from mnemon_contracts.settings.document import DEFAULTS
from mnemon_infra.config import Deployment

ROOT = Path(__file__).parents[3]

FORBIDDEN_NAMES = {"util", "utils", "helper", "helpers", "common", "manager", "managers"}

# The names are joined here from their parts, so that this file does not match the pattern.
REGISTRIES = re.compile(
    "|".join(
        re.escape(".".join(parts))
        for parts in (
            ("pypi", "org"),
            ("pythonhosted", "org"),
            ("registry", "npmjs", "org"),
            ("docker", "io"),
            ("ghcr", "io"),
            ("quay", "io"),
        )
    )
)
CLASS_NAMES = re.compile(r"^ *class _*(\w+)[(:\[]", re.MULTILINE)
"""Pattern of a class definition; the group is the name without leading underscores."""

MACHINE_PATHS = re.compile(rf"(?<![\w.}}])/(?:{'|'.join(('home', 'root', 'work', 'Users'))})/")

RECIPES = {
    "up",
    "demo",
    "test",
    "test-all",
    "fix",
    "lint",
    "types",
    "imports",
    "contracts",
    "migrate",
    "bench",
    "audit",
    "check",
}


def repository_files() -> list[Path]:
    """Return the files that git tracks, and the files that `git add` would add."""
    # git refuses the checkout of another user, which a container may mount, unless it is declared safe.
    git = ("git", "-c", f"safe.directory={ROOT}")
    listed = subprocess.run(
        [*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


@pytest.fixture(scope="module")
def files() -> list[Path]:
    found = repository_files()
    assert ROOT / "pyproject.toml" in found
    return found


def lines_that_match(pattern: re.Pattern[str], files: list[Path]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_file_has_a_vague_name(files: list[Path]) -> None:
    parts = {Path(part).stem.lower() for path in files for part in path.relative_to(ROOT).parts}
    assert parts & FORBIDDEN_NAMES == set()


def test_no_class_name_exists_twice(files: list[Path]) -> None:
    names = Counter(
        name
        for path in files
        if path.suffix == ".py"
        for name in CLASS_NAMES.findall(path.read_text(encoding="utf-8"))
    )
    assert "Address" in names
    assert [name for name, count in names.items() if count > 1] == []


def test_no_registry_is_named(files: list[Path]) -> None:
    assert lines_that_match(REGISTRIES, files) == []


def test_no_path_of_one_machine(files: list[Path]) -> None:
    assert lines_that_match(MACHINE_PATHS, files) == []


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (REGISTRIES, "index = https://" + "pypi." + "org/simple"),
        (MACHINE_PATHS, 'open("/' + "home/me/data" + '")'),
    ],
)
def test_the_patterns_find_what_they_are_for(pattern: re.Pattern[str], line: str) -> None:
    assert pattern.search(line)


def test_imports_run_one_way() -> None:
    # The program is beside the interpreter; the folder of the virtual environment need not be on PATH.
    program = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_recipe_exists() -> None:
    recipes = re.findall(r"^([a-z-]+)(?: [^:]*)?:$", (ROOT / "justfile").read_text(), re.MULTILINE)
    assert set(recipes) >= RECIPES


def test_check_recipe_runs_ci() -> None:
    assert "\ncheck:\n    .ci/run --without-install\n" in (ROOT / "justfile").read_text()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def documented(name: str, default: object) -> str:
    """Return the beginning of a variable's table row in docs/operating.md."""
    if default is None:
        return f"| `{name}` | |"
    return f"| `{name}` | `{default if isinstance(default, str) else json.dumps(default)}` |"


def test_every_variable_is_documented_with_its_default() -> None:
    page = (ROOT / "docs" / "operating.md").read_text()
    rows = [
        documented(f"MNEMON_{name.upper()}", field.default)
        for name, field in Deployment.model_fields.items()
        if field.validation_alias is None
    ]
    assert [row for row in rows if f"\n{row}" not in page] == []


def test_every_setting_is_documented_with_its_default() -> None:
    page = (ROOT / "docs" / "settings.md").read_text()
    rows = [f"| `{name}` | `{json.dumps(default)}` |" for name, default in DEFAULTS.items()]
    assert [row for row in rows if f"\n{row}" not in page] == []


def test_every_command_is_documented() -> None:
    page = (ROOT / "docs" / "operating.md").read_text()
    commands: dict[str, object] = getattr(get_command(app), "commands", {})
    assert "up" in commands
    assert [name for name in commands if f"\n| `mnemon {name}" not in page] == []
