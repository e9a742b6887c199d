"""The socket that clients of HTTP connect to."""

import socket


def listening_on(host: str, port: int) -> socket.socket:
    """A socket that takes connections already.

    Raises:
        OSError: somebody else has the port, or the host is not one of ours.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


def shown(listening: socket.socket) -> str:
    """Where a browser of this machine finds it."""
    host, port = listening.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - to be opened, not listened on
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
