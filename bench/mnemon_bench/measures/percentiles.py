"""Statistics over repeated measurements."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median


def compute_percentiles(taken: Iterable[float]) -> tuple[float, float]:
    """Return the median and the 99th percentile of one or more values, rounded to three decimal places."""
    ordered = sorted(taken)
    return round(ordered[len(ordered) // 2], 3), round(ordered[len(ordered) * 99 // 100], 3)


def compute_median_percentiles(
    rounds: Mapping[str, Sequence[tuple[float, float]]],
) -> dict[str, dict[str, float]]:
    """Return `p50` and `p99` by name: the medians over all rounds of the results of `compute_percentiles`."""
    return {
        name: {"p50": median(p50 for p50, _ in each), "p99": median(p99 for _, p99 in each)}
        for name, each in rounds.items()
    }


def compute_median_ratio(rates: Sequence[float], others: Sequence[float]) -> float:
    """Return the median, over all rounds, of each rate divided by the rate of the same round in `others`.

    Other load on the machine affects both rates of a round alike, so it hardly changes their ratio.
    """
    return median(rate / other for rate, other in zip(rates, others, strict=True))
