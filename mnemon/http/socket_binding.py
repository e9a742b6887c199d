"""Listening socket of an HTTP server, and its address."""

import socket


def open_listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that accepts connections.

    Raises:
        OSError: another process has the port, or the host is no address of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


def format_address(listening: socket.socket) -> str:
    """Return the address of the socket for a browser on this machine."""
    host, port = listening.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - to be opened, not listened on
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
