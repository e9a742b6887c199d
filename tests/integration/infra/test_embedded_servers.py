"""Servers of the embedded stack: own orphaned processes are ended, processes of others are left alone."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import unquote
from uuid import uuid4

import psutil
import psycopg
import pytest
from structlog.testing import capture_logs

from mnemon_consumers.background_process import BackgroundFailed
from mnemon_infra.broker.connection import connect
from mnemon_infra.config import Deployment
from mnemon_infra.embedded import disk_space
from mnemon_infra.embedded.account import build_account_arguments, find_service_account
from mnemon_infra.embedded.nats_server import NatsServer
from mnemon_infra.embedded.postgres import Postgres
from mnemon_infra.embedded.process import ServerFailed, ServerPortTaken
from mnemon_infra.embedded.stack import run_stack
from mnemon_infra.process.cancellation import run_task
from mnemon_infra.process.data_folder import Endpoints, FolderInUse, lock_folder


@pytest.fixture
def data() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="mnemon-test-"))
    yield folder
    # A failed test may leave its servers running.
    for process in psutil.process_iter(["cmdline"]):
        if any(argument.startswith(f"{folder}/") for argument in process.info["cmdline"] or ()):
            with suppress(psutil.NoSuchProcess):
                process.kill()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """An unrelated process of the account under which PostgreSQL runs."""
    process = subprocess.Popen(["sleep", "600"], **build_account_arguments(find_service_account()))
    yield process
    process.kill()
    process.wait()


def test_a_folder_is_held_once(data: Path) -> None:
    with lock_folder(data), pytest.raises(FolderInUse) as refused, lock_folder(data):
        pass
    assert refused.value.pid == os.getpid()
    with lock_folder(data):
        pass


def test_truncated_endpoints_file_is_ignored(data: Path) -> None:
    assert Endpoints.read(data) is None
    (data / "endpoints.json").write_text('{"nats": "nats://')
    assert Endpoints.read(data) is None


async def test_reused_pid_is_left_alone(data: Path, stranger: subprocess.Popen[bytes]) -> None:
    server = NatsServer(data, None)
    server.pid_path.parent.mkdir()
    server.pid_path.write_text(str(stranger.pid))
    await server.start()
    assert stranger.poll() is None
    await server.stop()


@pytest.mark.long
async def test_stale_postgresql_lock_with_reused_pid_is_cleared(
    data: Path, stranger: subprocess.Popen[bytes]
) -> None:
    server = Postgres(data, None)
    await server.start()
    lock = data / "postgres" / "postmaster.pid"
    _, *rest = lock.read_text().splitlines()
    await server.stop()
    lock.write_text("\n".join([str(stranger.pid), *rest]))
    await server.start()
    assert stranger.poll() is None
    await server.stop()


@pytest.mark.long
async def test_shared_memory_of_killed_postgresql_is_named(data: Path) -> None:
    server = Postgres(data, None)
    await server.start()
    postmaster = psutil.Process(int(server.pid_path.read_text()))
    lingering, *_ = postmaster.children()
    lingering.suspend()
    try:
        postmaster.kill()
        await server.wait_for_end()
        with pytest.raises(ServerFailed, match=r"FATAL: .*still in use"):
            await server.start()
    finally:
        lingering.kill()


@pytest.mark.long
async def test_start_of_a_killed_postgresql_raises_server_failed(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder's name is not ASCII, so the socket is in a temporary folder, where it stays."""
    folder = data / "путь"
    folder.mkdir()
    server = Postgres(folder, None)
    await server.prepare()
    sockets = unquote(server.url.partition("host=")[2].partition("&")[0])
    assert not sockets.startswith(str(folder))
    is_ready = server.is_responding

    def kill_ready_server(pid: int) -> bool:
        if is_ready(pid):
            with suppress(psutil.NoSuchProcess):
                psutil.Process(pid).kill()
        return False

    monkeypatch.setattr(server, "is_responding", kill_ready_server)
    try:
        with pytest.raises(ServerFailed, match="does not start"):
            await server.start()
    finally:
        shutil.rmtree(sockets, ignore_errors=True)


async def test_an_orphan_is_ended_before_the_next_start(data: Path) -> None:
    abandoned = NatsServer(data, None)
    await abandoned.start()
    (orphan,) = abandoned.list_orphans()
    server = NatsServer(data, None)
    await server.start()
    await abandoned.wait_for_end()  # reap the process: as a zombie it counts as running
    assert not orphan.is_running()
    assert server.url == abandoned.url
    await server.stop()


async def test_an_orphan_that_does_not_listen_is_killed(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NatsServer, "ending", ((signal.SIGTERM, 0.2), (signal.SIGKILL, 5.0)))
    abandoned = NatsServer(data, None)
    await abandoned.start()
    (orphan,) = abandoned.list_orphans()
    orphan.suspend()
    server = NatsServer(data, None)
    await server.start()
    assert await abandoned.wait_for_end() == -signal.SIGKILL
    await server.stop()


