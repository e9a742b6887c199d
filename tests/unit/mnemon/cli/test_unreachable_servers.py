"""Commands whose servers do not answer."""

import errno
from pathlib import Path

import pytest
import typer

from mnemon.cli.imports.import_command import _rewrite_files
from mnemon.cli.terminal.exit_code import refuse_file
from mnemon_infra.broker.connection import BrokerUnreachable
from mnemon_infra.config import Deployment


async def test_unreachable_server_is_no_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(BrokerUnreachable):
        await _rewrite_files(Deployment(nats_url="nats://127.0.0.1:1"), {tmp_path / "42.md": ("acme", "42")})


def test_full_disk_is_an_error_of_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        refuse_file("42.md", "written", OSError(errno.ENOSPC, "No space left on device"), "Make room")
    assert ended.value.exit_code == 2
    assert capsys.readouterr().err == (
        "mnemon: 42.md cannot be written: No space left on device\n  Make room\n"
    )
