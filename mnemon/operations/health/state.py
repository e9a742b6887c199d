"""State of a deployment, in the form in which `mnemon status --json` prints it."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from mnemon.operations.health.lag import Lag, StreamState
from mnemon.operations.health.language_models import ModelsState
from mnemon_infra.health.fault import FaultKind


class _FrozenState(BaseModel):
    model_config = ConfigDict(frozen=True)


class BrokerState(_FrozenState):
    """State of the broker; `error` is set, and the rest empty, if the broker does not answer."""

    error: str | None = None
    version: str | None = None
    max_payload: int | None = None
    """Size of the largest message that the server accepts, in bytes."""
    streams: dict[str, StreamState] = {}
    consumers: dict[str, Lag] = {}
    services: dict[str, int] = {}
    """Numbers of processes that answer requests, by name of the service."""
    dead_letters: int = 0
    storage_used_ratio: float | None = None
    """Used share of JetStream's storage, from 0 to 1.

    None if the account has no limit, the login lacks the permission, or the server does not answer in time.
    """
    oldest_dead_letter: datetime | None = None
    """Time at which the oldest dead letter was stored; None if there are no dead letters."""
    drift: dict[str, str] = {}
    """Parts of the server that `mnemon provision` would change, each with the difference."""
    events_per_second: dict[str, float] = {}
    """Current rate of chat events, in events per second, by tenant."""
    events_meant: dict[str, float] = {}
    """The setting `rates.events_per_second` of each tenant whose bots exceed it, in events per second."""
    late_events: dict[str, int] = {}
    """Number of late events that are not forwarded, by tenant.

    A late event is one that this deployment has received since its tenant moved to another deployment.
    """


class DatabaseState(_FrozenState):
    """State of the database; `error` is set if it does not answer.

    `revision` is that of the schema, and `head` the one that this version of mnemon needs. `revision` and
    `version` are None without an answer, or if no migration has created the schema.
    """

    error: str | None = None
    version: str | None = None
    schema_name: str
    revision: str | None = None
    head: str


class VectorsState(_FrozenState):
    """The vector store, and the consumers that must run in one process because of it (`one_process`).

    `version` and `error` concern a Qdrant server; both are None for the embedded engine.
    """

    engine: Literal["server", "embedded"]
    one_process: tuple[str, ...] = ()
    version: str | None = None
    error: str | None = None


class FolderState(_FrozenState):
    """The folder of a stack that `mnemon up` runs, and the free space of its disk."""

    path: str
    free_bytes: int
    is_full: bool
    """True if the free space is below the limit at which a disk counts as full: writes may fail."""
    is_nearly_full: bool = False
    """True if the free space is below the limit at which processes report that they are not ready."""


class ConsumerFault(_FrozenState):
    """A fault of a durable, with the next step.

    `Health.problems` has the problem and the next step as one sentence.
    """

    consumer: str
    fault: FaultKind
    problem: str
    next_step: str


class Health(_FrozenState):
    """Health of a deployment. `problems` describes in sentences what an operator has to fix."""

    broker: BrokerState
    database: DatabaseState
    vectors: VectorsState
    folder: FolderState | None = None
    """The folder of the stack; None if `mnemon up` does not run the servers."""
    models: ModelsState | None = None
    """The work for language models; None if a server does not answer or the schema has another version."""
    reachable: bool
    """True if NATS and the database answer; the vector store does not count."""
    healthy: bool
    """True if there are no problems; warnings do not count."""
    problems: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    """Sentences about conditions that may become problems."""
    faults: tuple[ConsumerFault, ...] = ()
    """The durables that are missing, paused, not read, or at a standstill."""
