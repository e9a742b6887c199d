"""The admin page with servers that accept connections and never answer."""

import asyncio

import pytest

from mnemon.admin import page as visiting
from mnemon.admin.connections import ServerConnections
from mnemon_infra.config import Deployment
from tests.support.admin.http_browser import browsing, words


async def test_page_times_out_on_hanging_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visiting, "PAGE_TIMEOUT", 0.2)
    release = asyncio.Event()

    async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with browsing(Deployment(database_dsn=f"postgresql://x@127.0.0.1:{port}/x")) as browser:
            page = words(await browser.see("/users", 503))
            assert "A server did not answer in time" in page
        release.set()


async def test_page_connects_again_after_its_connection_was_closed_for_good(nats_url: str) -> None:
    async with ServerConnections(Deployment(nats_url=nats_url)).close_at_end() as parts:
        await (await parts.get_broker()).close()  # as nats-py does after an error of the server
        await (await parts.get_broker()).flush()
