"""Errors that commands report in words: they are listed by the names of their classes."""

from pathlib import Path
from pkgutil import resolve_name

import nats.errors
import pytest
import typer

from mnemon.cli.terminal.exit_code import ENDINGS, ExitCode, perform_command
from mnemon.cli.terminal.signals import StopSignals
from mnemon_infra.process.data_folder import lock_folder
from mnemon_infra.process.fault import end_process
from mnemon_infra.settings.store import SettingsContended


@pytest.mark.parametrize("name", ENDINGS)
def test_every_refusal_names_an_existing_error(name: str) -> None:
    error = resolve_name(name)
    assert issubclass(error, Exception)
    assert f"{error.__module__}.{error.__qualname__}" == name


def test_folder_in_use_suggests_no_other_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def reindex() -> ExitCode:
        with lock_folder(tmp_path):
            return ExitCode.DONE

    with lock_folder(tmp_path), pytest.raises(typer.Exit) as ended:
        perform_command(reindex())
    assert ended.value.exit_code == 2
    said = capsys.readouterr().err
    assert "Stop it (kill " in said
    assert "mnemon up" not in said


def test_contended_settings_end_a_command_with_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    async def swap_back() -> ExitCode:
        raise SettingsContended("the settings were not changed: try again")

    with pytest.raises(typer.Exit) as ended:
        perform_command(swap_back())
    assert ended.value.exit_code == 1
    assert capsys.readouterr().err == "mnemon: the settings were not changed: try again\n"


@pytest.mark.parametrize(
    "consequence",
    [
        nats.errors.ConnectionClosedError(),
        ExceptionGroup(
            "stop failed", [nats.errors.ConnectionClosedError(), nats.errors.ConnectionClosedError()]
        ),
    ],
)
def test_reported_fault_explains_the_errors_that_follow_from_it(
    capsys: pytest.CaptureFixture[str], consequence: Exception
) -> None:
    async def run() -> ExitCode:
        with StopSignals() as stop:
            end_process("the NATS server closed the connection persist for good")
            await stop.wait()
        raise consequence

    with pytest.raises(typer.Exit) as ended:
        perform_command(run())
    assert ended.value.exit_code == 3
    assert capsys.readouterr().err == "mnemon: the NATS server closed the connection persist for good\n"
