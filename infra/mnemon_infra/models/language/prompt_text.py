"""Time stamps and names in the prompts of language models. All functions are pure."""

from typing import Final

from mnemon_infra.models.language.port import PromptMessage

WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
"""English names, independent of the locale of the process."""

NAME_BEGINNING: Final = 100
"""Characters of a speaker's name that are shown; names have no limit."""


def join_instructions(instructions: str, own: str | None) -> str:
    """Append a tenant's instructions to mnemon's; both together form the prefix that providers cache."""
    return f"{instructions}\nFurther instructions\n\n{own}\n" if own else instructions


def shorten_name(name: str | None) -> str | None:
    """Return a speaker's name on one line, shortened if it is long; None without a name."""
    name = " ".join((name or "").split())
    return name[:NAME_BEGINNING] + "…" if len(name) > NAME_BEGINNING else name or None


def shorten_text(text: str, beginning: int, ending: int = 0) -> str:
    """Return a long text's first and last characters, with a mark between them."""
    if len(text) <= beginning + ending:
        return text
    return f"{text[:beginning]}\n[...]\n{text[len(text) - ending :]}".rstrip()


def format_time(message: PromptMessage) -> str:
    """Format the time of a message with date, time and weekday, so that models can resolve "next Friday"."""
    return f"[{message.at:%Y-%m-%d %H:%M} {WEEKDAYS[message.at.weekday()]}]"


def format_speech(message: PromptMessage) -> str:
    """Format a message with its speaker."""
    speaker = f"{message.role} ({message.name})" if message.name else message.role
    # Continuation lines are indented, so that they cannot pass for the beginning of another message.
    text = "\n   ".join(message.text.splitlines())
    return f"{speaker}: {text}"
