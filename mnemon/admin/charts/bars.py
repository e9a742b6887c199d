"""Stacked bars by day, as coordinates for SVG."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from math import floor, log10
from typing import Final, NamedTuple

WIDTH: Final = 480.0
HEIGHT: Final = 220.0
LEFT: Final = 56.0
RIGHT: Final = 14.0
BOTTOM: Final = 24.0
TOP: Final = 10.0

MAX_SERIES: Final = 6
"""Number of distinguishable colours. If there are more series, the last colour shows the rest together."""

OTHERS: Final = "others"
_MIN_LINES: Final = 4
_MAX_LABELS: Final = 6


class BarPiece(NamedTuple):
    """A part of a bar. `series` is the number of the series, which selects the colour."""

    series: int
    y: float
    height: float


class Bar(NamedTuple):
    """The bar of a day; `description` names the day and the values of the series that are not 0."""

    x: float
    width: float
    pieces: Sequence[BarPiece]
    description: str


class AxisLine(NamedTuple):
    """A line of the value axis, or a mark on the time axis: coordinate and label."""

    at: float
    label: str


class Chart(NamedTuple):
    """A chart with a bar for each day.

    Attributes:
        lines: lines of the value axis.
        days: marks of the time axis.
        series: names of the series; the place of a name is the number of its series.
        total: sum of all values.
    """

    bars: Sequence[Bar]
    lines: Sequence[AxisLine]
    days: Sequence[AxisLine]
    series: Sequence[str]
    total: float


def draw_chart(
    days: Sequence[date], values: Mapping[tuple[str, str], float], format_value: Callable[[float], str]
) -> Chart:
    """Return a chart with a bar for each day.

    A key of `values` is a day (ISO 8601) and the name of a series. `format_value` writes a value as text.
    """
    sums: dict[str, float] = {}
    for (_, series), value in values.items():
        sums[series] = sums.get(series, 0.0) + value
    names = sorted(sums, key=lambda series: (-sums[series], series))
    if len(names) > MAX_SERIES:
        names = [*names[: MAX_SERIES - 1], OTHERS]
    stacks = [_stack_values(day, values, names) for day in days]
    step = _choose_step(max(map(sum, stacks), default=0.0))
    top = max(step, *(_round_up(sum(stack), step) for stack in stacks)) if stacks else step
    room = HEIGHT - TOP - BOTTOM
    place = (WIDTH - LEFT - RIGHT) / max(len(days), 1)
    gap = min(3.0, place * 0.25)

    def draw_bar(number: int) -> Bar:
        pieces, y = list[BarPiece](), HEIGHT - BOTTOM
        for series, value in enumerate(stacks[number]):
            if value:
                height = room * value / top
                y -= height
                pieces.append(BarPiece(series, round(y, 2), round(height, 2)))
        told = ", ".join(
            f"{name} {format_value(value)}"
            for name, value in zip(names, stacks[number], strict=True)
            if value
        )
        return Bar(
            round(LEFT + number * place + gap / 2, 2),
            round(place - gap, 2),
            pieces,
            f"{_format_day(days[number])}: {told or format_value(0)}",
        )

    every = max(1, -(-len(days) // _MAX_LABELS))
    # Label days from the end, so that today has a label.
    marked = range(len(days) - 1, -1, -every)
    count = round(top / step)
    return Chart(
        [draw_bar(number) for number in range(len(days))],
        [
            AxisLine(round(HEIGHT - BOTTOM - room * each / count, 2), format_value(step * each))
            for each in range(count + 1)
        ],
        [AxisLine(round(LEFT + (number + 0.5) * place, 2), _format_day(days[number])) for number in marked],
        names,
        sum(sums.values()),
    )


def _stack_values(day: date, values: Mapping[tuple[str, str], float], names: Sequence[str]) -> list[float]:
    of_day = {series: value for (at, series), value in values.items() if at == day.isoformat()}
    named = [of_day.pop(name, 0.0) for name in names]
    if names and names[-1] == OTHERS:
        named[-1] += sum(of_day.values())
    return named


def _choose_step(highest: float) -> float:
    """Return the distance between two lines of the value axis: 1, 2 or 5 times a power of ten."""
    if not highest:
        return 1.0
    least = highest / _MIN_LINES
    power = 10.0 ** floor(log10(least))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= least)


def _round_up(value: float, step: float) -> float:
    return step * -(-value // step)


def _format_day(day: date) -> str:
    return f"{day.day} {day:%b}"
