"""Port of the admin page of a folder. It stays the same across starts."""

import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

from mnemon.admin.session.tokens import open_admin_folder
from mnemon.http.socket_binding import open_listening_socket
from mnemon_infra.process.data_folder import replace

_HOST: Final = "127.0.0.1"


class PagePortTaken(Exception):
    """Another process has the chosen port."""


def open_page_socket(data: Path, port: int | None) -> socket.socket:
    """Return a listening socket on this machine.

    Without a port, take the former port of the folder if it is free, else any free one.

    Raises:
        PagePortTaken: another process has the chosen port.
    """
    if port:
        try:
            return _save_port(data, open_listening_socket(_HOST, port))
        except OSError as error:
            raise PagePortTaken(f"the admin page cannot listen on port {port}: {error.strerror}") from error
    with suppress(OSError, ValueError):
        return open_listening_socket(_HOST, int((open_admin_folder(data) / "port").read_text("ascii")))
    return _save_port(data, open_listening_socket(_HOST, 0))


def _save_port(data: Path, listening: socket.socket) -> socket.socket:
    replace(open_admin_folder(data) / "port", str(listening.getsockname()[1]))
    return listening
