"""Options of `--redecide`, checked before the command connects to a server."""

from pathlib import Path

import pytest
import typer
from typer.main import get_command

from mnemon.cli.app import app
from mnemon.cli.rebuild import redecide as redeciding


@pytest.mark.parametrize("given", ["nonsense", "policy.min_length=1"])
def test_setting_that_decides_nothing_is_refused_with_an_example(
    given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended:
        redeciding._create_edit([given], None)
    assert ended.value.exit_code == 2
    assert "--redecide dedupe.update_threshold=0.8" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "redecide"),
    [
        (["--redecide"], ["current"]),
        (["--redecide", "--data", "memory"], ["current"]),
        (["--yes", "--redecide", "--json"], ["current"]),
        (["--redecide", "dedupe.update_threshold=0.8", "--yes"], ["dedupe.update_threshold=0.8"]),
        (["--verify"], []),
    ],
)
def test_redecide_takes_the_settings_in_force_where_it_names_none(
    arguments: list[str], redecide: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "memory").mkdir()
    rebuild = get_command(app).commands["rebuild"]  # type: ignore[attr-defined]
    assert list(rebuild.make_context("rebuild", arguments).params["redecide"] or ()) == redecide
