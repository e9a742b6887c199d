"""A fault that this process cannot go on with: it ends in good order, and says that nobody asked it to."""

import signal

_reported: list[str] = []


def end_process(problem: str) -> None:
    """Have this process end as by SIGTERM; the command that runs it ends with 3.

    Args:
        problem: what happened, and what to do about it.
    """
    _reported.append(problem)
    signal.raise_signal(signal.SIGTERM)


def take_fault() -> str | None:
    """Return the first fault since the last call; None where there was none."""
    problem = _reported[0] if _reported else None
    _reported.clear()
    return problem
