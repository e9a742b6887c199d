"""Fast parser of `message.v1`, with which `persist` and `index` read every message.

`MessageV1` accepts every body that this parser accepts, with the same values; a property test checks that.
Bodies that the parser does not accept go to the contract, which accepts or refuses them, and reports errors.
"""

from datetime import MAXYEAR, MINYEAR, UTC, datetime
from typing import Any, Literal

import msgspec

from mnemon_contracts.base import BODY_LIMIT, ID_LIMIT


class _ParsedToolCall(msgspec.Struct):
    name: str
    id: str | None = None
    arguments: Any = None


class ParsedMessage(msgspec.Struct):
    """The checked fields of a message.

    Of these, `persist` reads `id` and `sent_at`; PostgreSQL reads the other fields from the body.
    """

    role: Literal["user", "assistant", "tool", "system"]
    content: str
    id: str | None = None
    sent_at: datetime | None = None
    name: str | None = None
    task_id: str | None = None
    tool_calls: list[_ParsedToolCall] | None = None
    metadata: dict[str, Any] | None = None

    def compute_sent_time(self) -> float | None:
        """Return `sent_at` in seconds since 1970; None if it is absent. Without an offset, it is in UTC."""
        if self.sent_at is None:
            return None
        moment = self.sent_at
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


MOST_BRACKETS = 100
"""Maximum number of opening brackets in a body that is parsed without a check of its nesting.

The limit exists because the contract's parser limits the depth.
"""

_decode = msgspec.json.Decoder(ParsedMessage).decode


def parse_message(body: bytes) -> ParsedMessage | None:
    """Parse a message; None if the contract `MessageV1` has to parse the body.

    The contract has to parse bodies that do not match `ParsedMessage`, are too large, may be nested too
    deeply, contain U+0000 or bytes that are not UTF-8, or have an id or a time out of range.
    """
    if len(body) > BODY_LIMIT or b"\\u0000" in body or body.count(b"[") + body.count(b"{") > MOST_BRACKETS:
        return None
    try:
        body.decode()
        message = _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if not _is_valid_id(message.id) or not _is_valid_id(message.task_id):
        return None
    if message.sent_at is not None and not MINYEAR < message.sent_at.year < MAXYEAR:
        return None
    return message


def _is_valid_id(identifier: str | None) -> bool:
    return identifier is None or (
        0 < len(identifier) <= ID_LIMIT // 4 or 0 < len(identifier.encode()) <= ID_LIMIT
    )
