"""Conversations of LoCoMo (Maharana et al., 2024) as chat events.

Each sample becomes one conversation with the name of the sample. Its user has the same name, unless another
user is given. `speaker_a` is the user and `speaker_b` the assistant; the field `name` of a message is
the name of the speaker. Sessions without turns are left out.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from mnemon_contracts.base import InvalidBody, describe_first_problem
from mnemon_contracts.events.chat import MessageV1, Role, StartedV1
from mnemon_producers.events import ChatEvent

_SESSION = re.compile(r"session_([0-9]+)\Z")
_TIME = "%I:%M %p on %d %B, %Y"


class NotLocomo(ValueError):
    """The text is not a LoCoMo file. The message says why; the caller adds the next step."""


class _Turn(BaseModel):
    # Other fields of a turn, such as `blip_caption` of a picture that was sent, are kept as metadata.
    model_config = ConfigDict(extra="allow")

    speaker: str
    dia_id: str
    text: str


class _Sample(BaseModel):
    sample_id: str
    conversation: dict[str, Any]


# Validate these as JSON: for a Python value, an error of pydantic names the class.
_SAMPLES = TypeAdapter(list[_Sample])
_TURNS = TypeAdapter(list[_Turn])


@dataclass(frozen=True, slots=True)
class LocomoConversation:
    """A sample as events: the start of the conversation, then one message per turn."""

    name: str
    sessions: int
    events: tuple[ChatEvent, ...]

    @property
    def turns(self) -> int:
        """Number of messages."""
        return len(self.events) - 1


def read_conversations(
    text: str | bytes, *, tenant: str, user: str | None = None
) -> list[LocomoConversation]:
    """Read a file: one sample, or a list of them as in `locomo10.json`.

    The id of every event is made of tenant, user, sample and turn, so reading a file again gives the same
    events. A session has one time, to the minute; its turns get times one millisecond apart, in their order.

    Args:
        text: the content of the file.
        tenant: the tenant of the events.
        user: the user who gets the conversations; None names a user after each sample.

    Raises:
        NotLocomo: the text is not a LoCoMo file, or a turn cannot be a message.
    """
    try:
        content = from_json(text.removeprefix(BOM_UTF8) if isinstance(text, bytes) else text)
        samples = _SAMPLES.validate_json(to_json(content if isinstance(content, list) else [content]))
    except ValidationError as error:
        raise NotLocomo(describe_first_problem(error, "sample")) from error
    except ValueError as error:
        raise NotLocomo(f"the file is not JSON: {error}") from error
    return [
        _build_conversation(sample, tenant, sample.sample_id if user is None else user) for sample in samples
    ]


def _build_conversation(sample: _Sample, tenant: str, user: str) -> LocomoConversation:
    name = sample.sample_id
    prefix = f"locomo:{tenant}:{user}:{name}"
    sessions = 0
    try:
        events = [ChatEvent(user, StartedV1.create_strict(id=f"{prefix}:start"), name)]
        first = sample.conversation["speaker_a"]
        for session, began, turns in _iterate_sessions(sample.conversation):
            sessions += 1
            for number, turn in enumerate(turns):
                role: Role = "user" if turn.speaker == first else "assistant"
                sent_at = began + timedelta(milliseconds=number)
                message = _build_message(f"{prefix}:{turn.dia_id}", role, sent_at, session, turn)
                events.append(ChatEvent(user, message, name))
    except KeyError as error:
        raise NotLocomo(f"sample {name}: the field {error.args[0]} is missing") from error
    except NotLocomo as error:
        raise NotLocomo(f"sample {name}: {error}") from error
    except InvalidBody as error:
        raise NotLocomo(f"sample {name}: {_omit_next_step(error)}") from error
    return LocomoConversation(name, sessions, tuple(events))


def _build_message(event_id: str, role: Role, sent_at: datetime, session: int, turn: _Turn) -> MessageV1:
    try:
        return MessageV1.create_strict(
            id=event_id,
            role=role,
            content=turn.text,
            name=turn.speaker,
            sent_at=sent_at,
            metadata={"dia_id": turn.dia_id, "session": session, **(turn.model_extra or {})},
        )
    except InvalidBody as error:
        raise NotLocomo(
            f"session_{session}: the turn {turn.dia_id} cannot be a message: {_omit_next_step(error)}"
        ) from error


def _iterate_sessions(conversation: dict[str, Any]) -> Iterator[tuple[int, datetime, list[_Turn]]]:
    numbers = sorted(int(found[1]) for key in conversation if (found := _SESSION.match(key)))
    for number in numbers:
        key = f"session_{number}"
        try:
            turns = _TURNS.validate_json(to_json(conversation[key]))
        except ValidationError as error:
            raise NotLocomo(f"{key}: {describe_first_problem(error, 'turn')}") from error
        if turns:
            yield number, _parse_time(f"{key}_date_time", conversation[f"{key}_date_time"]), turns


def _parse_time(field: str, text: object) -> datetime:
    try:
        return datetime.strptime(str(text), _TIME).replace(tzinfo=UTC)
    except ValueError as error:
        raise NotLocomo(f"{field}: {text!r} is not a time such as '1:56 pm on 8 May, 2023'") from error


def _omit_next_step(error: InvalidBody) -> str:
    """Return the field and the problem without the next step, which is about a request, not about a file."""
    return f"{error.field}: {error.problem.partition(';')[0]}"
