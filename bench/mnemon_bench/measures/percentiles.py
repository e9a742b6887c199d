"""Statistics over repeated measurements."""

from collections.abc import Iterable


def percentiles(taken: Iterable[float]) -> tuple[float, float]:
    """Return the median and the 99th percentile, to three places."""
    ordered = sorted(taken)
    return round(ordered[len(ordered) // 2], 3), round(ordered[len(ordered) * 99 // 100], 3)
