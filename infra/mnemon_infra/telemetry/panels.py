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
    """A panel. `width` counts columns; a row has 24. Grafana shows `text` in a tooltip of the title."""

    title: str
    queries: Sequence[PanelQuery]
    unit: str = "short"
    text: str = ""
    kind: PanelKind = "timeseries"
    width: int = 8
    stacked: bool = False


def _build_stat(title: str, expression: str, unit: str = "short", text: str = "") -> Panel:
    return Panel(title, [(expression, title)], unit, text, kind="stat", width=4)


def _query_rate(metric: str, by: str, where: str = "") -> PanelQuery:
    """Return a query for the rate of a counter, with a line for each combination of the labels in `by`."""
    return f"sum by ({by}) (rate({metric}{where}{_RATE}))", _format_legend(by)


def _query_sparse_rate(metric: str, by: str, where: str = "") -> PanelQuery:
    """Return a query for the rate of a counter, which is 0 while the counter has no time series."""
    expression, legend = _query_rate(metric, by, where)
    return f"{expression} or on() vector(0)", legend


def _query_share(metric: str, by: str, where: str) -> PanelQuery:
    """Return a query for the part of a counter's rate, 0 to 1, whose labels match the condition `where`."""
    (of_that_kind, legend), (all_of_it, _) = _query_rate(metric, by, where), _query_rate(metric, by)
    return f"{of_that_kind} / ({all_of_it} > 0)", legend


def _query_mean(histogram: str, by: str) -> PanelQuery:
    (total, legend), (count, _) = _query_rate(f"{histogram}_sum", by), _query_rate(f"{histogram}_count", by)
    return f"{total} / ({count} > 0)", legend


def _query_quantiles(histogram: str, by: str = "", where: str = "", legend: str = "") -> list[PanelQuery]:
    buckets, _ = _query_rate(f"{histogram}_bucket", f"le, {by}" if by else "le", where)
    legend = legend or _format_legend(by)
    return [
        (f"histogram_quantile({share}, {buckets})", f"{legend} {name}")
        for share, name in ((0.5, "p50"), (0.99, "p99"))
    ]


def _query_max(expression: str, by: str) -> PanelQuery:
    """Return a query for the largest value of a gauge for each combination of the labels in `by`."""
    return f"max by ({by}) ({expression})", _format_legend(by)


def _format_legend(by: str) -> str:
    return " ".join(f"{{{{{label.strip()}}}}}" for label in by.split(","))


_GLANCE: Final = (
    _build_stat("Ready processes", "sum(mnemon_ready)"),
    _build_stat(
        "Processes not ready",
        "count(up{job='mnemon'}) - sum(mnemon_ready)",
        text="Processes that are not ready or do not answer; /readyz of each process has the reason",
    ),
    _build_stat("Age of the oldest pending message", "max(mnemon_consumer_oldest_seconds)", "s"),
    _build_stat("Requests per second", f"sum(rate(mnemon_requests_total{_RATE}))"),
    _build_stat(
        "Dead letters kept",
        "max(mnemon_stream_messages{stream='DEAD'})",
        text="Messages that a consumer could not handle. List them: mnemon dead list",
    ),
    _build_stat(
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
        [_query_rate("mnemon_events_total", "consumer", "{outcome=~'applied|nothing'}")],
    ),
    Panel(
        "Pending messages, by consumer",
        [_query_max("mnemon_consumer_pending + mnemon_consumer_ack_pending", "consumer")],
        text="Messages that are not delivered yet, or in work",
    ),
    Panel(
        "Age of the oldest pending message, by consumer",
        [_query_max("mnemon_consumer_oldest_seconds", "consumer")],
        "s",
    ),
    Panel(
        "From publish to applied",
        [
            *_query_quantiles("mnemon_event_age_seconds", where="{consumer='persist'}", legend="rows"),
            *_query_quantiles("mnemon_event_age_seconds", where="{consumer='index'}", legend="searchable"),
        ],
        "s",
        "Age of an event when persist (rows) or index (searchable) has handled it",
    ),
    Panel(
        "Retried and dead messages per second",
        [_query_rate("mnemon_events_total", "consumer, outcome", "{outcome=~'retried|dead'}")],
    ),
    Panel(
        "Mean messages per batch",
        [_query_mean("mnemon_batch_messages", "consumer")],
        text="Full batches mean that more messages wait",
    ),
    Panel("Time per batch", _query_quantiles("mnemon_batch_seconds", "consumer"), "s"),
    Panel(
        "Dead letters, by reason",
        [
            (
                "sum by (consumer, reason) (mnemon_dead_letters_total) or on() vector(0)",
                _format_legend("consumer, reason"),
            )
        ],
        text="Count since the start of each process",
    ),
    Panel(
        "Disk space",
        [
            _query_max("mnemon_stream_bytes", "stream"),
            ("max(mnemon_database_bytes{generation='live'})", "rows"),
        ],
        "bytes",
    ),
    Panel(
        "Rebuild",
        [(f"{_REBUILT} or on() vector(0)", _format_legend("part"))],
        "percentunit",
        "Progress of the rows and vectors of the next generation; 0 if there is none",
    ),
)

_ANSWERS: Final = (
    Panel("Requests per second, by verb", [_query_rate("mnemon_requests_total", "verb")], stacked=True),
    Panel("Time per reply", _query_quantiles("mnemon_request_seconds", "verb"), "s"),
    Panel(
        "Errors per second", [_query_sparse_rate("mnemon_requests_total", "verb, outcome", "{outcome!='ok'}")]
    ),
    Panel(
        "Replies per second with a missing part",
        [_query_sparse_rate("mnemon_degraded_answers_total", "verb, part")],
    ),
    Panel(
        "Cache hits",
        [_query_share("mnemon_cache_lookups_total", "kept", "{outcome='hit'}")],
        "percentunit",
        "Share of lookups that needed no query of the database",
    ),
    Panel("Points that searches can find", [_query_max("mnemon_vectors_points", "collection")]),
)

_COST, _COST_LEGEND = _query_rate("mnemon_model_cost_usd_total", "provider, purpose")
_MODELS: Final = (
    Panel("Calls per second", [_query_rate("mnemon_model_calls_total", "provider, purpose, outcome")]),
    Panel("Time per call", _query_quantiles("mnemon_model_call_seconds", "provider"), "s"),
    Panel("Tokens per second", [_query_rate("mnemon_model_tokens_total", "provider, kind")]),
    Panel("Cost per hour", [(f"{_COST} * 3600", _COST_LEGEND)], "currencyUSD"),
    Panel(
        "Largest budget use", [("max(mnemon_budget_used_ratio)", "share of the daily budget")], "percentunit"
    ),
    Panel("Tenants without budget left", [("max(mnemon_budgets_spent)", "tenants")]),
    Panel(
        "Texts embedded per second",
        [_query_sparse_rate("mnemon_embedding_texts_total", "job")],
        text="Texts that an embedding endpoint embeds; embedding in the process is not counted",
    ),
    Panel(
        "Requests to the embedding endpoint per second",
        [_query_sparse_rate("mnemon_embedding_calls_total", "outcome")],
    ),
)

_PROCESSES: Final = (
    Panel("Memory", [("process_resident_memory_bytes{job='mnemon'}", "{{instance}}")], "bytes"),
    Panel(
        "Processor", [_query_rate("process_cpu_seconds_total", "instance", "{job='mnemon'}")], "percentunit"
    ),
    Panel(
        "Connections to the database",
        [
            _query_max("mnemon_database_connections", "instance, pool, state"),
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
