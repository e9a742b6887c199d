"""Commands whose servers do not answer."""

import errno
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import nats.errors
import pytest
import typer

from mnemon.cli.imports import markdown_files
from mnemon.cli.terminal.exit_code import refuse_file
from mnemon_infra.broker.connection import BrokerUnreachable
from mnemon_infra.config import Deployment

RETRIED = """
import sys
from mnemon.__main__ import main
from mnemon_infra.broker import connection

async def retry_connection(deployment, *, name):
    await connection.report_error(TimeoutError())
    raise connection.BrokerUnreachable("no NATS server answers")

connection.connect_deployment = retry_connection
sys.exit(main())
"""
"""A program that runs `mnemon` with a connection that logs an error and then fails."""


@pytest.mark.parametrize("error", [BrokerUnreachable("no NATS server answers"), nats.errors.TimeoutError()])
async def test_unreachable_server_is_not_reported_as_a_file_error(
    monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    @asynccontextmanager
    async def fail_connection(*_: object) -> AsyncIterator[tuple[object, object]]:
        raise error
        yield

    monkeypatch.setattr(markdown_files, "open_connections", fail_connection)
    with pytest.raises(type(error)):
        await markdown_files.rewrite_imported_files(Deployment(), {Path("42.md"): ("acme", "42")})


def test_full_disk_is_an_error_of_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        refuse_file("42.md", "written", OSError(errno.ENOSPC, "No space left on device"), "Make room")
    assert ended.value.exit_code == 2
    assert capsys.readouterr().err == (
        "mnemon: 42.md cannot be written: No space left on device\n  Make room\n"
    )


@pytest.mark.long
@pytest.mark.parametrize("command", ["dead list", "provision", "import jsonl lines.jsonl"])
def test_log_lines_of_a_connection_are_not_on_standard_output(tmp_path: Path, command: str) -> None:
    (tmp_path / "lines.jsonl").touch()
    ended = subprocess.run(
        [sys.executable, "-c", RETRIED, *command.split(), "--json"],
        env=os.environ | {"MNEMON_NATS_URL": "nats://127.0.0.1:1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (3, "")
    assert "NATS connection error reported" in ended.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    "command", ["read --tenant acme --user u42", "import locomo locomo.json --tenant acme"]
)
def test_refused_connection_has_one_next_step_with_the_variable(tmp_path: Path, command: str) -> None:
    (tmp_path / "locomo.json").write_text("[]")
    ended = subprocess.run(
        [sys.executable, "-m", "mnemon", *command.split()],
        env=os.environ | {"MNEMON_NATS_URL": "nats://127.0.0.1:1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 3
    problem, next_step = ended.stderr.splitlines()
    assert problem.startswith("mnemon: no connection to NATS at nats://127.0.0.1:1: ")
    assert ". Check" not in problem
    assert next_step == "  Check that the server runs, and that MNEMON_NATS_URL has its address and login"


def test_unusable_login_file_has_one_next_step(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "mnemon", "read", "--tenant", "acme", "--user", "u42"],
        env=os.environ
        | {"MNEMON_NATS_URL": "nats://127.0.0.1:1", "MNEMON_NATS_CREDENTIALS": str(tmp_path / "absent")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 3
    assert ended.stderr == (
        f"mnemon: MNEMON_NATS_CREDENTIALS: {tmp_path / 'absent'} cannot be read: No such file or directory. "
        "Check the path and its permissions\n"
    )
