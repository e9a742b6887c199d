"""Launcher of a stack's admin page in a separate process, which runs only while the page is used.

The process of the stack answers bots, so it does not render pages.
"""

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from mnemon.admin.session.tokens import create_link_key, load_token, open_admin_folder
from mnemon.http.lazy_process import LazyProcess, start_on_demand
from mnemon.http.saved_port import open_saved_port
from mnemon.http.server import format_address
from mnemon_infra.config import Deployment


class PageAddress(NamedTuple):
    """The address of the page, and a link that logs in once."""

    address: str
    login: str


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """Options of the process of the admin page.

    Attributes:
        data: the data folder of the stack.
        token: the token of the login.
        links: keys of links that log in once.
    """

    deployment: Deployment
    data: Path
    token: str
    links: list[str] = field(default_factory=list)

    def to_line(self) -> str:
        """Return the options as one line of JSON. The line has secrets: use it for a pipe only."""
        own: dict[str, Any] = {"data": str(self.data), "token": self.token, "links": self.links}
        return json.dumps({"deployment": self.deployment.to_json()} | own)

    @classmethod
    def from_line(cls, text: str | bytes) -> Self:
        """Parse the output of `to_line`."""
        said = json.loads(text)
        deployment = Deployment.from_json(said["deployment"])
        return cls(deployment, Path(said["data"]), said["token"], said["links"])


@asynccontextmanager
async def serve_admin_page(
    data: Path, deployment: Deployment, port: int | None
) -> AsyncIterator[PageAddress]:
    """Serve the admin page of the stack in the folder `data`, for the duration of the block.

    The page listens on 127.0.0.1. If `port` is None, `open_page_socket` chooses the port.

    Raises:
        mnemon.http.saved_port.PortTaken: the chosen port cannot be opened.
        OSError: the token can be neither read nor written, no free port can be opened, or the file with the
            port cannot be written.
    """
    kept = deployment.admin_token
    order = LaunchOptions(
        deployment, data, kept.get_secret_value() if kept else load_token(data), [create_link_key()]
    )

    def remove_link(used: str) -> None:
        with suppress(ValueError):
            order.links.remove(used)  # the next process must not accept a used link

    process = LazyProcess("mnemon.admin", order.to_line, remove_link)
    with open_page_socket(data, port) as listening:
        async with start_on_demand(process, listening):
            address = format_address(listening)
            yield PageAddress(address, f"{address}/login?key={order.links[0]}")


def open_page_socket(data: Path, port: int | None) -> socket.socket:
    """Return the listening socket of the admin page of the stack in the folder `data`, on 127.0.0.1.

    If `port` is None, take the port of the former run if that is free, else any free port.

    Raises:
        mnemon.http.saved_port.PortTaken: the chosen port cannot be opened.
        OSError: no free port can be opened, or the file with the port cannot be written.
    """
    return open_saved_port(open_admin_folder(data) / "port", port)
