"""`mnemon export markdown --follow`: a folder of Markdown files that follows memory."""

import asyncio
import json
import signal
import stat
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from mnemon.operations.exports.mirror_folder import STATE
from mnemon_contracts.subjects import build_memory_subject
from mnemon_infra.broker.connection import connect
from mnemon_producers.client import MemoryClient
from tests.support.patience import PATIENT
from tests.support.processes.command_server import ForkedCommand
from tests.support.processes.stack import TIMEOUT, Up, mnemon, start_mnemon, until

TEA = "] Likes green tea without sugar\n"


class Follower:
    """`mnemon export markdown --follow` in a process of its own, with its output in the file `said`."""

    def __init__(self, up: Up, folder: Path, *scope: str) -> None:
        self.said = folder.parent / f"{folder.name}.log"
        self._command = ("export", "markdown", *scope, "--follow", "-o", folder, "--data", up.data, "--json")
        self._process: Process | ForkedCommand | None = None

    async def start(self) -> None:
        with self.said.open("wb") as output:
            self._process = process = await start_mnemon(
                *map(str, self._command), environment={}, output=output, errors=output
            )
        await until(lambda: "following into" in self.said.read_text() or process.returncode is not None)
        assert process.returncode is None, self.said.read_text()

    def send_signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(number)

    async def end(self, number: signal.Signals) -> int:
        assert self._process is not None
        self.send_signal(number)
        async with asyncio.timeout(TIMEOUT):
            return await self._process.wait()


@asynccontextmanager
async def following(up: Up, folder: Path, *scope: str) -> AsyncIterator[Follower]:
    follower = Follower(up, folder, *scope)
    try:
        await follower.start()
        yield follower
    finally:
        await follower.end(signal.SIGKILL)


