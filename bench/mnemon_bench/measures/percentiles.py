"""Statistics over repeated measurements."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median


def percentiles(taken: Iterable[float]) -> tuple[float, float]:
    """Return the median and the 99th percentile, to three places."""
    ordered = sorted(taken)
    return round(ordered[len(ordered) // 2], 3), round(ordered[len(ordered) * 99 // 100], 3)


def median_percentiles(rounds: Mapping[str, Sequence[tuple[float, float]]]) -> dict[str, dict[str, float]]:
    """Return the medians of the `percentiles` of all rounds, by name, as `p50` and `p99`."""
    return {
        name: {"p50": median(p50 for p50, _ in each), "p99": median(p99 for _, p99 in each)}
        for name, each in rounds.items()
    }


def median_ratio(rates: Sequence[float], others: Sequence[float]) -> float:
    """Return the median ratio, round by round, so that other load on the machine affects both alike."""
    return median(rate / other for rate, other in zip(rates, others, strict=True))
