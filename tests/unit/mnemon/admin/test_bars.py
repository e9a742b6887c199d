"""Charts of bars by day: the heights match the values."""

from datetime import date

import pytest

from mnemon.admin.charts.bars import BOTTOM, HEIGHT, MAX_SERIES, OTHERS, TOP, draw_chart

DAYS = [date(2026, 11, day) for day in (20, 21, 22)]


def test_bar_height_matches_its_value() -> None:
    drawn = draw_chart(
        DAYS,
        {("2026-11-20", "extract"): 30.0, ("2026-11-20", "compact"): 10.0, ("2026-11-22", "extract"): 20.0},
        "{:.0f}".format,
    )
    assert (drawn.series, drawn.total) == (["extract", "compact"], 60.0)
    assert [line.label for line in drawn.lines] == ["0", "10", "20", "30", "40"]
    first, second, third = drawn.bars
    assert [piece.height for piece in first.pieces] == pytest.approx([139.5, 46.5])
    assert (first.pieces[1].y, second.pieces) == (TOP, []), "the highest reaches the top line"
    assert third.pieces[0].y + third.pieces[0].height == pytest.approx(HEIGHT - BOTTOM)
    assert first.description == "20 Nov: extract 30, compact 10"
    assert second.description == "21 Nov: 0"
    assert drawn.days[0].label == "22 Nov", "today is marked, whatever else is"


def test_empty_bars_are_drawn() -> None:
    drawn = draw_chart(DAYS, {}, "{:.0f}".format)
    assert [bar.pieces for bar in drawn.bars] == [[], [], []]
    assert [line.label for line in drawn.lines] == ["0", "1"]


def test_series_without_a_colour_are_drawn_together() -> None:
    tenants = {("2026-11-20", f"tenant {number}"): float(number) for number in range(1, 10)}
    drawn = draw_chart(DAYS, tenants, "{:.0f}".format)
    assert len(drawn.series) == MAX_SERIES
    assert drawn.series[-1] == OTHERS
    assert "others 10" in drawn.bars[0].description
