"""HTTP server within a process."""

import socket

from starlette.applications import Starlette

from mnemon.http.server import open_listening_socket, serve_http


async def test_connections_send_bodies_without_delay() -> None:
    with open_listening_socket("127.0.0.1", 0) as listening:
        async with serve_http(Starlette(), listening.dup()):
            pass
        with socket.create_connection(listening.getsockname()):
            accepted, _ = listening.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
