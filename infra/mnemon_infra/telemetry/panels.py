"""Panels of the dashboard, with their PromQL queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

PanelKind = Literal["timeseries", "stat"]

PanelQuery = tuple[str, str]
"""A query in PromQL, and the legend of the lines in its result."""

_RATE: Final = "[$__rate_interval]"


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel that is `width` of 24 columns wide. Grafana shows `text` in a tooltip of the title."""

    title: str
    queries: Sequence[PanelQuery]
    unit: str = "short"
    text: str = ""
    kind: PanelKind = "timeseries"
    width: int = 8
    stacked: bool = False


def _stat(title: str, expression: str, unit: str = "short", text: str = "") -> Panel:
    return Panel(title, [(expression, title)], unit, text, kind="stat", width=4)


def _rate(metric: str, by: str, where: str = "") -> PanelQuery:
    """Return a query for the rate of a counter, with a line for each combination of the labels in `by`."""
    return f"sum by ({by}) (rate({metric}{where}{_RATE}))", _called(by)


def _seldom(metric: str, by: str, where: str = "") -> PanelQuery:
    """Return a query for the rate of a counter, which is 0 while the counter has no time series."""
    expression, called = _rate(metric, by, where)
    return f"{expression} or on() vector(0)", called


def _share(metric: str, by: str, where: str) -> PanelQuery:
    """Return a query for the part of a counter's rate, 0 to 1, whose labels match the condition `where`."""
    (of_that_kind, called), (all_of_it, _) = _rate(metric, by, where), _rate(metric, by)
    return f"{of_that_kind} / ({all_of_it} > 0)", called


def _mean(histogram: str, by: str) -> PanelQuery:
    (total, called), (count, _) = _rate(f"{histogram}_sum", by), _rate(f"{histogram}_count", by)
    return f"{total} / ({count} > 0)", called


def _quantiles(histogram: str, by: str = "", where: str = "", called: str = "") -> list[PanelQuery]:
    buckets, _ = _rate(f"{histogram}_bucket", f"le, {by}" if by else "le", where)
    called = called or _called(by)
    return [
        (f"histogram_quantile({share}, {buckets})", f"{called} {name}")
        for share, name in ((0.5, "p50"), (0.99, "p99"))
    ]


def _most(expression: str, by: str) -> PanelQuery:
    """Return a query for a gauge that has the same value in all processes, with one line for all."""
    return f"max by ({by}) ({expression})", _called(by)


def _called(by: str) -> str:
    return " ".join(f"{{{{{label.strip()}}}}}" for label in by.split(","))


_GLANCE: Final = (
    _stat("Ready processes", "sum(mnemon_ready)"),
    _stat(
        "Processes not ready",
        "count(up{job='mnemon'}) - sum(mnemon_ready)",
        text="Processes that are not ready or do not answer; /readyz of each process has the reason",
    ),
    _stat("Age of the oldest pending message", "max(mnemon_consumer_oldest_seconds)", "s"),
    _stat("Requests per second", f"sum(rate(mnemon_requests_total{_RATE}))"),
    _stat(
        "Dead letters kept",
        "max(mnemon_stream_messages{stream='DEAD'})",
        text="Messages that no consumer could handle. List them: mnemon dead list",
    ),
    _stat(
        "Largest budget use",
        "max(mnemon_budget_used_ratio)",
        "percentunit",
        "Largest used share of a tenant's daily budget. List tenants: mnemon usage --by tenant",
    ),
)

