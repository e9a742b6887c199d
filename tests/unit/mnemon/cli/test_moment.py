"""Moments in the options of commands: log positions or times."""

from datetime import UTC, datetime

import pytest
import typer

from mnemon.cli.options.moment import parse_moment


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("120000", 120_000),
        ("2026-01-02", datetime(2026, 1, 2, tzinfo=UTC)),
        ("2026-01-02T03:00:00+02:00", datetime(2026, 1, 2, 1, tzinfo=UTC)),
    ],
)
def test_moment_is_a_log_position_or_a_time(text: str, meant: int | datetime) -> None:
    assert parse_moment("--until", text) == meant


@pytest.mark.parametrize(
    ("text", "problem"),
    [("then", "neither a log position nor a time"), ("-5", "neither"), ("9999-01-01", "is in the future")],
)
def test_invalid_moment_is_refused(text: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        parse_moment("--until", text)
    assert ended.value.exit_code == 2
    said = capsys.readouterr().err
    assert f"--until {text}" in said.replace("'", "")
    assert problem in said
