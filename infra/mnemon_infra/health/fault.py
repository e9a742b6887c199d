"""Faults of a process or of a durable with their next steps, as `/readyz` and `mnemon status` show them."""

from datetime import datetime
from typing import Final, Literal, NamedTuple

from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import ConsumerInfo

from mnemon_infra.broker.dead_letters.limit import is_paused_by_dead_letters
from mnemon_infra.durables import DurableConsumer
from mnemon_infra.process.free_space import DiskSpace, format_megabytes

FaultKind = Literal[
    "missing",
    "paused",
    "unread",
    "stalled",
    "standstill",
    "failing",
    "log",
    "server",
    "disk",
    "model",
    "event_loop",
]
"""Kinds of faults: those of a durable first, then those of a process and of its servers."""

MOST_USED: Final = 0.95
"""Share of JetStream's storage limit above which the storage counts as nearly full."""

STORAGE_WAIT: Final = 1.0
"""Maximum seconds to wait for the used storage; a login without the right to ask gets no answer."""


class Fault(NamedTuple):
    """A reason for which a process or a durable does not work.

    Attributes:
        kind: the value of the label `fault` of the metric `mnemon_faults`. Only `mnemon status` reports
            `unread`.
        consumer: the durable concerned; empty for a fault of the process or of a server.
    """

    kind: FaultKind
    problem: str
    next_step: str = ""
    consumer: str = ""

    def __str__(self) -> str:
        return f"{self.problem}: {self.next_step}" if self.next_step else self.problem


def describe_missing(name: str) -> Fault:
    """Describe a durable that does not exist."""
    return Fault(
        "missing",
        f"the consumer {name} does not exist",
        "its processes create it again within 20 s; if none runs, run `mnemon provision`",
        name,
    )


async def describe_pause(connection: Client, durable: DurableConsumer, until: str) -> Fault:
    """Describe a paused durable.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    by_dead_letters = await is_paused_by_dead_letters(connection, durable.name, datetime.fromisoformat(until))
    return describe_known_pause(durable.stream, durable.name, until, by_dead_letters=by_dead_letters)


def describe_known_pause(stream: str, name: str, until: str, *, by_dead_letters: bool) -> Fault:
    """Describe a durable that was paused after too many dead letters, or by an operator."""
    if by_dead_letters:
        return Fault(
            "paused",
            f"{name} is paused until {until} after too many dead letters",
            f"run `mnemon dead list --consumer {name}`",
            name,
        )
    return Fault(
        "paused",
        f"{name} was paused by hand until {until}",
        f"run `nats consumer resume {stream} {name}`",
        name,
    )


def describe_unread(name: str, consumer: str, pending: int) -> Fault:
    """Describe a durable that no process reads."""
    return Fault(
        "unread",
        f"{pending:,} messages wait for {name}, which is not running",
        f"run `mnemon run {consumer}`; a process that runs it subscribes again within 30 s",
        name,
    )


def describe_stall(name: str, waiting: int, seconds: float) -> Fault:
    """Describe a durable whose messages wait without being delivered."""
    return Fault(
        "stalled",
        f"{name} has read nothing for {seconds:.0f} s, and {waiting:,} messages wait",
        "its processes subscribe again within 30 s; if they still read nothing, restart them, and check the "
        "NATS server",
        name,
    )


def describe_standstill(name: str, position: int, waiting: int, seconds: float) -> Fault:
    """Describe a durable whose applied position does not move."""
    return Fault(
        "standstill",
        f"{name} has stood still at position {position:,} for {seconds:.0f} s, and {waiting:,} messages wait",
        f"find the cause in the log messages of {name}, and check the servers that it writes to",
        name,
    )


def describe_failures(name: str, seconds: float) -> Fault:
    """Describe a durable whose batches all raise errors."""
    return Fault(
        "failing",
        f"every batch of {name} has failed for {seconds:.0f} s",
        "see `delivery batch failed, retrying` in its log messages, and report the traceback",
        name,
    )


def describe_disk(folder: object, space: DiskSpace) -> Fault:
    """Describe a disk that is nearly full."""
    return Fault(
        "disk",
        f"the disk of {folder} is nearly full ({format_megabytes(space.free)} of "
        f"{format_megabytes(space.total)} are free, {format_megabytes(space.needed)} are needed)",
        "free space on the disk; mnemon then continues automatically",
    )


def describe_storage(used_ratio: float) -> Fault:
    """Describe storage of JetStream that is nearly full."""
    return Fault(
        "disk",
        f"JetStream has used {used_ratio:.0%} of the storage of its account",
        "raise `max_file` of the account in the configuration of the NATS server, and make room on its disk",
    )


def describe_refusal(model: str, error: str, setting: str) -> Fault:
    """Describe a model that refuses requests until the key, the address or a setting is corrected."""
    return Fault(
        "model",
        f"{model} refuses requests: {error}",
        f"follow that step, or choose another model in {setting}. Waiting work is kept and tried again",
    )


async def measure_storage(stream_context: JetStreamContext) -> float | None:
    """Return the largest used share of the account's limits on JetStream's storage; None if no limit is set.

    Raises:
        nats.errors.Error: the server does not answer, or the login has no right to ask.
    """
    account = await stream_context.account_info()
    tiers = [(each.storage, each.limits) for each in (account.tiers or {}).values()]
    used = [
        stored / limits.max_storage
        for stored, limits in ((account.storage, account.limits), *tiers)
        if limits.max_storage > 0
    ]
    return max(used, default=None)


def count_unhandled_messages(info: ConsumerInfo) -> int:
    """Return the lag of a durable: messages that are not delivered, or not acknowledged, yet."""
    return (info.num_pending or 0) + (info.num_ack_pending or 0)
