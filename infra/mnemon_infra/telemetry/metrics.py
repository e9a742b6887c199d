"""Metrics of mnemon. No label contains a tenant, a user, or a text of a user."""

from collections.abc import Mapping, Sequence
from typing import Final, get_args

from mnemon_contracts.registry import VERBS
from mnemon_contracts.settings.language_models import Provider
from mnemon_contracts.streams import DEAD, LOG, WORK
from mnemon_contracts.verbs.ask import ErrorCode
from mnemon_infra.delivery import Delivery
from mnemon_infra.durables import CONSUMERS, DURABLES
from mnemon_infra.telemetry.tally import Counter, Gauge, Histogram

PROVIDERS: Final = get_args(Provider)
PURPOSES: Final = "extract", "compact"

OUTCOMES: Final = "applied", "nothing", "retried", "dead"
"""Words for the outcomes of a delivery: applied, without effect, retried, or a dead letter."""

REASONS: Final = (
    *("invalid_subject", "unknown_event", "invalid_body", "refused_by_database", "invalid_trigger"),
    *("no_summary", "refused", "no_answer", "cut_off", "unreadable", "too_many_facts"),
)
"""Reasons for dead letters."""

PARTS: Final = (
    *("facts", "working", "user_data", "summaries", "recent", "relevant", "conversation", "embedding"),
    *("memories", "messages", "documents", "reranker"),
)
"""Parts that a degraded reply may lack."""

FAULTS_OF_DURABLES: Final = "missing", "paused", "stalled", "standstill", "failing"
FAULTS_OF_PROCESSES: Final = "log", "server", "disk", "model", "event_loop"

_SHORT: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_LONG: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_AGES: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 86_400)

EVENTS = Counter(
    "mnemon_events",
    "Deliveries that ended, by outcome: applied, nothing (without effect), retried or dead",
    consumer=DURABLES,
    outcome=OUTCOMES,
)
BATCHES = Histogram(
    "mnemon_batch_messages",
    "Number of messages of a batch",
    (1, 5, 20, 50, 100, 200, 500, 1000, 5000),
    consumer=DURABLES,
)
BATCH_SECONDS = Histogram(
    "mnemon_batch_seconds", "Time to handle a batch, in seconds", _SHORT, consumer=DURABLES
)
EVENT_AGES = Histogram(
    "mnemon_event_age_seconds",
    "Time from the storage of a message in the stream to the end of its handling, in seconds",
    _AGES,
    consumer=DURABLES,
)
DEAD_LETTERS = Counter(
    "mnemon_dead_letters", "Dead letters that this process wrote", consumer=DURABLES, reason=REASONS
)

REQUESTS = Counter(
    "mnemon_requests", "Requests by verb and outcome", verb=VERBS, outcome=("ok", *get_args(ErrorCode))
)
REQUEST_SECONDS = Histogram(
    "mnemon_request_seconds", "Time to answer a request, in seconds", _SHORT, verb=VERBS
)
DEGRADED = Counter("mnemon_degraded_answers", "Replies with a missing part, by part", verb=VERBS, part=PARTS)
CACHE = Counter(
    "mnemon_cache_lookups",
    "Lookups in the cache of user memory, for a whole context or a part of the memory",
    kept=("context", "part"),
    outcome=("hit", "miss"),
)

MODEL_CALLS = Counter(
    "mnemon_model_calls",
    "Calls of language models, without the lines of batches",
    provider=PROVIDERS,
    purpose=PURPOSES,
    outcome=("answered", "unavailable", "busy", "refused", "request_refused", "failed"),
)
MODEL_SECONDS = Histogram(
    "mnemon_model_call_seconds",
    "Time of a call of a language model, in seconds",
    _LONG,
    provider=PROVIDERS,
    purpose=PURPOSES,
)
MODEL_TOKENS = Counter(
    "mnemon_model_tokens",
    "Tokens of answered calls and of lines of batches",
    provider=PROVIDERS,
    purpose=PURPOSES,
    kind=("input", "cached", "output"),
)
MODEL_COST = Counter(
    "mnemon_model_cost_usd",
    "Cost of calls and batches at the configured prices, in US dollars",
    provider=PROVIDERS,
    purpose=PURPOSES,
)
MODELS_FAILING = Gauge(
    "mnemon_models_failing",
    "Language models whose last call by this process failed, or that it cannot open, by kind of "
    "failure: refused or unavailable",
    kind=("refused", "unavailable"),
)
EMBEDDING_CALLS = Counter(
    "mnemon_embedding_calls",
    "Requests to an embedding endpoint; embedding in this process is not counted",
    outcome=("answered", "unavailable", "refused"),
)
EMBEDDING_SECONDS = Histogram(
    "mnemon_embedding_call_seconds", "Time of a request to an embedding endpoint, in seconds", _SHORT
)
EMBEDDING_TEXTS = Counter("mnemon_embedding_texts", "Texts that an embedding endpoint embedded")
RERANKER_CALLS = Counter(
    "mnemon_reranker_calls", "Requests to the reranker", outcome=("answered", "unavailable", "refused")
)
RERANKER_SECONDS = Histogram(
    "mnemon_reranker_call_seconds", "Time of a request to the reranker, in seconds", _SHORT
)

