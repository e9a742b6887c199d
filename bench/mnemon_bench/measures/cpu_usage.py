"""Number of cores that each process keeps busy during a measurement, to find the bottleneck."""

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import psutil


@contextmanager
def count_busy_cores(measured: Sequence[psutil.Process]) -> Iterator[dict[str, float]]:
    """Count busy cores for the duration of the block; the yielded dict is filled when the block ends.

    Args:
        measured: child processes of this process, which are named by number, from `process 1` on.

    Yields:
        Busy cores by name: each of `measured`, all other child processes by program or module, and `all` for
        the whole machine, with all other processes.
    """
    names = {process.pid: f"process {number}" for number, process in enumerate(measured, 1)}
    before, begun = _measure_seconds(names), time.perf_counter()
    psutil.cpu_percent()
    busy: dict[str, float] = {}
    yield busy
    machine = psutil.cpu_percent() / 100 * (psutil.cpu_count() or 1)
    seconds = time.perf_counter() - begun
    after = _measure_seconds(names)
    busy |= {name: round((used - before.get(name, 0.0)) / seconds, 2) for name, used in after.items()}
    busy["all"] = round(machine, 2)


def _measure_seconds(names: dict[int, str]) -> dict[str, float]:
    """Return the CPU seconds of the child processes by name; an ended process counts for its parent.

    `names` has the names of measured processes by process id.
    """
    used: dict[str, float] = defaultdict(float)
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            name = names.get(process.pid) or _name_process(process)
            used[name] += times.user + times.system + times.children_user + times.children_system
    return used


def _name_process(process: psutil.Process) -> str:
    """Return the name of the program, or of the module if it runs as `python -m`."""
    command = process.cmdline()
    return command[command.index("-m") + 1] if "-m" in command else process.name()
