"""Streams and buckets of a deployment, as tables, and provisioning of these and of the durables."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal

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

from mnemon_contracts.streams import API_KEYS, DEAD, LOG, SETTINGS, WORK
from mnemon_infra.broker.streams.log_format import LogTooNew
from mnemon_infra.broker.streams.restored_log import RestoreUnfinished, require_usable_log
from mnemon_infra.durables import DURABLES, DurableConsumer

SETTINGS_KEPT = 64
"""Maximum number of revisions that the bucket keeps of the general settings, and of each tenant's settings.
"""

STREAMS = (
    StreamConfig(
        name=LOG,
        description="The log: events of bots, and events derived from them",
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
        # A newer trigger replaces an older one of the same subject without loss.
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


BUCKETS = (
    KeyValueConfig(bucket=SETTINGS, description="Run-time settings", history=SETTINGS_KEPT),
    KeyValueConfig(bucket=API_KEYS, description="API keys of the gateway: tenant, scopes and hash of each"),
)


_TOO_FEW = frozenset({10005, 10074})
"""Error codes of nats-server: too few servers for the copies of a stream, or no cluster at all."""


class TooFewServers(Exception):
    """More copies are configured than there are servers."""


PROVISION_REFUSALS: Final = LogTooNew, RestoreUnfinished, TooFewServers
"""Errors of `provision` that are not errors of NATS."""


@dataclass(frozen=True, slots=True)
class ProvisionedChange:
    """The change that `provision` made, or would make, to one stream, durable or bucket.

    `detail` lists the fields that differ; "" unless `action` is `updated`.
    """

    what: str
    action: Literal["created", "updated", "unchanged"]
    detail: str = ""


def build_consumer_config(durable: DurableConsumer) -> ConsumerConfig:
    """Return the configuration of a durable for the server."""
    (one,) = durable.filters if len(durable.filters) == 1 else (None,)
    return ConsumerConfig(
        durable_name=durable.name,
        description=durable.description,
        deliver_policy=DeliverPolicy.ALL,
        ack_policy=AckPolicy.EXPLICIT,
        max_deliver=-1,
        ack_wait=durable.ack_wait,
        max_ack_pending=durable.max_ack_pending,
        filter_subject=one,
        filter_subjects=list(durable.filters) if len(durable.filters) > 1 else None,
    )


async def provision(connection: Client, replicas: int | None = None) -> list[ProvisionedChange]:
    """Create the streams, durables and buckets that are absent, and update those that differ.

    Each stream and bucket has `replicas` copies, and a durable as many as its stream. None keeps the
    existing number, and creates absent objects with one copy.

    Raises:
        TooFewServers: there are fewer servers than copies.
        LogTooNew: a newer version has marked the log; nothing was changed.
        RestoreUnfinished: a restore into the log has not ended; nothing was changed.
        nats.js.errors.APIError: the server refuses a change, such as another retention of a live stream.
        nats.errors.Error: the server does not answer.
    """
    await require_usable_log(connection.jetstream())
    try:
        return await _reconcile_topology(connection, replicas, change=True)
    except APIError as error:
        if error.err_code not in _TOO_FEW:
            raise
        copies = "the copies" if replicas is None else f"{replicas} copies"
        problem = f"the NATS servers cannot keep {copies} of each stream: {error.description}"
        raise TooFewServers(
            f"{problem}. Set MNEMON_REPLICAS to at most the number of NATS servers"
        ) from error


async def provision_buckets(connection: Client, replicas: int | None = None) -> None:
    """Create the buckets that are absent, and update those that differ; `replicas` is as for `provision`.

    Raises:
        nats.errors.Error: the server does not answer, or refuses a change.
    """
    for config in BUCKETS:
        await _reconcile_bucket(connection.jetstream(), config, replicas, change=True)


async def list_drift(connection: Client, replicas: int | None = None) -> list[ProvisionedChange]:
    """Return the change that `provision` would make to each stream, durable and bucket, without making it.

    `replicas` is as for `provision`.
    """
    return await _reconcile_topology(connection, replicas, change=False)


async def reset_durable(connection: Client, stream: str, name: str) -> int:
    """Reset a durable to the start of its stream. Return the number of messages that its consumer will read.

    Raises:
        LogTooNew: a newer version has marked the log; nothing was changed.
        RestoreUnfinished: a restore into the log has not ended; nothing was changed.
        TooFewServers: there are fewer servers than copies; the durable may be deleted.
        nats.errors.Error: the server does not answer, or refuses the reset; the durable may be deleted.
    """
    stream_context = connection.jetstream()
    await require_usable_log(stream_context)
    with suppress(NotFoundError):
        await stream_context.delete_consumer(stream, name)
    await provision(connection)
    return (await stream_context.consumer_info(stream, name)).num_pending or 0


async def _reconcile_topology(
    connection: Client, replicas: int | None, *, change: bool
) -> list[ProvisionedChange]:
    stream_context = connection.jetstream()
    changes = [
        await _reconcile_stream(stream_context, config.evolve(num_replicas=replicas), change)
        for config in STREAMS
    ]
    changes += [await _reconcile_consumer(stream_context, durable, change) for durable in DURABLES.values()]
    changes += [await _reconcile_bucket(stream_context, config, replicas, change) for config in BUCKETS]
    return changes


async def _reconcile_stream(
    stream_context: JetStreamContext, config: StreamConfig, change: bool
) -> ProvisionedChange:
    what = f"stream {config.name}"
    try:
        info = await stream_context.stream_info(str(config.name))
    except NotFoundError:
        if change:
            await stream_context.add_stream(config)
        return ProvisionedChange(what, "created")
    return _describe_change(what, await _update_stream(stream_context, info.config, config, change))


async def _reconcile_consumer(
    stream_context: JetStreamContext, durable: DurableConsumer, change: bool
) -> ProvisionedChange:
    what = f"consumer {durable.name} of {durable.stream}"
    config = build_consumer_config(durable)
    try:
        info = await stream_context.consumer_info(durable.stream, durable.name)
    except NotFoundError:
        if change:
            await stream_context.add_consumer(durable.stream, config)
        return ProvisionedChange(what, "created")
    actual = info.config.as_dict() if info.config else {}
    difference = _list_differences(_list_stated_fields(config), actual)
    if difference and change:
        await stream_context.add_consumer(durable.stream, config)
    return _describe_change(what, difference)


async def _reconcile_bucket(
    stream_context: JetStreamContext, config: KeyValueConfig, replicas: int | None, change: bool
) -> ProvisionedChange:
    what = f"bucket {config.bucket}"
    try:
        info = await stream_context.stream_info(f"KV_{config.bucket}")
    except NotFoundError:
        if change:
            await stream_context.create_key_value(config.evolve(replicas=replicas or 1))
        return ProvisionedChange(what, "created")
    desired = StreamConfig(num_replicas=replicas)  # nats-py sets the other fields
    return _describe_change(what, await _update_stream(stream_context, info.config, desired, change))


async def _update_stream(
    stream_context: JetStreamContext, actual: StreamConfig, desired: StreamConfig, change: bool
) -> list[str]:
    """Return the differences of `actual` and `desired`; if `change` is true, update the stream too."""
    stated = _list_stated_fields(desired)
    difference = _list_differences(stated, actual.as_dict())
    if difference and change:
        await stream_context.update_stream(actual.evolve(**{name: getattr(desired, name) for name in stated}))
    return difference


def _list_stated_fields(config: StreamConfig | ConsumerConfig) -> dict[str, Any]:
    """Return the fields that mnemon sets; the server decides the others."""
    defaults = type(config)().as_dict()
    return {name: value for name, value in config.as_dict().items() if value != defaults.get(name)}


def _list_differences(desired: Mapping[str, Any], actual: Mapping[str, Any]) -> list[str]:
    return [
        f"{name}: {actual.get(name)!r} should be {value!r}"
        for name, value in desired.items()
        if actual.get(name) != value
    ]


def _describe_change(what: str, difference: Iterable[str]) -> ProvisionedChange:
    detail = "; ".join(difference)
    return ProvisionedChange(what, "updated" if detail else "unchanged", detail)
