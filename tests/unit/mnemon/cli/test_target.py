"""Errors for a command whose servers are not configured."""

from pathlib import Path

import pytest
import typer

from mnemon.cli.options.target import DEFAULT_DATA, require_deployment


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MNEMON_NATS_URL", "DATABASE_URL", "PG_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def said(capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(typer.Exit) as ended:
        require_deployment(None, "broker", "database")
    assert ended.value.exit_code == 3
    return capsys.readouterr().err


def test_variables_and_the_option_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    told = said(capsys)
    assert all(name in told for name in ("MNEMON_NATS_URL", "DATABASE_URL", "PG_HOST", "--data DIR"))


def test_a_stack_that_runs_in_the_usual_folder_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    DEFAULT_DATA.mkdir()
    (DEFAULT_DATA / "endpoints.json").touch()
    assert "--data mnemon-data" in said(capsys)
