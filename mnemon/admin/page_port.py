"""Port of the admin page of a folder. It stays the same across starts."""

import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

from mnemon.admin.session.tokens import kept_in
from mnemon.http.socket_binding import listening_on
from mnemon_infra.process.data_folder import replace_file

_HOST: Final = "127.0.0.1"


class PagePortTaken(Exception):
    """Another process has the chosen port."""


def listening_for(data: Path, port: int | None) -> socket.socket:
    """Return a listening socket on this machine.

    Without a port, take the former port of the folder if it is free, else any free one.

    Raises:
        PagePortTaken: another process has the chosen port.
    """
    if port:
        try:
            return _kept(data, listening_on(_HOST, port))
        except OSError as error:
            raise PagePortTaken(f"the admin page cannot listen on port {port}: {error.strerror}") from error
    with suppress(OSError, ValueError):
        return listening_on(_HOST, int((kept_in(data) / "port").read_text("ascii")))
    return _kept(data, listening_on(_HOST, 0))


def _kept(data: Path, listening: socket.socket) -> socket.socket:
    replace_file(kept_in(data) / "port", str(listening.getsockname()[1]))
    return listening
