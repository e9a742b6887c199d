"""What counts of many measurements of the same."""

from collections.abc import Iterable


def percentiles(taken: Iterable[float]) -> tuple[float, float]:
    """The median and the 99th percentile, to three places."""
    ordered = sorted(taken)
    return round(ordered[len(ordered) // 2], 3), round(ordered[len(ordered) * 99 // 100], 3)
