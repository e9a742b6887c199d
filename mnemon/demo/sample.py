"""Sample events: conversations and profiles of three users; some bodies are invalid on purpose."""

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Final, TypeAlias

from mnemon_contracts.events.chat import ClearedV1, MessageV1, StartedV1
from mnemon_contracts.events.memory import ProfileSetV1

ANNA, IVAN, LENA = USERS = ("anna", "иван", "lena")

SampleEvent: TypeAlias = MessageV1 | StartedV1 | ClearedV1 | ProfileSetV1

_EVENTS: Final[dict[str, type[SampleEvent]]] = {
    "message": MessageV1,
    "started": StartedV1,
    "cleared": ClearedV1,
    "profile.set": ProfileSetV1,
}


@dataclass(frozen=True, slots=True)
class SampleLine:
    """One event of the sample.

    Attributes:
        conversation: the conversation; None means the user's current conversation.
        event: the event to publish; bytes for invalid data of a bot.
    """

    user: str
    conversation: str | None
    event: SampleEvent | bytes


def read_sample() -> tuple[SampleLine, ...]:
    """Return the lines in the order of publication.

    Raises:
        InvalidBody: the `body` of a line does not satisfy its contract.
    """
    text = (files("mnemon.demo") / "conversation.jsonl").read_text(encoding="utf-8")
    return tuple(_parse_line(**json.loads(line)) for line in text.splitlines())


def _parse_line(
    event: str,
    user: str,
    conversation: str | None = None,
    body: dict[str, object] | None = None,
    raw: str | None = None,
) -> SampleLine:
    if raw is not None:
        return SampleLine(user, conversation, raw.encode())
    return SampleLine(user, conversation, _EVENTS[event].parse(json.dumps(body).encode()))
