"""Counters, gauges and histograms as plain numbers; `exposition` shows them to Prometheus.

These classes replace those of prometheus_client, whose import takes a process 45 ms, even if Prometheus never
reads the metrics. Each observation by prometheus_client takes 1 to 3 µs, and a batch of a thousand messages
needs a thousand observations.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import ClassVar, Final

OTHER: Final = "other"
"""Replacement for values of a label that are not allowed, so that no client can make new time series."""

Values = tuple[str, ...]
"""The values of all labels of a time series, in the order of the labels."""


class Metric:
    """A metric: its name, help text and labels; `labels` maps each label to its allowed values."""

    all: ClassVar[list["Metric"]] = []

    def __init__(self, name: str, text: str, **labels: Iterable[str]) -> None:
        self.name = name
        self.text = text
        self.labels = {label: frozenset(values) for label, values in labels.items()}
        Metric.all.append(self)

    def bound_labels(self, values: Values) -> Values:
        """Return the values, with `OTHER` in place of values that are not allowed."""
        return tuple(
            value if value in allowed else OTHER
            for value, allowed in zip(values, self.labels.values(), strict=True)
        )


class NumberMetric(Metric):
    """A metric with one number for each time series."""

    def __init__(self, name: str, text: str, **labels: Iterable[str]) -> None:
        super().__init__(name, text, **labels)
        self.values: dict[Values, float] = {}


class Counter(NumberMetric):
    """A metric whose values only grow."""

    def add(self, *labels: str, by: float = 1) -> None:
        """Add `by` to the time series with these values of the labels."""
        key = labels if labels in self.values else self.bound_labels(labels)
        self.values[key] = self.values.get(key, 0) + by


class Gauge(NumberMetric):
    """A metric whose values go up and down."""

    def set(self, value: float, *labels: str) -> None:
        """Set the value of the time series with these values of the labels."""
        self.values[self.bound_labels(labels)] = value

    def replace(self, values: Mapping[str, float]) -> None:
        """Set the values of a gauge with one label, by value of the label; remove all other time series."""
        self.replace_series({(label,): value for label, value in values.items()})

    def replace_series(self, values: Mapping[Values, float]) -> None:
        """Set the value of each given time series, and remove all others."""
        self.values = {self.bound_labels(labels): value for labels, value in values.items()}


class Distribution:
    """Numbers of observations between neighbouring bounds, and the sum of all observed values."""

    __slots__ = ("counts", "total")

    def __init__(self, bounds: int) -> None:
        self.counts = [0] * (bounds + 1)
        self.total = 0.0


class Histogram(Metric):
    """A distribution of observed values for each time series, as counts between `bounds`."""

    def __init__(self, name: str, text: str, bounds: Sequence[float], **labels: Iterable[str]) -> None:
        super().__init__(name, text, **labels)
        self.bounds = tuple(bounds)
        self.values: dict[Values, Distribution] = {}

    def observe(self, value: float, *labels: str) -> None:
        """Count an observed value in the time series with these values of the labels."""
        distribution = self._get_distribution(labels)
        distribution.counts[bisect_left(self.bounds, value)] += 1
        distribution.total += value

    def observe_ages(self, times: Sequence[float], now: float, *labels: str) -> None:
        """Observe the ages of many moments; this takes as long as a dozen calls of `observe`.

        Args:
            times: the moments in seconds, in order; a moment out of order is counted with its neighbours.
            now: the current time in seconds, by the same clock.
            labels: as in `observe`.
        """
        distribution = self._get_distribution(labels)
        young = [len(times) - bisect_left(times, now - bound) for bound in self.bounds]
        below = 0
        for place, count in enumerate(accumulate([*young, len(times)], max)):
            distribution.counts[place] += count - below
            below = count
        distribution.total += len(times) * now - sum(times)

    def _get_distribution(self, labels: Values) -> Distribution:
        found = self.values.get(labels)
        if found is None:
            key = self.bound_labels(labels)
            found = self.values.setdefault(key, Distribution(len(self.bounds)))
        return found
