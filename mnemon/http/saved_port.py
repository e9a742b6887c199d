"""Port of an HTTP service, saved in a data folder so that the address of the service stays the same."""

import errno
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

from mnemon.http.server import open_listening_socket
from mnemon_infra.process.data_folder import replace_file

_HOST: Final = "127.0.0.1"


class PortTaken(Exception):
    """The chosen port cannot be opened, for example because another process has it."""


def open_saved_port(path: Path, port: int | None, usual: int = 0) -> socket.socket:
    """Return a listening socket on 127.0.0.1, and save its port in `path`.

    Args:
        path: file with the port of the former run.
        port: the chosen port; None means the former port if that is free, else the usual port, else any.
        usual: port for the first run, and for a run whose former port is taken; 0 means any free port.

    Raises:
        PortTaken: the chosen port cannot be opened.
        OSError: no free port can be opened, or the file cannot be written.
    """
    if port:
        return _save_port(path, _open_chosen_port(port))
    if former := read_saved_port(path):
        with suppress(OSError):
            return open_listening_socket(_HOST, former)
    try:
        listening = open_listening_socket(_HOST, usual)
    except OSError:
        listening = open_listening_socket(_HOST, 0)
    return _save_port(path, listening)


def require_free_port(port: int) -> None:
    """Check that a chosen port can be opened now; the port is closed again.

    Raises:
        PortTaken: the port cannot be opened.
    """
    _open_chosen_port(port).close()


def read_saved_port(path: Path) -> int | None:
    """Return the port of the former run; None if the file has none."""
    try:
        return int(path.read_text("ascii"))
    except (OSError, ValueError):
        return None


def _open_chosen_port(port: int) -> socket.socket:
    try:
        return open_listening_socket(_HOST, port)
    except OSError as error:
        problem = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be opened: {error.strerror}"
        raise PortTaken(f"port {port} {problem}") from error


def _save_port(path: Path, listening: socket.socket) -> socket.socket:
    try:
        replace_file(path, str(listening.getsockname()[1]))
    except OSError:
        listening.close()
        raise
    return listening
