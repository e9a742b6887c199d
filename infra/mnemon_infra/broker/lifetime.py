"""Life of a FastStream broker: building, connecting, running and stopping it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from weakref import WeakSet

import nats.errors
import structlog
from faststream.nats import NatsBroker
from faststream.nats.security import NatsCredentials, NatsNKey, NatsSecurity
from nats.aio.client import Client

from mnemon_infra.broker import patches
from mnemon_infra.broker.connection import OPTIONS, BrokerUnreachable, login, report_error, servers
from mnemon_infra.broker.provisioning.presence import look_after
from mnemon_infra.broker.provisioning.topology import GRACEFUL_TIMEOUT
from mnemon_infra.config import Deployment
from mnemon_infra.process.fault import end_process

log = structlog.get_logger("broker")

_ending: WeakSet[NatsBroker] = WeakSet()


_running: set[NatsBroker] = set()


def disconnected() -> list[str]:
    """Return the names of running brokers' connections that are down now."""
    connections = [broker.config.connection_state.connection for broker in _running]
    return [connection.options["name"] for connection in connections if not connection.is_connected]


def _nothing() -> None:
    pass


def build_broker(deployment: Deployment, name: str, on_gap: Callable[[], None] = _nothing) -> NatsBroker:
    """Build a broker with the options and callbacks that every mnemon process needs.

    Args:
        deployment: where the servers are.
        name: name of the connection on the server, after `mnemon-`.
        on_gap: called when core messages may have been missed: after a reconnect, or when this process was
            too slow to take them.

    Raises:
        BrokerUnreachable: no server is configured.
        BrokerRefused: the configured login cannot be used.
    """
    if deployment.nats_url is None:
        raise BrokerUnreachable("no NATS server is configured: set MNEMON_NATS_URL")
    patches.apply()

    async def disconnected() -> None:
        # Requests may arrive a moment before nats-py reports the reconnect.
        on_gap()

    async def closed() -> None:
        # After some server errors nats-py gives up for good: no process is better than one that seems alive.
        if broker not in _ending:
            log.critical("connection closed by the server, ending this process", connection=name)
            end_process(f"the NATS server closed the connection {name} for good; the log says why")

    async def reconnected() -> None:
        log.info("reconnected", connection=name)
        on_gap()

    async def failed(error: Exception) -> None:
        await report_error(error)
        if isinstance(error, nats.errors.SlowConsumerError):
            on_gap()

    broker = NatsBroker(
        servers(deployment.nats_url),
        name=f"mnemon-{name}",
        graceful_timeout=GRACEFUL_TIMEOUT,
        logger=None,
        # FastStream's dependency injection runs every argument through a thread: 0.7 ms a call.
        apply_types=False,
        security=_security(login(deployment.nats_url)),
        **{
            **OPTIONS,
            "error_cb": failed,
            "closed_cb": closed,
            "disconnected_cb": disconnected,
            "reconnected_cb": reconnected,
        },
    )
    return broker


def _security(login: dict[str, Any]) -> NatsSecurity | None:
    """Return the arguments of `login` as FastStream's security object."""
    context = login.get("tls")
    if "user_credentials" in login:
        return NatsCredentials(login["user_credentials"], ssl_context=context)
    if "nkeys_seed" in login:
        return NatsNKey(login["nkeys_seed"], ssl_context=context)
    return NatsSecurity(ssl_context=context) if context else None


@asynccontextmanager
async def connected(broker: NatsBroker) -> AsyncIterator[Client]:
    """Connect; the subscribers do not run yet. On exit, send all pending messages."""
    connection = await broker.connect()
    try:
        yield connection
    finally:
        _ending.add(broker)
        await broker.stop()


async def subscribed(connection: Client) -> None:
    """Return when the server has read all subscriptions; before that it answers callers with "no responders".

    Raises:
        nats.errors.Error: the server does not answer.
    """
    # nats-py's ping overtakes pending messages: only the second ping comes after them.
    await connection.flush()
    await connection.flush()


@asynccontextmanager
async def started(broker: NatsBroker, *durables: tuple[str, str]) -> AsyncIterator[None]:
    """Run the broker's subscribers. On enter the server knows them; on exit the current batches are finished.

    Args:
        broker: the broker.
        durables: stream and name of the consumers that it pulls from; a deleted one is created again.
    """
    await broker.start()
    connection: Client = broker.config.connection_state.connection
    await subscribed(connection)
    watching = asyncio.create_task(look_after(connection, durables))
    _running.add(broker)
    try:
        yield
    finally:
        _running.discard(broker)
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        await asyncio.gather(*(subscriber.stop() for subscriber in broker.subscribers))
