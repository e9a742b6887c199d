"""Metrics of this process in Prometheus' format, and the metrics that prometheus_client collects itself."""

from collections.abc import Iterable
from importlib.metadata import version
from itertools import accumulate

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from mnemon_infra.telemetry.metrics import BUILD
from mnemon_infra.telemetry.tally import Counter, Histogram, Metric, NumberMetric


class _MetricCollector(Collector):
    """Collector of the metrics that mnemon counts in this process."""

    def collect(self) -> Iterable[Family]:
        for metric in list(Metric.all):
            if metric is not BUILD:
                yield build_family(metric)
        build = GaugeMetricFamily(BUILD.name, BUILD.text, labels=("version",))
        build.add_metric((version("mnemon"),), 1)
        yield build


def build_registry() -> CollectorRegistry:
    """Return a registry with the metrics of mnemon, the process, the platform and the garbage collector."""
    shown = CollectorRegistry()
    ProcessCollector(registry=shown)
    PlatformCollector(registry=shown)
    GCCollector(registry=shown)
    shown.register(_MetricCollector())
    return shown


def build_family(metric: Metric) -> Family:
    """Convert a metric with all its time series to the type of prometheus_client."""
    labels = tuple(metric.labels)
    if isinstance(metric, Histogram):
        histogram = HistogramMetricFamily(metric.name, metric.text, labels=labels)
        # Copy the values, because another thread counts.
        for series, distribution in list(metric.values.items()):
            below = accumulate(distribution.counts)
            bounds = [*(f"{bound:g}" for bound in metric.bounds), "+Inf"]
            histogram.add_metric(series, list(zip(bounds, below, strict=True)), distribution.total)
        return histogram
    assert isinstance(metric, NumberMetric)
    family = CounterMetricFamily if isinstance(metric, Counter) else GaugeMetricFamily
    numbers = family(metric.name, metric.text, labels=labels)
    for series, value in list(metric.values.items()):
        numbers.add_metric(series, value)
    return numbers
