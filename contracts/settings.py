"""Run-time settings: kept in the key-value bucket `settings`, watched by every process."""

from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field

from contracts.base import Contract, Text

DEFAULT_KEY = "default"
"""The key of the settings that hold for every tenant."""


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError) as error:
        raise ValueError(f"{name!r} is no time zone; expected a name such as Europe/Moscow") from error
    return name


def _usable_template(template: str) -> str:
    try:
        shown = template.format(time="", text="what was said")
    except (AttributeError, KeyError, IndexError, ValueError) as error:
        raise ValueError("may hold {time} and {text}, and no other braces") from error
    if "what was said" not in shown:
        raise ValueError("must hold {text}")
    return template


class TimeStamps(Contract):
    """How a user's message is stamped when it is shown to a model."""

    enabled: bool = Field(default=True, description="Stamp messages of the role `user` in `context`.")
    template: Annotated[Text, AfterValidator(_usable_template)] = Field(
        default="[{time}] {text}", description="`{time}` is when it was said, `{text}` what was said."
    )
    time_format: Text = Field(default="%Y-%m-%d %H:%M", description="As of strftime.")
    zone: Annotated[Text, AfterValidator(_known_zone)] = Field(
        default="UTC", description="Time zone of the stamp, such as Europe/Moscow."
    )


class SettingsV1(Contract):
    """Everything that can be set while processes run."""

    recent_messages: int = Field(
        default=10, ge=1, le=1000, description="Messages that `context` shows whole."
    )
    time_stamps: TimeStamps = Field(default=TimeStamps(), description="Time stamps on users' messages.")
    wait_for_log_ms: int = Field(
        default=500,
        ge=0,
        le=10_000,
        description="How long a request with `min_seq` waits for the projections.",
    )
