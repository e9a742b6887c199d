"""The port of the page of a folder, which is the same from start to start."""

import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

from mnemon.admin.session.tokens import kept_in
from mnemon.http.socket_binding import listening_on
from mnemon_infra.embedded.folder import replace

_HOST: Final = "127.0.0.1"


class PagePortTaken(Exception):
    """Somebody else has the port that was chosen."""


def listening_for(data: Path, port: int | None) -> socket.socket:
    """A socket on this machine; without a port on the one that the folder had, or else on a free one.

    Raises:
        PortTaken: it was chosen, and somebody else has it.
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
    replace(kept_in(data) / "port", str(listening.getsockname()[1]))
    return listening