async def test_a_cancelled_stop_still_kills_a_server_that_ignores_sigterm(data: Path) -> None:
    server = NatsServer(data, None)
    await server.start()
    (process,) = server.list_orphans()
    process.suspend()  # does not react to SIGTERM
    stopping = asyncio.create_task(server.stop())
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert await server.wait_for_end() == -signal.SIGKILL


async def test_a_port_that_is_taken_is_named(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = NatsServer(data, taken.getsockname()[1])
        with pytest.raises(ServerFailed, match="address already in use"):
            await server.start()


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    ["with space, comma", "память", "long" * 30, "per%20cent+plus"],
)
async def test_servers_start_in_folders_of_any_name(data: Path, name: str) -> None:
    folder = data / name
    folder.mkdir()
    database, broker = Postgres(folder, None), NatsServer(folder, None)
    await database.start()
    await broker.start()
    with psycopg.connect(database.url) as connection:
        assert connection.execute("SHOW fsync").fetchone() == ("on",)
    assert not database.log_path.parent.stat().st_mode & 0o077
    await broker.stop()
    await database.stop()


@pytest.mark.parametrize(("option", "part"), [("nats_port", "broker"), ("database_port", "database")])
async def test_a_stack_whose_port_is_taken_starts_no_server(data: Path, option: str, part: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ServerPortTaken, match=f"^port {port} is in use$") as refused:
            async with run_stack(data, Deployment.model_construct(), **{option: port}):
                pass
    assert refused.value.part == part
    assert not list((data / "logs").glob("*"))


async def test_a_chosen_port_is_free_once_the_servers_of_a_killed_run_have_ended(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    former, server = NatsServer(data, port), NatsServer(data, port)
    await former.start()
    server.require_port(port)
    await server.start()
    await server.stop()
    server.require_port(port)


@pytest.mark.long
async def test_leftovers_of_killed_initialisation_are_cleared(data: Path) -> None:
    abandoned = data / "postgres.new-abandoned"
    abandoned.mkdir()
    server = Postgres(data, None)
    await server.start()
    assert list(data.glob("postgres.new-*")) == []
    with psycopg.connect(server.url) as connection:
        # The collation is the same on every machine, and `upper` handles Cyrillic letters.
        assert connection.execute("SELECT upper('привет'), 'a' < 'B'").fetchone() == ("ПРИВЕТ", False)
    await server.stop()


async def test_disk_of_the_folder_is_watched_with_a_qdrant_server_too(
    data: Path, deployment: Deployment
) -> None:
    served = deployment.model_copy(update={"qdrant_url": "http://127.0.0.1:1"})
    async with run_stack(data, served) as stack:
        assert stack.deployment.vectors_folder == data / "vectors"


@pytest.mark.long
async def test_start_is_retried_only_after_the_end_of_a_server(data: Path, database_url: str) -> None:
    deployment = Deployment(database_dsn=database_url, database_schema=f"test_{uuid4().hex[:12]}")
    starts = 0

    @asynccontextmanager
    async def starting() -> AsyncIterator[str]:
        nonlocal starts
        starts += 1
        if starts == 1:
            stack.servers[0].ask_to_end()
            await stack.servers[0].wait_for_end()
            raise BackgroundFailed("persist: they do not start")
        async with await connect(stack.endpoints.nats, name="test"):
            yield "ready"

    @asynccontextmanager
    async def refused() -> AsyncIterator[None]:
        raise BackgroundFailed("compact: they do not start")
        yield

    async with run_stack(data, deployment) as stack:
        async with stack.enter_with_retries(starting) as said:
            assert (said, starts) == ("ready", 2)
        with pytest.raises(BackgroundFailed, match="compact"):
            async with stack.enter_with_retries(refused):
                pass
        with pytest.raises(LookupError):
            async with stack.enter_with_retries(starting):
                raise LookupError


async def test_watch_of_a_disk_goes_on_after_the_log_file_was_deleted(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = NatsServer(data, None)
    await server.start()
    freed = asyncio.Event()
    monkeypatch.setattr(disk_space, "CHECK_INTERVAL", 0.01)
    monkeypatch.setattr(disk_space, "LEAST", 2**60)
    with capture_logs() as said:
        async with run_task(disk_space.watch_disk(data, server, freed.set)), asyncio.timeout(10):
            while not any("disk full" in line["event"] for line in said):
                await asyncio.sleep(0.01)
            server.log_path.unlink()
            await asyncio.sleep(0.05)
            monkeypatch.setattr(disk_space, "LEAST", 1)
            await freed.wait()
            await server.wait_for_end()
