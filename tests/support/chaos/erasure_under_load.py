"""Erasure of a user under load, while a provider has a batch with the user's messages."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from nats.aio.client import Client

from mnemon_bench.provider_server.server import ProviderServer
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.settings.language_models import Compaction, Extraction
from mnemon_contracts.subjects import build_memory_subject, build_user_filters
from mnemon_contracts.verbs.tools import EraseReplyV1
from mnemon_infra.broker.streams.log_reader import read_event_pages, read_last_position
from mnemon_infra.settings.store import change_settings, write_settings
from mnemon_producers.client import MemoryClient
from mnemon_producers.errors import AskFailed
from tests.support.chaos.load import TIMEOUTS
from tests.support.processes.stack import TIMEOUT
from tests.support.settings_edit import setting

TENANT: Final = "beta"
GONE, STAYS = "gone", "stays"
SECRET: Final = "parsnip ice cream"
"""Text of the erased user's messages."""


class Forgetting:
    """Steps of a test: two users have messages in one batch, and one of the users, `GONE`, is erased.

    Args:
        connection: connection to the NATS servers.
        url: address of the NATS servers.
        server: the provider.
    """

    def __init__(self, connection: Client, url: str, server: ProviderServer) -> None:
        self._connection = connection
        self._url = url
        self._server = server
        server.state.polls = 10**9

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables with which the consumers reach the provider."""
        return {
            "MNEMON_MODEL_URL": self._server.openai_url,
            "MNEMON_MODEL_API_KEY": "test",
            "MNEMON_EXTRACT_SECONDS": "1",
        }

    async def set(self) -> None:
        """Change the settings so that a model extracts facts of the tenant `TENANT` only."""
        unread = SettingsV1(extraction=Extraction(enabled=False), compaction=Compaction(enabled=False))
        await write_settings(self._connection, unread)
        read = {"enabled": True, "provider": "openai", "idle_seconds": 1.0, "pool_seconds": 1.0}
        await change_settings(
            self._connection, setting(**{f"extraction__{n}": v for n, v in read.items()}), TENANT
        )

    async def told(self) -> None:
        """Publish a message of each user, and wait until the provider has a batch with both."""
        async with MemoryClient.connect(self._url, tenant=TENANT, timeouts=TIMEOUTS) as memory:
            await memory.publish(GONE, "user", f"I like {SECRET}")
            await memory.publish(STAYS, "user", "I like tea")
            async with asyncio.timeout(TIMEOUT):
                while sum(len(batch.lines) for batch in self._server.state.list_batches()) < 2:
                    await asyncio.sleep(0.1)
            left = (await memory.erase(GONE, verify=True)).left
        assert left is not None
        assert left["model_batches"] == 1, left

    async def erased(self) -> None:
        """Erase the user `GONE`, repeatedly until no store besides `vectors` is pending."""
        async with MemoryClient.connect(self._url, tenant=TENANT, timeouts=TIMEOUTS) as memory:
            async with asyncio.timeout(TIMEOUT):
                while set((await _erase(memory)).pending) - {"vectors"}:
                    await asyncio.sleep(0.1)

    async def answered(self) -> None:
        """End the batches of the provider, and wait until the log has a proposed fact of the user `STAYS`."""
        for batch in self._server.state.list_batches():
            batch.polls = 0
        proposed = build_memory_subject(TENANT, STAYS, "fact.proposed")
        async with asyncio.timeout(TIMEOUT):
            while not await read_last_position(self._connection, proposed):
                await asyncio.sleep(0.1)

    async def is_gone(self) -> None:
        """Assert that `erase` with `verify` finds nothing, and the log has only the `user.erased` event."""
        async with MemoryClient.connect(self._url, tenant=TENANT, timeouts=TIMEOUTS) as memory:
            looked = await memory.erase(GONE, verify=True, text=SECRET)
        assert not any((looked.left or {"": 1}).values()), looked
        assert not any((looked.found or {"": 1}).values()), looked
        left = [
            each.subject
            for pattern in build_user_filters(TENANT, GONE)
            async for page in read_event_pages(self._connection, pattern, 0)
            for each in page
        ]
        assert set(left) == {build_memory_subject(TENANT, GONE, "user.erased")}


def found_in(folders: Iterable[Path], words: str) -> list[Path]:
    """Return the files in the folders that contain the text `words`, encoded in UTF-8."""
    files = (path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file())
    return [path for path in files if words.encode() in path.read_bytes()]


async def _erase(memory: MemoryClient) -> EraseReplyV1:
    """Erase the user `GONE`; repeat the request while its error is retryable."""
    async with asyncio.timeout(TIMEOUT):
        while True:
            try:
                return await memory.erase(GONE)
            except AskFailed as failed:
                if not failed.retryable:
                    raise
                await asyncio.sleep(0.1)
