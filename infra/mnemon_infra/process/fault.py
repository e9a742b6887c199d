"""Faults that a process cannot survive: the process shuts down, and its exit code reports the fault."""

import signal

_reported: list[str] = []


def end_process(problem: str) -> None:
    """End this process as SIGTERM does. The command then exits with code 3.

    Args:
        problem: description of the fault, and the next step.
    """
    _reported.append(problem)
    signal.raise_signal(signal.SIGTERM)


def take_fault() -> str | None:
    """Return the first problem passed to `end_process` since the last call; None if there was none."""
    problem = _reported[0] if _reported else None
    _reported.clear()
    return problem
