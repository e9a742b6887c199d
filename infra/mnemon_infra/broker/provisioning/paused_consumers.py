"""Consumers that are paused: by an operator, or after too many dead letters."""

from datetime import datetime
from typing import NamedTuple

from nats.aio.client import Client

from mnemon_contracts.streams import LOG, WORK
from mnemon_infra.broker.streams.stream_lists import list_consumers
from mnemon_infra.durables import DURABLES


class PausedConsumer(NamedTuple):
    """A paused consumer of a stream. `waiting` is the number of messages that are not handled yet."""

    stream: str
    consumer: str
    until: datetime
    waiting: int


async def list_paused_consumers(connection: Client) -> list[PausedConsumer]:
    """List the paused consumers of the streams `LOG` and `WORK`.

    Raises:
        nats.errors.Error: the server does not answer, or a stream is absent.
    """
    stream_context = connection.jetstream()
    return [
        PausedConsumer(
            stream,
            info.name,
            datetime.fromisoformat(info.config.pause_until),
            (info.num_pending or 0) + (info.num_ack_pending or 0),
        )
        for stream in (LOG, WORK)
        for info in await list_consumers(stream_context, stream)
        if info.paused and info.config and info.config.pause_until
    ]


async def resume_consumer(connection: Client, consumer: str) -> bool:
    """Resume one of mnemon's consumers. Return False if no consumer of mnemon has this name.

    Raises:
        nats.js.errors.NotFoundError: the server lacks the durable or its stream.
        nats.errors.Error: it is unknown whether the consumer resumes.
    """
    durable = DURABLES.get(consumer)
    if durable is None:
        return False
    await connection.jetstream().resume_consumer(durable.stream, durable.name)
    return True
