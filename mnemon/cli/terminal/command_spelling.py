"""Spelling of commands for the present installation."""

import os


def spell_command(command: str) -> str:
    """Return a command to type next; with the prefix `uv run` if this process was started that way."""
    return f"uv run {command}" if "UV" in os.environ else command
