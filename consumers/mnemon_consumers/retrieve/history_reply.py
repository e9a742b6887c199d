"""Reply to `history`, the largest of all replies, encoded without validation.

`HistoryReplyV1` can parse the reply, and encodes the same bytes in ten times the time. A property test
compares the bytes.
"""

from datetime import datetime

import msgspec

from mnemon_contracts.events.chat import Role


class HistoryMessage(msgspec.Struct, omit_defaults=True):
    """A message with the fields of `mnemon_contracts.verbs.ask.StoredMessage`, encoded without validation."""

    role: Role
    content: str
    seq: int
    id: str
    sent_at: datetime
    name: str | None = None
    task_id: str | None = None


class MessageTooLong(Exception):
    """The newest message is longer than a reply may be; `seq` is its log position."""

    def __init__(self, seq: int) -> None:
        super().__init__(f"the message at log position {seq} is too long for a reply")
        self.seq = seq


class FastHistory(msgspec.Struct, omit_defaults=True):
    """A reply with the fields of `mnemon_contracts.verbs.ask.HistoryReplyV1`, without an error.

    It is encoded without validation.
    """

    seen_seq: int
    conversation: str
    messages: list[HistoryMessage]
    left_out: int | None = None

    def encode_body(self) -> bytes:
        """Return the JSON of the reply."""
        return msgspec.json.encode(self)

    def encode_newest(self, most_bytes: int) -> bytes:
        """Return the JSON of the reply with the newest messages that fit, and how many are left out.

        Raises:
            MessageTooLong: the newest message alone does not fit.
        """
        body = self.encode_body()
        if len(body) <= most_bytes:
            return body
        unread = self.left_out or 0
        empty = FastHistory(self.seen_seq, self.conversation, [], len(self.messages) + unread)
        room = most_bytes - len(empty.encode_body())
        shown = 0
        for message in reversed(self.messages):
            room -= len(msgspec.json.encode(message)) + (1 if shown else 0)  # a comma
            if room < 0:
                break
            shown += 1
        cut = len(self.messages) - shown
        if shown and cut and self.messages[cut - 1].seq == self.messages[cut].seq:
            cut += 1  # the entry that names a message's tools is left out with the message
        if cut == len(self.messages):
            raise MessageTooLong(self.messages[-1].seq)
        newest = self.messages[cut:]
        return FastHistory(self.seen_seq, self.conversation, newest, cut + unread).encode_body()
