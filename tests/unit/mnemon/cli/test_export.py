"""Contents and places of exports."""

import os
import subprocess
import sys

EXPORT = """
import sys
from pathlib import Path
import typer
from mnemon.cli.memory.export import _open_output

try:
    with _open_output(Path("-")) as put:
        for _ in range(int(sys.argv[1])):
            put("a line")
except typer.Exit as ended:
    sys.exit(ended.exit_code)
"""


def test_closed_pipe_ends_the_export_silently() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as output:
        for lines in "1", "100000":
            command = [sys.executable, "-c", EXPORT, lines]
            ended = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, check=False)
            assert (ended.returncode, ended.stderr) == (1, b"")
