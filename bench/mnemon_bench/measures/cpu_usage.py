"""Who keeps how many cores busy while something is measured: what binds, and what has room."""

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import psutil


@contextmanager
def busy_cores(measured: Sequence[psutil.Process]) -> Iterator[dict[str, float]]:
    """Count as long as the block lasts; the result is filled at its end.

    Args:
        measured: the processes that it is about; each is named by its number, from `process 1` on.

    Returns:
        Cores, by what keeps them busy: each of `measured`, the servers that this process has started, and
        `all` of the machine, whatever else runs there.
    """
    names = {process.pid: f"process {number}" for number, process in enumerate(measured, 1)}
    before, begun = _used(names), time.perf_counter()
    psutil.cpu_percent()
    busy: dict[str, float] = {}
    yield busy
    machine = psutil.cpu_percent() / 100 * (psutil.cpu_count() or 1)
    seconds = time.perf_counter() - begun
    after = _used(names)
    busy |= {name: round((used - before.get(name, 0.0)) / seconds, 2) for name, used in after.items()}
    busy["all"] = round(machine, 2)


def _used(names: dict[int, str]) -> dict[str, float]:
    """Seconds of a processor, by name. What has ended counts with its parent."""
    used: dict[str, float] = defaultdict(float)
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            name = names.get(process.pid) or _name(process)
            used[name] += times.user + times.system + times.children_user + times.children_system
    return used


def _name(process: psutil.Process) -> str:
    """The program's; a module's where that is Python."""
    command = process.cmdline()
    return command[command.index("-m") + 1] if "-m" in command else process.name()
