"""Checks of the streams at a start, and of streams and durables while consumers run.

An absent durable is created, and a replaced log ends the process.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import nats.errors
import structlog
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import ConsumerInfo
from nats.js.errors import NotFoundError

from mnemon_contracts.streams import DEAD, LOG, WORK
from mnemon_infra.broker.durable_progress import DurableProgress
from mnemon_infra.broker.provisioning.topology import PROVISION_REFUSALS, STREAMS, provision
from mnemon_infra.broker.streams.log_comparison import (
    LOG_CHANGE_STEP,
    RECREATED,
    LogReading,
    ReceivedEvent,
    compare_log,
)
from mnemon_infra.broker.streams.restored_log import require_usable_log
from mnemon_infra.durables import DurableConsumer
from mnemon_infra.process.fault import end_process

log = structlog.get_logger("broker")

CHECK_INTERVAL = 10.0
"""Seconds between two checks."""

CONFIRM_SECONDS = 2.0
"""Seconds before a change of the log is checked again: a new leader may still apply its last events."""

_NO_STREAM = 10059
"""Error code of nats-server for an absent stream; an absent consumer has another code."""

LOG_ABSENT_STEP = (
    "if the stream was deleted, first restore its newest backup (`mnemon restore`). In a new "
    "deployment, `mnemon provision` creates the stream"
)


class StreamsMissing(Exception):
    """Streams are absent. The message has the next step; if the log is absent, it names no other stream."""

    def __init__(self, names: Sequence[str]) -> None:
        if LOG in names:
            problem = f"the stream {LOG} does not exist: {LOG_ABSENT_STEP}"
        else:
            problem = f"missing streams: {', '.join(names)}. Run `mnemon provision`"
        super().__init__(problem)


async def require_streams(connection: Client) -> None:
    """Check that all streams exist, that this version reads the log, and that no restore is unfinished.

    Consumers that start without the streams would wait for ever.

    Raises:
        StreamsMissing: a stream is absent.
        LogTooNew: a newer version has marked the log.
        RestoreUnfinished: a restore into the log has not ended.
        nats.errors.Error: the server does not answer.
    """
    stream_context = connection.jetstream()
    names = [str(config.name) for config in STREAMS]
    missing = [name for name in names if await _load_last_position(stream_context, name) is None]
    if missing:
        raise StreamsMissing(missing)
    await require_usable_log(stream_context)


async def watch_durables(
    connection: Client,
    durables: Sequence[DurableConsumer],
    resubscribe: Callable[[DurableConsumer], Awaitable[None]],
    get_newest: Callable[[], ReceivedEvent | None],
) -> None:
    """Check the log and the durables every `CHECK_INTERVAL` seconds.

    A durable that is absent is created, and a durable that is not read is subscribed to again.

    A subscriber that pulls from an absent durable retries without an error, and never recovers. The streams
    of triggers and of dead letters are created again too, but not the log: its positions would start at 1
    again, and rows have those positions already. If another log, or an older copy, has taken the place of the
    log, this process ends.

    Args:
        connection: an open connection.
        durables: the durables that this process reads; if empty, the function returns at once.
        resubscribe: subscribes this process again to a durable whose readers have stalled.
        get_newest: returns the newest event of the log that this process has received; None if it has
            received none.
    """
    stream_context = connection.jetstream()
    consumers = [durable.name for durable in durables]
    progress = DurableProgress()
    former: LogReading | None = None
    is_gone = False
    while durables:
        try:
            now, change = await compare_log(stream_context, former, get_newest())
            if change:
                await asyncio.sleep(CONFIRM_SECONDS)
                now, change = await compare_log(stream_context, former, get_newest())
            if now is None:
                if not is_gone:
                    log.error(
                        "log stream deleted, nothing is stored",
                        consumers=consumers,
                        next_step=LOG_ABSENT_STEP,
                    )
            elif change or (is_gone and former is None):
                log.critical("log stream replaced, ending this process", consumers=consumers)
                end_process(f"{change or RECREATED}. {LOG_CHANGE_STEP}")
                return
            else:
                infos = await _recreate_absent(connection, durables)
                progress.observe(infos)
                await _resubscribe_stalled(durables, progress, resubscribe)
            former, is_gone = now or former, now is None
        except (nats.errors.Error, OSError, *PROVISION_REFUSALS) as error:
            log.warning("stream check failed, retrying", error=repr(error))
        await asyncio.sleep(CHECK_INTERVAL)


async def _resubscribe_stalled(
    durables: Sequence[DurableConsumer],
    progress: DurableProgress,
    resubscribe: Callable[[DurableConsumer], Awaitable[None]],
) -> None:
    for durable in durables:
        if seconds := progress.measure_stall(durable.name):
            log.error(
                "consumer stalled, subscribing again", consumer=durable.name, stalled_seconds=int(seconds)
            )
            await resubscribe(durable)


async def _recreate_absent(connection: Client, durables: Sequence[DurableConsumer]) -> list[ConsumerInfo]:
    """Create absent streams, except the log, and absent durables.

    Returns:
        The states of the durables that existed, as the server reports them.
    """
    stream_context = connection.jetstream()
    for stream in (WORK, DEAD):
        if await _load_last_position(stream_context, stream) is None:
            log.error("stream deleted, recreating it empty", stream=stream)
            await provision(connection)
    return await recreate_durables(connection, durables)


async def recreate_durables(connection: Client, durables: Sequence[DurableConsumer]) -> list[ConsumerInfo]:
    """Create the durables that are absent; return the states of the others, as the server reports them.

    If the log is absent, the function stops at the first durable of the log.
    A subscriber would create an absent durable itself, with nats-py's defaults instead of the durable's
    filter and limits.

    Raises:
        LogTooNew, RestoreUnfinished, TooFewServers: a durable is absent, and `provision` cannot create it
            now.
        nats.errors.Error: the server does not answer, or refuses a durable.
    """
    stream_context = connection.jetstream()
    infos = []
    for durable in durables:
        try:
            infos.append(await stream_context.consumer_info(durable.stream, durable.name))
        except NotFoundError as error:
            if durable.stream == LOG and error.err_code == _NO_STREAM:
                break  # deleted a moment ago: the next check reports it
            log.error("durable found absent, creating it", stream=durable.stream, durable=durable.name)
            await provision(connection)
    return infos


async def _load_last_position(stream_context: JetStreamContext, stream: str) -> int | None:
    try:
        return (await stream_context.stream_info(stream)).state.last_seq
    except NotFoundError:
        return None
