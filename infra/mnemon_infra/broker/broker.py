"""Connection of one process role to NATS, which FastStream builds and runs with mnemon's options."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

import nats.errors
import structlog
from faststream import AckPolicy
from faststream.nats import JStream, NatsBroker, PullSub
from faststream.nats.message import NatsBatchMessage
from faststream.nats.security import NatsCredentials, NatsNKey, NatsSecurity
from faststream.nats.subscriber.usecases.basic import LogicSubscriber
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import JetStreamContext

from mnemon_contracts.streams import LOG
from mnemon_infra.broker import patches
from mnemon_infra.broker.batch_processor import BatchProcessor, HandleBatch
from mnemon_infra.broker.connection import (
    OPTIONS,
    end_process_after_close,
    parse_login,
    report_error,
    require_servers,
    split_servers,
)
from mnemon_infra.broker.provisioning import presence
from mnemon_infra.broker.provisioning.presence import recreate_durables, watch_durables
from mnemon_infra.broker.streams.log_comparison import ReceivedEvent
from mnemon_infra.config import Deployment
from mnemon_infra.durables import GRACEFUL_TIMEOUT, DurableConsumer
from mnemon_infra.process.cancellation import run_task

log = structlog.get_logger("broker")

_running: set["Broker"] = set()


def list_lost_connections() -> list[str]:
    """Return the names of the connections that running brokers have lost and not restored yet."""
    connections = [broker.connection for broker in _running]
    return [connection.options["name"] for connection in connections if not connection.is_connected]


def get_newest_received() -> ReceivedEvent | None:
    """Return position and time of the newest log event that this process received; None before the first."""
    received = [broker.newest_received for broker in _running if broker.newest_received]
    return max(received, default=None)


class _SubjectHandler(NamedTuple):
    """A subject of core NATS with its handler; processes with the same queue group share the messages."""

    subject: str
    queue: str
    handle: Callable[[Msg], Awaitable[None]]


class Broker:
    """A connection to NATS with subscriptions: to durables in batches, and to subjects of core NATS.

    Subscribe first, then enter `connect`, and within its block enter `run`.

    Args:
        deployment: the servers to connect to.
        name: name of the connection on the server, after `mnemon-`.
        on_gap: called when messages of core NATS may be missed: on a disconnect, after a reconnect, and when
            this process was too slow to take them.

    Attributes:
        connection: the connection to NATS, inside `connect`.
        stream_context: JetStream on this connection, inside `connect`.
        newest_received: position and time of the newest log event that arrived; None before the first.
            Events of the first 20 seconds after a reconnect do not count.

    Raises:
        BrokerUnreachable: no server is configured.
        BrokerRefused: the configured login cannot be used.
    """

    connection: Client
    stream_context: JetStreamContext

    def __init__(self, deployment: Deployment, name: str, on_gap: Callable[[], None] | None = None) -> None:
        servers = require_servers(deployment)
        patches.apply()
        self.durables: list[DurableConsumer] = []
        self.newest_received: ReceivedEvent | None = None
        self._noted_from = float("-inf")
        self._readers: dict[str, list[LogicSubscriber[Any]]] = {}
        self._subjects: list[_SubjectHandler] = []
        self._deployment = deployment
        self._name = name
        self._on_gap = on_gap
        self._is_ending = False
        self._faststream = NatsBroker(
            split_servers(servers),
            name=f"mnemon-{name}",
            graceful_timeout=GRACEFUL_TIMEOUT,
            logger=None,
            # FastStream's dependency injection runs every argument through a thread: 0.7 ms a call.
            apply_types=False,
            # Its serializer would make a pydantic model of each subscriber, a third of the time of a start.
            serializer=None,
            security=_build_security(parse_login(servers)),
            **{
                **OPTIONS,
                "error_cb": self._report_error,
                "closed_cb": self._end_process,
                "disconnected_cb": self._report_disconnect,
                "reconnected_cb": self._report_reconnect,
            },
        )

    def subscribe_durable(self, durable: DurableConsumer, handle: HandleBatch) -> None:
        """Subscribe to a durable, and pass its batches to `handle`.

        The `overlap` of the durable's batch policy is the maximum number of concurrent calls of `handle`.

        If `handle` raises, the error is logged, and the whole batch is retried. `run` creates the durable if
        it is absent.
        """
        self.durables.append(durable)
        processor = BatchProcessor(durable, handle, self._deployment.dead_limit)
        policy = durable.get_batch_policy(self._deployment)

        async def process(message: NatsBatchMessage) -> None:
            if durable.stream == LOG:
                self._note_newest(message.raw_message[-1])
            await processor.process(self.connection, message.raw_message)

        for _ in range(policy.overlap):
            subscriber = self._faststream.subscriber(
                ">",
                stream=JStream(durable.stream, declare=False),
                durable=durable.name,
                pull_sub=PullSub(batch=True, batch_size=policy.size, timeout=policy.linger),
                ack_policy=AckPolicy.MANUAL,
                parser=_wrap_batch,
                decoder=_keep_batch,
            )
            subscriber(process)
            self._readers.setdefault(durable.name, []).append(subscriber)

    def subscribe_subject(self, subject: str, queue: str, handle: Callable[[Msg], Awaitable[None]]) -> None:
        """Subscribe to a subject, and pass each message to `handle`, which has to send any reply.

        Processes with the same queue group `queue` share the messages. An error of `handle` is logged.
        nats-py calls `handle`: FastStream would take 0.2 ms more for each message.
        """
        self._subjects.append(_SubjectHandler(subject, queue, handle))

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Client]:
        """Connect to a server for the duration of the block. The subscribers run only within `run`.

        At the end of the block, all pending messages are sent.
        """
        self.connection = await self._faststream.connect()
        self.stream_context = self.connection.jetstream()
        try:
            yield self.connection
        finally:
            self._is_ending = True
            await self._faststream.stop()

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Run the subscribers for the duration of the block.

        The server has all subscriptions when the block begins. At the end of the block, the current batches
        and the messages of subjects that have arrived have up to `GRACEFUL_TIMEOUT` seconds to finish. Within
        the block, an absent durable is created, and the process subscribes again to a durable whose readers
        have stalled.

        Raises:
            LogTooNew, RestoreUnfinished, TooFewServers: a durable is absent and cannot be created now.
            nats.errors.Error: the server does not answer, or refuses a durable.
        """
        await recreate_durables(self.connection, self.durables)
        await self._faststream.start()
        subscriptions = [
            await self.connection.subscribe(each.subject, each.queue, cb=each.handle)
            for each in self._subjects
        ]
        await confirm_subscriptions(self.connection)
        watch = watch_durables(
            self.connection, self.durables, self._resubscribe, lambda: self.newest_received
        )
        _running.add(self)
        try:
            async with run_task(watch):
                yield
        finally:
            _running.discard(self)
            await asyncio.gather(
                *(subscriber.stop() for subscriber in self._faststream.subscribers),
                *map(self._end_subscription, subscriptions),
            )

    async def _end_subscription(self, subscription: Subscription) -> None:
        """Handle the messages that have arrived, for up to `GRACEFUL_TIMEOUT` seconds, and accept no more.

        Without a connection, no reply could be sent, so the messages are dropped.
        """
        with suppress(nats.errors.Error, TimeoutError):
            async with asyncio.timeout(GRACEFUL_TIMEOUT):
                if self.connection.is_connected:
                    await subscription.drain()  # type: ignore[no-untyped-call]
                else:
                    await subscription.unsubscribe()

    def _note_newest(self, message: Msg) -> None:
        if time.monotonic() < self._noted_from:
            return  # the next check compares the log with an event that arrived before the reconnect
        position = message.metadata.sequence.stream
        if self.newest_received is None or position > self.newest_received.position:
            self.newest_received = ReceivedEvent(position, message.metadata.timestamp)

    async def _resubscribe(self, durable: DurableConsumer) -> None:
        for reader in self._readers[durable.name]:
            await reader.stop()
            await reader.start()

    async def _report_disconnect(self) -> None:
        self._noted_from = float("inf")
        # Requests may arrive a moment before nats-py reports the reconnect.
        self._report_gap()

    async def _report_reconnect(self) -> None:
        self._noted_from = time.monotonic() + 2 * presence.CHECK_INTERVAL
        log.info("reconnected to NATS", connection=self._name)
        self._report_gap()

    async def _report_error(self, error: Exception) -> None:
        await report_error(error)
        if isinstance(error, nats.errors.SlowConsumerError):
            self._report_gap()

    async def _end_process(self) -> None:
        if not self._is_ending:
            end_process_after_close(self._name)

    def _report_gap(self) -> None:
        if self._on_gap is not None:
            self._on_gap()


async def confirm_subscriptions(connection: Client) -> None:
    """Wait until the server has read all subscriptions. Until then, callers get "no responders"."""
    # nats-py's ping overtakes pending messages: only the second ping comes after them.
    await connection.flush()
    await connection.flush()


def _build_security(login: dict[str, Any]) -> NatsSecurity | None:
    """Return the result of `parse_login` in FastStream's form; None without credentials and without TLS."""
    context = login.get("tls")
    if "user_credentials" in login:
        return NatsCredentials(login["user_credentials"], ssl_context=context)
    if "nkeys_seed" in login:
        return NatsNKey(login["nkeys_seed"], ssl_context=context)
    return NatsSecurity(ssl_context=context) if context else None


async def _wrap_batch(messages: list[Msg]) -> NatsBatchMessage:
    """Wrap a batch without touching its messages; FastStream would copy each body and its headers."""
    return NatsBatchMessage(raw_message=messages, body=b"")


async def _keep_batch(message: NatsBatchMessage) -> NatsBatchMessage:
    """Return the batch undecoded, so that the handler gets the batch even if one body is invalid."""
    return message
