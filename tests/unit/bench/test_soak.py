"""Trends of the series of a soak, and their plots."""

import math
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from typer.testing import CliRunner

from mnemon.cli.app import app
from mnemon.cli.terminal.exit_code import ExitCode
from mnemon_bench.soak.run import make_figures
from mnemon_bench.soak.sparkline_sheet import write_sheet
from mnemon_bench.soak.trend import ALLOWANCES, MAX_GROWTH, WARM_UP, TooFewSamples, find_trend, find_trends

SECONDS = [float(number * 30) for number in range(1, 101)]
WARM = int(100 * WARM_UP)


def wave(number: int) -> float:
    """Return a value near 200 with a period of eight samples, as if users were added and erased in turn."""
    return 200 + 15 * math.sin(number * math.tau / 8)


def test_steady_series_with_a_period_does_not_grow() -> None:
    trend = find_trend("rows.windows", SECONDS, [wave(number) for number in range(100)])

    assert trend.level == pytest.approx(200, rel=0.05)
    assert not trend.is_growing


def test_series_that_gains_more_than_its_bound_grows() -> None:
    step = 2 * ALLOWANCES["rows"] / (100 - WARM)

    trend = find_trend("rows.windows", SECONDS, [wave(number) + step * number for number in range(100)])

    assert trend.is_growing
    assert trend.growth == pytest.approx(2 * ALLOWANCES["rows"], rel=0.1)


def test_growth_in_the_warm_up_does_not_count() -> None:
    values = [min(number, WARM - 1) * 100.0 for number in range(100)]

    assert not find_trend("memory_mb.background", SECONDS, values).is_growing


def test_a_quarter_of_outliers_does_not_change_the_verdict() -> None:
    values = [100.0 if number % 4 else 10_000.0 for number in range(100)]

    assert find_trend("memory_mb.background", SECONDS, values).growth == 0


def test_bound_is_a_share_of_large_series_and_the_allowance_of_small_ones() -> None:
    large = find_trend("rows.messages", SECONDS, [100_000.0] * 100)
    small = find_trend("rows.messages", SECONDS, [3.0] * 100)

    assert large.bound == MAX_GROWTH * 100_000
    assert small.bound == ALLOWANCES["rows"]


def test_trend_needs_two_samples_after_the_warm_up() -> None:
    with pytest.raises(TooFewSamples, match="has 1 samples after the warm-up"):
        find_trend("rows.windows", [1.0, 100.0], [1.0, 2.0])


def test_soak_without_a_sample_is_no_success() -> None:
    with pytest.raises(TooFewSamples, match="no sample"):
        find_trends([])


def make_samples() -> list[dict[str, float]]:
    return [
        {"seconds": at, "memory_mb.background": 100.0, "rows.windows": 10.0 * number}
        for number, at in enumerate(SECONDS)
    ]


def test_figures_name_the_growing_series() -> None:
    figures = make_figures(find_trends(make_samples()))

    assert figures["ratios"] == {"growing_series": 1}
    assert figures["growing"] == ["rows.windows"]


def test_sheet_has_a_line_for_each_series_and_growing_ones_in_another_colour(tmp_path: Path) -> None:
    write_sheet(tmp_path / "soak.svg", make_samples())

    root = Xml.fromstring((tmp_path / "soak.svg").read_text())
    words = {text.text: text.get("fill") for text in root.iter("{http://www.w3.org/2000/svg}text")}
    lines = root.findall(".//{http://www.w3.org/2000/svg}polyline")
    assert words["rows.windows"] != words["memory_mb.background"]
    assert len(lines) == 2 * 2


def test_options_of_the_soak_are_rejected_by_other_benches() -> None:
    outcome = CliRunner().invoke(app, ["bench", "publish", "--hours", "1"])

    assert outcome.exit_code == ExitCode.USAGE_ERROR
    assert "only the bench soak accepts" in outcome.output


def test_file_that_cannot_be_written_is_refused_before_the_run(tmp_path: Path) -> None:
    outcome = CliRunner().invoke(app, ["bench", "soak", "--samples", str(tmp_path / "absent" / "soak.jsonl")])

    assert outcome.exit_code == ExitCode.USAGE_ERROR
    assert "cannot be written" in outcome.output
