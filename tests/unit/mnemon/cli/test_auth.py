"""Changes of a file of logins, after which the operator has to reload the NATS server."""

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


def test_line_for_the_bot_has_the_letters_of_the_tenant(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["auth", "tenant", "Контора", "--file", str(tmp_path / "mnemon.conf")])
    assert 'tenant="Контора")' in shown.stdout


def test_command_that_creates_a_login_quotes_the_tenant_for_a_shell(tmp_path: Path) -> None:
    file = ("--file", str(tmp_path / "mnemon.conf"))
    refused = CliRunner().invoke(app, ["auth", "limit", "Tom & Co", "--payload", "4096", *file])
    assert refused.exit_code == 1
    assert "mnemon auth tenant 'Tom & Co' --data DIR" in refused.stderr
