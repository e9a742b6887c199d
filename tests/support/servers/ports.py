"""Free ports."""

import random
import socket
from contextlib import ExitStack
from typing import Final

_PORTS: Final = range(10_000, 30_000)
"""Ports below the range from which the kernel chooses local ports of connections."""

_RANDOM: Final = random.SystemRandom()
"""Source of random ports without a seed: processes of a test run share the seed of `random`."""


def free_port(following: int = 0) -> int:
    """Return a free port on 127.0.0.1 that is followed by `following` free ports."""
    while True:
        port = _RANDOM.choice(_PORTS)
        with ExitStack() as held:
            try:
                for each in range(port, port + 1 + following):
                    held.enter_context(socket.create_server(("127.0.0.1", each)))
            except OSError:
                continue
        return port
