"""Shared parts of all commands: output, exit codes, signals, questions."""
