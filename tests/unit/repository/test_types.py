"""Types of the client, as mypy infers them in a program that imports `mnemon`."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from mnemon import MemoryClient

async def ask(memory: MemoryClient) -> int:
    return (await memory.context("u42")).text
"""

MISSPELT = "from mnemon import MemoryClinet"


def check_types(program: str, folder: Path) -> list[str]:
    """Return the errors of mypy in a strict check of a program."""
    (folder / "bot.py").write_text(program)
    options = ["--strict", "--config-file=", "--cache-dir", str(folder / "cache")]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "bot.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return [line for line in checked.stdout.splitlines() if ": error: " in line]


@pytest.mark.long
def test_client_has_types_for_programs_that_import_it(tmp_path: Path) -> None:
    error, *others = check_types(PROGRAM, tmp_path)
    assert "Incompatible return value type" in error
    assert others == []


@pytest.mark.long
def test_name_that_the_client_lacks_is_an_error(tmp_path: Path) -> None:
    error, *others = check_types(MISSPELT, tmp_path)
    assert 'Module "mnemon" has no attribute "MemoryClinet"' in error
    assert others == []
