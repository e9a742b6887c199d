"""Files and standard output to which `mnemon export` writes, and their errors."""

import subprocess
import sys
from pathlib import Path

import pytest
import typer

from mnemon.cli.memory.export import _open_output

EXPORT = """
import sys
from pathlib import Path
import typer
from mnemon.cli.memory.export import _open_output

try:
    with _open_output(Path("-")) as put:
        put("a line")
except typer.Exit as ended:
    sys.exit(ended.exit_code)
"""


SLOW_EXPORT = """
import sys
from pathlib import Path
from mnemon.cli.memory.export import _open_output

with _open_output(Path(sys.argv[1])) as put:
    put("slow")
    print("begun", flush=True)
    sys.stdin.read()
"""


def test_two_exports_at_once_do_not_mix_their_lines(tmp_path: Path) -> None:
    output = tmp_path / "u42.jsonl"
    command = [sys.executable, "-c", SLOW_EXPORT, str(output)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as slow:
        assert slow.stdout
        assert slow.stdout.readline() == b"begun\n"
        with _open_output(output) as put:
            put("fast, and longer")
        assert output.read_text() == "fast, and longer\n"
        slow.communicate()
    assert slow.returncode == 0
    assert output.read_text() == "slow\n"
    assert list(tmp_path.iterdir()) == [output]


def test_closed_standard_output_ends_the_export_with_2() -> None:
    command = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-c", EXPORT]
    ended = subprocess.run(command, stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 2
    assert ended.stderr == b"mnemon: standard output is closed\n  Open it, or choose a file: -o FILE\n"


def test_folder_in_place_of_a_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended, _open_output(tmp_path):
        pass
    assert ended.value.exit_code == 2
    assert capsys.readouterr().err == (
        f"mnemon: {tmp_path} is a folder, and the export writes one file\n"
        f"  Name the file: -o {tmp_path}/FILE. For a file per user: mnemon export markdown --follow -o "
        f"{tmp_path}, with the same --tenant or --all\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_absent_folder_of_the_file_is_named_without_a_temporary_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "absent" / "u42.jsonl"
    with pytest.raises(typer.Exit), _open_output(output):
        pass
    assert capsys.readouterr().err.startswith(f"mnemon: {output} cannot be written: No such file")


def test_file_in_place_of_the_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    output = tmp_path / "file" / "u42.jsonl"
    with pytest.raises(typer.Exit) as ended, _open_output(output):
        pass
    assert ended.value.exit_code == 2
    assert capsys.readouterr().err.startswith(f"mnemon: {output} cannot be written: Not a directory")
