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


@pytest.mark.long
def test_client_has_types_for_programs_that_import_it(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(PROGRAM)
    options = ["--strict", "--config-file=", "--cache-dir", str(tmp_path / "cache")]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "bot.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    error, *others = [line for line in checked.stdout.splitlines() if ": error: " in line]
    assert "Incompatible return value type" in error
    assert others == []
