"""Raising of a log's last position, so that its next events have positions that another log has not used.

Ids of derived events contain positions. After a move, the new deployment must not make an id that the old one
has made.
"""

from collections.abc import Callable
from typing import Final

from nats.aio.client import Client

from mnemon_contracts.streams import LOG
from mnemon_infra.broker.provisioning.restoration import FILLER, TIMEOUT, remove_fillers, store_batch
from mnemon_infra.broker.streams.log_writer import BATCH
from mnemon_infra.broker.streams.restored_log import FILLER_SUBJECT

PURGED_AT_ONCE: Final = 20_000
"""Number of fillers after which they are removed, so that consumers receive few of them."""


async def raise_last_position(connection: Client, above: int, progress: Callable[[int, int], None]) -> int:
    """Write and remove fillers until the log's last position is `above` or higher.

    Return the number of positions by which the log has grown, events of other clients included.

    If the process is killed, repeat the call: the second call also removes the fillers that the first one
    left, and the subject of fillers from the log's configuration.

    `progress` is called after every `PURGED_AT_ONCE` fillers, with the position reached so far and `above`.

    Raises:
        nats.errors.Error: the server does not answer, or refuses.
    """
    stream_context = connection.jetstream(timeout=TIMEOUT)
    info = await stream_context.stream_info(LOG)
    first = last = info.state.last_seq
    config = info.config
    subjects = [each for each in config.subjects or () if each != FILLER_SUBJECT]
    if last >= above and subjects == config.subjects:
        return 0
    await stream_context.update_stream(config.evolve(subjects=[*subjects, FILLER_SUBJECT]))
    try:
        purged = last
        while last < above:
            last = await store_batch(connection, [FILLER] * min(BATCH, above - last))
            if last - purged >= PURGED_AT_ONCE:
                await remove_fillers(connection)
                purged = last
                progress(last, above)
    finally:
        await remove_fillers(connection)
        config = (await stream_context.stream_info(LOG)).config
        await stream_context.update_stream(config.evolve(subjects=subjects))
    return last - first
