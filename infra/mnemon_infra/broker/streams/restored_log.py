"""Restored log: the mark of a restore that has not ended, and the last position that a restore wrote."""

from typing import Final

from nats.js import JetStreamContext
from nats.js.api import ConsumerInfo, StreamInfo
from nats.js.errors import NotFoundError

from mnemon_contracts.streams import LOG
from mnemon_infra.broker.streams.log_format import require_known_format

UNFINISHED: Final = "mnemon-restore"
"""Key in the metadata of `LOG` while a restore writes it; the value identifies the backup."""

RESTORED: Final = "mnemon-restored"
"""Key in the metadata of `LOG` after a restore; the value is that of `UNFINISHED`.

The value ends with a colon and the last restored position.
"""

LEFT_OUT: Final = "mnemon-restore-left-out"
"""Key in the metadata of `LOG` after a restore; the value is the number of events that were left out."""

RESTORED_END: Final = "mnemon-restore-end"
"""Key in the metadata of `LOG` after a restore; the value is the last position of the log at the end of the
restore, with the events of later erasures, which the restore adds."""

FILLER_SUBJECT: Final = "restore.filler"
"""Subject of the messages that a restore or a move puts at positions without an event, and then removes.

`LOG` has the subject only until these messages are removed, and no login of a bot or a worker may publish on
it.
"""


class RestoreUnfinished(Exception):
    """A restore into the log has not ended; the message names the next step."""

    def __init__(self) -> None:
        super().__init__(
            f"a restore into the stream {LOG} has not ended, so nothing is served: run the same `mnemon "
            "restore` again; it continues where it stopped"
        )


def require_finished_restore(info: StreamInfo) -> None:
    """Check that no restore into the log is unfinished.

    Raises:
        RestoreUnfinished: a restore was interrupted, or is running.
    """
    if UNFINISHED in (info.config.metadata or {}):
        raise RestoreUnfinished


def parse_restored_position(info: StreamInfo) -> int:
    """Return the last position of the restored backup; 0 for a log without a finished restore."""
    return int((info.config.metadata or {}).get(RESTORED, "0").rpartition(":")[2])


def describe_replay(log: StreamInfo, persist: ConsumerInfo) -> str | None:
    """Return a sentence about restored events that have no rows yet; None if there are none.

    Args:
        log: the state of the log.
        persist: the state of the consumer that writes the rows.
    """
    restored = parse_restored_position(log)
    reached = persist.ack_floor.stream_seq if persist.ack_floor else 0
    if reached >= restored or not (persist.num_pending or persist.num_ack_pending):
        return None
    return (
        f"the log was restored up to position {restored:,}, and its rows are written up to position "
        f"{reached:,}: replies lack the rest until persist has read it"
    )


async def require_usable_log(stream_context: JetStreamContext) -> None:
    """Check that this version reads the format of the log, and that no restore is unfinished.

    An absent log passes.

    Raises:
        LogTooNew: a newer version has marked the log.
        RestoreUnfinished: a restore into the log has not ended.
    """
    try:
        info = await stream_context.stream_info(LOG)
    except NotFoundError:
        return
    require_known_format(info)
    require_finished_restore(info)
