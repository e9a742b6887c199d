"""The streams, consumers and buckets of a deployment, as tables, and the code that creates them."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    DiscardPolicy,
    KeyValueConfig,
    RetentionPolicy,
    StorageType,
    StreamConfig,
)
from nats.js.errors import APIError, NotFoundError

from mnemon_contracts.streams import DEAD, LOG, SETTINGS, WORK
from mnemon_contracts.subjects import event_filter

STATEMENT_TIMEOUT = 10.0
"""Seconds after which the database cancels a statement."""

GRACEFUL_TIMEOUT = 15.0
"""Seconds a consumer has to finish its current batch: longer than a statement may take."""

ACK_WAIT = 20.0
"""Seconds after which the server redelivers an unacknowledged message: longer than `GRACEFUL_TIMEOUT`."""

MODEL_WAIT = 180.0
"""`ACK_WAIT` of consumers that ask a language model: longer than an answer may take, with all retries."""

SETTINGS_KEPT = 64
"""Revisions that the bucket keeps of the general settings, and of each tenant's settings."""

MAINTAIN = "work.maintain"
"""Prefix of the subjects on which the server's schedules publish triggers for `maintain`."""

BATCHES = "work.batches"
"""Prefix of the subjects of scheduled triggers for batches that a provider has."""

STREAMS = (
    StreamConfig(
        name=LOG,
        description="The truth: events of the bots, and events derived from them",
        subjects=["chat.>", "memory.>"],
        retention=RetentionPolicy.LIMITS,
        storage=StorageType.FILE,
        duplicate_window=120,
        allow_direct=True,
        allow_atomic=True,
    ),
    StreamConfig(
        name=WORK,
        description="Triggers and schedules: can be lost and derived again",
        subjects=["work.>", "schedule.>"],
        retention=RetentionPolicy.WORK_QUEUE,
        storage=StorageType.FILE,
        # One trigger per user and consumer waits at a time: a newer one says all that the older one said.
        max_msgs_per_subject=1,
        discard=DiscardPolicy.OLD,
        allow_msg_schedules=True,
        allow_msg_ttl=True,
    ),
    StreamConfig(
        name=DEAD,
        description="Dead letters, with reason, error and origin",
        subjects=["dead.>"],
        retention=RetentionPolicy.LIMITS,
        storage=StorageType.FILE,
        allow_direct=True,
    ),
)


def _consumer_config(name: str, description: str, **options: Any) -> ConsumerConfig:
    return ConsumerConfig(
        durable_name=name,
        description=description,
        deliver_policy=DeliverPolicy.ALL,
        ack_policy=AckPolicy.EXPLICIT,
        max_deliver=-1,
        **{"ack_wait": ACK_WAIT} | options,
    )


CONSUMERS: Mapping[str, tuple[ConsumerConfig, ...]] = {
    LOG: (
        _consumer_config(
            "persist",
            "Projects the log into PostgreSQL",
            max_ack_pending=20_000,
            # No filter: it takes the whole log, and a filter makes the server half as fast.
        ),
        _consumer_config("index", "Makes the log searchable", max_ack_pending=20_000),
        _consumer_config(
            "dedupe",
            "Decides what is kept",
            filter_subjects=[event_filter("fact.proposed"), event_filter("fact.compared")],
            # Proposals beyond a user's limit are delayed, and count as pending: they must not block others.
            max_ack_pending=1_000_000,
        ),
    ),
    WORK: (
        _consumer_config(
            "persist-sweep",
            "Removes the content of what was cleared or discarded",
            filter_subject="work.persist.>",
        ),
        _consumer_config(
            "index-sweep",
            "Brings a user's vectors to what the projections say",
            filter_subject="work.index.>",
        ),
        _consumer_config(
            "dedupe-limits",
            "Looks whether a user has too many facts, or facts of discarded messages",
            filter_subject="work.dedupe.>",
        ),
        _consumer_config(
            "maintain", "Removes what has expired", filter_subject=f"{MAINTAIN}.>", max_ack_pending=1
        ),
        _consumer_config("compact-said", "Looks who has said enough", filter_subject="work.compact.*"),
        _consumer_config(
            "compact",
            "Writes summaries of conversations",
            filter_subject="work.compact.*.*.*",
            ack_wait=MODEL_WAIT,
            # Triggers that wait for a model or a budget count as pending: they must not block others.
            max_ack_pending=1_000_000,
        ),
        _consumer_config("extract-said", "Looks who has said something", filter_subject="work.extract.*"),
        _consumer_config(
            "extract",
            "Reads conversations that rest",
            filter_subject="work.extract.*.*",
            ack_wait=MODEL_WAIT,
        ),
        _consumer_config(
            "extract-batches",
            "Submits batches, and fetches their results",
            filter_subject=f"{BATCHES}.>",
            ack_wait=MODEL_WAIT,
        ),
    ),
}

BUCKETS = (KeyValueConfig(bucket=SETTINGS, description="Run-time settings", history=SETTINGS_KEPT),)


_TOO_FEW = frozenset({10005, 10074})
"""Errors of a server: too few servers for the copies of a stream, or no cluster at all."""


