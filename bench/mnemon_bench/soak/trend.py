"""Trend of a series after the warm-up, and whether the series grows."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import median
from typing import Final, NamedTuple

WARM_UP: Final = 0.3
"""Share of a run, from its start, that no trend uses, because pools and caches fill up first."""

MAX_GROWTH: Final = 0.1
"""Maximum growth of a series from the end of the warm-up to the end of the run, as a share of its median."""

ALLOWANCES: Final[Mapping[str, float]] = {
    "memory_mb": 10.0,
    "table_mb": 2.0,
    "disk_mb": 40.0,
    "disk_files": 40.0,
    "rows": 50.0,
    "messages": 50.0,
    "files": 10.0,
    "connections": 5.0,
    "threads": 5.0,
    "processes": 2.0,
}
"""Growth that is always allowed, by the first part of a series' name, for series with a small median."""


class Trend(NamedTuple):
    """Trend of a series.

    Attributes:
        level: median of the values after the warm-up.
        growth: growth from the end of the warm-up to the end of the run, by the slope of `find_trend`.
        bound: growth above which the series counts as growing.
    """

    name: str
    level: float
    growth: float
    bound: float

    @property
    def is_growing(self) -> bool:
        return self.growth > self.bound


class TooFewSamples(ValueError):
    """A soak has too few samples for a trend; the message has the reason and the next step."""


def find_trend(name: str, seconds: Sequence[float], values: Sequence[float]) -> Trend:
    """Return the trend of a series by the Theil–Sen estimator.

    The slope is the median of the slopes between all pairs of samples, so that up to 29 % of the samples may
    be outliers (Sen, "Estimates of the regression coefficient based on Kendall's tau", 1968).

    Args:
        name: name of the series; its first part is a key of `ALLOWANCES`.
        seconds: time of each sample since the start of the run, ascending.
        values: value of each sample.

    Raises:
        TooFewSamples: fewer than two samples come after the warm-up.
    """
    begin = seconds[-1] * WARM_UP
    points = [(at, value) for at, value in zip(seconds, values, strict=True) if at >= begin]
    if len(points) < 2:
        raise TooFewSamples(
            f"{name} has {len(points)} samples after the warm-up, and a trend needs two; run the soak for "
            "more hours"
        )
    slope = median(
        (later - value) / (after - at)
        for (at, value), (after, later) in combinations(points, 2)
        if after > at
    )
    level = median(value for _, value in points)
    bound = max(MAX_GROWTH * abs(level), ALLOWANCES[name.partition(".")[0]])
    return Trend(name, level, slope * (points[-1][0] - points[0][0]), bound)


def find_trends(samples: Sequence[Mapping[str, float]]) -> list[Trend]:
    """Return the trend of each series that has an allowance; each sample has its time as `seconds`.

    A series has the value 0 in a sample that lacks it.

    Raises:
        TooFewSamples: there is no sample, or fewer than two come after the warm-up.
    """
    if not samples:
        raise TooFewSamples(
            "no sample was taken, because NATS or the database did not answer; run the soak again"
        )
    names = sorted({name for sample in samples for name in sample} - {"seconds"})
    seconds = [sample["seconds"] for sample in samples]
    return [
        find_trend(name, seconds, [sample.get(name, 0.0) for sample in samples])
        for name in names
        if name.partition(".")[0] in ALLOWANCES
    ]
