"""A nats-server whose streams can go back to an older state."""

import asyncio
import shutil
from pathlib import Path

from nats.aio.client import Client

from mnemon_infra.embedded.nats_server import NatsServer
from tests.support.processes.stack import TIMEOUT


class LogServer:
    """A nats-server whose folder can be copied, and replaced by the copy later."""

    def __init__(self, folder: Path) -> None:
        self._home = folder / "nats"
        self._copy = folder / "copy"
        self.server = NatsServer(folder, None)

    async def keep_state(self) -> None:
        await self.server.stop()
        shutil.copytree(self._home, self._copy)
        await self.server.start()

    async def restore_state(self) -> None:
        await self.server.stop()
        shutil.rmtree(self._home)
        shutil.copytree(self._copy, self._home)
        await self.server.start()

    async def restore_messages(self, stream: str) -> None:
        """Restore the messages of a stream, but not its durables, as a kill of the server may do."""
        await self.server.stop()
        (kept,) = self._copy.glob(f"jetstream/*/streams/{stream}/msgs")
        messages = self._home / kept.relative_to(self._copy)
        shutil.rmtree(messages)
        shutil.copytree(kept, messages)
        await self.server.start()


async def await_reconnection(connection: Client) -> None:
    """Wait until the connection is open again."""
    async with asyncio.timeout(TIMEOUT):
        while not connection.is_connected:
            await asyncio.sleep(0.02)
