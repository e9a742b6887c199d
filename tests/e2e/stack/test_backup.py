"""A folder is lost, and restored from a backup that was made while bots published."""

import asyncio
import json
import shutil
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from mnemon.operations.backup.run import read_records
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.streams.applied_position import read_log_end
from mnemon_infra.embedded.logins import FolderLogins
from mnemon_producers.client import MemoryClient
from mnemon_producers.timeouts import Timeouts
from tests.support.processes.stack import CommandResult, Up, mnemon, stack_folder, until

USERS = 50
ERASED = "u7"
TIMEOUTS = Timeouts(publish=20, ask=60)


@pytest.fixture
def restored_folder() -> Iterator[Path]:
    with stack_folder() as data:
        yield data


class TalkingUsers:
    """Users who publish until the block ends. `said` has each acknowledged message, by log position."""

    def __init__(self) -> None:
        self.said: dict[int, tuple[str, str]] = {}
        self._change = asyncio.Condition()

    @asynccontextmanager
    async def going_on(self, memory: MemoryClient) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self._speak(memory, f"u{number}")) for number in range(USERS)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def more(self) -> None:
        """Wait until as many further messages as there are users are acknowledged."""
        async with self._change:
            count = len(self.said)
            await self._change.wait_for(lambda: len(self.said) >= count + USERS)

    async def _speak(self, memory: MemoryClient, user: str) -> None:
        number = 0
        while True:
            text = f"{user} says number {number}"
            position = await memory.publish(user, "user", text)
            async with self._change:
                self.said[position] = user, text
                self._change.notify_all()
            number += 1
            await asyncio.sleep(0.05)  # about as fast as a person types


def succeeded(result: CommandResult) -> CommandResult:
    assert result.code == 0, result.out + result.err
    return result


async def lose(up: Up) -> None:
    """Kill the stack and its servers with SIGKILL, and delete the folder."""
    servers = list(up.servers().values())
    await up.kill()
    for server in servers:
        server.send_signal(signal.SIGKILL)
    await until(lambda: not any(psutil.pid_exists(each.pid) for each in servers) or not up.servers())
    shutil.rmtree(up.data)


@pytest.mark.long
async def test_a_lost_folder_is_restored_without_an_erased_user(
    up: Up, restored_folder: Path, tmp_path: Path
) -> None:
    backup, register = tmp_path / "backup", tmp_path / "register"
    environment = {"MNEMON_ERASURE_REGISTER": str(register)}
    login = json.loads((await mnemon("auth", "tenant", "acme", "--data", up.data, "--json")).out)
    endpoints = await up.start(**environment)
    talk = TalkingUsers()

    def address(nats: str) -> str:
        return str(login["url"]).replace("HOST:4222", nats.removeprefix("nats://"))

    async with (
        MemoryClient.connect(address(endpoints.nats), tenant="acme", timeouts=TIMEOUTS) as memory,
        talk.going_on(memory),
    ):
        await talk.more()
        first = json.loads(succeeded(await mnemon("backup", backup, "--data", up.data, "--json")).out)
        await talk.more()
        acknowledged = max(talk.said)
        second = json.loads(succeeded(await mnemon("backup", backup, "--data", up.data, "--json")).out)
        assert second["position"] >= acknowledged
        assert 0 < second["new_events"] < second["events"]
        assert first["position"] < second["position"]
        await talk.more()
        # Under load, stores may be `pending` in the receipt; the test needs the entry of the register only.
        await mnemon("erase", "acme", ERASED, "--yes", "--data", up.data)
        await until(lambda: any(register.rglob("*.json")))
    await lose(up)

    result = json.loads(
        succeeded(await mnemon("restore", backup, "--data", restored_folder, "--json", **environment)).out
    )
    assert result["erasures"] == [{"tenant": "acme", "user": ERASED, "conversation": None}]
    assert result["events"] + result["left_out"] == second["events"]
    assert result["left_out"] > 0
    assert result["requires_login"]

    up = Up(restored_folder)
    endpoints = await up.start(**environment)
    try:
        operator = FolderLogins(restored_folder).add_login(endpoints.nats, "operator")
        async with await connect(operator, name="test") as connection:
            end = await read_log_end(connection.jetstream())
            log = [each async for page in read_records(connection, after=0, up_to=end) for each in page]
        stored = {each.seq: each for each in log}
        expected = {
            position: text
            for position, (user, text) in talk.said.items()
            if position <= second["position"] and user != ERASED
        }
        assert len(expected) > USERS
        assert [text for position, text in expected.items() if text not in stored[position].body] == []
        assert [each.subject for each in log if f".{ERASED}." in each.subject] == [
            f"memory.acme.{ERASED}.user.erased.v1"
        ]

        # The password that the tenant's bot had before the restore still works.
        async with MemoryClient.connect(address(endpoints.nats), tenant="acme", timeouts=TIMEOUTS) as memory:
            assert (await memory.history(ERASED)).messages == ()
            assert len((await memory.history("u1", limit=5)).messages) == 5
        await until(lambda: up.endpoints is not None)
        async with asyncio.timeout(90):
            while (await mnemon("audit", "--data", restored_folder)).code:
                await asyncio.sleep(0.5)  # until `index` has caught up
        verified = await mnemon(
            "erase", "acme", ERASED, "--verify", "--text", ERASED, "--data", restored_folder, "--json"
        )
        left = json.loads(verified.out)
        assert not any((*left["left"].values(), *left["found"].values())), left
        succeeded(await mnemon("status", "--data", restored_folder))
    finally:
        await up.stop()
