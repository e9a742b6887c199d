"""Spelling of commands for the present installation."""

import os


def spell_command(command: str) -> str:
    """A command for a person to type next: in a clone without an environment of its own, `uv run` has it."""
    return f"uv run {command}" if "UV" in os.environ else command
