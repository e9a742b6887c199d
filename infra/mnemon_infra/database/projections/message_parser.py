"""Reading `message.v1` on the hot path.

`MessageV1` accepts what this accepts, with the same values; a property test says so.
What it does not accept goes to the contract, which decides, and says what is wrong in words for a person.
"""

from datetime import MAXYEAR, MINYEAR, UTC, datetime
from typing import Any, Literal

import msgspec

from mnemon_contracts.base import BODY_LIMIT, ID_LIMIT


class _ToolCall(msgspec.Struct):
    name: str
    id: str | None = None
    arguments: Any = None


class ParsedMessage(msgspec.Struct):
    """The fields that persist reads itself; the others are checked and then left to PostgreSQL."""

    role: Literal["user", "assistant", "tool", "system"]
    content: str
    id: str | None = None
    sent_at: datetime | None = None
    name: str | None = None
    task_id: str | None = None
    tool_calls: list[_ToolCall] | None = None
    metadata: dict[str, Any] | None = None

    def spoken_at(self) -> float | None:
        """`sent_at` in seconds since 1970; without an offset it is UTC."""
        if self.sent_at is None:
            return None
        moment = self.sent_at
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


DEEPEST = 100
"""Brackets of a body that are taken without a look at how deep they go; the contract's parser has a limit."""

_decode = msgspec.json.Decoder(ParsedMessage).decode


def read(body: bytes) -> ParsedMessage | None:
    """The message, or None where the contract has to have a look.

    Besides what does not fit, those are bodies that PostgreSQL might refuse: with U+0000, with bytes that
    are not UTF-8, with numbers beyond all measure.
    """
    if len(body) > BODY_LIMIT or b"\\u0000" in body or body.count(b"[") + body.count(b"{") > DEEPEST:
        return None
    try:
        body.decode()
        message = _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if not _fits(message.id) or not _fits(message.task_id):
        return None
    if message.sent_at is not None and not MINYEAR < message.sent_at.year < MAXYEAR:
        return None
    return message


def _fits(identifier: str | None) -> bool:
    return identifier is None or (
        0 < len(identifier) <= ID_LIMIT // 4 or 0 < len(identifier.encode()) <= ID_LIMIT
    )
