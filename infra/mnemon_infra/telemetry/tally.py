"""What a process counts, as plain numbers; `exposition` shows them to Prometheus.

Not prometheus_client's own classes: importing them takes a process 45 ms, whether anybody looks or not, each
observation 1 to 3 µs, and a batch of a thousand messages would need a thousand of them.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import ClassVar, Final

OTHER: Final = "other"
"""What stands for a value that a label may not have, so that nobody from outside makes new time series."""

Values = tuple[str, ...]
"""A value for each label."""


class Metric:
    """A name, and the labels that tell its time series apart, each with all the values it may have."""

    all: ClassVar[list["Metric"]] = []

    def __init__(self, name: str, text: str, **labels: Iterable[str]) -> None:
        self.name = name
        self.text = text
        self.labels = {label: frozenset(values) for label, values in labels.items()}
        Metric.all.append(self)

    def bounded(self, values: Values) -> Values:
        """The same values, `OTHER` in the place of those that are not allowed."""
        return tuple(
            value if value in allowed else OTHER
            for value, allowed in zip(values, self.labels.values(), strict=True)
        )


class Counter(Metric):
    """Something that only grows."""

    def __init__(self, name: str, text: str, **labels: Iterable[str]) -> None:
        super().__init__(name, text, **labels)
        self.values: dict[Values, float] = {}

    def add(self, *labels: str, by: float = 1) -> None:
        """Count one more, or `by` more."""
        key = labels if labels in self.values else self.bounded(labels)
        self.values[key] = self.values.get(key, 0) + by


class Gauge(Metric):
    """Something that goes up and down."""

    def __init__(self, name: str, text: str, **labels: Iterable[str]) -> None:
        super().__init__(name, text, **labels)
        self.values: dict[Values, float] = {}

    def set(self, value: float, *labels: str) -> None:
        """What it is now."""
        self.values[self.bounded(labels)] = value

    def replace(self, values: Mapping[str, float]) -> None:
        """What it is now, for all values of its one label: what is not among them is gone."""
        self.values = {self.bounded((label,)): value for label, value in values.items()}


class Distribution:
    """How many observations fell below each bound, and their sum."""

    __slots__ = ("counts", "total")

    def __init__(self, bounds: int) -> None:
        self.counts = [0] * (bounds + 1)
        self.total = 0.0


class Histogram(Metric):
    """How large something is, as counts below some bounds."""

    def __init__(self, name: str, text: str, bounds: Sequence[float], **labels: Iterable[str]) -> None:
        super().__init__(name, text, **labels)
        self.bounds = tuple(bounds)
        self.values: dict[Values, Distribution] = {}

    def observe(self, value: float, *labels: str) -> None:
        """Count one observation."""
        distribution = self._of(labels)
        distribution.counts[bisect_left(self.bounds, value)] += 1
        distribution.total += value

    def observe_ages(self, times: Sequence[float], now: float, *labels: str) -> None:
        """Count how long ago each of some moments was: as many as one likes for the price of a dozen.

        Args:
            times: in their order; one that is not in its place is counted with its neighbours.
            now: of the same clock.
            labels: as in `observe`.
        """
        distribution = self._of(labels)
        young = [len(times) - bisect_left(times, now - bound) for bound in self.bounds]
        below = 0
        for place, count in enumerate(accumulate([*young, len(times)], max)):
            distribution.counts[place] += count - below
            below = count
        distribution.total += len(times) * now - sum(times)

    def _of(self, labels: Values) -> Distribution:
        found = self.values.get(labels)
        if found is None:
            key = self.bounded(labels)
            found = self.values.setdefault(key, Distribution(len(self.bounds)))
        return found
