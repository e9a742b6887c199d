"""Address and socket of a command that serves HTTP."""

import socket
from typing import Annotated

import typer

from mnemon.cli.terminal.exit_code import ExitCode, refuse

HostOption = Annotated[
    str,
    typer.Option("--host", metavar="ADDRESS", help="Address to listen on; 0.0.0.0 means every interface."),
]
PortOption = Annotated[
    int,
    typer.Option(
        "--port", metavar="PORT", min=0, max=65_535, help="Port to listen on; 0 means any free port."
    ),
]


def open_socket(service: str, host: str, port: int, *, option: str = "--port") -> socket.socket:
    """Return a listening socket for a service; end the command if the address cannot be used.

    Args:
        service: name of the service in error messages.
        host: address to listen on.
        port: port to listen on; 0 means any free port.
        option: option of the command that sets the port.
    """
    from mnemon.http.server import open_listening_socket

    try:
        return open_listening_socket(host, port)
    except OSError as error:
        refuse(
            ExitCode.USAGE_ERROR,
            f"{service} cannot listen on {host}:{port}: {error.strerror}",
            f"Choose another port or address: {option} PORT, --host ADDRESS",
        )
