"""Free ports."""

import socket
from contextlib import ExitStack


def free_port(following: int = 0) -> int:
    """A port that is free, as are so many that follow it."""
    while True:
        with ExitStack() as held:
            first = held.enter_context(socket.create_server(("127.0.0.1", 0)))
            port = int(first.getsockname()[1])
            try:
                for other in range(port + 1, port + 1 + following):
                    held.enter_context(socket.create_server(("127.0.0.1", other)))
            except (OSError, OverflowError):
                continue
            return port
