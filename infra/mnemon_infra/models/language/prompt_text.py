"""Times, names and texts of messages in the prompts of language models. All functions are pure."""

from collections.abc import Iterable
from typing import Final

from mnemon_infra.models.language.port import PromptMessage

WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
"""English names, independent of the locale of the process."""

NAME_BEGINNING: Final = 100
"""Maximum number of characters of a speaker's name that are shown; the name in an event may be longer."""


def join_instructions(instructions: str, own: str | None) -> str:
    """Return mnemon's instructions, then a tenant's own instructions; providers cache both as the prefix."""
    return f"{instructions}\nFurther instructions\n\n{own}\n" if own else instructions


def shorten_name(name: str | None) -> str | None:
    """Return a speaker's name on one line, shortened if it is long; None if there is none."""
    name = " ".join((name or "").split())
    return name[:NAME_BEGINNING] + "…" if len(name) > NAME_BEGINNING else name or None


def shorten_text(text: str, beginning: int, ending: int = 0) -> str:
    """Return the first `beginning` and the last `ending` characters of a text, with `[...]` between them.

    A text that is not longer is returned unchanged, and so is a text that was shortened with these arguments.
    """
    if len(text) <= beginning + ending:
        return text
    return "\n".join([text[:beginning], "[...]", *([text[-ending:]] if ending else [])])


def format_messages(messages: Iterable[PromptMessage]) -> str:
    """Return messages with numbers from 1, times and speakers; further lines of a text are indented."""
    return "\n".join(
        f"{number}. {_format_time(message)} {_format_speech(message)}"
        for number, message in enumerate(messages, 1)
    )


def _format_time(message: PromptMessage) -> str:
    """Format a message's date, time and weekday, from which a model can resolve "next Friday"."""
    return f"[{message.at:%Y-%m-%d %H:%M} {WEEKDAYS[message.at.weekday()]}]"


def _format_speech(message: PromptMessage) -> str:
    speaker = f"{message.role} ({message.name})" if message.name else message.role
    # Continuation lines are indented, so that they cannot pass for the beginning of another message.
    text = "\n   ".join(message.text.splitlines())
    return f"{speaker}: {text}"
