"""Places that `mnemon backup` and `mnemon restore` refuse."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mnemon.cli.app import app


@pytest.mark.parametrize("arguments", [("backup", ""), ("restore", "", "--check")])
def test_empty_place_of_a_backup_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, [*arguments, "--data", str(tmp_path / "data")])
    assert (result.exit_code, "the name of the backup's folder or bucket is empty" in result.stderr) == (
        2,
        True,
    )
    assert list(tmp_path.iterdir()) == []
