"""Readiness of processes, as their HTTP endpoints report it, and the seconds until it changes."""

import asyncio
import json
import time
from collections.abc import Sequence
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from tests.support.processes.stack import TIMEOUT


def ask_endpoint(port: int, path: str = "readyz") -> tuple[int, list[str]]:
    """Return the HTTP status of an endpoint, and its reasons; status 0 and the error if nothing answers."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/{path}", timeout=30) as response:
            return response.status, json.load(response)["reasons"]
    except HTTPError as error:
        with error:
            return error.code, json.load(error)["reasons"]
    except (URLError, ConnectionError, TimeoutError) as error:
        return 0, [repr(error)]


class Readiness:
    """Readiness of several processes, whose endpoints are polled ten times a second."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = ports

    async def load_reasons(self) -> list[str]:
        """Return the reasons of all processes that are not ready; empty if all are ready."""
        answers = await asyncio.gather(*(asyncio.to_thread(ask_endpoint, port) for port in self._ports))
        return [reason for status, reasons in answers if status != 200 for reason in reasons]

    async def measure_failure(self, words: str) -> tuple[float, str]:
        """Wait until a reason contains the text `words`; return the seconds of the wait, and the reason."""
        begun = time.monotonic()
        async with asyncio.timeout(2 * TIMEOUT):
            while True:
                for reason in await self.load_reasons():
                    if words in reason:
                        return time.monotonic() - begun, reason
                await asyncio.sleep(0.1)

    async def measure_recovery(self) -> float:
        """Wait until all processes are ready, and return the seconds of the wait."""
        begun = time.monotonic()
        async with asyncio.timeout(2 * TIMEOUT):
            while await self.load_reasons():
                await asyncio.sleep(0.1)
        return time.monotonic() - begun
