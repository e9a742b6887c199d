"""Durable consumers, as one table that provisioning, subscriptions, health, metrics and tests read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from mnemon_contracts.streams import LOG, WORK
from mnemon_contracts.subjects import build_event_filter
from mnemon_infra.config import Deployment

CONSUMERS: Final = "persist", "index", "dedupe", "compact", "extract", "maintain", "retrieve"
"""Names of the consumers. All but `retrieve`, which answers requests, read a durable."""

STATEMENT_TIMEOUT: Final = 10.0
"""Seconds after which the database cancels a statement."""

GRACEFUL_TIMEOUT: Final = 15.0
"""Maximum seconds for a consumer to finish its current batch: longer than a statement may take."""

ACK_WAIT: Final = 20.0
"""Seconds after which the server redelivers an unacknowledged message: longer than `GRACEFUL_TIMEOUT`."""

MODEL_SECONDS: Final = 180.0
"""Maximum seconds for a batch that asks a language model: three attempts at the default timeout."""

MAINTAIN: Final = "work.maintain"
"""Prefix of the subjects on which the server's schedules publish triggers for `maintain`."""

BATCHES: Final = "work.batches"
"""Prefix of the subjects of triggers to check batches, or to request a window again."""

MAX_COMPACTIONS: Final = 16
"""Maximum number of conversations that a process compacts at once, each with a database connection."""

DEFERRING: Final = 1_000_000
"""`max_ack_pending` of consumers that delay messages of some users, so that these messages do not block
other users.
"""


class BatchPolicy(NamedTuple):
    """Sizes and timing with which a process reads a durable.

    Attributes:
        size: maximum number of messages per batch.
        linger: maximum seconds for which a batch collects messages.
        overlap: maximum number of batches in work at the same time, so that one is fetched while another is
            written.
    """

    size: int
    linger: float
    overlap: int = 1


@dataclass(frozen=True, slots=True)
class DurableConsumer:
    """A durable consumer: its configuration on the server, and the batches in which a process reads it.

    Attributes:
        name: name on the server.
        stream: the stream that the consumer reads.
        description: text that stock NATS tools and the admin page show.
        batches: batch policy of a process; a function if the deployment determines the policy.
        filters: subjects that the consumer reads; empty for the whole stream, which is twice as fast as a
            filter.
        ack_wait: seconds without a sign of the process after which the server redelivers an unacknowledged
            message.
        handling_seconds: maximum seconds for which a process may handle a batch. If longer than `ack_wait`,
            the process tells the server meanwhile that the batch is in progress.
        max_ack_pending: maximum number of unacknowledged messages; None takes the server's default.
    """

    name: str
    stream: str
    description: str
    batches: BatchPolicy | Callable[[Deployment], BatchPolicy]
    filters: tuple[str, ...] = ()
    ack_wait: float = ACK_WAIT
    handling_seconds: float = ACK_WAIT
    max_ack_pending: int | None = None

    @property
    def consumer(self) -> str:
        """Process role that reads the durable."""
        return self.name.partition("-")[0]

    def get_batch_policy(self, deployment: Deployment) -> BatchPolicy:
        """Return the batch policy of a process of a deployment."""
        return self.batches if isinstance(self.batches, BatchPolicy) else self.batches(deployment)


def _build_persist_policy(deployment: Deployment) -> BatchPolicy:
    return BatchPolicy(
        deployment.persist_batch, deployment.persist_linger_ms / 1000, deployment.persist_writers
    )


def _build_index_policy(deployment: Deployment) -> BatchPolicy:
    return BatchPolicy(deployment.index_batch, deployment.index_linger_ms / 1000, deployment.index_writers)


def _build_compact_policy(deployment: Deployment) -> BatchPolicy:
    return BatchPolicy(1, linger=1, overlap=min(deployment.model_requests, MAX_COMPACTIONS))


def _build_extract_policy(deployment: Deployment) -> BatchPolicy:
    return BatchPolicy(deployment.model_requests, linger=0.05, overlap=2)


_DURABLES = (
    DurableConsumer(
        "persist", LOG, "Projects the log into PostgreSQL", _build_persist_policy, max_ack_pending=20_000
    ),
    DurableConsumer("index", LOG, "Makes the log searchable", _build_index_policy, max_ack_pending=20_000),
    DurableConsumer(
        "dedupe",
        LOG,
        "Decides which facts are kept",
        BatchPolicy(500, linger=0.01, overlap=2),
        filters=(build_event_filter("fact.proposed"), build_event_filter("fact.compared")),
        max_ack_pending=DEFERRING,
    ),
    DurableConsumer(
        "persist-sweep",
        WORK,
        "Removes content that was cleared, discarded or erased, or has ended",
        BatchPolicy(100, linger=0.5),
        filters=("work.persist.>",),
    ),
    DurableConsumer(
        "index-sweep",
        WORK,
        "Brings a user's vectors in line with the projections",
        BatchPolicy(20, linger=0.1),
        filters=("work.index.>",),
    ),
    DurableConsumer(
        "dedupe-limits",
        WORK,
        "Evicts surplus facts, and facts of discarded messages",
        BatchPolicy(20, linger=1),
        filters=("work.dedupe.>",),
    ),
    DurableConsumer(
        "maintain",
        WORK,
        "Removes expired facts and finished work",
        BatchPolicy(10, linger=1),
        filters=(f"{MAINTAIN}.>",),
        max_ack_pending=1,
    ),
    DurableConsumer(
        "compact-said",
        WORK,
        "Finds conversations that are long enough for a summary",
        BatchPolicy(100, linger=0.2),
        filters=("work.compact.*",),
    ),
    DurableConsumer(
        "compact",
        WORK,
        "Writes summaries of conversations",
        _build_compact_policy,
        filters=("work.compact.*.*.*",),
        handling_seconds=MODEL_SECONDS,
        max_ack_pending=DEFERRING,
    ),
    DurableConsumer(
        "extract-said",
        WORK,
        "Finds users with new messages for a window",
        BatchPolicy(100, linger=0.5),
        filters=("work.extract.*",),
    ),
    DurableConsumer(
        "extract",
        WORK,
        "Extracts facts from conversations that are idle or long enough",
        _build_extract_policy,
        filters=("work.extract.*.*",),
        handling_seconds=MODEL_SECONDS,
    ),
    DurableConsumer(
        "extract-batches",
        WORK,
        "Submits batches, and fetches their results",
        BatchPolicy(10, linger=0.05),
        filters=(f"{BATCHES}.>",),
        handling_seconds=MODEL_SECONDS,
    ),
)

DURABLES: Final[Mapping[str, DurableConsumer]] = MappingProxyType({each.name: each for each in _DURABLES})
"""Every durable consumer, by name."""
