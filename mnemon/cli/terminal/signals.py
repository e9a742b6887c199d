"""Handling of the signals that stop a command: Ctrl-C, SIGTERM, and the end of the terminal."""

import asyncio
import signal
from types import TracebackType
from typing import Self


def list_ending_signals() -> list[signal.Signals]:
    """Return SIGTERM and SIGHUP; without SIGHUP if the process ignores this signal, as under `nohup`."""
    is_hangup_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGTERM] if is_hangup_ignored else [signal.SIGTERM, signal.SIGHUP]


class StopSignals:
    """Handler of the signals that stop a command, inside its `with` block.

    The first signal ends `wait`, and the command stops in order; before `wait`, the signal cancels the start.
    While the command stops, each further signal cancels the step that runs.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._waiting = False
        self._task = asyncio.current_task()
        self._signals = [signal.SIGINT, *list_ending_signals()]

    def __enter__(self) -> Self:
        for number in self._signals:
            asyncio.get_running_loop().add_signal_handler(number, self._handle_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in self._signals:
            asyncio.get_running_loop().remove_signal_handler(number)

    async def wait(self) -> None:
        """Wait for the first signal.

        Raises:
            asyncio.CancelledError: a signal came during the start, but a library caught its cancellation.
        """
        if self._task and self._task.cancelling():
            raise asyncio.CancelledError
        self._waiting = True
        await self._event.wait()

    def _handle_signal(self) -> None:
        if self._waiting and not self._event.is_set():
            self._event.set()
        elif self._task:
            self._task.cancel()
