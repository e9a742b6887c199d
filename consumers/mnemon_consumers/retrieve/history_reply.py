"""Reply to `history`, the largest of all replies, written without validation.

`HistoryReplyV1` reads the result. A property test checks that it would write the same bytes, in ten times the
time.
"""

from datetime import datetime

import msgspec

from mnemon_contracts.events.chat import Role


class HistoryMessage(msgspec.Struct, omit_defaults=True):
    """Fast counterpart of `mnemon_contracts.verbs.ask.StoredMessage`."""

    role: Role
    content: str
    seq: int
    id: str
    sent_at: datetime
    name: str | None = None
    task_id: str | None = None


class FastHistory(msgspec.Struct, omit_defaults=True):
    """Fast counterpart of `mnemon_contracts.verbs.ask.HistoryReplyV1`, without an error."""

    seen_seq: int
    conversation: str
    messages: list[HistoryMessage]

    def body(self) -> bytes:
        """Return the JSON of the reply."""
        return msgspec.json.encode(self)
