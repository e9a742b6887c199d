"""Errors for a command whose servers are not configured, and next steps with the folder of a stack."""

from pathlib import Path

import pytest
import typer

from mnemon.cli.options.target import DEFAULT_DATA, complete_next_step, require_deployment


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


@pytest.mark.parametrize(
    "text",
    ["List them with `mnemon dead list`, then drop them.", "the stream is missing: run `mnemon provision`"],
)
def test_next_step_for_a_stack_names_its_folder(text: str) -> None:
    assert complete_next_step(text, None) == text
    completed = complete_next_step(text, Path("my memory"))
    assert completed == f"{text.removesuffix('.')}. For this stack, add: --data 'my memory'"


@pytest.mark.parametrize(
    "text",
    [
        "Free space on the disk; mnemon then continues automatically",
        "restore the newest backup (mnemon restore)",
        "Stop mnemon, then run: mnemon rebuild --back, with --data DIR for the stack of a folder",
    ],
)
def test_next_step_without_a_command_for_the_stack_stays(text: str) -> None:
    assert complete_next_step(text, Path("memory")) == text
