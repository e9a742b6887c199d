"""Time stamps and names, as every request to a language model has them. No I/O, no clock."""

from typing import Final

from mnemon_infra.models.language.port import PromptMessage

WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
"""English names, independent of the locale of the process."""

NAME_BEGINNING: Final = 100
"""Characters of a speaker's name that are shown, of which there is no end."""


def instructed(instructions: str, own: str | None) -> str:
    """Instructions with a tenant's own behind them: all of it is the beginning that is cached."""
    return f"{instructions}\nFurther instructions\n\n{own}\n" if own else instructions


def shown_name(name: str | None) -> str | None:
    """A speaker's name on one line, or of a longer one the beginning; None where there is none."""
    name = " ".join((name or "").split())
    return name[:NAME_BEGINNING] + "…" if len(name) > NAME_BEGINNING else name or None


def time_stamp(said: PromptMessage) -> str:
    """When something was said: date, time and weekday, which "next Friday" is counted from."""
    return f"[{said.at:%Y-%m-%d %H:%M} {WEEKDAYS[said.at.weekday()]}]"


def speech(said: PromptMessage) -> str:
    """Who says what."""
    speaker = f"{said.role} ({said.name})" if said.name else said.role
    # Lines that are set in cannot pass for the beginning of another message.
    text = "\n   ".join(said.text.splitlines())
    return f"{speaker}: {text}"
