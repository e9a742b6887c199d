"""Reply to `history`, the largest of all replies, written without validation.

`HistoryReplyV1` can parse the reply, and writes the same bytes in ten times the time. A property test
compares the bytes.
"""

from datetime import datetime

import msgspec

from mnemon_contracts.events.chat import Role


class HistoryMessage(msgspec.Struct, omit_defaults=True):
    """A message as `mnemon_contracts.verbs.ask.StoredMessage` writes it, without validation."""

    role: Role
    content: str
    seq: int
    id: str
    sent_at: datetime
    name: str | None = None
    task_id: str | None = None


class FastHistory(msgspec.Struct, omit_defaults=True):
    """A reply without an error, as `mnemon_contracts.verbs.ask.HistoryReplyV1` writes it, not validated."""

    seen_seq: int
    conversation: str
    messages: list[HistoryMessage]

    def encode_body(self) -> bytes:
        """Return the JSON of the reply."""
        return msgspec.json.encode(self)