BUDGET_USED = Gauge("mnemon_budget_used_ratio", "Largest used share of a tenant's daily budget")
BUDGETS_SPENT = Gauge(
    "mnemon_budgets_spent", "Tenants that have spent today's budget, as known to this process"
)

RUNNING = Gauge("mnemon_consumer_running", "Consumers that this process runs", consumer=CONSUMERS)
READY = Gauge("mnemon_ready", "1 if this process can do its work, otherwise 0; /readyz has the reason")
FAULTS = Gauge(
    "mnemon_faults",
    "1 for each fault for which this process is not ready; `consumer` is empty for a fault of the process or "
    "of a server",
    fault=(*FAULTS_OF_DURABLES, *FAULTS_OF_PROCESSES),
    consumer=("", *DURABLES),
)
DISK_FREE = Gauge(
    "mnemon_disk_free_bytes",
    "Free bytes on the disk of the embedded vectors; with a Qdrant server, of the data folder of `mnemon up`",
)
STORAGE_USED = Gauge("mnemon_storage_used_ratio", "Used share of JetStream's storage limit, if there is one")
PENDING = Gauge(
    "mnemon_consumer_pending", "Messages that are not delivered to the consumer yet", consumer=DURABLES
)
IN_WORK = Gauge(
    "mnemon_consumer_ack_pending",
    "Messages that are delivered to the consumer and not acknowledged yet",
    consumer=DURABLES,
)
READERS = Gauge(
    "mnemon_consumer_readers",
    "Pull requests of the consumer that wait at the server for messages",
    consumer=DURABLES,
)
OLDEST = Gauge(
    "mnemon_consumer_oldest_seconds",
    "Age of the oldest message that is not handled, in seconds; 0 if there is none",
    consumer=DURABLES,
)
PAUSED = Gauge(
    "mnemon_consumer_paused", "1 while the consumer is paused at the server, otherwise 0", consumer=DURABLES
)
STREAM_MESSAGES = Gauge("mnemon_stream_messages", "Number of messages in a stream", stream=(LOG, WORK, DEAD))
STREAM_BYTES = Gauge("mnemon_stream_bytes", "Size of a stream, in bytes", stream=(LOG, WORK, DEAD))
LOG_POSITION = Gauge("mnemon_log_position", "Last position of the log")
DATABASE_BYTES = Gauge(
    "mnemon_database_bytes",
    "Disk space of the rows of a generation, in bytes",
    generation=("live", "former", "next", "as of"),
)
REBUILT = Gauge(
    "mnemon_rebuild_position",
    "Applied position of the next generation; absent if there is none",
    part=("rows", "vectors"),
)
POOL = Gauge(
    "mnemon_database_connections",
    "Connections of this process to the database",
    pool=("consumers", "compact", "extract"),
    state=("idle", "used"),
)
POOL_WAITING = Gauge(
    "mnemon_database_waiting",
    "Operations of this process that wait for a database connection",
    pool=("consumers", "compact", "extract"),
)
POINTS = Gauge(
    "mnemon_vectors_points",
    "Points that searches can find",
    collection=("memories", "messages", "documents", "summaries"),
)
BUILD = Gauge("mnemon_build_info", "Version of mnemon in the label; the value is always 1")
"""`exposition` adds the version as the label."""


def start_counts(consumer: str) -> None:
    """Start the counts of a consumer at 0: Prometheus misses the first event of a series that begins at 1."""
    for outcome in OUTCOMES:
        EVENTS.add(consumer, outcome, by=0)


def count_batch(
    consumer: str, ends: Mapping[str, int], done: Sequence[Delivery], seconds: float, now: float
) -> None:
    """Count a handled batch in the metrics of its consumer; a thousand messages take 50 µs.

    Args:
        consumer: name of the durable.
        ends: number of messages by outcome, in the words of `OUTCOMES`.
        done: deliveries that will not be retried, in the order of their stream. The age of each is counted,
            unless a move copied the event from another deployment.
        seconds: duration of the batch.
        now: seconds since 1970.
    """
    BATCHES.observe(sum(ends.values()), consumer)
    BATCH_SECONDS.observe(seconds, consumer)
    for outcome, count in ends.items():
        EVENTS.add(consumer, outcome, by=count)
    # Events that move here are as old as they were in the other deployment.
    if ages := [each.stored_at for each in done if not each.is_moved]:
        EVENT_AGES.observe_ages(ages, now, consumer)