_REBUILT: Final = "max by (part) (mnemon_rebuild_position) / on() group_left() max(mnemon_log_position)"
_EVENTS: Final = (
    Panel(
        "Messages handled per second, by consumer",
        [_rate("mnemon_events_total", "consumer", "{outcome=~'applied|nothing'}")],
    ),
    Panel(
        "Pending messages, by consumer",
        [_most("mnemon_consumer_pending + mnemon_consumer_ack_pending", "consumer")],
        text="Messages that are not delivered yet, or in work",
    ),
    Panel(
        "Age of the oldest pending message, by consumer",
        [_most("mnemon_consumer_oldest_seconds", "consumer")],
        "s",
    ),
    Panel(
        "From publish to applied",
        [
            *_quantiles("mnemon_event_age_seconds", where="{consumer='persist'}", called="rows"),
            *_quantiles("mnemon_event_age_seconds", where="{consumer='index'}", called="searchable"),
        ],
        "s",
        "Age of an event when persist and index have handled it",
    ),
    Panel(
        "Retried and dead messages per second",
        [_rate("mnemon_events_total", "consumer, outcome", "{outcome=~'retried|dead'}")],
    ),
    Panel(
        "Mean messages per batch",
        [_mean("mnemon_batch_messages", "consumer")],
        text="Full batches mean that more messages wait",
    ),
    Panel("Time per batch", _quantiles("mnemon_batch_seconds", "consumer"), "s"),
    Panel(
        "Dead letters, by reason",
        [
            (
                "sum by (consumer, reason) (mnemon_dead_letters_total) or on() vector(0)",
                _called("consumer, reason"),
            )
        ],
        text="Count since the start of each process",
    ),
    Panel(
        "Disk space",
        [_most("mnemon_stream_bytes", "stream"), ("max(mnemon_database_bytes{generation='live'})", "rows")],
        "bytes",
    ),
    Panel(
        "Rebuild",
        [(f"{_REBUILT} or on() vector(0)", _called("part"))],
        "percentunit",
        "Progress of the rows and vectors of the next generation; 0 without a next generation",
    ),
)

_ANSWERS: Final = (
    Panel("Requests per second, by verb", [_rate("mnemon_requests_total", "verb")], stacked=True),
    Panel("Time per reply", _quantiles("mnemon_request_seconds", "verb"), "s"),
    Panel("Errors per second", [_seldom("mnemon_requests_total", "verb, outcome", "{outcome!='ok'}")]),
    Panel("Replies per second with a missing part", [_seldom("mnemon_degraded_answers_total", "verb, part")]),
    Panel(
        "Cache hits",
        [_share("mnemon_cache_lookups_total", "kept", "{outcome='hit'}")],
        "percentunit",
        "Share of lookups that needed no query of the database",
    ),
    Panel("Points that searches can find", [_most("mnemon_vectors_points", "collection")]),
)

_COST, _COST_CALLED = _rate("mnemon_model_cost_usd_total", "provider, purpose")
_MODELS: Final = (
    Panel("Calls per second", [_rate("mnemon_model_calls_total", "provider, purpose, outcome")]),
    Panel("Time per call", _quantiles("mnemon_model_call_seconds", "provider"), "s"),
    Panel("Tokens per second", [_rate("mnemon_model_tokens_total", "provider, kind")]),
    Panel("Cost per hour", [(f"{_COST} * 3600", _COST_CALLED)], "currencyUSD"),
    Panel(
        "Largest budget use", [("max(mnemon_budget_used_ratio)", "share of the daily budget")], "percentunit"
    ),
    Panel("Tenants without budget left", [("max(mnemon_budgets_spent)", "tenants")]),
    Panel(
        "Texts embedded per second",
        [_seldom("mnemon_embedding_texts_total", "job")],
        text="Texts that an embedding endpoint embeds; embedding in the process is not counted",
    ),
    Panel(
        "Requests to the embedding endpoint per second", [_seldom("mnemon_embedding_calls_total", "outcome")]
    ),
)

_PROCESSES: Final = (
    Panel("Memory", [("process_resident_memory_bytes{job='mnemon'}", "{{instance}}")], "bytes"),
    Panel("Processor", [_rate("process_cpu_seconds_total", "instance", "{job='mnemon'}")], "percentunit"),
    Panel(
        "Connections to the database",
        [
            _most("mnemon_database_connections", "instance, pool, state"),
            ("max by (instance, pool) (mnemon_database_waiting)", "{{instance}} {{pool}} waiting"),
        ],
    ),
)

ROWS: Final[Sequence[tuple[str, Sequence[Panel]]]] = (
    ("Overview", _GLANCE),
    ("Events", _EVENTS),
    ("Replies to bots", _ANSWERS),
    ("Language models", _MODELS),
    ("Processes", _PROCESSES),
)
