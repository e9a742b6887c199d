"""Free ports."""

import random
import socket
from contextlib import ExitStack
from typing import Final

_PORTS: Final = range(10_000, 30_000)
"""Ports below those that the kernel gives to connections: no connection takes one of these."""

_RANDOM: Final = random.SystemRandom()
"""Differs between the processes of a test run, which share the seed of `random`."""


def free_port(following: int = 0) -> int:
    """Return a port that is free, as are so many that follow it."""
    while True:
        port = _RANDOM.choice(_PORTS)
        with ExitStack() as held:
            try:
                for each in range(port, port + 1 + following):
                    held.enter_context(socket.create_server(("127.0.0.1", each)))
            except OSError:
                continue
        return port