class TooFewServers(Exception):
    """More copies are configured than there are servers."""


@dataclass(frozen=True, slots=True)
class ProvisionedChange:
    """The change that `provision` made, or would make, to one stream, consumer or bucket."""

    what: str
    action: Literal["created", "updated", "unchanged"]
    detail: str = ""


async def provision(connection: Client, replicas: int | None = None) -> list[ProvisionedChange]:
    """Bring the server to the state that this module declares: create absent objects, update differing ones.

    Args:
        connection: to any server of a cluster.
        replicas: how many servers keep a copy of each stream and bucket; a consumer has those of its stream.
            None keeps the number that exists, for callers that only create absent objects.

    Raises:
        TooFewServers: there are fewer servers than copies.
        nats.js.errors.APIError: the server refuses a change, such as another retention of a live stream.
    """
    try:
        return await _reconcile(connection, replicas, change=True)
    except APIError as error:
        if error.err_code not in _TOO_FEW:
            raise
        problem = f"no {replicas} copies of each stream can be kept: {error.description}"
        raise TooFewServers(f"{problem}. Set MNEMON_REPLICAS to what the NATS servers can keep") from error


async def drift(connection: Client, replicas: int | None = None) -> list[ProvisionedChange]:
    """List the changes that `provision` would make, without making them."""
    return await _reconcile(connection, replicas, change=False)


async def begin_again(connection: Client, stream: str, name: str) -> int:
    """Have a consumer read its stream from the start. Return the number of messages that it will read.

    Raises:
        nats.errors.Error: the server does not answer, or refuses.
    """
    stream_context = connection.jetstream()
    with suppress(NotFoundError):
        await stream_context.delete_consumer(stream, name)
    await provision(connection)
    return (await stream_context.consumer_info(stream, name)).num_pending or 0


async def _reconcile(connection: Client, replicas: int | None, *, change: bool) -> list[ProvisionedChange]:
    stream_context = connection.jetstream()
    changes = [
        await _stream(stream_context, config.evolve(num_replicas=replicas), change) for config in STREAMS
    ]
    for stream, consumers in CONSUMERS.items():
        changes += [await _consumer(stream_context, stream, config, change) for config in consumers]
    changes += [await _bucket(stream_context, config, replicas, change) for config in BUCKETS]
    return changes


async def _stream(stream_context: JetStreamContext, config: StreamConfig, change: bool) -> ProvisionedChange:
    what = f"stream {config.name}"
    try:
        info = await stream_context.stream_info(str(config.name))
    except NotFoundError:
        if change:
            await stream_context.add_stream(config)
        return ProvisionedChange(what, "created")
    return _changed(what, await _updated(stream_context, info.config, config, change))


async def _consumer(
    stream_context: JetStreamContext, stream: str, config: ConsumerConfig, change: bool
) -> ProvisionedChange:
    what = f"consumer {config.durable_name} of {stream}"
    try:
        info = await stream_context.consumer_info(stream, str(config.durable_name))
    except NotFoundError:
        if change:
            await stream_context.add_consumer(stream, config)
        return ProvisionedChange(what, "created")
    actual = info.config.as_dict() if info.config else {}
    difference = _difference(_stated(config), actual)
    if difference and change:
        await stream_context.add_consumer(stream, config)
    return _changed(what, difference)


async def _bucket(
    stream_context: JetStreamContext, config: KeyValueConfig, replicas: int | None, change: bool
) -> ProvisionedChange:
    what = f"bucket {config.bucket}"
    try:
        info = await stream_context.stream_info(f"KV_{config.bucket}")
    except NotFoundError:
        if change:
            await stream_context.create_key_value(config.evolve(replicas=replicas or 1))
        return ProvisionedChange(what, "created")
    ours = StreamConfig(num_replicas=replicas)  # nats-py sets the other fields
    return _changed(what, await _updated(stream_context, info.config, ours, change))


async def _updated(
    stream_context: JetStreamContext, actual: StreamConfig, wanted: StreamConfig, change: bool
) -> list[str]:
    """Return the differences; with `change`, update the stream."""
    stated = _stated(wanted)
    difference = _difference(stated, actual.as_dict())
    if difference and change:
        await stream_context.update_stream(actual.evolve(**{name: getattr(wanted, name) for name in stated}))
    return difference


def _stated(config: StreamConfig | ConsumerConfig) -> dict[str, Any]:
    """Return the fields that mnemon sets; the server decides the others."""
    defaults = type(config)().as_dict()
    return {name: value for name, value in config.as_dict().items() if value != defaults.get(name)}


def _difference(wanted: Mapping[str, Any], actual: Mapping[str, Any]) -> list[str]:
    return [
        f"{name}: {actual.get(name)!r} should be {value!r}"
        for name, value in wanted.items()
        if actual.get(name) != value
    ]


def _changed(what: str, difference: Iterable[str]) -> ProvisionedChange:
    detail = "; ".join(difference)
    return ProvisionedChange(what, "updated" if detail else "unchanged", detail)