def text_of(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def says(path: Path, line: str) -> Callable[[], bool]:
    return lambda: line in text_of(path)


def client(up: Up, tenant: str) -> AbstractAsyncContextManager[MemoryClient]:
    assert up.endpoints
    return MemoryClient.connect(up.endpoints.nats, tenant=tenant, timeouts=PATIENT)


@pytest.fixture
def tenant() -> str:
    return f"follow{uuid4().hex[:8]}"


async def test_followed_file_matches_the_memory(shared: Up, tmp_path: Path, tenant: str) -> None:
    folder = tmp_path / "files"
    anna, bo = folder / tenant / "anna.md", folder / tenant / "%42o.md"
    async with client(shared, tenant) as memory:
        await memory.save("Bo", "Plays the cello in an orchestra")
        async with following(shared, folder, "--tenant", tenant) as follower:
            assert "Plays the cello" in bo.read_text(), "it was known before"
            assert not anna.exists()

            saved = await memory.save("anna", "Likes green tea without sugar")
            await until(says(anna, TEA))
            assert f"- [id:{saved.id}] [t:" in anna.read_text()
            await memory.save(
                "anna",
                "Has a dentist appointment",
                tier="working",
                expires_at=datetime(2999, 3, 1, tzinfo=UTC),
            )
            await until(says(anna, "[t:working] [imp:normal] [exp:2999-03-01] Has a dentist appointment\n"))
            await memory.set_profile("anna", {"city": "Lisbon"})
            await until(says(anna, "- city: Lisbon\n"))
            task = await memory.add_task("anna", "Call the bank")
            await until(says(anna, f"- [ ] [id:{task.task_id}] Call the bank\n"))
            modes = [stat.S_IMODE(each.stat().st_mode) for each in (folder, anna.parent, anna)]
            assert modes == [0o700, 0o700, 0o600]

            await memory.forget("anna", saved.id)
            await until(lambda: TEA not in anna.read_text())
            assert "Call the bank" in anna.read_text()

            await memory.erase("anna")
            await until(lambda: not anna.exists())
            assert "Plays the cello" in bo.read_text()

            assert await follower.end(signal.SIGTERM) == 0
            figures = json.loads(follower.said.read_text().splitlines()[-1])
            assert (figures["removed"], figures["written"] >= 6) == (1, True)
            assert figures["position"] == json.loads((folder / STATE).read_text())["position"]
            assert {each.name for each in folder.rglob("*.md")} == {"%42o.md"}


@pytest.mark.long
async def test_killed_follower_resumes_at_its_position(shared: Up, tmp_path: Path, tenant: str) -> None:
    folder = tmp_path / "files"
    files = {user: folder / tenant / f"{user}.md" for user in ("anna", "bo", "eve")}
    async with client(shared, tenant) as memory:
        for user in files:
            await memory.save(user, "Plays the cello in an orchestra")
        async with following(shared, folder, "--tenant", tenant) as follower:
            assert all(path.exists() for path in files.values())
            position = json.loads((folder / STATE).read_text())["position"]
            await follower.end(signal.SIGKILL)

            await memory.save("anna", "Likes green tea without sugar")
            await memory.erase("bo")
            untouched = files["eve"].stat().st_ino
            files["eve"].write_text("is read again only where something has changed")

            await follower.start()
            await until(says(files["anna"], TEA))
            await until(lambda: not files["bo"].exists())
            await until(lambda: json.loads((folder / STATE).read_text())["position"] > position)
            assert files["eve"].stat().st_ino == untouched
            assert files["eve"].read_text().startswith("is read again")


async def test_followed_folder_of_another_log_is_compared_with_memory(
    shared: Up, tmp_path: Path, tenant: str
) -> None:
    folder = tmp_path / "files"
    known, unknown = (folder / tenant / name for name in ("anna.md", "ghost.md"))
    async with client(shared, tenant) as memory:
        await memory.save("anna", "Likes green tea without sugar")
    async with following(shared, folder, "--tenant", tenant) as follower:
        await follower.end(signal.SIGTERM)
        state = json.loads((folder / STATE).read_text())
        for other in {**state, "log": "made at another time"}, {**state, "position": 10**12}:
            (folder / STATE).write_text(json.dumps(other))
            known.write_text("- Likes coffee\n")
            unknown.write_text("- Is of a log that is gone\n")
            await follower.start()
            assert (TEA in known.read_text(), unknown.exists()) == (True, False)
            await follower.end(signal.SIGTERM)


async def test_followed_folders_separate_tenants(shared: Up, tmp_path: Path, tenant: str) -> None:
    other = f"{tenant}other"
    both, one = tmp_path / "both", tmp_path / "one"
    async with (
        client(shared, tenant) as memory,
        client(shared, other) as others,
        following(shared, both, "--all"),
        following(shared, one, "--tenant", tenant),
    ):
        await others.save("anna", "Plays the cello in an orchestra")
        await memory.save("anna", "Likes green tea without sugar")
        await until(says(both / tenant / "anna.md", TEA))
        await until(says(both / other / "anna.md", "Plays the cello"))
        await until(says(one / tenant / "anna.md", TEA))
        assert "cello" not in (both / tenant / "anna.md").read_text()
        assert [each.name for each in one.iterdir() if not each.name.startswith(".")] == [tenant]


async def test_follower_combines_many_changes_into_few_writes(
    shared: Up, tmp_path: Path, tenant: str
) -> None:
    assert shared.endpoints
    folder, subject = tmp_path / "files", build_memory_subject(tenant, "anna", "profile.set")
    connection = await connect(shared.endpoints.nats, name="test")
    try:
        async with following(shared, folder, "--tenant", tenant) as follower:
            fields = (json.dumps({"fields": {f"field{number}": number}}).encode() for number in range(300))
            follower.send_signal(signal.SIGSTOP)  # all changes arrive while the follower is stopped
            jetstream = connection.jetstream(timeout=TIMEOUT)
            await asyncio.gather(*(jetstream.publish(subject, each) for each in fields))
            follower.send_signal(signal.SIGCONT)
            await until(lambda: text_of(folder / tenant / "anna.md").count("- field") == 300)
            await follower.end(signal.SIGTERM)
            assert 1 <= json.loads(follower.said.read_text().splitlines()[-1])["written"] < 100
    finally:
        await connection.close()


async def test_follower_refuses_a_folder_of_other_content(shared: Up, tmp_path: Path, tenant: str) -> None:
    (tmp_path / "diary.md").write_text("mine")
    wrong = await mnemon(
        "export", "markdown", "--tenant", tenant, "--follow", "-o", tmp_path, "--data", shared.data
    )
    assert (wrong.code, "'diary.md'" in wrong.err, "-o DIR" in wrong.err) == (2, True, True)

    on_output = await mnemon("export", "markdown", "--all", "--follow", "-o", "-", "--data", shared.data)
    assert (on_output.code, "Name a folder" in on_output.err) == (2, True)
