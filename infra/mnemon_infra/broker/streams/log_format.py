"""Format of the log: the version of the conventions for the subjects and headers of its events.

A log without the key `FORMAT` in its metadata has format 1. A new version of mnemon may write events that
earlier versions would misread instead of making dead letters of them. Then `mnemon provision` of the new
version has to mark the log with a higher format.
"""

from typing import Final

from nats.js.api import StreamInfo

from mnemon_contracts.streams import LOG

FORMAT: Final = "mnemon-format"
"""Key in the metadata of `LOG`; the value is the format, a number."""

KNOWN_FORMAT: Final = 1
"""The newest format that this version reads."""


class LogTooNew(Exception):
    """A newer version of mnemon marked the log; the message names the next step."""

    def __init__(self, found: str) -> None:
        super().__init__(
            f"the stream {LOG} was prepared by a newer mnemon (format {found}, this version knows "
            f"{KNOWN_FORMAT} at most). Nothing has been changed. Upgrade mnemon, or restore a backup from "
            "before the upgrade into other servers"
        )


def require_known_format(info: StreamInfo) -> None:
    """Check that this version reads the format of the log.

    Raises:
        LogTooNew: a newer version has marked the log.
    """
    found = (info.config.metadata or {}).get(FORMAT, "1")
    if not found.isascii() or not found.isdigit() or int(found) > KNOWN_FORMAT:
        raise LogTooNew(found)
