"""Changes of a file of logins, after which the operator has to reload the NATS server."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mnemon.cli.app import app


@pytest.mark.parametrize(
    "change",
    [("tenant", "acme"), ("worker",), ("limit", "acme", "--payload", "4096"), ("revoke", "acme")],
)
def test_each_change_of_a_file_tells_to_reload_the_server(change: tuple[str, ...], tmp_path: Path) -> None:
    file = ("--file", str(tmp_path / "mnemon.conf"))
    assert CliRunner().invoke(app, ["auth", "tenant", "acme", *file]).exit_code == 0
    changed = CliRunner().invoke(app, ["auth", *change, *file])
    assert changed.exit_code == 0
    assert changed.stdout.splitlines()[-1].endswith("run this twice: nats-server --signal reload")


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root can have a file of another account"
)
@pytest.mark.parametrize(
    ("groups", "mode", "kept"), [("4242", 0o640, 0o640), ("4243", 0o640, 0o600), ("4243", 0o644, 0o644)]
)
def test_file_whose_owner_cannot_be_kept_keeps_its_mode_and_is_reported(
    groups: str, mode: int, kept: int, tmp_path: Path
) -> None:
    path = tmp_path / "mnemon.conf"
    file = ("--file", str(path))
    assert CliRunner().invoke(app, ["auth", "tenant", "acme", *file]).exit_code == 0
    path.chmod(mode)
    os.chown(path, 4242, 4242)
    changed = subprocess.run(
        f"setpriv --bounding-set=-chown --groups={groups} {sys.executable} -m mnemon auth revoke acme".split()
        + list(file),
        capture_output=True,
        text=True,
        check=False,
    )
    assert changed.returncode == 0, changed.stderr
    assert stat.S_IMODE(path.stat().st_mode) == kept
    assert changed.stderr == (
        f"mnemon: {path} did not keep its owner or group: only root may give a file to another account\n"
        f"  So that nats-server can read it, run as root: chown 4242:4242 {path} && chmod {mode:o} {path}\n"
    )


def test_list_of_a_folder_without_logins_names_the_first_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UV", raising=False)
    shown = CliRunner().invoke(app, ["auth", "list", "--data", str(tmp_path)])
    assert shown.stdout == (
        f"no logins\n  Create the first login: mnemon auth tenant NAME --data {tmp_path}\n"
    )


def test_line_for_the_bot_has_the_letters_of_the_tenant(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["auth", "tenant", "Контора", "--file", str(tmp_path / "mnemon.conf")])
    assert 'tenant="Контора")' in shown.stdout


def test_command_that_creates_a_login_quotes_the_tenant_for_a_shell(tmp_path: Path) -> None:
    file = ("--file", str(tmp_path / "mnemon.conf"))
    refused = CliRunner().invoke(app, ["auth", "limit", "Tom & Co", "--payload", "4096", *file])
    assert refused.exit_code == 1
    assert "mnemon auth tenant 'Tom & Co' --data DIR" in refused.stderr
