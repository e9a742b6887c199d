"""Reply to `history`, the largest of all replies, written without validation.

`HistoryReplyV1` can parse the reply. A property test checks that it writes the same bytes, which takes ten
times as long.
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
