"""Checks that streams and consumers exist, at a start and while consumers run."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import nats.errors
import structlog
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from mnemon_contracts.streams import DEAD, LOG, WORK
from mnemon_infra.broker.provisioning.topology import STREAMS, provision
from mnemon_infra.durables import DurableConsumer
from mnemon_infra.process.fault import end_process

log = structlog.get_logger("broker")

CHECK_INTERVAL = 10.0
"""Seconds between two checks."""

_NO_STREAM = 10059
"""nats-server's code for an absent stream; an absent consumer has another code."""

_NEXT_STEP = (
    "if the stream was deleted, first restore its newest backup (nats stream restore). In a new "
    "deployment, `mnemon provision` creates the stream"
)


class StreamsMissing(Exception):
    """Streams are absent; the message names them and the next step."""

    def __init__(self, names: Sequence[str]) -> None:
        if LOG in names:
            problem = f"the stream {LOG} does not exist: {_NEXT_STEP}"
        else:
            problem = f"missing streams: {', '.join(names)}. Run `mnemon provision`"
        super().__init__(problem)


async def require_streams(connection: Client) -> None:
    """Check that all streams exist. Consumers that start without them would wait for ever.

    Raises:
        StreamsMissing: a stream is absent.
        nats.errors.Error: the server does not answer.
    """
    stream_context = connection.jetstream()
    names = [str(config.name) for config in STREAMS]
    missing = [name for name in names if await _last_position(stream_context, name) is None]
    if missing:
        raise StreamsMissing(missing)


async def watch_durables(connection: Client, durables: Sequence[DurableConsumer]) -> None:
    """Check every `CHECK_INTERVAL` seconds that the consumers exist, and create deleted ones again.

    A subscriber that pulls from an absent consumer retries without an error, and never recovers. The streams
    of triggers and of dead letters are created again too, but not the log: its positions would start at 1
    again, and rows have those positions already. If another program deletes the log and creates it again,
    this process ends.

    Args:
        connection: an open connection.
        durables: the consumers; without any, the function returns at once.
    """
    stream_context = connection.jetstream()
    consumers = [durable.name for durable in durables]
    former: _LogState | None = None
    is_gone = False
    while durables:
        try:
            now = await _read_log(stream_context)
            if now is None:
                if not is_gone:
                    log.error(
                        "log stream deleted, nothing is stored", consumers=consumers, next_step=_NEXT_STEP
                    )
            elif is_gone or (former and now.is_another_than(former)):
                log.critical("log stream recreated, ending this process", consumers=consumers)
                end_process(
                    f"the stream {LOG} was deleted and created again. Restore its newest backup (nats stream "
                    "restore), then start again"
                )
                return
            else:
                await _recreate_absent(connection, durables)
            former, is_gone = now, now is None
        except (nats.errors.Error, OSError) as error:
            log.warning("server check failed, retrying", error=repr(error))
        await asyncio.sleep(CHECK_INTERVAL)


class _LogState(NamedTuple):
    """Time of the log's creation, and its last position."""

    created: datetime | None
    end: int

    def is_another_than(self, former: "_LogState") -> bool:
        return self.created != former.created or self.end < former.end


async def _read_log(stream_context: JetStreamContext) -> _LogState | None:
    try:
        info = await stream_context.stream_info(LOG)
    except NotFoundError:
        return None
    return _LogState(info.created, info.state.last_seq)


async def _recreate_absent(connection: Client, durables: Sequence[DurableConsumer]) -> None:
    stream_context = connection.jetstream()
    for stream in (WORK, DEAD):
        if await _last_position(stream_context, stream) is None:
            log.error("stream deleted, recreating it empty", stream=stream)
            await provision(connection)
    for durable in durables:
        try:
            await stream_context.consumer_info(durable.stream, durable.name)
        except NotFoundError as error:
            if durable.stream == LOG and error.err_code == _NO_STREAM:
                return  # deleted a moment ago: the next check reports it
            log.error("consumer deleted, recreating it", stream=durable.stream, consumer=durable.name)
            await provision(connection)


async def _last_position(stream_context: JetStreamContext, stream: str) -> int | None:
    try:
        return (await stream_context.stream_info(stream)).state.last_seq
    except NotFoundError:
        return None
