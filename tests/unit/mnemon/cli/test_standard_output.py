"""Exit codes of commands whose standard output is full or closed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PRINTING = """
import sys
from mnemon.cli.terminal.standard_output import end_on_output_error

with end_on_output_error():
    try:
        for _ in range(int(sys.argv[1])):
            print("a line")
    except OSError:
        sys.exit("the command takes the error for one of its own files")
"""
MNEMON = ["-m", "mnemon"]
LABELLED_SENTENCES = "".join(
    f'{{"text": "{text}", "label": "{label}", "language": "en"}}\n'
    for text, label in (("My password is Sunflower77", "secret"), ("I grow sunflowers", "harmless"))
)

short_and_long_output = pytest.mark.parametrize(
    "command",
    [
        pytest.param(["-c", PRINTING, "1"], id="a line"),
        pytest.param(["-c", PRINTING, "100000"], id="many lines"),
        pytest.param([*MNEMON, "tools"], id="text"),
        pytest.param(
            [*MNEMON, "bench", "secrets", "--data", "labelled.jsonl"], id="table of an asynchronous command"
        ),
        pytest.param([*MNEMON, "--help"], id="help"),
        pytest.param([*MNEMON, "--version"], id="version"),
    ],
)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("labelled.jsonl").write_text(LABELLED_SENTENCES, encoding="utf-8")


@short_and_long_output
def test_closed_pipe_ends_a_command_silently(command: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as output:
        ended = subprocess.run(
            [sys.executable, *command], stdout=output, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (ended.returncode, ended.stderr.replace("checking 2 sentences\n", "")) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
@short_and_long_output
def test_full_disk_behind_standard_output_ends_a_command_with_2(command: list[str]) -> None:
    with Path("/dev/full").open("wb") as output:
        ended = subprocess.run(
            [sys.executable, *command], stdout=output, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ended.returncode == 2
    assert ended.stderr.replace("checking 2 sentences\n", "") == (
        "mnemon: standard output cannot be written: No space left on device\n"
        "  Choose another place for the output\n"
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_full_disk_behind_both_outputs_ends_a_command_with_2() -> None:
    with Path("/dev/full").open("wb") as output:
        ended = subprocess.run(
            [sys.executable, *MNEMON, "tools"], stdout=output, stderr=subprocess.STDOUT, check=False
        )
    assert ended.returncode == 2


def test_output_that_can_be_written_arrives_with_the_exit_code() -> None:
    ending = "print('a line'); sys.exit(3)"
    command = [sys.executable, "-c", f"{PRINTING}    {ending}\n", "2"]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stdout, shown.stderr) == (3, "a line\na line\na line\n", "")
